#include "tools/basalt/key_sources.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tools/basalt/repeated_key.h"

namespace basalt::tools {
namespace {

namespace fs = std::filesystem;

class KeySources : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "basalt_keys_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    home_ = name;
  }
  void TearDown() override { fs::remove_all(home_); }

  /// The path of a file with these bytes.
  std::string File(const std::string& bytes) const {
    std::ofstream(home_ / "keys", std::ios::binary) << bytes;
    return (home_ / "keys").string();
  }

  static std::vector<std::string> Walked(const KeySource& source) {
    std::vector<std::string> keys;
    const Status walked = source.Walk([&](std::span<const std::string_view> some) {
      keys.insert(keys.end(), some.begin(), some.end());
    });
    EXPECT_TRUE(walked.ok()) << walked.ToString();
    EXPECT_EQ(keys.size(), source.size());
    return keys;
  }

  static KeyLines Lines(const std::string& path, KeyForm form = KeyForm::kText,
                        uint32_t payload_bits = 0) {
    return {LineReader::Open(path).value(), form, payload_bits};
  }

  fs::path home_;
};

TEST_F(KeySources, AFileGivesTheSameKeysAtEachWalkAndInMemory) {
  const std::string path = File("a\r\n\n\\x00\\t\\n\nlast");
  const std::vector<std::string> keys = {"a", "", std::string("\0\t\n", 3), "last"};
  const KeyFile file = KeyFile::Open(path, KeyForm::kText, nullptr).value();
  EXPECT_EQ(Walked(file), keys);
  EXPECT_EQ(Walked(file), keys);
  EXPECT_EQ(Walked(KeysInMemory::Read(Lines(path), nullptr).value()), keys);
}

TEST_F(KeySources, KeysInMemoryStayWhereTheyAreHoweverManyThereAre) {
  std::string lines;
  std::vector<std::string> keys;
  for (size_t i = 0; i < 3000; ++i) {
    keys.push_back(std::to_string(i) + std::string(i == 1000 ? 3'000'000 : i % 2000, 'k'));
    lines += keys.back() + "\t" + std::to_string(i) + "\n";
  }
  const KeysInMemory read =
      KeysInMemory::Read(Lines(File(lines), KeyForm::kText, 12), nullptr).value();
  EXPECT_TRUE(Walked(read) == keys);
  EXPECT_EQ(read.payloads()[2999], 2999U);
}

TEST_F(KeySources, AFileThatChangesBetweenWalksIsRefused) {
  const KeyFile file = KeyFile::Open(File("a\nb\n"), KeyForm::kText, nullptr).value();
  EXPECT_EQ(Walked(file).size(), 2U);
  File("a\nb\nc\n");
  const Status walked = file.Walk([](std::span<const std::string_view>) {});
  EXPECT_EQ(walked.code(), StatusCode::kIoError);
  EXPECT_NE(walked.message().find("changed while it was read"), std::string_view::npos);
}

TEST_F(KeySources, NumbersAreDecimalOrHexadecimalBelow2To64) {
  EXPECT_EQ(ParseNumber("0").value(), 0U);
  EXPECT_EQ(ParseNumber("18446744073709551615").value(), UINT64_MAX);
  EXPECT_EQ(ParseNumber("0xFFFFffffFFFFffff").value(), UINT64_MAX);
  EXPECT_EQ(ParseNumber("0X2a").value(), 42U);
  for (const char* text : {"", "0x", "-1", "+1", " 1", "1 ", "1.5", "2a", "0x2g", "0x0x1", "0x-1",
                           "18446744073709551616", "0x10000000000000000"}) {
    const Result<uint64_t> number = ParseNumber(text);
    ASSERT_FALSE(number) << text;
    EXPECT_EQ(number.error().code(), StatusCode::kInvalidArgument) << text;
  }
}

TEST_F(KeySources, AMistakenLineIsNamed) {
  const auto message = [&](const std::string& lines, KeyForm form, uint32_t payload_bits) {
    const Result<KeysInMemory> read =
        KeysInMemory::Read(Lines(File(lines), form, payload_bits), nullptr);
    return read ? "" : std::string(read.error().message());
  };
  const auto expect = [&](const std::string& lines, KeyForm form, uint32_t payload_bits,
                          const std::string& what) {
    const std::string told = message(lines, form, payload_bits);
    EXPECT_NE(told.find("keys:2: " + what), std::string::npos) << told;
  };
  expect("a\nb\\q\n", KeyForm::kText, 0, "in the key: a backslash");
  expect("a\nb\tc\n", KeyForm::kText, 0, "a tab at column 2");
  expect("\n?\n", KeyForm::kBase64, 0, "the key is not base64");
  expect("1\n2x\n", KeyForm::kNumber, 0, "'2x' is not a number");
  expect("a\t1\nb\n", KeyForm::kText, 3, "no tab");
  expect("a\t1\nb\t\n", KeyForm::kText, 3, "in the payload: '' is not a number");
  expect("a\t7\nb\t8\n", KeyForm::kText, 3, "the payload 8 takes more than 3 bits");
}

TEST_F(KeySources, TheFirstRepetitionIsFoundWithAnyMemory) {
  std::string lines;
  for (int i = 0; i < 1000; ++i) lines += "key" + std::to_string(i) + "\n";
  const KeyFile distinct = KeyFile::Open(File(lines), KeyForm::kText, nullptr).value();
  for (const uint64_t memory : {0, 1, 1000, 1'000'000}) {
    EXPECT_FALSE(FindRepeatedKey(distinct, memory).value().has_value()) << memory;
  }
  const KeyFile twice =
      KeyFile::Open(File(lines + "new\nkey123\nother\nkey5\n"), KeyForm::kText, nullptr).value();
  for (const uint64_t memory : {0, 1'000'000}) {
    const std::optional<RepeatedKey> repeated = FindRepeatedKey(twice, memory).value();
    ASSERT_TRUE(repeated.has_value()) << memory;
    EXPECT_EQ(repeated->key, "key123");
    EXPECT_EQ(repeated->place, 1001U);
    EXPECT_EQ(repeated->first_place, 123U);
  }
  for (const uint64_t memory : {1, 1000}) {
    const std::optional<RepeatedKey> repeated = FindRepeatedKey(twice, memory).value();
    ASSERT_TRUE(repeated.has_value()) << memory;
    const bool is_first = repeated->key == "key123";
    EXPECT_EQ(repeated->place, is_first ? 1001U : 1003U);
    EXPECT_EQ(repeated->first_place, is_first ? 123U : 5U);
  }
}

}  // namespace
}  // namespace basalt::tools

// Databases that earlier versions wrote, under tests/golden/: this one opens them and finds what
// content.txt lists. BASALT_WRITE_GOLDEN=<directory> makes a new one (CONTRIBUTING.md says when).

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "basalt/db.h"
#include "base/random.h"
#include "db/environment.h"
#include "tests/crash/write_history.h"

namespace basalt {
namespace {

using Content = std::map<std::string, std::string>;

/// One line a record: key, tab, value; golden content is printable.
Content ReadListing(const std::filesystem::path& path) {
  Content content;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t tab = line.find('\t');
    EXPECT_NE(tab, std::string::npos) << line;
    content[line.substr(0, tab)] = line.substr(tab + 1);
  }
  return content;
}

std::string RandomText(base::Random* random, size_t size) {
  std::string text(size, ' ');
  for (char& c : text) c = static_cast<char>('a' + random->Below(20));
  return text;
}

/// Tables in both levels, deletes, a value of several blocks, and records that only the log has.
void WriteGolden(const std::filesystem::path& directory) {
  auto environment = db::Environment::System(0);
  ASSERT_TRUE(environment);
  environment->table_bytes = 16 << 10;
  environment->memtable_bytes = 64 << 10;
  auto db = db::OpenDatabase((directory / "db").string(), {}, *environment).value();
  base::Random random(2026);
  for (int i = 0; i < 600; ++i) {
    const std::string key = "key" + std::to_string(random.Below(300));
    if (random.OneIn(5)) {
      ASSERT_TRUE(db->Delete(key).ok());
    } else {
      ASSERT_TRUE(db->Put(key, RandomText(&random, random.Below(120))).ok());
    }
    if (i == 100) {
      ASSERT_TRUE(db->Put("large", RandomText(&random, 40'000)).ok());
    }
    if (i == 300) {
      ASSERT_TRUE(db->CompactRange().ok());
    }
    if (i == 450) {
      ASSERT_TRUE(db->Flush().ok());
    }
  }
  ASSERT_TRUE(db->Put("", "the empty key", {.durability = Durability::kPower}).ok());
  const auto content = crash::ReadContent(*db);
  ASSERT_TRUE(content);
  std::ofstream listing(directory / "content.txt");
  for (const auto& [key, value] : *content) listing << key << '\t' << value << '\n';
  ASSERT_TRUE(db->Close().ok());
}

TEST(Golden, DatabasesOfEarlierVersionsOpenWithAllTheyHeld) {
  if (const char* directory = std::getenv("BASALT_WRITE_GOLDEN"); directory != nullptr) {
    WriteGolden(directory);
    return;
  }
  const std::filesystem::path golden = std::filesystem::path(BASALT_SOURCE_DIR) / "tests/golden";
  std::string pattern = (std::filesystem::temp_directory_path() / "basalt-golden-XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  size_t opened = 0;
  for (const auto& entry : std::filesystem::directory_iterator(golden)) {
    if (!entry.is_directory()) continue;
    const std::filesystem::path copy = std::filesystem::path(pattern) / entry.path().filename();
    std::filesystem::copy(entry.path() / "db", copy, std::filesystem::copy_options::recursive);
    const auto report = DB::Check(copy.string());
    ASSERT_TRUE(report) << report.error().ToString();
    EXPECT_TRUE(report->ok()) << copy << ": " << report->findings.front().status.ToString();
    auto db = DB::Open(copy.string(), {.create_if_missing = false});
    ASSERT_TRUE(db) << db.error().ToString();
    const auto content = crash::ReadContent(**db);
    ASSERT_TRUE(content) << content.error().ToString();
    EXPECT_TRUE(*content == ReadListing(entry.path() / "content.txt")) << entry.path();
    EXPECT_GT(content->size(), 100U);
    ++opened;
  }
  EXPECT_GT(opened, 0U);
  std::filesystem::remove_all(pattern);
}

}  // namespace
}  // namespace basalt

#include "embed/safetensors.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/coding.h"
#include "embed/test_model.h"

namespace basalt::embed {
namespace {

std::string FileOf(const std::string& header, const std::string& data) {
  std::string file;
  base::Append(&file, uint64_t{header.size()});
  return file + header + data;
}

TEST(Safetensors, TensorsAreReadWithTheirShapes) {
  const std::string file = SafetensorsOf({{"a", {{2, 3}, {1, 2, 3, 4, 5, 6}}},
                                          {"b", {{1}, {-0.5F}}},
                                          {"none", {{0, 5}, {}}},
                                          {"scalar", {{}, {7}}}});
  const auto tensors = Safetensors::Parse(file, "model");
  ASSERT_TRUE(tensors.has_value()) << tensors.error().ToString();
  EXPECT_EQ(tensors->tensors().size(), 4U);
  EXPECT_EQ(tensors->ReadFloats("a", {2, 3}).value(), std::vector<float>({1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(tensors->ReadFloats("b", {1}).value(), std::vector<float>({-0.5F}));
  EXPECT_EQ(tensors->ReadFloats("none", {0, 5}).value(), std::vector<float>());
  EXPECT_EQ(tensors->ReadFloats("scalar", {}).value(), std::vector<float>({7}));
  EXPECT_EQ(tensors->ReadFloats("c", {1}).status().code(), StatusCode::kNotFound);
  const Status shape = tensors->ReadFloats("a", {3, 2}).status();
  EXPECT_EQ(shape.ToString(),
            "Corruption: reading the tensor 'a' of 'model': its shape is [2, 3], expected [3, 2]");
}

TEST(Safetensors, Bfloat16IsWidenedAndOtherTypesAreRefusedByName) {
  const std::string file = FileOf(
      R"({"x": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]},
          "i": {"dtype": "I64", "shape": [1], "data_offsets": [4, 12]}})",
      std::string("\x80\x3F\x20\xC0", 4) + std::string(8, '\0'));
  const auto tensors = Safetensors::Parse(file, "model");
  ASSERT_TRUE(tensors.has_value()) << tensors.error().ToString();
  EXPECT_EQ(tensors->ReadFloats("x", {2}).value(), std::vector<float>({1.0F, -2.5F}));
  EXPECT_EQ(
      tensors->ReadFloats("i", {1}).status().ToString(),
      "Unsupported: reading the tensor 'i' of 'model': its elements are I64; F32 and BF16 are "
      "supported");
}

TEST(Safetensors, MalformedFilesAreRefused) {
  const auto refused = [](const std::string& file) {
    const auto tensors = Safetensors::Parse(file, "model");
    EXPECT_FALSE(tensors.has_value());
    if (tensors) return std::string();
    EXPECT_EQ(tensors.error().code(), StatusCode::kCorruption);
    return std::string(tensors.error().message());
  };
  const auto with = [&](const std::string& fields) {
    return refused(FileOf(R"({"t": {)" + fields + "}}", std::string(8, 'x')));
  };
  const std::string malformed = "reading the tensors of 'model': the tensor 't' is malformed";
  EXPECT_EQ(refused("1234567"),
            "reading the tensors of 'model': it is shorter than its first number");
  EXPECT_NE(refused(std::string(8, '\xFF')).find("does not fit"), std::string::npos);
  EXPECT_NE(refused(FileOf("{", "")).find("not a JSON object"), std::string::npos);
  EXPECT_NE(refused(FileOf("[]", "")).find("not a JSON object"), std::string::npos);
  EXPECT_NE(refused(FileOf(std::string(100'000, '['), "")).find("not a JSON object"),
            std::string::npos);
  EXPECT_EQ(refused(FileOf(R"({"t": 1})", "")), malformed);
  EXPECT_EQ(with(R"("dtype": "F32", "shape": [2])"), malformed);
  EXPECT_EQ(with(R"("dtype": "F32", "shape": [2], "data_offsets": [0, 8, 9])"), malformed);
  EXPECT_EQ(with(R"("dtype": "F32", "shape": [2], "data_offsets": [0, 9])"), malformed);
  EXPECT_EQ(with(R"("dtype": "F32", "shape": [2], "data_offsets": [8, 0])"), malformed);
  EXPECT_EQ(with(R"("dtype": "F32", "shape": [3], "data_offsets": [0, 8])"), malformed);
  EXPECT_EQ(with(R"("dtype": "F32", "shape": [-2], "data_offsets": [0, 8])"), malformed);
  EXPECT_EQ(with(R"("dtype": "F32", "shape": [2.0], "data_offsets": [0, 8])"), malformed);
  EXPECT_EQ(with(R"("dtype": "F7", "shape": [2], "data_offsets": [0, 8])"), malformed);
  // 2^62 * 4 * 4 + 8 bytes, modulo 2^64.
  EXPECT_EQ(with(R"("dtype": "F32", "shape": [4611686018427387904, 4], "data_offsets": [0, 0])"),
            malformed);
  const std::string gaps =
      "reading the tensors of 'model': its tensors leave gaps in the data, or overlap; is the file "
      "whole?";
  EXPECT_EQ(with(R"("dtype": "F32", "shape": [1], "data_offsets": [0, 4])"), gaps);
  EXPECT_EQ(with(R"("dtype": "F32", "shape": [1], "data_offsets": [4, 8])"), gaps);
  EXPECT_EQ(refused(FileOf(R"({"t": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
                              "u": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}})",
                           std::string(8, 'x'))),
            gaps);
}

TEST(Safetensors, EveryCutIsRefused) {
  const std::string file = SafetensorsOf({{"a", {{2}, {1, 2}}}, {"b", {{1}, {3}}}});
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(Safetensors::Parse(std::string_view(file).substr(0, size), "model").has_value());
  }
}

}  // namespace
}  // namespace basalt::embed

#include "bench/retrieval_data.h"

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "bench/text.h"

namespace basalt::bench {
namespace {

std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) Fail(path.string(), "the file cannot be read");
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

boost::json::value ParseFile(const std::filesystem::path& path) {
  boost::json::error_code error;
  boost::json::value value = boost::json::parse(ReadAll(path), error);
  if (error) Fail(path.string(), error.message());
  return value;
}

/// The number behind `mark` in the header of a .npy file.
size_t NumberBehind(std::string_view header, std::string_view mark, const std::string& path) {
  size_t number = 0;
  const size_t at = header.find(mark);
  if (at == std::string_view::npos) Fail(path, "the header of the .npy file has no shape");
  const char* begin = header.data() + at + mark.size();
  while (begin < header.data() + header.size() && *begin == ' ') ++begin;
  std::from_chars(begin, header.data() + header.size(), number);
  return number;
}

/// A .npy file of version 1: magic (6 bytes), version (2), size of the header (2), header,
/// elements.
VectorRows ReadNpy(const std::string& path) {
  constexpr size_t kFixedBytes = 10;
  const std::string bytes = ReadAll(path);
  if (bytes.size() < kFixedBytes || bytes.compare(0, 7, "\x93NUMPY\x01") != 0) {
    Fail(path, "it is not a .npy file of version 1");
  }
  uint16_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data() + 8, sizeof header_bytes);
  const std::string_view header = std::string_view(bytes).substr(kFixedBytes, header_bytes);
  if (header.find("'<f4'") == std::string_view::npos) Fail(path, "its elements are not float32");
  const size_t rows = NumberBehind(header, "(", path);
  const size_t shape = std::min(header.find('('), header.size());
  VectorRows vectors{.dimension = NumberBehind(header.substr(shape), ",", path)};
  vectors.elements.resize(rows * vectors.dimension);
  const size_t begin = kFixedBytes + header_bytes;
  if (bytes.size() != begin + vectors.elements.size() * sizeof(float)) {
    Fail(path, "its size does not fit its shape");
  }
  std::memcpy(vectors.elements.data(), bytes.data() + begin, bytes.size() - begin);
  return vectors;
}

/// The vectors in the file that begins with `name`; none, if there is no such file.
VectorRows FindVectors(const std::string& folder, std::string_view name) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string file = entry.path().filename().string();
    if (file.starts_with(name) && file.ends_with(".npy")) return ReadNpy(entry.path().string());
  }
  return {};
}

}  // namespace

RetrievalData RetrievalData::Load(const std::string& folder) {
  const std::filesystem::path path(folder);
  RetrievalData data;
  const boost::json::value corpus = ParseFile(path / "corpus.json");
  for (const auto& [title, sentences] : corpus.as_object()) {
    Passage passage{.title = std::string(title), .text = {}};
    for (const auto& sentence : sentences.as_array()) passage.text += sentence.as_string().c_str();
    data.passages.push_back(std::move(passage));
  }
  const boost::json::value questions = ParseFile(path / "questions.json");
  for (const auto& each : questions.as_array()) {
    Question question{.text = std::string(each.at("question").as_string())};
    for (const auto& fact : each.at("supporting_facts").as_array()) {
      question.gold.emplace(fact.as_array().at(0).as_string());
    }
    data.questions.push_back(std::move(question));
  }
  data.passage_vectors = FindVectors(folder, "corpus_");
  data.question_vectors = FindVectors(folder, "questions_");
  const size_t dimension = data.passage_vectors.dimension;
  if (data.passage_vectors.elements.size() != dimension * data.passages.size() ||
      data.question_vectors.elements.size() != dimension * data.questions.size()) {
    Fail(folder, "the vectors do not belong to these passages and questions");
  }
  return data;
}

}  // namespace basalt::bench

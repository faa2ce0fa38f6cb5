#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value_to.hpp>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "basalt/embed.h"
#include "embed/json_file.h"
#include "embed/local_embedder.h"
#include "embed/word_pieces.h"
#include "io/file_system.h"

// The model all-MiniLM-L6-v2 against what PyTorch and the Hugging Face tokenizers compute by it.
// scripts/embedding_reference makes the files; without them the tests are skipped.

namespace basalt::embed {
namespace {

struct Sample {
  std::string text;
  std::vector<uint32_t> tokens;
  std::vector<float> vector;
};

class EmbedReference : public testing::Test {
 protected:
  void SetUp() override {
    const char* const folder = std::getenv("BASALT_EMBEDDING_REFERENCE");
    folder_ = folder != nullptr ? folder : BASALT_SOURCE_DIR "/build/embedding";
    if (!std::ifstream(folder_ + "/vectors.ndjson") || !std::ifstream(folder_ + "/tokens.ndjson")) {
      GTEST_SKIP() << "no reference in " << folder_
                   << ": scripts/embedding_reference makes it (a download of 3 GB)";
    }
  }

  std::vector<Sample> Samples(const std::string& name) const {
    std::vector<Sample> samples;
    std::ifstream in(folder_ + "/" + name);
    for (std::string line; std::getline(in, line);) {
      const boost::json::object fields = ParseObject(line, name).value();
      Sample& sample = samples.emplace_back();
      sample.text = std::string(fields.at("text").as_string());
      sample.tokens = boost::json::value_to<std::vector<uint32_t>>(fields.at("tokens"));
      if (fields.contains("vector")) {
        sample.vector = boost::json::value_to<std::vector<float>>(fields.at("vector"));
      }
    }
    return samples;
  }

  void ExpectSameTokens(const std::string& name, size_t samples_min) const {
    const std::string vocabulary =
        io::ReadWholeFile(io::FileSystem::Posix(), folder_ + "/model/vocab.txt", 1 << 20).value();
    const WordPieces pieces = WordPieces::Parse(vocabulary, {}).value();
    const std::vector<Sample> samples = Samples(name);
    EXPECT_GE(samples.size(), samples_min);
    std::vector<uint32_t> ids;
    for (const Sample& sample : samples) {
      pieces.Encode(sample.text, 256, &ids);
      EXPECT_EQ(ids, sample.tokens) << sample.text;
    }
  }

  /// Of one in `stride` texts.
  void ExpectSameDirections(const Embedder& embedder, double cosine_min, size_t stride) const {
    std::vector<Sample> samples = Samples("vectors.ndjson");
    EXPECT_GE(samples.size(), 1'000U);
    for (size_t i = 1; i * stride < samples.size(); ++i) samples[i] = samples[i * stride];
    samples.resize((samples.size() + stride - 1) / stride);
    double least = 1;
    double sum = 0;
    for (size_t begin = 0; begin < samples.size(); begin += 16) {
      std::vector<std::string_view> texts;
      for (size_t i = begin; i < std::min(begin + 16, samples.size()); ++i) {
        texts.push_back(samples[i].text);
      }
      const std::vector<float> found = embedder.EmbedAll(texts).value();
      for (size_t i = 0; i < texts.size(); ++i) {
        const std::vector<float>& expected = samples[begin + i].vector;
        double product = 0;
        double square = 0;
        for (size_t j = 0; j < expected.size(); ++j) {
          product += double{expected[j]} * found[i * expected.size() + j];
          square += double{found[i * expected.size() + j]} * found[i * expected.size() + j];
        }
        EXPECT_NEAR(square, 1, 1e-5);
        EXPECT_GE(product, cosine_min) << texts[i];
        least = std::min(least, product);
        sum += product;
      }
    }
    std::cout << "cosine: least " << least << ", mean " << sum / static_cast<double>(samples.size())
              << '\n';
  }

  std::string folder_;
};

TEST_F(EmbedReference, TokensOfTextsAreTheSame) { ExpectSameTokens("vectors.ndjson", 1'000); }

TEST_F(EmbedReference, TokensOfAllCharactersAndOfHostileTextsAreTheSame) {
  ExpectSameTokens("tokens.ndjson", 1'500);
}

TEST_F(EmbedReference, VectorsPointTheSameWay) {
  ExpectSameDirections(*OpenLocalEmbedder(folder_ + "/model").value(), 0.999, 1);
}

TEST_F(EmbedReference, VectorsPointTheSameWayWithoutAvx512Bf16) {
  Kernels kernels = ChosenKernels();
  if (!AddBFloat16Product(&kernels)) GTEST_SKIP() << "this processor has no AVX512-BF16";
  const auto embedder =
      LocalEmbedder::Open(io::FileSystem::Posix(), folder_ + "/model", ChosenKernels()).value();
  ExpectSameDirections(*embedder, 0.999, 5);
}

}  // namespace
}  // namespace basalt::embed

#include "embed/local_embedder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/test_dispatch.h"
#include "embed/test_model.h"
#include "io/memory_file_system.h"

namespace basalt::embed {
namespace {

using Files = std::map<std::string, std::string>;

Files FilesOf(const TestModel& model) {
  return {{"config.json", TestModel::Config()},
          {"vocab.txt", TestModel::Vocabulary()},
          {"model.safetensors", SafetensorsOf(model.tensors())}};
}

Result<std::shared_ptr<const Embedder>> Open(const Files& files, const Kernels& kernels) {
  const auto fs = io::NewMemoryFileSystem();
  EXPECT_TRUE(fs->CreateDirectory("/model").ok());
  EXPECT_TRUE(fs->CreateDirectory("/model/1_Pooling").ok());
  for (const auto& [name, bytes] : files) {
    EXPECT_TRUE(io::ReplaceFile(fs.get(), "/model/" + name, bytes).ok());
  }
  return LocalEmbedder::Open(fs.get(), "/model", kernels);
}

double Cosine(const std::vector<float>& a, const std::vector<double>& b) {
  double product = 0;
  double of_a = 0;
  double of_b = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    product += a[i] * b[i];
    of_a += double{a[i]} * a[i];
    of_b += b[i] * b[i];
  }
  return product / std::sqrt(of_a * of_b);
}

std::vector<uint32_t> Ids(std::string_view text) {
  std::vector<uint32_t> ids;
  WordPieces::Parse(TestModel::Vocabulary(), {}).value().Encode(text, TestModel::kPositions, &ids);
  return ids;
}

const std::vector<std::string_view> kTexts = {
    "a",
    "",
    "cab, abc.",
    "b c d a b c d a b c",
    "aaaaa bbbbb ccccc",
    "a b c d a b c d a b c d a b c d a b c d a b c d a b c d a b c d a b c d a b c d"};

TEST(LocalEmbedder, VectorsAreThoseOfPlainLoopsByEachInstructionSet) {
  const TestModel model(1);
  for (const int64_t target : base::DispatchTargets()) {
    const base::ForcedTarget forced(target);
    const Kernels kernels = ChosenKernels();
    SCOPED_TRACE(kernels.instruction_set);
    const auto embedder = Open(FilesOf(model), kernels);
    ASSERT_TRUE(embedder.has_value()) << embedder.error().ToString();
    EXPECT_EQ((*embedder)->model().dimension, TestModel::kHidden);
    EXPECT_EQ((*embedder)->model().tokens_max, TestModel::kPositions);
    for (const std::string_view text : kTexts) {
      const std::vector<float> found = (*embedder)->Embed(text).value();
      const std::vector<double> expected = model.Embed(Ids(text));
      for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(found[i], expected[i], 2e-5) << text;
    }
  }
}

TEST(LocalEmbedder, RoundingRowsToBfloat16KeepsTheDirection) {
  Kernels kernels = ChosenKernels();
  if (!AddBFloat16Product(&kernels)) GTEST_SKIP() << "this processor has no AVX512-BF16";
  const TestModel model(2);
  const auto embedder = Open(FilesOf(model), kernels);
  ASSERT_TRUE(embedder.has_value());
  for (const std::string_view text : kTexts) {
    EXPECT_GT(Cosine((*embedder)->Embed(text).value(), model.Embed(Ids(text))), 0.999);
  }
}

TEST(LocalEmbedder, TextsTogetherHaveTheVectorsThatTheyHaveAlone) {
  const TestModel model(3);
  const auto embedder = Open(FilesOf(model), ChosenKernels()).value();
  std::vector<std::string_view> many;
  for (int i = 0; i < 40; ++i) many.insert(many.end(), kTexts.begin(), kTexts.end());
  const std::vector<float> together = embedder->EmbedAll(many).value();
  ASSERT_EQ(together.size(), many.size() * TestModel::kHidden);
  for (size_t i = 0; i < many.size(); ++i) {
    const std::vector<float> alone = embedder->Embed(many[i]).value();
    for (size_t j = 0; j < alone.size(); ++j) {
      ASSERT_NEAR(together[i * alone.size() + j], alone[j], 1e-6);
    }
  }
  EXPECT_EQ(embedder->EmbedAll({}).value().size(), 0U);
}

TEST(LocalEmbedder, ThreadsShareAModel) {
  const TestModel model(4);
  const auto embedder = Open(FilesOf(model), ChosenKernels()).value();
  const std::vector<float> expected = embedder->EmbedAll(kTexts).value();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        EXPECT_EQ(embedder->EmbedAll(kTexts).value(), expected);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(LocalEmbedder, TheIdIsThatOfTheFiles) {
  const auto id = [](const Files& files) {
    return Open(files, ChosenKernels()).value()->model().id;
  };
  const Files files = FilesOf(TestModel(5));
  EXPECT_EQ(id(files), id(files));
  EXPECT_NE(id(files), id(FilesOf(TestModel(6))));
  Files other = files;
  other["tokenizer_config.json"] = R"({"do_lower_case": false})";
  EXPECT_NE(id(files), id(other));
}

TEST(LocalEmbedder, SettingsAreRead) {
  Files files = FilesOf(TestModel(7));
  files["sentence_bert_config.json"] = R"({"max_seq_length": 8})";
  files["1_Pooling/config.json"] = R"({"pooling_mode_mean_tokens": true})";
  const auto embedder = Open(files, ChosenKernels()).value();
  EXPECT_EQ(embedder->model().tokens_max, 8U);
  EXPECT_EQ(embedder->Embed("a b c d a b c d").value(), embedder->Embed("a b c d a b").value());
}

TEST(LocalEmbedder, WhatDoesNotFitIsRefusedByName) {
  const Files good = FilesOf(TestModel(8));
  const auto error = [&](const std::string& name, const std::string& bytes) {
    Files files = good;
    files[name] = bytes;
    const auto embedder = Open(files, ChosenKernels());
    return embedder ? std::string("opened") : embedder.error().ToString();
  };
  const auto with = [](std::string text, const std::string& from, const std::string& to) {
    return text.replace(text.find(from), from.size(), to);
  };
  const std::string config = TestModel::Config();
  EXPECT_NE(error("config.json", "x").find("Corruption: reading '/model/config.json'"),
            std::string::npos);
  EXPECT_NE(error("config.json", with(config, "bert", "t5")).find("Unsupported"),
            std::string::npos);
  EXPECT_NE(error("config.json", with(config, "gelu", "relu")).find("Unsupported"),
            std::string::npos);
  EXPECT_NE(error("config.json", with(config, "64", "0")).find("hidden_size"), std::string::npos);
  EXPECT_NE(error("config.json", with(config, "64", "128")).find("expected [14, 128]"),
            std::string::npos);
  EXPECT_NE(error("config.json", with(config, "64", "66")).find("multiples"), std::string::npos);
  EXPECT_NE(error("config.json", with(config, "heads\": 2", "heads\": 3")).find("out of range"),
            std::string::npos);
  EXPECT_NE(error("vocab.txt", TestModel::Vocabulary() + "more\n").find("15 pieces"),
            std::string::npos);
  EXPECT_NE(error("1_Pooling/config.json", R"({"pooling_mode_cls_token": true})")
                .find("pooling_mode_mean_tokens"),
            std::string::npos);
  EXPECT_NE(
      error("model.safetensors", good.at("model.safetensors") + "x").find("is the file whole"),
      std::string::npos);
  Files absent = good;
  absent.erase("vocab.txt");
  EXPECT_EQ(Open(absent, ChosenKernels()).status().code(), StatusCode::kNotFound);
}

TEST(NoEmbedder, SaysThatThereIsNoModel) {
  const auto none = NoEmbedder();
  EXPECT_EQ(none->model().dimension, 0U);
  EXPECT_EQ(none->Embed("text").status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(OpenLocalEmbedder("/nowhere/at/all").status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace basalt::embed

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "basalt/retrieve.h"
#include "retrieve/test_texts.h"

namespace basalt::retrieve {
namespace {

/// Counts of a, b and everything else.
Result<std::vector<float>> CountLetters(std::span<const std::string_view> texts) {
  std::vector<float> vectors;
  for (const std::string_view text : texts) {
    const auto as = static_cast<float>(std::ranges::count(text, 'a'));
    const auto bs = static_cast<float>(std::ranges::count(text, 'b'));
    vectors.insert(vectors.end(), {as, bs, static_cast<float>(text.size()) - as - bs + 0.01F});
  }
  return vectors;
}

DenseIndexOptions Letters() { return {.dimension = 3, .model = "letters", .embed = CountLetters}; }

TEST(DenseIndex, FindsPassagesByTheirVectorsAndForgetsThem) {
  const auto store = NewMemoryDb();
  auto dense = OpenDenseIndex(store.get(), Letters()).value();
  {
    const auto corpus = Corpus::Open(store.get(), {.dense = dense.get()}).value();
    ASSERT_TRUE(corpus->IngestText({.source = "a", .text = "aaaa"}).has_value());
    ASSERT_TRUE(corpus->IngestText({.source = "b", .text = "bbbb"}).has_value());
    ASSERT_TRUE(corpus->IngestText({.source = "both", .text = "abab"}).has_value());
  }
  dense = OpenDenseIndex(store.get(), Letters()).value();
  const auto corpus = Corpus::Open(store.get(), {.dense = dense.get()}).value();
  const auto found = corpus->Retrieve("aa b").value();
  ASSERT_EQ(found.passages.size(), 3u);
  EXPECT_EQ(found.passages[0].source, "both");
  EXPECT_EQ(found.passages[1].source, "a");
  EXPECT_NEAR(dense->Search("aaaa", 1).value()[0].similarity, 1, 1e-3);
  ASSERT_TRUE(corpus->Forget("both").value());
  ASSERT_EQ(corpus->Retrieve("aa b").value().passages.size(), 2u);
  EXPECT_EQ(dense->Search("ab", 10).value().size(), 2u);
}

TEST(DenseIndex, RefusesWhatDoesNotFit) {
  const auto store = NewMemoryDb();
  EXPECT_EQ(OpenDenseIndex(store.get(), {.dimension = 3}).error().code(),
            StatusCode::kInvalidArgument);
  ASSERT_TRUE(OpenDenseIndex(store.get(), Letters()).has_value());
  DenseIndexOptions other = Letters();
  other.model = "words";
  EXPECT_EQ(OpenDenseIndex(store.get(), other).error().code(), StatusCode::kInvalidArgument);
  DenseIndexOptions larger = Letters();
  larger.dimension = 4;
  EXPECT_EQ(OpenDenseIndex(store.get(), larger).error().code(), StatusCode::kInvalidArgument);

  DenseIndexOptions wrong = Letters();
  wrong.embed = [](auto) -> Result<std::vector<float>> { return std::vector<float>(4); };
  const auto dense = OpenDenseIndex(store.get(), wrong).value();
  const auto corpus = Corpus::Open(store.get(), {.dense = dense.get()}).value();
  EXPECT_EQ(corpus->IngestText({.source = "a", .text = "a"}).error().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(corpus->Retrieve("a").error().code(), StatusCode::kInvalidArgument);
  EXPECT_FALSE(corpus->Forget("a").value());
}

}  // namespace
}  // namespace basalt::retrieve

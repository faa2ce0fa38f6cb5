#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "basalt/db.h"
#include "basalt/vector_index.h"
#include "base/random.h"
#include "vector/index_core.h"
#include "vector/test_vectors.h"

// The results of a search that commits overtake: a filter's function, or a listener of the store,
// makes them in the middle of it.

namespace basalt::vector {
namespace {

constexpr size_t kMomentDimension = 5;
constexpr size_t kMomentRows = 700;

/// The version of each id.
using Versions = std::map<std::string, int64_t>;

class VectorIndexMomentTest : public testing::TestWithParam<size_t> {
 protected:
  void SetUp() override {
    writer_ = IndexAccess::Make(
        IndexCore::Create(db_.get(), "v",
                          {.dimension = kMomentDimension, .metric = VectorMetric::kL2}, options_)
            .value());
    reader_ = IndexAccess::Make(IndexCore::Open(db_.get(), "v", {}, options_).value());
    AddFrom(0, kMomentRows, 1);
  }

  std::vector<float> Draw() {
    std::vector<float> vector(kMomentDimension);
    for (float& element : vector) element = static_cast<float>(Gaussian(&random_));
    return vector;
  }
  void AddFrom(size_t begin, size_t end, int64_t version) {
    std::vector<VectorItem> items;
    for (size_t i = begin; i < end; ++i) {
      items.push_back({"id" + std::to_string(i), Draw(), {{"version", version}}});
    }
    ASSERT_TRUE(writer_->AddBatch(items));
  }
  /// Removes a third, changes a third, adds as many.
  void Overtake() {
    for (size_t i = 0; i < kMomentRows / 3; ++i) {
      ASSERT_TRUE(writer_->Remove("id" + std::to_string(i)));
    }
    AddFrom(kMomentRows / 3, kMomentRows * 2 / 3, 2);
    AddFrom(kMomentRows, kMomentRows * 2, 2);
  }

  static Versions VersionsOf(const VectorSearchResult& result) {
    Versions versions;
    for (const VectorHit& hit : result.hits) {
      EXPECT_TRUE(versions.emplace(hit.id, std::get<int64_t>(hit.attributes.at("version"))).second)
          << hit.id << " twice";
    }
    return versions;
  }
  /// All that `reader_` finds; `meanwhile` is called once, in the middle of the search.
  Versions FoundDespite(const std::function<void()>& meanwhile) {
    VectorSearchOptions search{.k = 10 * kMomentRows, .with_attributes = true};
    size_t calls = 0;
    search.filter = VectorFilter::Where([&](std::string_view, const Attributes&) {
      if (++calls == 100) meanwhile();
      return true;
    });
    return VersionsOf(reader_->Search(Draw(), search).value());
  }
  Versions Found() {
    return FoundDespite([] {});
  }

  const RowSet::Options options_{.graph_rows_min = GetParam()};
  base::Random random_{31};
  std::unique_ptr<DB> db_ = DB::Open(":memory:").value();
  std::unique_ptr<VectorIndex> writer_;
  std::unique_ptr<VectorIndex> reader_;
};

TEST_P(VectorIndexMomentTest, ASearchDoesNotSeeCommitsThatOvertakeIt) {
  for (const bool is_linked : {false, true}) {
    if (is_linked) {
      ASSERT_TRUE(reader_->Compact().ok());
    }
    const Versions before = Found();
    ASSERT_GE(before.size(), kMomentRows);
    EXPECT_EQ(FoundDespite([&] { Overtake(); }), before);
    const Versions after = Found();
    EXPECT_NE(after, before);
    EXPECT_EQ(after.size(), reader_->Count().value());
    AddFrom(0, kMomentRows, 1);
  }
}

TEST_P(VectorIndexMomentTest, ASearchFindsRowsThatMoveMeanwhile) {
  AddFrom(kMomentRows, 2 * kMomentRows, 1);
  // The rows in the reader's blocks become those of the graph, and slots are freed and given anew.
  for (int turn = 0; turn < 2; ++turn) {
    const Versions before = Found();
    EXPECT_EQ(FoundDespite([&] {
                Overtake();
                EXPECT_TRUE(reader_->Compact().ok());
                AddFrom(0, kMomentRows, 3);
                EXPECT_TRUE(reader_->Compact().ok());
              }),
              before);
    AddFrom(3 * kMomentRows, 4 * kMomentRows, turn);
  }
}

TEST_P(VectorIndexMomentTest, ASearchIsWholeWhenTheIndexHasYetToHearOfACommit) {
  // Listeners are called in the order in which they were added.
  reader_.reset();
  std::vector<float> query = Draw();
  size_t searches = 0;
  auto early = db_->AddListener([&](const CommittedBatch&) {
    if (reader_ == nullptr) return;
    ++searches;
    const VectorSearchOptions all{.k = 10 * kMomentRows, .with_attributes = true};
    EXPECT_EQ(reader_->Search(query, all).value().hits.size(), kMomentRows);
    VectorSearchOptions one = all;
    one.filter = VectorFilter::Ids({"id5"});
    EXPECT_EQ(reader_->Search(query, one).value().hits.size(), 1u);
  });
  reader_ = IndexAccess::Make(IndexCore::Open(db_.get(), "v", {}, options_).value());
  ASSERT_TRUE(reader_->Compact().ok());
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(writer_->Add("id" + std::to_string(i), Draw(), {{"version", 2}}));
  }
  EXPECT_GE(searches, 10u);
  reader_.reset();
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutGraph, VectorIndexMomentTest,
                         testing::Values(size_t{300}, size_t{1'000'000}));

}  // namespace
}  // namespace basalt::vector

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "basalt/db.h"
#include "basalt/vector_index.h"
#include "base/random.h"
#include "vector/index_core.h"
#include "vector/test_vectors.h"

// Random operations on a vector index that has a graph, against exact search over a map in memory.

namespace basalt::vector {
namespace {

struct ModelRow {
  std::vector<float> vector;
  int64_t group = 0;
};
using Model = std::map<std::string, ModelRow>;

class IndexModelTest : public testing::TestWithParam<VectorMetric> {
 protected:
  static constexpr size_t kModelDimension = 12;

  void SetUp() override {
    index_ = IndexAccess::Make(
        IndexCore::Create(db_.get(), "v", {.dimension = kModelDimension, .metric = GetParam()},
                          {.graph_rows_min = 600})
            .value());
  }

  std::vector<float> NextVector() {
    // Some are equal to others.
    if (!model_.empty() && random_.OneIn(10)) return AnyRow()->second.vector;
    std::vector<float> vector = clusters_.Next();
    vector.resize(kModelDimension);
    return vector;
  }
  Model::iterator AnyRow() {
    const auto next = model_.lower_bound(IdOf(random_.Below(kIds)));
    return next == model_.end() ? model_.begin() : next;
  }
  static std::string IdOf(uint64_t i) { return "id" + std::to_string(i); }
  static Attributes AttributesOf(const ModelRow& row) { return {{"group", row.group}}; }

  ModelRow NextRow() {
    return {.vector = NextVector(), .group = static_cast<int64_t>(random_.Below(10))};
  }

  void Change() {
    const std::string id = IdOf(random_.Below(kIds));
    switch (random_.Below(8)) {
      case 0:
        ASSERT_TRUE(index_->Remove(id));
        model_.erase(id);
        return;
      case 1: {
        const auto group = static_cast<int64_t>(random_.Below(10));
        const auto updated = index_->Update(id, {{"group", group}});
        ASSERT_EQ(updated.has_value(), model_.contains(id));
        if (updated) model_[id].group = group;
        return;
      }
      case 2:
        AddMany();
        return;
      case 3:
        ChangeInTransaction();
        return;
      default:
        model_[id] = NextRow();
        ASSERT_TRUE(index_->Add(id, model_[id].vector, AttributesOf(model_[id])));
    }
  }

  void AddMany() {
    std::vector<VectorItem> items;
    for (int i = 0; i < 20; ++i) {
      const std::string id = IdOf(random_.Below(kIds));
      model_[id] = NextRow();
      items.push_back({id, model_[id].vector, AttributesOf(model_[id])});
    }
    ASSERT_TRUE(index_->AddBatch(items));
  }

  void ChangeInTransaction() {
    Model after = model_;
    Transaction tx = db_->Begin().value();
    for (int i = 0; i < 5; ++i) {
      const std::string id = IdOf(random_.Below(kIds));
      if (random_.OneIn(3)) {
        ASSERT_TRUE(index_->Remove(tx, id).ok());
        after.erase(id);
      } else {
        after[id] = NextRow();
        ASSERT_TRUE(index_->Add(tx, id, after[id].vector, AttributesOf(after[id])).ok());
      }
    }
    if (random_.OneIn(2)) return;  // Rolled back.
    ASSERT_TRUE(tx.Commit());
    model_ = std::move(after);
  }

  template <class Passes>
  std::vector<float> ExactDistances(const std::vector<float>& query, const Passes& passes) const {
    const auto distance =
        VectorDistance::Create(GetParam(), VectorElement::kFloat32, kModelDimension).value();
    std::vector<float> distances;
    for (const auto& [id, row] : model_) {
      if (passes(id, row)) distances.push_back(distance(query.data(), row.vector.data()));
    }
    std::ranges::sort(distances);
    return distances;
  }

  /// Searches, and adds to `found_` how many of the true nearest were found of `wanted_`.
  void Search() {
    std::vector<float> query = clusters_.Next();
    query.resize(kModelDimension);
    VectorSearchOptions options;
    options.k = random_.Between(1, 20);
    options.exact = random_.OneIn(4);
    options.with_attributes = true;
    const auto group = static_cast<int64_t>(random_.Below(10));
    std::vector<std::string> ids;
    const uint64_t kind = random_.Below(4);
    if (kind == 1)
      options.filter = VectorFilter::Parse("group == " + std::to_string(group)).value();
    if (kind == 2) options.filter = VectorFilter::IdPrefix("id1");
    if (kind == 3) {
      for (int i = 0; i < 30; ++i) ids.push_back(IdOf(random_.Below(kIds)));
      options.filter = VectorFilter::Ids(ids);
    }
    const auto passes = [&](const std::string& id, const ModelRow& row) {
      return kind == 0 || (kind == 1 && row.group == group) ||
             (kind == 2 && id.starts_with("id1")) ||
             (kind == 3 && std::ranges::find(ids, id) != ids.end());
    };
    const std::vector<float> exact = ExactDistances(query, passes);
    const auto result = index_->Search(query, options);
    ASSERT_TRUE(result) << result.status().ToString();
    ASSERT_EQ(result->hits.size(), std::min(options.k, exact.size()))
        << VectorSearchPathName(result->plan.path);
    size_t nearest = 0;
    for (size_t i = 0; i < result->hits.size(); ++i) {
      const VectorHit& hit = result->hits[i];
      const auto row = model_.find(hit.id);
      ASSERT_NE(row, model_.end()) << hit.id << " was removed";
      ASSERT_TRUE(passes(hit.id, row->second)) << hit.id;
      ASSERT_EQ(hit.attributes, AttributesOf(row->second));
      nearest += static_cast<size_t>(hit.distance <= exact[result->hits.size() - 1]);
      if (options.exact) {
        ASSERT_EQ(hit.distance, exact[i]);
      }
    }
    wanted_ += result->hits.size();
    found_ += nearest;
    ++paths_[result->plan.path];
  }

  void Reopen() {
    const bool is_saved = random_.OneIn(2);
    if (is_saved) {
      const Status saved = index_->SaveCheckpoint();
      ASSERT_TRUE(saved.ok()) << saved.ToString();
    }
    for (int i = 0; i < 30; ++i) Change();
    index_.reset();
    index_ =
        IndexAccess::Make(IndexCore::Open(db_.get(), "v", {}, {.graph_rows_min = 600}).value());
    if (is_saved) {
      EXPECT_TRUE(index_->Stats().from_checkpoint);
    }
  }

  static constexpr uint64_t kIds = 8'000;
  base::Random random_{77};
  Clusters clusters_{20, kModelDimension, 0.3, &random_};
  std::unique_ptr<DB> db_ = DB::Open(":memory:").value();
  std::unique_ptr<VectorIndex> index_;
  Model model_;
  size_t found_ = 0;
  size_t wanted_ = 0;
  std::map<VectorSearchPlan::Path, size_t> paths_;
};

TEST_P(IndexModelTest, AgreesWithExactSearchOverRandomOperations) {
#if defined(__SANITIZE_THREAD__)
  constexpr int kBatches = 40;
  constexpr int kTurns = 400;
#else
  constexpr int kBatches = 300;
  constexpr int kTurns = 2'000;
#endif
  // So many that walks are cheaper than scans.
  for (int i = 0; i < kBatches; ++i) ASSERT_NO_FATAL_FAILURE(AddMany());
  for (int turn = 0; turn < kTurns; ++turn) {
    ASSERT_NO_FATAL_FAILURE(Change()) << "turn " << turn;
    if (turn % 4 == 0) {
      ASSERT_NO_FATAL_FAILURE(Search()) << "turn " << turn;
    }
    if (turn % 400 == 399) {
      ASSERT_NO_FATAL_FAILURE(Reopen());
      ASSERT_EQ(index_->Count().value(), model_.size());
    }
    if (turn == kTurns * 3 / 4) {
      ASSERT_TRUE(index_->Compact().ok());
    }
  }
  EXPECT_GE(static_cast<double>(found_), 0.98 * static_cast<double>(wanted_));
#if !defined(__SANITIZE_THREAD__)
  EXPECT_GT(paths_[VectorSearchPlan::Path::kWalk], 20u);
#endif
  for (const auto path : {VectorSearchPlan::Path::kScanCodes, VectorSearchPlan::Path::kLookUp,
                          VectorSearchPlan::Path::kScanStore}) {
    EXPECT_GT(paths_[path], 10u) << VectorSearchPathName(path);
  }
  EXPECT_GT(index_->Stats().linked, 400u);
}

INSTANTIATE_TEST_SUITE_P(Metrics, IndexModelTest,
                         testing::Values(VectorMetric::kL2, VectorMetric::kInnerProduct,
                                         VectorMetric::kCosine));

}  // namespace
}  // namespace basalt::vector

#include "basalt/vector_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "basalt/db.h"
#include "base/random.h"
#include "vector/index_core.h"
#include "vector/test_vectors.h"

// A vector index over a DB in memory, and errors that change nothing.

namespace basalt::vector {
namespace {

constexpr size_t kTestDimension = 8;

std::vector<float> RandomTestVector(base::Random* random, size_t dimension = kTestDimension) {
  std::vector<float> vector(dimension);
  for (float& element : vector) element = static_cast<float>(Gaussian(random));
  return vector;
}

class VectorIndexTest : public testing::Test {
 protected:
  std::unique_ptr<VectorIndex> Make(VectorMetric metric = VectorMetric::kL2) {
    return VectorIndex::Create(db_.get(), "docs",
                               {.dimension = kTestDimension, .metric = metric, .model = "m1"})
        .value();
  }
  static std::vector<std::string> IdsOf(const Result<VectorSearchResult>& result) {
    std::vector<std::string> ids;
    for (const VectorHit& hit : result.value().hits) ids.push_back(hit.id);
    return ids;
  }

  std::unique_ptr<DB> db_ = DB::Open(":memory:").value();
};

TEST_F(VectorIndexTest, FindsWhatWasAddedUpdatedAndRemoved) {
  const auto index = Make();
  const std::vector<float> zero(kTestDimension);
  std::vector<float> one(kTestDimension);
  one[0] = 1;
  ASSERT_TRUE(index->Add("a", one, {{"lang", "en"}, {"year", 2020}}));
  ASSERT_TRUE(index->Add("b", zero, {{"lang", "de"}}));
  EXPECT_EQ(IdsOf(index->Search(zero)), (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(index->Search(zero).value().hits[1].distance, 1);
  EXPECT_EQ(index->Search(zero).value().hits[1].score, 0.5);

  ASSERT_TRUE(index->Update("a", {{"lang", "fr"}}));
  VectorSearchOptions in_french{.filter = VectorFilter::Parse("lang == 'fr'").value(),
                                .with_attributes = true};
  const auto found = index->Search(zero, in_french);
  EXPECT_EQ(IdsOf(found), std::vector<std::string>{"a"});
  EXPECT_EQ(found->hits[0].attributes, (Attributes{{"lang", "fr"}}));
  EXPECT_EQ(index->Get("a").value()->vector, one);

  ASSERT_TRUE(index->Remove("b"));
  EXPECT_EQ(IdsOf(index->Search(zero)), std::vector<std::string>{"a"});
  EXPECT_FALSE(index->Get("b").value().has_value());
  EXPECT_EQ(index->Count().value(), 1u);
  const std::vector<std::string_view> ids = {"b", "a"};
  const auto items = index->MultiGet(ids).value();
  EXPECT_FALSE(items[0].has_value());
  EXPECT_EQ(items[1]->vector, one);
}

TEST_F(VectorIndexTest, ErrorsNameWhatIsWrongAndChangeNothing) {
  const auto index = Make(VectorMetric::kCosine);
  base::Random random(1);
  const std::vector<float> good = RandomTestVector(&random);
  ASSERT_TRUE(index->Add("a", good));
  const auto expect_refused = [&](const std::vector<float>& vector, std::string_view what) {
    const auto added = index->Add("a", vector);
    EXPECT_EQ(added.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(added.status().ToString().find(what), std::string::npos) << added.status().ToString();
    EXPECT_EQ(index->Search(vector).code(), StatusCode::kInvalidArgument);
    const std::vector<VectorItem> items = {{.id = "b", .vector = good},
                                           {.id = "c", .vector = vector}};
    EXPECT_EQ(index->AddBatch(items).code(), StatusCode::kInvalidArgument);
    Transaction tx = db_->Begin().value();
    EXPECT_EQ(index->Add(tx, "a", vector).code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(tx.count(), 0u);
  };
  expect_refused(std::vector<float>(3, 1.0F), "3 elements, and this index is of dimension 8");
  std::vector<float> bad = good;
  bad[5] = std::numeric_limits<float>::quiet_NaN();
  expect_refused(bad, "element 5 of the vector is not a number");
  bad[5] = -std::numeric_limits<float>::infinity();
  expect_refused(bad, "element 5 of the vector is infinite");
  bad[5] = 3e38F;
  expect_refused(bad, "too long");
  expect_refused(std::vector<float>(kTestDimension), "are zero");
  EXPECT_EQ(index->Count().value(), 1u);
  EXPECT_EQ(index->Get("a").value()->vector, good);

  EXPECT_EQ(index->Search(good, {.k = 0}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(index->Search(good, {.recall = 1.5}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(index->Update("z", {}).code(), StatusCode::kNotFound);
  EXPECT_EQ(index->Add(std::string(70'000, 'x'), good).code(), StatusCode::kInvalidArgument);
}

TEST_F(VectorIndexTest, OpensOnlyWithWhatItWasMadeWith) {
  Make();
  const auto code_of = [&](const VectorIndexOptions& options) {
    const auto opened = VectorIndex::Open(db_.get(), "docs", options);
    return opened.code();
  };
  EXPECT_EQ(code_of({}), StatusCode::kOk);
  EXPECT_EQ(code_of({.dimension = 8, .metric = VectorMetric::kL2, .model = "m1"}), StatusCode::kOk);
  EXPECT_EQ(code_of({.dimension = 9}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of({.metric = VectorMetric::kCosine}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of({.element = VectorElement::kInt8}), StatusCode::kInvalidArgument);
  const auto other_model = VectorIndex::Open(db_.get(), "docs", {.model = "m2"});
  EXPECT_EQ(other_model.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(other_model.status().ToString().find("'m1'"), std::string::npos);

  EXPECT_EQ(VectorIndex::Open(db_.get(), "none").code(), StatusCode::kNotFound);
  EXPECT_EQ(VectorIndex::Create(db_.get(), "docs", {.dimension = 8}).code(),
            StatusCode::kAlreadyExists);
  EXPECT_EQ(VectorIndex::Create(db_.get(), "d0", {}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(VectorIndex::Create(db_.get(), "d1", {.dimension = 8, .metric = VectorMetric::kHamming})
                .code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(db_->ListKeyspaces().value().size(), 2u) << "the refused ones left nothing behind";
  ASSERT_TRUE(db_->CreateKeyspace("plain"));
  EXPECT_EQ(VectorIndex::Open(db_.get(), "plain").code(), StatusCode::kCorruption);
}

TEST_F(VectorIndexTest, TakesPartInTransactions) {
  const auto index = Make();
  base::Random random(2);
  const std::vector<float> vector = RandomTestVector(&random);
  {
    Transaction tx = db_->Begin().value();
    ASSERT_TRUE(index->Add(tx, "a", vector, {{"n", 1}}).ok());
    EXPECT_EQ(index->Get(tx, "a").value()->vector, vector);
    EXPECT_TRUE(index->Search(vector).value().hits.empty()) << "not committed";
    ASSERT_TRUE(tx.Put("beside", "1").ok());
    ASSERT_TRUE(tx.Commit());
  }
  EXPECT_EQ(IdsOf(index->Search(vector)), std::vector<std::string>{"a"});
  {
    Transaction tx = db_->Begin().value();
    ASSERT_TRUE(index->Remove(tx, "a").ok());
    tx.Rollback();
  }
  EXPECT_EQ(index->Count().value(), 1u);
  {
    Transaction tx = db_->Begin().value();
    ASSERT_TRUE(index->Update(tx, "a", {{"n", 2}}).ok());
    ASSERT_TRUE(index->Update("a", {{"n", 3}}));
    EXPECT_EQ(tx.Commit().code(), StatusCode::kAborted);
  }
  EXPECT_EQ(index->Get("a").value()->attributes, (Attributes{{"n", 3}}));
}

TEST_F(VectorIndexTest, FollowsWritesOfOthersToItsKeyspace) {
  const auto index = Make();
  const auto other = VectorIndex::Open(db_.get(), "docs").value();
  base::Random random(3);
  std::vector<std::vector<float>> vectors;
  for (int i = 0; i < 10; ++i) {
    vectors.push_back(RandomTestVector(&random));
    ASSERT_TRUE(other->Add("id" + std::to_string(i), vectors.back()));
  }
  EXPECT_EQ(index->Search(vectors[0]).value().hits.size(), 10u);
  // A range of keys, and a batch that has nothing to do with vectors.
  ASSERT_TRUE(db_->DeleteRange("vid2", "vid5", {.keyspace = index->keyspace()}));
  ASSERT_TRUE(db_->Put("vid6", "in another keyspace"));
  EXPECT_EQ(index->Count().value(), 7u);
  EXPECT_EQ(index->Search(vectors[3]).value().hits.size(), 7u);
  // A record that is none is not returned, and named by Get.
  ASSERT_TRUE(db_->Put("vid7", "no vector", {.keyspace = index->keyspace()}));
  EXPECT_EQ(index->Search(vectors[7]).value().hits.size(), 6u);
  EXPECT_EQ(index->Get("id7").code(), StatusCode::kCorruption);
  EXPECT_EQ(index->Stats().unreadable, 1u);
  // A merge cannot be followed: what it makes is read from the store.
  ASSERT_TRUE(db_->Merge("vid8", MergeOperator::kAppend, "x", {.keyspace = index->keyspace()}));
  const auto after_merge = index->Search(vectors[8]);
  EXPECT_EQ(after_merge->plan.path, VectorSearchPlan::Path::kScanStore);
  EXPECT_EQ(after_merge->hits.size(), 5u);
  EXPECT_EQ(index->Count().value(), 5u);
  ASSERT_TRUE(index->Compact().ok());
  EXPECT_EQ(index->Search(vectors[8]).value().plan.path, VectorSearchPlan::Path::kScan);
  EXPECT_EQ(index->Search(vectors[8]).value().hits.size(), 5u);
  ASSERT_TRUE(db_->DropKeyspace(index->keyspace()).ok());
  EXPECT_EQ(index->Add("id1", vectors[1]).code(), StatusCode::kNotFound);
}

TEST_F(VectorIndexTest, FiltersReturnAllThatPassAndNothingElse) {
  const auto index = Make();
  base::Random random(4);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(index->Add((i % 2 == 0 ? "even/" : "odd/") + std::to_string(i),
                           RandomTestVector(&random), {{"n", i}}));
  }
  const std::vector<float> query = RandomTestVector(&random);
  const auto count_of = [&](VectorFilter filter) {
    return index->Search(query, {.k = 1'000, .filter = std::move(filter)}).value().hits.size();
  };
  EXPECT_EQ(count_of({}), 100u);
  EXPECT_EQ(count_of(VectorFilter::IdPrefix("even/")), 50u);
  EXPECT_EQ(count_of(VectorFilter::Ids({"even/2", "odd/3", "odd/4", "odd/3"})), 2u);
  EXPECT_EQ(count_of(VectorFilter::Parse("n < 10 or n == 50").value()), 11u);
  EXPECT_EQ(count_of(VectorFilter::Where([](std::string_view id, const Attributes& attributes) {
              return id.starts_with("odd") && std::get<int64_t>(attributes.at("n")) > 90;
            })),
            5u);
  // Of distances, those within.
  const auto all = index->Search(query, {.k = 100});
  const float tenth = all->hits[9].distance;
  EXPECT_EQ(index->Search(query, {.k = 100, .max_distance = tenth}).value().hits.size(), 10u);
  // What a user's function throws reaches the caller, and changes nothing.
  const VectorFilter throwing =
      VectorFilter::Where([](std::string_view, const Attributes&) -> bool { throw 7; });
  EXPECT_THROW((void)index->Search(query, {.filter = throwing}), int);
  EXPECT_EQ(count_of({}), 100u);
}

TEST_F(VectorIndexTest, WalksInTheOrderOfIdsFromAnId) {
  const auto index = Make();
  for (const char* id : {"c", "a", "ab", "b"}) {
    ASSERT_TRUE(index->Add(id, std::vector<float>(kTestDimension)));
  }
  const auto ids_from = [&](std::string_view from) {
    std::string ids;
    const Status status = index->ForEach(from, [&](const VectorItem& item) {
      ids += item.id + " ";
      return Status();
    });
    EXPECT_TRUE(status.ok()) << status.message();
    return ids;
  };
  EXPECT_EQ(ids_from(""), "a ab b c ");
  EXPECT_EQ(ids_from("ab"), "ab b c ");
  EXPECT_EQ(ids_from("aa"), "ab b c ");
  EXPECT_EQ(ids_from("d"), "");
  EXPECT_EQ(index->ForEach(std::string(65'535, 'x'), [](const auto&) { return Status(); }).code(),
            StatusCode::kInvalidArgument);
}

TEST_F(VectorIndexTest, ExpiredVectorsAreNotReturned) {
  const auto index = Make();
  base::Random random(5);
  const std::vector<float> vector = RandomTestVector(&random);
  WriteOptions past;
  past.expiry = WallTime(std::chrono::milliseconds(1'000));
  ASSERT_TRUE(index->Add("old", vector, {}, past));
  ASSERT_TRUE(index->Add("new", vector));
  EXPECT_EQ(IdsOf(index->Search(vector)), std::vector<std::string>{"new"});
  EXPECT_EQ(index->Count().value(), 1u);
}

}  // namespace
}  // namespace basalt::vector

#include "vector/graph_checkpoint.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "basalt/db.h"
#include "basalt/vector_index.h"
#include "base/random.h"
#include "vector/index_core.h"
#include "vector/test_vectors.h"

// The checkpoint of a vector index in its keyspace, whole and damaged.

namespace basalt::vector {
namespace {

class GraphCheckpointTest : public testing::Test {
 protected:
  static constexpr size_t kRows = 520;
  static constexpr size_t kSavedDimension = 250;

  void SetUp() override {
    index_ = IndexAccess::Make(
        IndexCore::Create(db_.get(), "v", {.dimension = kSavedDimension}, kSmallGraphs).value());
    for (size_t i = 0; i < kRows; ++i) {
      vectors_.push_back(clusters_.Next());
      ASSERT_TRUE(index_->Add("id" + std::to_string(i), vectors_.back()));
    }
    ASSERT_TRUE(index_->Compact().ok());
    ASSERT_TRUE(index_->SaveCheckpoint().ok());
  }

  std::unique_ptr<VectorIndex> Reopen() {
    return IndexAccess::Make(IndexCore::Open(db_.get(), "v", {}, kSmallGraphs).value());
  }
  std::map<std::string, std::string> Parts() {
    std::map<std::string, std::string> parts;
    const auto it = db_->NewIterator({.keyspace = index_->keyspace(), .prefix = kCheckpointPrefix});
    for (it->SeekToFirst(); it->Valid(); it->Next()) parts.emplace(it->key(), it->value());
    return parts;
  }
  /// Opens it, and looks for every vector.
  void ExpectAllFound(bool is_from_checkpoint) {
    const auto opened = Reopen();
    EXPECT_EQ(opened->Stats().from_checkpoint, is_from_checkpoint);
    EXPECT_GE(opened->Stats().linked, kRows / 2);
    for (size_t i = 0; i < kRows; i += 7) {
      const auto found = opened->Search(vectors_[i], {.k = 1}).value();
      ASSERT_EQ(found.hits.size(), 1u);
      EXPECT_EQ(found.hits[0].id, "id" + std::to_string(i));
    }
  }

  static constexpr RowSet::Options kSmallGraphs{.graph_rows_min = 300};
  base::Random random_{11};
  Clusters clusters_{10, kSavedDimension, 0.5, &random_};
  std::unique_ptr<DB> db_ = DB::Open(":memory:").value();
  std::unique_ptr<VectorIndex> index_;
  std::vector<std::vector<float>> vectors_;
};

TEST_F(GraphCheckpointTest, IsBelievedWhenItIsWhole) {
  EXPECT_GT(Parts().size(), 3u);
  ExpectAllFound(true);
}

TEST_F(GraphCheckpointTest, IsNotBelievedWhereAnyPartIsCutFlippedOrMissing) {
  const WriteOptions here{.keyspace = index_->keyspace()};
  for (const auto& [key, value] : Parts()) {
    SCOPED_TRACE(key);
    for (int i = 0; i < 5; ++i) {
      std::string damaged = value;
      switch (i) {
        case 0:
          damaged.pop_back();
          break;
        case 1:
          damaged.resize(random_.Below(damaged.size()));
          break;
        case 2:
          damaged += 'x';
          break;
        default:
          damaged[random_.Below(damaged.size())] ^= static_cast<char>(1 << random_.Below(8));
      }
      ASSERT_TRUE(db_->Put(key, damaged, here));
      ASSERT_FALSE(Reopen()->Stats().from_checkpoint) << i;
    }
    ASSERT_TRUE(db_->Delete(key, here));
    ExpectAllFound(false);
    ASSERT_TRUE(db_->Put(key, value, here));
  }
  ExpectAllFound(true);
}

TEST_F(GraphCheckpointTest, ServesRecordsThatHaveNotChangedSince) {
  for (size_t i = 0; i < kRows; i += 2) {
    vectors_[i] = clusters_.Next();
    ASSERT_TRUE(index_->Add("id" + std::to_string(i), vectors_[i]));
  }
  ExpectAllFound(true);
  EXPECT_GT(Reopen()->Stats().removed, kRows / 3) << "slots of records that are gone";
  // An old one that is put back.
  const auto old_parts = Parts();
  ASSERT_TRUE(index_->Compact().ok());
  ASSERT_TRUE(index_->SaveCheckpoint().ok());
  const WriteOptions here{.keyspace = index_->keyspace()};
  for (const auto& [key, value] : Parts())
    EXPECT_NE(old_parts.contains(key), key != "chead") << key;
  for (const auto& [key, value] : old_parts) ASSERT_TRUE(db_->Put(key, value, here));
  ExpectAllFound(true);
}

}  // namespace
}  // namespace basalt::vector

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/db.h"
#include "basalt/vector_index.h"
#include "base/random.h"
#include "db/environment.h"
#include "io/manual_executor.h"
#include "io/sim_clock.h"
#include "io/sim_file_system.h"
#include "vector/index_core.h"

// A vector index on a disk whose power is cut at random moments. What is found afterwards is what
// the records say; the records are those after some commit, and no earlier one than the last that
// was acknowledged as durable.

namespace basalt {
namespace {

constexpr size_t kDimension = 4;
constexpr uint64_t kIds = 60;

/// A vector, and the commit that wrote it, which is one of its attributes.
struct Written {
  std::vector<float> vector;
  int64_t commit = 0;
};
using Contents = std::map<std::string, Written>;

struct Moment {
  std::unique_ptr<io::SimFileSystem> disk;
  size_t durable = 0;
};

class VectorPowerCuts {
 public:
  explicit VectorPowerCuts(uint64_t seed) : random_(seed) {}
  ~VectorPowerCuts() { disk_.SetObserver({}); }

  void Run() {
    std::unique_ptr<DB> db = OpenDB(&disk_, &executor_);
    auto index = vector::IndexAccess::Make(
        vector::IndexCore::Create(db.get(), "v",
                                  {.dimension = kDimension, .metric = VectorMetric::kL2}, kSmall)
            .value());
    ASSERT_TRUE(db->Sync().ok());
    history_.emplace_back();
    disk_.SetObserver([this](uint64_t, std::string_view, std::string_view) {
      if (random_.OneIn(15)) moments_.push_back({disk_.Clone(), durable_});
    });
    for (int i = 0; i < 200; ++i) {
      ASSERT_NO_FATAL_FAILURE(Step(db.get(), index.get()));
      for (const Moment& moment : std::exchange(moments_, {})) {
        ASSERT_NO_FATAL_FAILURE(Cut(moment));
      }
    }
    EXPECT_GT(cuts_, 20);
    EXPECT_GT(from_checkpoint_, 0);
    index.reset();
    db.reset();
    executor_.RunAll();
  }

 private:
  static std::unique_ptr<DB> OpenDB(io::SimFileSystem* disk, io::ManualExecutor* executor) {
    static io::SimClock clock;
    db::Environment environment;
    environment.fs = disk;
    environment.clock = &clock;
    environment.executor = executor;
    environment.memtable_bytes = 16'384;
    environment.table_bytes = 8'192;
    DBOptions options;
    options.memory_budget = uint64_t{8} << 20;
    auto opened = db::OpenDatabase("/db", options, environment);
    EXPECT_TRUE(opened.ok()) << opened.error().ToString();
    return opened ? std::move(*opened) : nullptr;
  }

  std::vector<float> NextVector() {
    std::vector<float> vector(kDimension);
    for (float& element : vector) element = static_cast<float>(random_.Below(100));
    return vector;
  }

  /// One commit of several changes.
  void Step(DB* db, VectorIndex* index) {
    Contents after = history_.back();
    const auto commit = static_cast<int64_t>(history_.size());
    Transaction tx = db->Begin().value();
    for (int i = 0; i < 6; ++i) {
      const std::string id = std::to_string(random_.Below(kIds));
      if (random_.OneIn(5)) {
        ASSERT_TRUE(index->Remove(tx, id).ok());
        after.erase(id);
      } else {
        after[id] = {NextVector(), commit};
        ASSERT_TRUE(index->Add(tx, id, after[id].vector, {{"commit", commit}}).ok());
      }
    }
    const bool is_durable = random_.OneIn(4);
    // It may be there from now on.
    history_.push_back(std::move(after));
    ASSERT_TRUE(tx.Commit({.durability = is_durable ? Durability::kPower : Durability::kProcess}));
    if (is_durable) durable_ = history_.size() - 1;
    if (random_.OneIn(10)) {
      ASSERT_TRUE(index->Compact().ok());
      ASSERT_TRUE(index->SaveCheckpoint().ok());
    }
    if (random_.OneIn(3)) executor_.RunOne();
    if (random_.OneIn(20)) {
      ASSERT_TRUE(db->Flush().ok());
    }
  }

  void Cut(const Moment& moment) {
    moment.disk->Crash(random_.Next());
    io::ManualExecutor executor;
    std::unique_ptr<DB> db = OpenDB(moment.disk.get(), &executor);
    ASSERT_NE(db, nullptr);
    auto core = vector::IndexCore::Open(db.get(), "v", {}, kSmall);
    ASSERT_TRUE(core) << core.status().ToString();
    auto index = vector::IndexAccess::Make(*std::move(core));
    from_checkpoint_ += static_cast<int>(index->Stats().from_checkpoint);
    ASSERT_NO_FATAL_FAILURE(ExpectOneOfHistory(*index, moment.durable));
    ASSERT_TRUE(index->Add("after", NextVector()));
    ++cuts_;
    index.reset();
    db.reset();
    executor.RunAll();
  }

  void ExpectOneOfHistory(const VectorIndex& index, size_t durable) {
    const auto all = index.Search(NextVector(), {.k = kIds + 1, .with_attributes = true}).value();
    EXPECT_EQ(all.hits.size(), index.Count().value());
    std::map<std::string, int64_t> found;
    for (const VectorHit& hit : all.hits) {
      found[hit.id] = std::get<int64_t>(hit.attributes.at("commit"));
    }
    size_t at = history_.size();
    while (at-- > durable) {
      const Contents& contents = history_[at];
      if (std::ranges::equal(contents, found, [](const auto& a, const auto& b) {
            return a.first == b.first && a.second.commit == b.second;
          })) {
        break;
      }
    }
    ASSERT_GE(at + 1, durable + 1) << "these are the vectors of no commit";
    ASSERT_LT(at, history_.size()) << "these are the vectors of no commit";
    for (const auto& [id, written] : history_[at]) {
      const auto nearest = index.Search(written.vector, {.k = 1}).value();
      ASSERT_EQ(nearest.hits.size(), 1u);
      ASSERT_EQ(nearest.hits[0].distance, 0) << id;
    }
  }

  static constexpr vector::RowSet::Options kSmall{.graph_rows_min = 20};
  base::Random random_;
  io::SimFileSystem disk_;
  io::ManualExecutor executor_;
  std::vector<Moment> moments_;
  std::vector<Contents> history_;
  size_t durable_ = 0;
  int cuts_ = 0;
  int from_checkpoint_ = 0;
};

TEST(VectorPowerCut, ASearchFindsWhatTheRecordsSayAfterACut) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ASSERT_NO_FATAL_FAILURE(VectorPowerCuts(seed).Run());
  }
}

}  // namespace
}  // namespace basalt

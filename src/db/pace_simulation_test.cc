// Whether level 0 and the debt stand still under a load that does not end: the plan and the pacer
// with tables that are only talked about, and a disk of a given speed.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "db/compaction_plan.h"
#include "db/pacer.h"
#include "db/tree_key.h"

namespace basalt::db {
namespace {

constexpr uint64_t kMib = uint64_t{1} << 20;
constexpr double kWritersBytesPerSecond = 100e6;  // where nobody holds them back
constexpr uint32_t kKeysMax = 1'000'000'000;

struct Load {
  uint64_t budget;
  uint32_t keyspaces;
  uint64_t memtable_bytes;
  uint64_t table_bytes;
  uint64_t base_bytes;
  double disk_bytes_per_second;  ///< That flushes and compactions read and write.
};

/// As a database of this budget has them.
Load LoadOf(uint64_t budget_mib, uint32_t keyspaces, double disk_bytes_per_second) {
  const uint64_t memtable_bytes = budget_mib * kMib / 8;
  return {.budget = budget_mib,
          .keyspaces = keyspaces,
          .memtable_bytes = memtable_bytes,
          .table_bytes = std::max(2 * kMib, budget_mib * kMib / 8),
          .base_bytes = kLevel0Tables * memtable_bytes,
          .disk_bytes_per_second = disk_bytes_per_second};
}

std::string KeyAtPart(double part) {
  char key[16];
  std::snprintf(key, sizeof key, "%010.0f", part * kKeysMax);
  return key;
}

/// One writer of random keys in all keyspaces, and one thread that flushes and compacts. The first
/// keyspace has a tree of its own, and the others share one.
class Simulation {
 public:
  explicit Simulation(const Load& load, bool is_paced = true) : load_(load), is_paced_(is_paced) {
    limits_.base_bytes = load.base_bytes;
    limits_.job_bytes_max = 16 * load.table_bytes;
    if (load.keyspaces > 1) shared_.keyspace = kSharedTree;
  }

  void RunUntil(double end) {
    while (now_ < end) {
      FillMemtable();
      Flush();
      Repace();
    }
  }

  size_t level0_tables() const { return default_.levels[0].size() + shared_.levels[0].size(); }
  double Lag() const {
    std::vector<const CompactionJob*> running;
    if (job_) running.push_back(&*job_);
    return CompactionLag(AllTrees(), limits_, running);
  }
  uint64_t Debt() const { return CompactionDebt(AllTrees(), limits_); }
  uint64_t written() const { return written_; }

 private:
  Version AllTrees() const {
    Version::Trees trees = {std::make_shared<const Tree>(default_)};
    if (!shared_.empty()) trees.push_back(std::make_shared<const Tree>(shared_));
    return Version(std::move(trees));
  }

  void FillMemtable() {
    constexpr uint64_t kPutBytes = 4096;
    for (uint64_t bytes = 0; bytes < load_.memtable_bytes; bytes += kPutBytes) {
      now_ += kPutBytes / kWritersBytesPerSecond;
      now_ +=
          1e-9 * static_cast<double>(pacer_.Charge(kPutBytes, static_cast<uint64_t>(now_ * 1e9)));
      CompactUntilNow();
    }
    written_ += load_.memtable_bytes;
    // It is sealed when the one before it has been flushed.
    now_ = std::max(now_, flushed_at_);
    CompactUntilNow();
  }

  // As with each change of the tables.
  void Repace() {
    if (is_paced_) pacer_.SetLag(Lag());
  }

  void Work(uint64_t bytes) {
    thread_free_at_ += static_cast<double>(bytes) / load_.disk_bytes_per_second;
  }

  void CompactUntilNow() {
    while (thread_free_at_ < now_) {
      if (!job_) Begin();
      if (!job_) {
        thread_free_at_ = now_;
        return;
      }
      const double until_now = (now_ - thread_free_at_) * load_.disk_bytes_per_second + 1;
      const auto done =
          static_cast<uint64_t>(std::min(static_cast<double>(job_bytes_left_), until_now));
      Work(done);
      job_bytes_left_ -= std::min(job_bytes_left_, done);
      if (job_bytes_left_ > 0) continue;
      Finish();
      Repace();
    }
  }

  // Before the rest of a job.
  void Flush() {
    Work(load_.memtable_bytes);
    flushed_at_ = thread_free_at_;
    const uint64_t of_one = load_.memtable_bytes / load_.keyspaces;
    AddToLevel0(&default_, of_one);
    if (load_.keyspaces > 1) AddToLevel0(&shared_, load_.memtable_bytes - of_one);
  }

  void AddToLevel0(Tree* tree, uint64_t bytes) {
    tree->levels[0].insert(tree->levels[0].begin(), Make(0, 1, bytes));
  }

  std::shared_ptr<TableFile> Make(double from, double to, uint64_t bytes) {
    table::TableProperties properties;
    properties.file_bytes = bytes;
    properties.records = bytes / 100;
    properties.smallest_sequence = ++sequence_;
    properties.largest_sequence = sequence_;
    properties.smallest_key = KeyAtPart(from);
    properties.largest_key = KeyAtPart(to);
    return std::make_shared<TableFile>(nullptr, "", TableFile::Place{}, std::move(properties),
                                       TableFile::Resources{});
  }

  void Begin() {
    job_ = PickCompaction(AllTrees(), limits_);
    if (!job_) return;
    for (const TableFiles& level : job_->inputs) {
      for (const auto& table : level) table->busy = true;
    }
    job_bytes_left_ = job_->is_move() ? 1 : 2 * job_->input_bytes();
  }

  // Random keys: what is written fills the inputs' range evenly, and nothing is overwritten.
  void Finish() {
    Tree& tree = job_->keyspace == 0 ? default_ : shared_;
    const uint64_t bytes = job_->input_bytes();
    const double from = std::stod(std::string(job_->smallest_key())) / kKeysMax;
    const double to = std::stod(std::string(job_->largest_key())) / kKeysMax;
    for (size_t level = 0; level < Tree::kLevels; ++level) {
      for (const auto& table : job_->inputs[level]) std::erase(tree.levels[level], table);
    }
    TableFiles& output = tree.levels[job_->output_level];
    const uint64_t tables =
        std::max<uint64_t>(1, (bytes + load_.table_bytes - 1) / load_.table_bytes);
    const double width = (to - from) / static_cast<double>(tables);
    const double gap = 2.0 / kKeysMax;
    for (uint64_t i = 0; i < tables; ++i) {
      const double begin = from + width * static_cast<double>(i);
      const double end = i + 1 == tables ? to : std::max(begin, begin + width - gap);
      output.push_back(Make(begin, end, bytes / tables));
    }
    std::ranges::sort(output, {},
                      [](const auto& table) { return table->properties().smallest_key; });
    job_.reset();
  }

  const Load load_;
  const bool is_paced_;
  CompactionLimits limits_;
  Tree default_;
  Tree shared_;
  Pacer pacer_;
  base::SequenceNumber sequence_ = 0;
  uint64_t written_ = 0;
  double now_ = 0;             // of the writer
  double thread_free_at_ = 0;  // and of the one thread
  double flushed_at_ = 0;
  std::optional<CompactionJob> job_;
  uint64_t job_bytes_left_ = 0;
};

/// Figures at the end of each of some equal parts of a stretch of time.
struct Stretch {
  double level0_tables = 0;
  double debt = 0;
  double lag_max = 0;
};

Stretch Observe(Simulation* simulation, double begin, double end) {
  constexpr int kParts = 50;
  Stretch stretch;
  for (int i = 0; i < kParts; ++i) {
    simulation->RunUntil(begin + (end - begin) * (i + 1) / kParts);
    stretch.level0_tables += static_cast<double>(simulation->level0_tables()) / kParts;
    stretch.debt += static_cast<double>(simulation->Debt()) / kParts;
    stretch.lag_max = std::max(stretch.lag_max, simulation->Lag());
  }
  return stretch;
}

class PaceSimulation : public testing::TestWithParam<Load> {};

TEST_P(PaceSimulation, Level0AndTheDebtStandStill) {
  Simulation simulation(GetParam());
  simulation.RunUntil(300);
  const Stretch third = Observe(&simulation, 300, 450);
  const Stretch last = Observe(&simulation, 450, 600);
  const double trees = GetParam().keyspaces == 1 ? 1 : 2;
  EXPECT_LE(last.level0_tables, third.level0_tables + 8 * trees);
  EXPECT_LE(last.level0_tables, 40 * trees);
  EXPECT_LE(last.debt, 1.5 * third.debt);
  EXPECT_LE(std::max(third.lag_max, last.lag_max), 7);
  // They are not held back more than the disk demands, either.
  EXPECT_GE(static_cast<double>(simulation.written()), GetParam().disk_bytes_per_second * 600 / 60);
}

// What the others are measured by: the load is more than the disk can take.
TEST_P(PaceSimulation, WithoutAPaceLevel0Grows) {
  Load load = GetParam();
  load.disk_bytes_per_second = 200e6;
  Simulation simulation(load, /*is_paced=*/false);
  const Stretch first = Observe(&simulation, 0, 10);
  const Stretch second = Observe(&simulation, 10, 20);
  EXPECT_GT(second.level0_tables, 1.5 * first.level0_tables);
  EXPECT_GT(second.level0_tables, 40);
}

std::string NameOfLoad(const testing::TestParamInfo<Load>& info) {
  return std::to_string(info.param.budget) + "MibOf" + std::to_string(info.param.keyspaces) +
         "KeyspacesAt" + std::to_string(static_cast<int>(info.param.disk_bytes_per_second / 1e6));
}

std::vector<Load> AllBudgetsAndKeyspaces() {
  std::vector<Load> loads;
  for (const uint64_t budget : {1, 4, 16, 64}) {
    for (const uint32_t keyspaces : {1U, 30U, 200U, 1'000U}) {
      loads.push_back(LoadOf(budget, keyspaces, 50e6));
    }
  }
  return loads;
}

INSTANTIATE_TEST_SUITE_P(BudgetsAndKeyspaces, PaceSimulation,
                         testing::ValuesIn(AllBudgetsAndKeyspaces()), NameOfLoad);
INSTANTIATE_TEST_SUITE_P(SlowAndFastDisks, PaceSimulation,
                         testing::Values(LoadOf(1, 1, 2e6), LoadOf(1, 1, 200e6),
                                         LoadOf(16, 1, 20e6), LoadOf(16, 200, 200e6),
                                         LoadOf(64, 1, 20e6), LoadOf(64, 1'000, 400e6)),
                         NameOfLoad);

}  // namespace
}  // namespace basalt::db

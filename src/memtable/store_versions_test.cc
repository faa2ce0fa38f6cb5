#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/memtable.h"
#include "base/coding.h"
#include "base/merge_operator.h"
#include "base/random.h"
#include "io/sim_clock.h"
#include "memtable/store.h"
#include "memtable/store_test_support.h"

// Expiry and merges, on a clock that the test moves: against a list of all versions of each key.

namespace basalt::memtable {
namespace {

using std::chrono::milliseconds;

std::string Int64(int64_t number) {
  std::string bytes(8, '\0');
  base::Store(bytes.data(), static_cast<uint64_t>(number));
  return bytes;
}

std::shared_ptr<StoreCore> NewCore(io::Clock* clock, MemTableOptions options = Still()) {
  options.generation_bytes = 256 * kKiB;
  options.memory_budget = 64 * kMiB;
  return StoreCore::Create(options, clock).value();
}

std::optional<std::string> ValueIn(const StoreCore& core, std::string_view key,
                                   const ReadOptions& options = {}) {
  auto got = core.Get(key, options);
  EXPECT_TRUE(got) << got.error().ToString();
  if (!got || !*got) return std::nullopt;
  return (*got)->ToString();
}

TEST(MemTableExpiry, ARecordIsThereUntilItsMomentAndThenForNobodyButOlderSnapshots) {
  for (int stage = 0; stage < 3; ++stage) {
    SCOPED_TRACE(stage);
    io::SimClock clock;
    const auto core = NewCore(&clock);
    ASSERT_TRUE(IsOk(core->Put("stays", "1", {.ttl = milliseconds(0)})));
    ASSERT_TRUE(IsOk(core->Put("goes", "old", {})));
    ASSERT_TRUE(IsOk(core->Put("goes", "2", {.ttl = milliseconds(1'000)})));
    const Snapshot before = core->TakeSnapshot().value();
    const auto iterator = core->NewIterator({});
    clock.Advance(999'000);
    EXPECT_EQ(ValueIn(*core, "goes"), "2");
    clock.Advance(1'000);
    if (stage >= 1) {
      ASSERT_TRUE(IsOk(core->Seal()));
    }
    if (stage >= 2) {
      ASSERT_TRUE(IsOk(core->Compact()));
    }
    EXPECT_EQ(ValueIn(*core, "goes"), std::nullopt);
    EXPECT_FALSE(core->Contains("goes", {}).value());
    EXPECT_FALSE(core->GetEntry("goes", {}).value());
    std::vector<Result<MaybeValue>> results(2);
    ASSERT_TRUE(IsOk(core->MultiGet(std::vector<std::string_view>{"goes", "stays"}, results, {})));
    EXPECT_FALSE(*results[0]);
    EXPECT_TRUE(*results[1]);
    EXPECT_EQ(ReadForwards(core->NewIterator({}).get()), (Contents{{"stays", "1"}}));
    EXPECT_EQ(ReadBackwards(core->NewIterator({}).get()), (Contents{{"stays", "1"}}));

    EXPECT_EQ(ValueIn(*core, "goes", {.snapshot = &before}), "2");
    EXPECT_TRUE(core->Contains("goes", {.snapshot = &before}).value());
    EXPECT_EQ(ReadForwards(core->NewIterator({.snapshot = &before}).get()).size(), 2u);
    EXPECT_EQ(ReadForwards(iterator.get()).size(), 2u) << "it keeps its moment";
  }
}

TEST(MemTableExpiry, CompactionDropsWhatHasExpiredForAllSnapshots) {
  io::SimClock clock;
  const auto core = NewCore(&clock);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(IsOk(core->Put(Numbered("key", i), "value", {.ttl = milliseconds(10)})));
  }
  auto snapshot = std::make_unique<Snapshot>(core->TakeSnapshot().value());
  clock.Advance(10'000);
  ASSERT_TRUE(IsOk(core->Compact()));
  EXPECT_EQ(core->GetStats().records, 100u) << "the snapshot sees them";
  snapshot.reset();
  ASSERT_TRUE(IsOk(core->Compact()));
  EXPECT_EQ(core->GetStats().records, 0u);
}

TEST(MemTableExpiry, CompactionDropsThemBesideCountersToo) {
  io::SimClock clock;
  const auto core = NewCore(&clock);
  ASSERT_TRUE(IsOk(core->Merge("counter", MergeOperator::kAdd, Int64(1), {})));
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(IsOk(core->Put(Numbered("key", i), "value", {.ttl = milliseconds(10)})));
  }
  clock.Advance(120'000'000);
  ASSERT_TRUE(IsOk(core->Merge("counter", MergeOperator::kAdd, Int64(1), {})));
  ASSERT_TRUE(IsOk(core->Compact()));
  EXPECT_EQ(core->GetStats().records, 1u);
  EXPECT_EQ(ValueIn(*core, "counter"), Int64(2));
}

TEST(MemTableExpiry, UpdateSeesAndSetsTheExpiry) {
  io::SimClock clock;
  const auto core = NewCore(&clock);
  const auto expiry_of = [&](std::string_view key) {
    const auto entry = core->GetEntry(key, {}).value();
    return entry ? entry->expiry : std::nullopt;
  };
  const WallTime now(milliseconds(clock.WallMillis()));
  ASSERT_TRUE(IsOk(core->Put("key", "1", {.ttl = milliseconds(5'000)})));
  const auto set = [](EntryUpdate& entry) {
    entry.Set(std::string(entry.value()) + "+");
    return Status();
  };
  ASSERT_TRUE(IsOk(core->Update("key", set, {})));
  EXPECT_EQ(expiry_of("key"), now + milliseconds(5'000)) << "it is kept";
  ASSERT_TRUE(IsOk(core->Update("key",
                                [&](EntryUpdate& entry) {
                                  EXPECT_EQ(entry.expiry(), now + milliseconds(5'000));
                                  entry.SetTtl(milliseconds(9'000));
                                  return Status();
                                },
                                {})));
  EXPECT_EQ(expiry_of("key"), now + milliseconds(9'000));
  EXPECT_EQ(ValueIn(*core, "key"), "1+");
  ASSERT_TRUE(IsOk(core->Update("key",
                                [](EntryUpdate& entry) {
                                  entry.SetExpiry(std::nullopt);
                                  return Status();
                                },
                                {})));
  EXPECT_EQ(expiry_of("key"), std::nullopt);
  ASSERT_TRUE(IsOk(core->Update("absent", set, {.ttl = milliseconds(100)})));
  EXPECT_EQ(expiry_of("absent"), now + milliseconds(100));
  clock.Advance(100'000);
  ASSERT_TRUE(IsOk(core->Update("absent",
                                [](EntryUpdate& entry) {
                                  EXPECT_FALSE(entry.exists()) << "it has expired";
                                  EXPECT_EQ(entry.version(), 0u);
                                  return Status();
                                },
                                {})));
}

TEST(MemTableExpiry, AnUpdateAsksAgainWhenWhatItSawExpires) {
  io::SimClock clock;
  const auto core = NewCore(&clock);
  ASSERT_TRUE(IsOk(core->Put("key", "1", {.ttl = milliseconds(5)})));
  int calls = 0;
  ASSERT_TRUE(IsOk(core->Update("key",
                                [&](EntryUpdate& entry) {
                                  EXPECT_EQ(entry.exists(), calls == 0);
                                  if (++calls == 1) clock.Advance(5'000);
                                  entry.Set(entry.exists() ? "was there" : "was absent");
                                  return Status();
                                },
                                {})));
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(ValueIn(*core, "key"), "was absent");
}

TEST(MemTableExpiry, BothTtlAndExpiryOrANegativeTtlAreRefused) {
  io::SimClock clock;
  const auto core = NewCore(&clock);
  EXPECT_EQ(core->Put("key", "value", {.ttl = milliseconds(-1)}).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(core->Put("key", "value", {.ttl = milliseconds(1), .expiry = WallTime(milliseconds(1))})
                .code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(core->Update("key",
                         [](EntryUpdate& e) {
                           e.Set("1");
                           return Status();
                         },
                         {.ttl = milliseconds(-1)})
                .code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(ValueIn(*core, "key"), std::nullopt);
}

TEST(MemTableExpiry, TimeDoesNotRunBackward) {
  io::SimClock clock;
  const auto core = NewCore(&clock);
  ASSERT_TRUE(IsOk(core->Put("key", "value", {.ttl = milliseconds(1'000)})));
  clock.Advance(1'000'000);
  EXPECT_EQ(ValueIn(*core, "key"), std::nullopt);
  clock.SetWall(clock.WallMillis() - 86'400'000);
  EXPECT_EQ(ValueIn(*core, "key"), std::nullopt);
}

// Merges

TEST(MemTableMerges, EachOperatorCombinesItsOperandsAtEachStage) {
  for (int stage = 0; stage < 3; ++stage) {
    SCOPED_TRACE(stage);
    io::SimClock clock;
    const auto core = NewCore(&clock);
    const auto step = [&] {
      if (stage >= 1) {
        ASSERT_TRUE(IsOk(core->Seal()));
      }
      if (stage >= 2) {
        ASSERT_TRUE(IsOk(core->Compact()));
      }
    };
    ASSERT_TRUE(IsOk(core->Put("max", Int64(5), {})));
    ASSERT_TRUE(IsOk(core->Put("text", "not a number", {})));
    for (const int64_t number : {3, 9, -4}) {
      ASSERT_TRUE(IsOk(core->Merge("add", MergeOperator::kAdd, Int64(number), {})));
      ASSERT_TRUE(IsOk(core->Merge("min", MergeOperator::kMin, Int64(number), {})));
      ASSERT_TRUE(IsOk(core->Merge("max", MergeOperator::kMax, Int64(number), {})));
      ASSERT_TRUE(IsOk(core->Merge("append", MergeOperator::kAppend, std::to_string(number), {})));
      step();
    }
    const auto merged = core->Merge("text", MergeOperator::kAdd, Int64(1), {});
    ASSERT_TRUE(merged);
    step();
    EXPECT_EQ(ValueIn(*core, "add"), Int64(8));
    EXPECT_EQ(ValueIn(*core, "min"), Int64(-4));
    EXPECT_EQ(ValueIn(*core, "max"), Int64(9));
    EXPECT_EQ(ValueIn(*core, "append"), "39-4");
    EXPECT_EQ(core->Get("text", {}).code(), StatusCode::kFailedPrecondition);
    ASSERT_TRUE(IsOk(core->Delete("text", {})));
    EXPECT_EQ(
        ReadForwards(core->NewIterator({}).get()),
        (Contents{{"add", Int64(8)}, {"append", "39-4"}, {"max", Int64(9)}, {"min", Int64(-4)}}));
    EXPECT_EQ(core->Merge("add", MergeOperator::kAdd, "short", {}).code(),
              StatusCode::kInvalidArgument);
  }
}

TEST(MemTableMerges, AMillionOfOneCounterStayFew) {
  const auto table = NewTable({.memory_budget = 8 * kMiB});
  constexpr int64_t kCount = 300'000;
  for (int64_t i = 0; i < kCount; ++i) {
    ASSERT_TRUE(IsOk(table->Merge("counter", MergeOperator::kAdd, Int64(1))));
  }
  EXPECT_EQ(GetFrom(*table, "counter"), Int64(kCount));
  ASSERT_TRUE(IsOk(table->Compact()));
  EXPECT_EQ(table->GetStats().records, 1u);
  EXPECT_EQ(GetFrom(*table, "counter"), Int64(kCount));
}

/// All versions of a few keys, and a store that had the same written to it.
class VersionsRun {
 public:
  explicit VersionsRun(uint64_t seed) : random_(seed), core_(NewCore(&clock_)) {}

  void Run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      SCOPED_TRACE(i);
      Step();
    }
    CompareAll();
  }

 private:
  static constexpr size_t kKeyCount = 5;
  struct Version {
    uint64_t sequence;
    RecordKind kind;
    std::string value;
    uint64_t time_ms;
  };

  static std::string KeyOf(size_t i) { return Numbered("key", i); }

  void Step() {
    const size_t key = random_.Below(kKeyCount);
    switch (random_.Below(16)) {
      case 0:
      case 1:
        return Put(key, 0);
      case 2:
      case 3:
        return Put(key, 1 + random_.Below(40));
      case 4:
        return Add(key, RecordKind::kDelete, {}, 0, core_->Delete(KeyOf(key), {}));
      case 5:
      case 6:
      case 7:
      case 8:
        return Merge(key);
      case 9:
        return DeleteRange(key);
      case 10:
        return clock_.Advance(random_.Below(20) * 1'000);
      case 11:
        if (random_.OneIn(3)) clock_.Advance(70'000'000);
        return;
      case 12:
        if (snapshots_.size() < 4) {
          snapshots_.push_back(core_->TakeSnapshot().value());
        } else {
          snapshots_.erase(snapshots_.begin() + static_cast<ptrdiff_t>(random_.Below(4)));
        }
        return;
      case 13:
        EXPECT_TRUE(IsOk(core_->Seal()));
        return;
      case 14:
        if (random_.OneIn(2)) {
          EXPECT_TRUE(IsOk(core_->Compact()));
        }
        return;
      default:
        return CompareAll();
    }
  }

  std::string SomeNumber() { return Int64(static_cast<int64_t>(random_.Below(100))); }

  void Put(size_t key, uint64_t ttl_ms) {
    const std::string value = SomeNumber();
    const WriteOptions options{.ttl = milliseconds(ttl_ms)};
    Add(key, RecordKind::kPut, value, ttl_ms == 0 ? 0 : clock_.WallMillis() + ttl_ms,
        core_->Put(KeyOf(key), value, options));
  }

  void Merge(size_t key) {
    const int count = random_.OneIn(8) ? 40 : 1;
    for (int i = 0; i < count; ++i) {
      const auto op = static_cast<MergeOperator>(1 + (count > 1 ? key % 3 : random_.Below(3)));
      const std::string operand = SomeNumber();
      Add(key, RecordKind::kMerge, static_cast<char>(op) + operand, clock_.WallMillis(),
          core_->Merge(KeyOf(key), op, operand, {}));
    }
  }

  void DeleteRange(size_t from) {
    WriteBatch batch;
    batch.DeleteRange(KeyOf(from), KeyOf(from + 2));
    const auto written = core_->Write(batch, {});
    for (size_t key = from; key < std::min(from + 2, kKeyCount); ++key) {
      Add(key, RecordKind::kDelete, {}, 0, written);
    }
  }

  void Add(size_t key, RecordKind kind, std::string value, uint64_t time_ms,
           const Result<Commit>& written) {
    ASSERT_TRUE(written) << written.error().ToString();
    versions_[key].push_back({written->sequence, kind, std::move(value), time_ms});
  }

  std::optional<base::MergedValue> Expected(size_t key, uint64_t at, uint64_t now_ms) const {
    std::vector<base::PendingMerge> merges;
    std::optional<std::string_view> below;
    uint64_t expiry_ms = 0;
    const std::vector<Version>& versions = versions_[key];
    for (auto version = versions.rbegin(); version != versions.rend(); ++version) {
      if (version->sequence > at) continue;
      if (version->kind == RecordKind::kMerge) {
        merges.push_back({version->value, version->time_ms});
        continue;
      }
      if (version->kind == RecordKind::kPut) {
        below = version->value;
        expiry_ms = version->time_ms;
      }
      break;
    }
    base::MergedValue value;
    if (!merges.empty()) {
      value = base::ApplyMerges(merges, below, expiry_ms, now_ms).value();
    } else if (below) {
      value = {std::string(*below), expiry_ms};
    } else {
      return std::nullopt;
    }
    if (value.expiry_ms != 0 && value.expiry_ms <= now_ms) return std::nullopt;
    return value;
  }

  /// For messages.
  std::string History(size_t key) const {
    std::string text = "; now " + std::to_string(clock_.WallMillis());
    for (const Snapshot& snapshot : snapshots_) {
      text += "; snapshot " + std::to_string(snapshot.sequence()) + " time " +
              std::to_string(snapshot.time().time_since_epoch().count());
    }
    for (const Version& version : versions_[key]) {
      text += "\n  " + std::to_string(version.sequence) + " kind " +
              std::to_string(static_cast<int>(version.kind)) + " time " +
              std::to_string(version.time_ms);
    }
    return text;
  }

  void CompareAll() {
    Compare(nullptr);
    for (const Snapshot& snapshot : snapshots_) Compare(&snapshot);
  }

  void Compare(const Snapshot* snapshot) {
    const uint64_t at = snapshot != nullptr ? snapshot->sequence() : base::kMaxSequence;
    const uint64_t now_ms = snapshot != nullptr
                                ? static_cast<uint64_t>(snapshot->time().time_since_epoch().count())
                                : clock_.WallMillis();
    Contents expected;
    for (size_t key = 0; key < kKeyCount; ++key) {
      const auto value = Expected(key, at, now_ms);
      const auto entry = core_->GetEntry(KeyOf(key), {.snapshot = snapshot});
      ASSERT_TRUE(entry) << entry.error().ToString();
      ASSERT_EQ(entry->has_value(), value.has_value())
          << KeyOf(key) << " at " << at << History(key);
      ASSERT_EQ(core_->Contains(KeyOf(key), {.snapshot = snapshot}).value(), value.has_value());
      if (!value) continue;
      ASSERT_EQ((*entry)->value.view(), value->value) << KeyOf(key) << " at " << at;
      const auto expiry = (*entry)->expiry;
      ASSERT_EQ(expiry ? static_cast<uint64_t>(expiry->time_since_epoch().count()) : 0,
                value->expiry_ms);
      ASSERT_LE((*entry)->version, std::min(at, versions_[key].back().sequence));
      expected.emplace_back(KeyOf(key), value->value);
    }
    const auto iterator = core_->NewIterator({.snapshot = snapshot});
    ASSERT_EQ(ReadForwards(iterator.get()), expected) << "at " << at;
    ASSERT_EQ(ReadBackwards(iterator.get()), expected) << "at " << at;
  }

  mutable io::SimClock clock_;
  base::Random random_;
  const std::shared_ptr<StoreCore> core_;
  std::vector<Version> versions_[kKeyCount];
  std::vector<Snapshot> snapshots_;
};

TEST(MemTableVersions, ExpiryMergesAndSnapshotsGiveWhatTheListOfVersionsGives) {
  for (uint64_t seed = 1; seed <= 40 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    VersionsRun(seed).Run(300);
  }
}

}  // namespace
}  // namespace basalt::memtable

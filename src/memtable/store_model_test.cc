#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "basalt/memtable.h"
#include "base/random.h"
#include "base/test_update.h"
#include "memtable/store_test_support.h"

// Random operations on a memtable and on ordinary maps; whatever can be read must be the same. A
// snapshot and an iterator each keep the map of their moment, as long as they live. One operation
// follows the other, but each may be on another thread: threads have memory and sequence numbers
// of their own.

namespace basalt {
namespace {

using Keyspaces = std::array<std::map<std::string, std::string, std::less<>>, 3>;

constexpr std::array<KeyspaceId, 3> kKeyspaceIds = {KeyspaceId::kDefault, KeyspaceId{1},
                                                    KeyspaceId{2}};

struct ModelCase {
  const char* name;
  MemTableOptions options;
};

/// Few, so that they meet often: short ones, zeros at their ends, prefixes of each other, long
/// common prefixes, the largest and smallest bytes.
std::vector<std::string> ModelKeys() {
  using std::string_literals::operator""s;
  std::vector<std::string> keys = {""s,         "\0"s,         "\0\0"s,      "a"s,
                                   "a\0"s,      "a\0\0"s,      "a\0b"s,      "aa"s,
                                   "b"s,        "\xFF"s,       "\xFF\xFF"s,  "\xFF\0"s,
                                   "12345678"s, "12345678\0"s, "123456789"s, "1234567\0"s};
  for (int i = 0; i < 12; ++i) keys.push_back("stem/" + std::to_string(i));
  const std::string long_stem(2'000, 'l');
  for (int i = 0; i < 8; ++i) keys.push_back(long_stem + std::to_string(i));
  keys.push_back(long_stem);
  keys.push_back(long_stem + '\0');
  for (size_t size = 1; size < 8; ++size) keys.push_back(std::string(8 * size, 'z'));
  return keys;
}

/// A thread that does what it is told.
class Helper {
 public:
  Helper() : thread_([this] { Serve(); }) {}
  ~Helper() {
    Do([this] { is_done_ = true; });
    thread_.join();
  }
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  /// Returns when it is done.
  void Do(std::function<void()> task) {
    std::unique_lock lock(mutex_);
    task_ = std::move(task);
    changed_.notify_all();
    changed_.wait(lock, [this] { return task_ == nullptr; });
  }

 private:
  void Serve() {
    std::unique_lock lock(mutex_);
    while (!is_done_) {
      changed_.wait(lock, [this] { return task_ != nullptr; });
      task_();
      task_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> task_;
  bool is_done_ = false;
  std::thread thread_;
};

class ModelRun {
 public:
  ModelRun(const MemTableOptions& options, uint64_t seed, size_t helpers)
      : may_refuse_(options.memory_budget < uint64_t{16} << 20),
        table_(NewTable(options)),
        random_(seed),
        helpers_(helpers) {
    EXPECT_EQ(table_->CreateKeyspace("one").value(), kKeyspaceIds[1]);
    EXPECT_EQ(table_->CreateKeyspace("two").value(), kKeyspaceIds[2]);
  }

  void Run(int operations) {
    for (int i = 0; i < operations && !testing::Test::HasFatalFailure(); ++i) {
      const auto step = [this, i] {
        SCOPED_TRACE("operation " + std::to_string(i));
        Step();
      };
      const size_t thread = random_.Below(helpers_.size() + 1);
      if (thread == helpers_.size()) {
        step();
      } else {
        helpers_[thread].Do(step);
      }
      if (testing::Test::HasFailure()) return;
    }
    Finish();
  }

 private:
  struct Moment {
    Snapshot snapshot;
    std::shared_ptr<const Keyspaces> contents;
  };
  /// An iterator and the records that it must see.
  struct Walk {
    std::unique_ptr<Iterator> it;
    Contents expected;
    std::optional<size_t> at;
  };

  void Step() {
    switch (random_.Below(24)) {
      case 0:
        return DeleteRange();
      case 1:
      case 2:
        return Delete();
      case 3:
      case 4:
        return Write();
      case 5:
      case 6:
        return Update();
      case 7:
        return TakeSnapshot();
      case 8:
        return ReleaseSnapshot();
      case 9:
        return CheckScan();
      case 10:
        return StartWalk();
      case 11:
      case 12:
        return MoveWalk();
      case 13:
        return MultiGet();
      case 14:
      case 15:
      case 16:
        return CheckGet();
      case 17:
        return Background();
      default:
        return Put();
    }
  }

  // Choices

  const std::string& AnyKey() {
    static const std::vector<std::string> keys = ModelKeys();
    static const std::string longest(65'535, 'm');
    return random_.OneIn(1'000) ? longest : keys[random_.Below(keys.size())];
  }
  std::string AnyValue() {
    ++writes_;
    std::string value = std::to_string(writes_) + ':';
    const size_t size = random_.OneIn(50) ? random_.Below(20'000) : random_.Below(300);
    value.append(size, static_cast<char>('a' + writes_ % 26));
    return random_.OneIn(20) ? std::string() : value;
  }
  size_t AnyKeyspace() { return random_.OneIn(4) ? random_.Below(3) : 0; }
  /// Null: read the present.
  const Moment* AnyMoment() {
    if (moments_.empty() || random_.OneIn(2)) return nullptr;
    return &moments_[random_.Below(moments_.size())];
  }
  const Keyspaces& ContentsAt(const Moment* moment) const {
    return moment == nullptr ? *contents_ : *moment->contents;
  }
  static const Snapshot* SnapshotIn(const Moment* moment) {
    return moment == nullptr ? nullptr : &moment->snapshot;
  }

  // The model. A copy is made when a snapshot or an iterator has the present one.

  Keyspaces& Mutable() {
    if (contents_.use_count() > 1) contents_ = std::make_shared<Keyspaces>(*contents_);
    return *contents_;
  }
  static void EraseRange(std::map<std::string, std::string, std::less<>>* map,
                         const std::string& begin, const std::string& end) {
    if (begin < end) map->erase(map->lower_bound(begin), map->lower_bound(end));
  }
  /// Whether it was written; an error must be one that this table may give.
  bool Written(const Status& status) {
    if (status.ok()) return true;
    EXPECT_TRUE(may_refuse_ && status.code() == StatusCode::kResourceExhausted)
        << status.ToString();
    return false;
  }

  // Writes

  void Put() {
    const std::string& key = AnyKey();
    const std::string value = AnyValue();
    const size_t keyspace = AnyKeyspace();
    if (Written(table_->Put(key, value, {.keyspace = kKeyspaceIds[keyspace]}))) {
      Mutable()[keyspace][key] = value;
    }
  }

  void Delete() {
    const std::string& key = AnyKey();
    const size_t keyspace = AnyKeyspace();
    if (Written(table_->Delete(key, {.keyspace = kKeyspaceIds[keyspace]})))
      Mutable()[keyspace].erase(key);
  }

  void DeleteRange() {
    const std::string& begin = AnyKey();
    const std::string& end = AnyKey();
    const size_t keyspace = AnyKeyspace();
    if (Written(table_->DeleteRange(begin, end, {.keyspace = kKeyspaceIds[keyspace]}))) {
      EraseRange(&Mutable()[keyspace], begin, end);
    }
  }

  void Write() {
    WriteBatch batch;
    Keyspaces after = *contents_;
    const uint64_t count = random_.OneIn(20) ? 300 : random_.Below(12);
    for (uint64_t i = 0; i < count; ++i) {
      const size_t keyspace = AnyKeyspace();
      const std::string& key = AnyKey();
      const uint64_t kind = random_.Below(8);
      if (kind == 0) {
        const std::string& end = AnyKey();
        batch.DeleteRange(key, end, kKeyspaceIds[keyspace]);
        EraseRange(&after[keyspace], key, end);
      } else if (kind == 1) {
        batch.Delete(key, kKeyspaceIds[keyspace]);
        after[keyspace].erase(key);
      } else {
        const std::string value = AnyValue();
        batch.Put(key, value, {.keyspace = kKeyspaceIds[keyspace]});
        after[keyspace][key] = value;
      }
    }
    if (Written(table_->Write(batch))) contents_ = std::make_shared<Keyspaces>(std::move(after));
  }

  void Update() {
    const std::string& key = AnyKey();
    const size_t keyspace = AnyKeyspace();
    const auto present = contents_->at(keyspace).find(key);
    const bool is_present = present != contents_->at(keyspace).end();
    const uint64_t outcome = random_.Below(4);
    const std::string value = AnyValue();
    const auto update =
        [&](std::optional<std::string_view> before) -> Result<std::optional<std::string>> {
      EXPECT_EQ(before.has_value(), is_present);
      if (before && is_present) {
        EXPECT_EQ(*before, present->second);
      }
      if (outcome == 0) return Status(StatusCode::kAborted, "no");
      if (outcome == 1) return std::nullopt;
      return value;
    };
    const Status status =
        table_->Update(key, base::ByValue(update), {.keyspace = kKeyspaceIds[keyspace]});
    if (outcome == 0) {
      EXPECT_EQ(status.code(), StatusCode::kAborted);
    } else if (Written(status)) {
      if (outcome == 1) {
        Mutable()[keyspace].erase(key);
      } else {
        Mutable()[keyspace][key] = value;
      }
    }
  }

  void Background() {
    switch (random_.Below(8)) {
      case 0: {
        const Status status = table_->Compact();
        EXPECT_TRUE(status.ok() || may_refuse_) << status.ToString();
        return;
      }
      case 1:
        return table_->WaitForBackgroundWork();
      case 2:
      case 3:
        EXPECT_TRUE(Written(table_->Seal()) || may_refuse_);
        return;
      default:
        const MemTableStats stats = table_->GetStats();
        EXPECT_EQ(stats.snapshots, moments_.size());
        EXPECT_LE(stats.memory_bytes, stats.memory_budget + (2 << 20));
    }
  }

  // Reads

  void TakeSnapshot() {
    if (moments_.size() < 6) moments_.push_back({SnapshotOf(*table_), contents_});
  }

  void ReleaseSnapshot() {
    if (moments_.empty()) return;
    const uint64_t i = random_.Below(moments_.size());
    moments_.erase(moments_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  void CheckGet() {
    const Moment* const moment = AnyMoment();
    const size_t keyspace = AnyKeyspace();
    const std::string& key = AnyKey();
    const auto got =
        GetFrom(*table_, key, {.snapshot = SnapshotIn(moment), .keyspace = kKeyspaceIds[keyspace]});
    ExpectValue(ContentsAt(moment)[keyspace], key, got);
  }

  void MultiGet() {
    const Moment* const moment = AnyMoment();
    const size_t keyspace = AnyKeyspace();
    std::vector<std::string_view> keys;
    for (uint64_t i = random_.Below(40); i > 0; --i) keys.push_back(AnyKey());
    std::vector<Result<MaybeValue>> results(keys.size());
    ASSERT_TRUE(IsOk(table_->MultiGet(
        keys, results, {.snapshot = SnapshotIn(moment), .keyspace = kKeyspaceIds[keyspace]})));
    for (size_t i = 0; i < keys.size(); ++i) {
      ASSERT_TRUE(results[i]) << results[i].error().ToString();
      std::optional<std::string> got;
      if (*results[i]) got = (*results[i])->ToString();
      ExpectValue(ContentsAt(moment)[keyspace], keys[i], got);
    }
  }

  static void ExpectValue(const std::map<std::string, std::string, std::less<>>& map,
                          std::string_view key, const std::optional<std::string>& got) {
    const auto it = map.find(key);
    if (it == map.end()) {
      EXPECT_EQ(got, std::nullopt) << testing::PrintToString(key);
    } else {
      EXPECT_EQ(got, it->second) << testing::PrintToString(key);
    }
  }

  /// A new iterator with any bounds, and what it must see.
  Walk NewWalk() {
    const Moment* const moment = AnyMoment();
    const size_t keyspace = AnyKeyspace();
    ReadOptions options{.snapshot = SnapshotIn(moment), .keyspace = kKeyspaceIds[keyspace]};
    if (random_.OneIn(3)) {
      const std::string& key = AnyKey();
      options.prefix = std::string_view(key).substr(0, random_.Below(key.size() + 1));
    } else {
      if (random_.OneIn(2)) options.lower = AnyKey();
      if (random_.OneIn(2)) options.upper = AnyKey();
    }
    options.keys_only = random_.OneIn(6);
    Walk walk{.it = table_->NewIterator(options), .expected = {}, .at = std::nullopt};
    for (const auto& [key, value] : ContentsAt(moment)[keyspace]) {
      if (options.prefix && !key.starts_with(*options.prefix)) continue;
      if (options.lower && key < *options.lower) continue;
      if (options.upper && key >= *options.upper) continue;
      walk.expected.emplace_back(key, options.keys_only ? std::string() : value);
    }
    return walk;
  }

  void CheckScan() {
    const Walk walk = NewWalk();
    EXPECT_EQ(ReadForwards(walk.it.get()), walk.expected);
    EXPECT_EQ(ReadBackwards(walk.it.get()), walk.expected);
  }

  void StartWalk() {
    if (walks_.size() == 4) walks_.pop_front();
    walks_.push_back(NewWalk());
    MoveWalk();
  }

  void MoveWalk() {
    if (walks_.empty()) return;
    Walk& walk = walks_[random_.Below(walks_.size())];
    for (int i = 0; i < 8; ++i) {
      Move(&walk);
      ASSERT_TRUE(IsOk(walk.it->status()));
      ASSERT_EQ(walk.it->Valid(), walk.at.has_value());
      if (!walk.at) continue;
      ASSERT_EQ(walk.it->key(), walk.expected[*walk.at].first);
      ASSERT_EQ(walk.it->value(), walk.expected[*walk.at].second);
    }
  }

  void Move(Walk* walk) {
    const size_t size = walk->expected.size();
    const auto place = [size](size_t i) {
      return i < size ? std::optional<size_t>(i) : std::nullopt;
    };
    switch (random_.Below(10)) {
      case 0:
        walk->it->SeekToFirst();
        walk->at = place(0);
        return;
      case 1:
        walk->it->SeekToLast();
        walk->at = place(size - 1);
        return;
      case 2: {
        const std::string& target = AnyKey();
        walk->it->Seek(target);
        walk->at = place(static_cast<size_t>(
            std::ranges::lower_bound(walk->expected, target, {}, &Contents::value_type::first) -
            walk->expected.begin()));
        return;
      }
      case 3: {
        const std::string& target = AnyKey();
        walk->it->SeekForPrev(target);
        walk->at = place(static_cast<size_t>(
            std::ranges::upper_bound(walk->expected, target, {}, &Contents::value_type::first) -
            walk->expected.begin() - 1));
        return;
      }
      case 4:
      case 5:
      case 6:
        walk->it->Prev();
        if (walk->at) walk->at = place(*walk->at - 1);
        return;
      default:
        walk->it->Next();
        if (walk->at) walk->at = place(*walk->at + 1);
    }
  }

  void ExpectAll(const Moment* moment) {
    for (size_t keyspace = 0; keyspace < kKeyspaceIds.size(); ++keyspace) {
      const auto& expected = ContentsAt(moment)[keyspace];
      EXPECT_EQ(Scan(*table_, {.snapshot = SnapshotIn(moment), .keyspace = kKeyspaceIds[keyspace]}),
                Contents(expected.begin(), expected.end()));
    }
  }

  // Every moment once more; then, when nobody looks at old versions, nothing but the present must
  // be left.
  void Finish() {
    ExpectAll(nullptr);
    for (const Moment& moment : moments_) ExpectAll(&moment);
    moments_.clear();
    walks_.clear();
    const Status status = table_->Compact();
    ExpectAll(nullptr);
    if (!status.ok()) {
      EXPECT_TRUE(may_refuse_) << status.ToString();
      return;
    }
    const MemTableStats stats = table_->GetStats();
    EXPECT_EQ(stats.records,
              (*contents_)[0].size() + (*contents_)[1].size() + (*contents_)[2].size());
    EXPECT_EQ(stats.range_deletes, 0u);
    EXPECT_EQ(stats.snapshots, 0u);
  }

  const bool may_refuse_;
  const std::unique_ptr<MemTable> table_;
  base::Random random_;
  uint64_t writes_ = 0;
  std::shared_ptr<Keyspaces> contents_ = std::make_shared<Keyspaces>();
  std::vector<Moment> moments_;
  std::deque<Walk> walks_;
  std::vector<Helper> helpers_;
};

class MemTableModelTest : public testing::TestWithParam<ModelCase> {};

TEST_P(MemTableModelTest, AnyOperationsGiveWhatAMapGives) {
  for (uint64_t seed = 1; seed <= 5 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ModelRun(GetParam().options, seed, /*helpers=*/seed % 3).Run(4'000);
  }
}

constexpr uint64_t kRoomy = uint64_t{64} << 20;
constexpr uint64_t kTight = uint64_t{512} << 10;
constexpr uint64_t kSmallGeneration = uint64_t{64} << 10;
constexpr uint64_t kSmallestForSixteenShards = uint64_t{256} << 10;

INSTANTIATE_TEST_SUITE_P(
    Options, MemTableModelTest,
    testing::Values(
        ModelCase{"Defaults", {}},
        ModelCase{"OneShard",
                  {.memory_budget = kRoomy, .generation_bytes = kSmallGeneration, .shards = 1}},
        ModelCase{
            "SixteenShards",
            {.memory_budget = kRoomy, .generation_bytes = kSmallestForSixteenShards, .shards = 16}},
        ModelCase{"OneShardNoCompaction",
                  {.memory_budget = kRoomy,
                   .generation_bytes = kSmallGeneration,
                   .shards = 1,
                   .compaction = false}},
        ModelCase{"SixteenShardsNoCompaction",
                  {.memory_budget = kRoomy,
                   .generation_bytes = kSmallestForSixteenShards,
                   .shards = 16,
                   .compaction = false}},
        ModelCase{"LargeGenerations", {.memory_budget = kRoomy, .generation_bytes = kRoomy / 2}},
        ModelCase{"TightAndWaiting", {.memory_budget = kTight}},
        ModelCase{"TightAndRefusing", {.memory_budget = kTight, .at_budget = AtBudget::kRefuse}}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace basalt

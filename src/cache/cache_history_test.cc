#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "basalt/cache.h"
#include "base/random.h"
#include "base/test_update.h"
#include "cache/test_cache.h"

// Threads record their operations on a few keys, and the times by tickets of one counter, drawn
// before and after. Then every read is checked against the records.
//
// Every value has a version of its own. A read of version v is wrong in these cases.
// - No thread had put v when the read ended, or its put was refused.
// - v was absent at a moment after its put had ended and before the read began, as another
//   operation proves: another version was put, or the key was deleted or found absent. A value that
//   is gone does not come back.
// - v was taken, or updated to another value, before the read began; or that happens twice.
// - The time of v was over when the read began.

namespace basalt::cache {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr uint64_t kAbsent = 0;  // In place of a version.

/// Tickets drawn before and after.
struct Span {
  uint64_t begin = 0;
  uint64_t end = 0;
};

/// What happened to one key.
struct Notes {
  struct Put {
    uint64_t version;
    Span span;
    Clock::time_point dead_at;  ///< It has expired by then.
  };
  struct Read {
    uint64_t version;
    Span span;
    Clock::time_point began_at;
  };
  struct Consumption {
    uint64_t version;
    uint64_t end;
  };
  std::vector<Put> puts;
  /// At some moment within each, the key had none of the versions that were put before it began.
  std::vector<Span> absences;
  std::vector<Read> reads;
  std::vector<Consumption> consumptions;

  void Append(const Notes& other) {
    puts.insert(puts.end(), other.puts.begin(), other.puts.end());
    absences.insert(absences.end(), other.absences.begin(), other.absences.end());
    reads.insert(reads.end(), other.reads.begin(), other.reads.end());
    consumptions.insert(consumptions.end(), other.consumptions.begin(), other.consumptions.end());
  }
};

/// For each ticket, the earliest end of an absence that began after it.
class AbsenceIndex {
 public:
  explicit AbsenceIndex(std::vector<Span> absences) : absences_(std::move(absences)) {
    std::sort(absences_.begin(), absences_.end(),
              [](const Span& a, const Span& b) { return a.begin < b.begin; });
    for (size_t i = absences_.size(); i-- > 1;) {
      absences_[i - 1].end = std::min(absences_[i - 1].end, absences_[i].end);
    }
  }
  uint64_t FirstEndAfter(uint64_t ticket) const {
    const auto it =
        std::upper_bound(absences_.begin(), absences_.end(), ticket,
                         [](uint64_t value, const Span& span) { return value < span.begin; });
    return it == absences_.end() ? std::numeric_limits<uint64_t>::max() : it->end;
  }

 private:
  std::vector<Span> absences_;
};

/// Gives how many reads were checked.
size_t Check(uint64_t key, const Notes& notes) {
  struct Version {
    Span put;
    Clock::time_point dead_at;
    uint64_t stale_from = std::numeric_limits<uint64_t>::max();
  };
  const AbsenceIndex absences(notes.absences);
  std::unordered_map<uint64_t, Version> versions;
  for (const Notes::Put& put : notes.puts) {
    versions[put.version] = {put.span, put.dead_at, absences.FirstEndAfter(put.span.end)};
  }
  std::unordered_map<uint64_t, uint64_t> consumed;
  for (const auto& [version, end] : notes.consumptions) {
    EXPECT_TRUE(consumed.emplace(version, end).second)
        << "key " << key << ": version " << version << " was taken or updated twice";
    const auto it = versions.find(version);
    if (it != versions.end()) it->second.stale_from = std::min(it->second.stale_from, end);
  }
  for (const Notes::Read& read : notes.reads) {
    const auto it = versions.find(read.version);
    if (it == versions.end()) {
      ADD_FAILURE() << "key " << key << ": version " << read.version << " was never put";
      continue;
    }
    const Version& version = it->second;
    EXPECT_LT(version.put.begin, read.span.end) << "key " << key << ": read before it was put";
    EXPECT_LE(read.span.begin, version.stale_from)
        << "key " << key << ": version " << read.version << ", put in [" << version.put.begin
        << ", " << version.put.end << "], was read in [" << read.span.begin << ", " << read.span.end
        << "]";
    EXPECT_LE(read.began_at, version.dead_at) << "key " << key << ": read after its expiry";
  }
  return notes.reads.size();
}

/// What all threads share.
struct SharedWorld {
  Cache* cache;
  std::atomic<uint64_t> tickets{1};
  std::atomic<uint64_t> versions{1};
  std::atomic<uint64_t> torn{0};
};

/// One thread.
class Actor {
 public:
  static constexpr uint64_t kKeys = 200;

  Actor(SharedWorld* world, uint64_t seed) : world_(world), random_(seed) {}

  void Run(int operations) {
    for (int i = 0; i < operations; ++i) Step();
  }
  const Notes& notes(uint64_t key) const { return notes_[key]; }

 private:
  void Step() {
    key_ = random_.Below(kKeys);
    name_ = "key" + std::to_string(key_);
    switch (random_.Below(20)) {
      case 0:
        return PutOthers();
      case 1:
        return Delete();
      case 2:
        return Take();
      case 3:
      case 4:
        return Update();
      case 5:
        return Put([&](const std::string& value, const CachePutOptions& options) {
          return world_->cache->PutIfAbsent(name_, value, options);
        });
      case 6:
        return Put([&](const std::string& value, const CachePutOptions& options) {
          return world_->cache->Replace(name_, value, options);
        });
      case 7:
        return GetOrCompute();
      case 8:
      case 9:
      case 10:
        return Put([&](const std::string& value, const CachePutOptions& options) -> Result<bool> {
          const Status put = world_->cache->Put(name_, value, options);
          if (!put.ok()) return put;
          return true;
        });
      case 11:
        return MultiGet();
      default:
        return Get();
    }
  }

  uint64_t Ticket() { return world_->tickets.fetch_add(1); }
  std::string NewValue(uint64_t* version) {
    static constexpr std::array<size_t, 6> kSizes = {8, 30, 112, 113, 480, 3000};
    *version = world_->versions.fetch_add(1);
    return StampedValue(key_, *version, kSizes[random_.Below(kSizes.size())]);
  }
  CachePutOptions NewTtl() { return {.ttl = milliseconds(random_.OneIn(3) ? 1 : 0)}; }
  /// When what has been put by now is certain to have expired.
  static Clock::time_point DeadAt(const CachePutOptions& options) {
    if (options.ttl->count() == 0) return Clock::time_point::max();
    return Clock::now() + *options.ttl + milliseconds(1);
  }
  uint64_t VersionIn(uint64_t key, std::string_view value) {
    if (!IsWhole(key, value)) world_->torn.fetch_add(1);
    return VersionOf(value);
  }
  void NoteRead(uint64_t key, uint64_t version, Span span, Clock::time_point began_at) {
    if (version == kAbsent) {
      notes_[key].absences.push_back(span);
    } else {
      notes_[key].reads.push_back({version, span, began_at});
    }
  }

  // So that there is not room for all, and entries are evicted.
  void PutOthers() {
    for (int i = 0; i < 4; ++i) {
      const std::string name = "other" + std::to_string(random_.Below(5000));
      static_cast<void>(world_->cache->Put(name, std::string(random_.Below(2000), 'o')));
    }
  }

  template <class Function>
  void Put(const Function& put_value) {
    const CachePutOptions options = NewTtl();
    uint64_t version = 0;
    const std::string value = NewValue(&version);
    Span span{.begin = Ticket()};
    const Result<bool> put = put_value(value, options);
    span.end = Ticket();
    if (put && !*put) return;
    notes_[key_].absences.push_back(span);
    if (put) notes_[key_].puts.push_back({version, span, DeadAt(options)});
  }

  void Delete() {
    Span span{.begin = Ticket()};
    world_->cache->Delete(name_);
    span.end = Ticket();
    notes_[key_].absences.push_back(span);
  }

  void Take() {
    const Clock::time_point began_at = Clock::now();
    Span span{.begin = Ticket()};
    const MaybeValue taken = world_->cache->Take(name_);
    span.end = Ticket();
    notes_[key_].absences.push_back(span);
    if (!taken) return;
    const uint64_t version = VersionIn(key_, taken->view());
    NoteRead(key_, version, span, began_at);
    notes_[key_].consumptions.push_back({version, span.end});
  }

  // What the last run of the function saw is there until the new value takes its place.
  void Update() {
    const bool erases = random_.OneIn(5);
    uint64_t seen = kAbsent;
    uint64_t version = kAbsent;
    Span put;
    Span read;
    Clock::time_point began_at;
    const auto update =
        [&](std::optional<std::string_view> before) -> Result<std::optional<std::string>> {
      seen = before ? VersionIn(key_, *before) : kAbsent;
      began_at = Clock::now();
      read.begin = Ticket();
      if (put.begin == 0) put.begin = read.begin;
      if (erases) return std::nullopt;
      return NewValue(&version);
    };
    const Status status = world_->cache->Update(name_, base::ByValue(update));
    put.end = read.end = Ticket();
    if (!status.ok()) return;
    NoteRead(key_, seen, read, began_at);
    if (seen != kAbsent) notes_[key_].consumptions.push_back({seen, read.end});
    notes_[key_].absences.push_back(read);
    if (!erases) notes_[key_].puts.push_back({version, put, Clock::time_point::max()});
  }

  // Whether what was computed here has been kept is not known: it proves no absence.
  void GetOrCompute() {
    const CachePutOptions options = NewTtl();
    uint64_t version = kAbsent;
    const Clock::time_point began_at = Clock::now();
    Span span{.begin = Ticket()};
    const Result<Value> value = world_->cache->GetOrCompute(
        name_, [&]() -> Result<std::string> { return NewValue(&version); }, options);
    span.end = Ticket();
    if (!value) return;
    if (version != kAbsent) {
      notes_[key_].puts.push_back({version, span, DeadAt(options)});
    } else {
      NoteRead(key_, VersionIn(key_, value->view()), span, began_at);
    }
  }

  void Get() {
    const Clock::time_point began_at = Clock::now();
    Span span{.begin = Ticket()};
    MaybeValue value = random_.OneIn(2) ? world_->cache->Get(name_) : world_->cache->Peek(name_);
    span.end = Ticket();
    NoteRead(key_, value ? VersionIn(key_, value->view()) : kAbsent, span, began_at);
    if (!value) return;
    // Held for a while, and looked at again.
    auto& [held_key, held_value] = held_[random_.Below(held_.size())];
    if (held_value) VersionIn(held_key, held_value->view());
    held_key = key_;
    held_value = std::move(value);
  }

  void MultiGet() {
    constexpr size_t kCount = 20;
    std::array<uint64_t, kCount> keys;
    std::array<std::string, kCount> names;
    std::array<std::string_view, kCount> asked;
    std::array<MaybeValue, kCount> values;
    for (size_t i = 0; i < kCount; ++i) {
      keys[i] = random_.Below(kKeys);
      names[i] = "key" + std::to_string(keys[i]);
      asked[i] = names[i];
    }
    const Clock::time_point began_at = Clock::now();
    Span span{.begin = Ticket()};
    const Status status = world_->cache->MultiGet(asked, values);
    span.end = Ticket();
    if (!status.ok()) return;
    for (size_t i = 0; i < kCount; ++i) {
      NoteRead(keys[i], values[i] ? VersionIn(keys[i], values[i]->view()) : kAbsent, span,
               began_at);
    }
  }

  SharedWorld* const world_;
  base::Random random_;
  uint64_t key_ = 0;
  std::string name_;
  std::array<Notes, kKeys> notes_;
  std::array<std::pair<uint64_t, MaybeValue>, 16> held_;
};

class CacheHistoryTest : public testing::TestWithParam<std::pair<Eviction, uint32_t>> {};

TEST_P(CacheHistoryTest, NoReadReturnsWhatWasGoneBeforeItBegan) {
  constexpr uint64_t kActors = 4;
  constexpr int kOperations = 30'000;
  const auto [eviction, shards] = GetParam();
  const uint64_t seed = shards;
  SCOPED_TRACE("seed " + std::to_string(seed));
  const auto cache =
      NewCache({.capacity_bytes = 512 << 10, .shards = shards, .eviction = eviction});
  SharedWorld world{.cache = cache.get()};
  std::vector<Actor> actors;
  for (uint64_t i = 0; i < kActors; ++i) actors.emplace_back(&world, seed * kActors + i);
  std::vector<std::thread> threads;
  for (Actor& actor : actors) threads.emplace_back([&] { actor.Run(kOperations); });
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(world.torn.load(), 0u);
  size_t reads = 0;
  for (uint64_t key = 0; key < Actor::kKeys && !HasFailure(); ++key) {
    Notes all;
    for (const Actor& actor : actors) all.Append(actor.notes(key));
    reads += Check(key, all);
  }
  EXPECT_GT(reads, kActors * kOperations / 4);
  const CacheStats stats = cache->GetStats();
  for (const uint64_t count : {stats.evicted, stats.expired, stats.replaced, stats.erased}) {
    EXPECT_GT(count, 20u);
  }
}

INSTANTIATE_TEST_SUITE_P(All, CacheHistoryTest,
                         testing::Values(std::pair{Eviction::kClock, 1u},
                                         std::pair{Eviction::kClock, 8u},
                                         std::pair{Eviction::kS3Fifo, 1u},
                                         std::pair{Eviction::kS3Fifo, 8u}));

TEST(CacheHistory, TheCheckFindsEachKindOfWrongRead) {
  const auto never = Clock::time_point::max();
  const auto now = Clock::now();
  const auto finds = [](const Notes& notes) {
    testing::TestPartResultArray failures;
    {
      const testing::ScopedFakeTestPartResultReporter reporter(
          testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
      Check(0, notes);
    }
    return failures.size() > 0;
  };
  const Notes fine{.puts = {{1, {1, 2}, never}},
                   .absences = {{1, 2}, {4, 7}},
                   .reads = {{1, {3, 5}, now}, {1, {6, 8}, now}},
                   .consumptions = {}};
  EXPECT_FALSE(finds(fine));
  Notes notes = fine;
  notes.reads.push_back({1, {9, 10}, now});
  EXPECT_TRUE(finds(notes)) << "after the absence";
  notes = fine;
  notes.reads.push_back({2, {3, 5}, now});
  EXPECT_TRUE(finds(notes)) << "of what was never put";
  notes = fine;
  notes.puts.push_back({2, {20, 21}, never});
  notes.reads.push_back({2, {18, 19}, now});
  EXPECT_TRUE(finds(notes)) << "before the put";
  notes = fine;
  notes.consumptions.push_back({1, 5});
  EXPECT_TRUE(finds(notes)) << "after it was taken";
  notes = fine;
  notes.consumptions = {{1, 8}, {1, 9}};
  EXPECT_TRUE(finds(notes)) << "taken twice";
  notes = fine;
  notes.puts[0].dead_at = now - milliseconds(1);
  EXPECT_TRUE(finds(notes)) << "after its expiry";
}

}  // namespace
}  // namespace basalt::cache

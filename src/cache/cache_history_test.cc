#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "basalt/cache.h"
#include "base/random.h"
#include "base/test_history.h"
#include "base/test_update.h"
#include "cache/test_cache.h"

// Threads record their operations on a few keys (base/test_history.h).

namespace basalt::cache {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

using base::KeyHistory;
using base::kNoVersion;
using base::TicketSpan;

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
  const KeyHistory& history(uint64_t key) const { return histories_[key]; }

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
  /// At some moment of the span the key had none of the versions that were put before.
  void NoteAbsence(uint64_t key, TicketSpan span) {
    histories_[key].writes.push_back({kNoVersion, span});
  }
  void NoteRead(uint64_t key, uint64_t version, TicketSpan span, Clock::time_point began_at) {
    if (version == kNoVersion) {
      NoteAbsence(key, span);
    } else {
      histories_[key].reads.push_back({version, span, began_at});
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
    TicketSpan span{.begin = Ticket()};
    const Result<bool> put = put_value(value, options);
    span.end = Ticket();
    if (put && !*put) return;
    if (put) {
      histories_[key_].writes.push_back({version, span, DeadAt(options)});
    } else {
      NoteAbsence(key_, span);
    }
  }

  void Delete() {
    TicketSpan span{.begin = Ticket()};
    world_->cache->Delete(name_);
    span.end = Ticket();
    NoteAbsence(key_, span);
  }

  void Take() {
    const Clock::time_point began_at = Clock::now();
    TicketSpan span{.begin = Ticket()};
    const MaybeValue taken = world_->cache->Take(name_);
    span.end = Ticket();
    NoteAbsence(key_, span);
    if (!taken) return;
    const uint64_t version = VersionIn(key_, taken->view());
    NoteRead(key_, version, span, began_at);
    histories_[key_].consumptions.push_back({version, span.end});
  }

  // What the last run of the function saw is there until the new value takes its place.
  void Update() {
    const bool erases = random_.OneIn(5);
    uint64_t seen = kNoVersion;
    uint64_t version = kNoVersion;
    TicketSpan put;
    TicketSpan read;
    Clock::time_point began_at;
    const auto update =
        [&](std::optional<std::string_view> before) -> Result<std::optional<std::string>> {
      seen = before ? VersionIn(key_, *before) : kNoVersion;
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
    if (seen != kNoVersion) histories_[key_].consumptions.push_back({seen, read.end});
    NoteAbsence(key_, read);
    if (!erases)
      histories_[key_].writes.push_back({.version = version, .span = put, .replaces = false});
  }

  // Whether what was computed here has been kept is not known: it proves no absence.
  void GetOrCompute() {
    const CachePutOptions options = NewTtl();
    uint64_t version = kNoVersion;
    const Clock::time_point began_at = Clock::now();
    TicketSpan span{.begin = Ticket()};
    const Result<Value> value = world_->cache->GetOrCompute(
        name_, [&]() -> Result<std::string> { return NewValue(&version); }, options);
    span.end = Ticket();
    if (!value) return;
    if (version != kNoVersion) {
      histories_[key_].writes.push_back({version, span, DeadAt(options), /*replaces=*/false});
    } else {
      NoteRead(key_, VersionIn(key_, value->view()), span, began_at);
    }
  }

  void Get() {
    const Clock::time_point began_at = Clock::now();
    TicketSpan span{.begin = Ticket()};
    MaybeValue value = random_.OneIn(2) ? world_->cache->Get(name_) : world_->cache->Peek(name_);
    span.end = Ticket();
    NoteRead(key_, value ? VersionIn(key_, value->view()) : kNoVersion, span, began_at);
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
    TicketSpan span{.begin = Ticket()};
    const Status status = world_->cache->MultiGet(asked, values);
    span.end = Ticket();
    if (!status.ok()) return;
    for (size_t i = 0; i < kCount; ++i) {
      NoteRead(keys[i], values[i] ? VersionIn(keys[i], values[i]->view()) : kNoVersion, span,
               began_at);
    }
  }

  SharedWorld* const world_;
  base::Random random_;
  uint64_t key_ = 0;
  std::string name_;
  std::array<KeyHistory, kKeys> histories_;
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
    KeyHistory all;
    for (const Actor& actor : actors) all.Append(actor.history(key));
    reads += all.reads.size();
    base::HistoryCheck(key, std::move(all), /*may_lose=*/true).Run();
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

}  // namespace
}  // namespace basalt::cache

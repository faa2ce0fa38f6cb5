#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/deterministic_scheduler.h"
#include "base/epoch.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/spin_lock.h"
#include "cache/entry.h"
#include "cache/index.h"
#include "cache/retire_queue.h"

// For tests of the races between a shard's readers and writers: the index, the entries' states, the
// retire queue, the epochs and the lock, all on atomics that hand the turn over.
//
// A scene sets a World up and gives the bodies that meet in it. It is run in some thousand
// interleavings, after each of which nothing may have gone wrong; and once more with a mistake
// planted into the few steps that matter, which must be found: so each of these tests can fail.
// Nothing that is freed is touched: entries are kept and poisoned, and atomics know their end.

namespace basalt::cache {

using base::DeterministicScheduler;

/// Atomics whose life has ended, with their last values.
struct EndedAtomics {
  std::unordered_map<const void*, uint64_t> last_values;
  bool are_noted = false;  ///< While bodies run.
  uint64_t uses = 0;
};
inline EndedAtomics& Ended() {
  static auto* ended = new EndedAtomics;
  return *ended;
}

/// A scheduled atomic that may be used after its end: that is counted, the last value is given, and
/// the memory, whoever has it now, is not touched.
template <class T>
class MortalAtomic {
 public:
  constexpr MortalAtomic() noexcept : MortalAtomic(T{}) {}
  constexpr MortalAtomic(T value) noexcept : value_(value) {
    if (!std::is_constant_evaluated()) Ended().last_values.erase(this);
  }
  constexpr ~MortalAtomic() {
    if (!std::is_constant_evaluated()) NoteEnd();
  }

  T load(std::memory_order order = std::memory_order_seq_cst) const noexcept {
    // Who looks at a lock waits for it.
    if (std::is_same_v<T, uint32_t>) DeterministicScheduler::Yield();
    return Step() ? value_.load(order) : LastValue();
  }
  void store(T value, std::memory_order order = std::memory_order_seq_cst) noexcept {
    if (Step()) value_.store(value, order);
  }
  T exchange(T value, std::memory_order order = std::memory_order_seq_cst) noexcept {
    return Step() ? value_.exchange(value, order) : LastValue();
  }
  T fetch_add(T value, std::memory_order order = std::memory_order_seq_cst) noexcept {
    return Step() ? value_.fetch_add(value, order) : LastValue();
  }
  T fetch_sub(T value, std::memory_order order = std::memory_order_seq_cst) noexcept {
    return Step() ? value_.fetch_sub(value, order) : LastValue();
  }
  T fetch_or(T value, std::memory_order order = std::memory_order_seq_cst) noexcept {
    return Step() ? value_.fetch_or(value, order) : LastValue();
  }
  template <class... Orders>
  bool compare_exchange_strong(T& expected, T value, Orders... orders) noexcept {
    return Step() && value_.compare_exchange_strong(expected, value, orders...);
  }
  template <class... Orders>
  bool compare_exchange_weak(T& expected, T value, Orders... orders) noexcept {
    if (!DeterministicScheduler::FailsSpuriously()) {
      return compare_exchange_strong(expected, value, orders...);
    }
    expected = load();
    return false;
  }

 private:
  /// False: its life has ended.
  bool Step() const noexcept {
    DeterministicScheduler::Point();
    if (!Ended().last_values.contains(this)) return true;
    ++Ended().uses;
    return false;
  }
  T LastValue() const noexcept {
    const uint64_t word = Ended().last_values[this];
    if constexpr (std::is_pointer_v<T>) {
      return reinterpret_cast<T>(word);
    } else {
      return static_cast<T>(word);
    }
  }
  void NoteEnd() const noexcept {
    if (!Ended().are_noted) return;
    const T value = value_.load(std::memory_order_relaxed);
    uint64_t& word = Ended().last_values[this];
    if constexpr (std::is_pointer_v<T>) {
      word = reinterpret_cast<uintptr_t>(value);
    } else {
      word = static_cast<uint64_t>(value);
    }
  }

  std::atomic<T> value_;
};

inline constexpr uint64_t kSeed = 0xBA5A17;
inline constexpr uint64_t kNothing = 0;
inline constexpr uint64_t kPoison = 0xDEAD;

/// An entry, as far as the index and the retire queue know one. Freeing it poisons it.
struct Item {
  std::string name;
  uint64_t value = kNothing;
  uint32_t times_freed = 0;
  BasicEntryState<MortalAtomic> state;
  std::string_view key() const noexcept { return name; }
};

using Domain = base::BasicEpochDomain<MortalAtomic>;
using Slot = Domain::Slot;
using TestIndex = BasicIndex<MortalAtomic, Item>;

/// The hash of keys is the same in each run.
inline uint64_t HashOf(std::string_view key) { return base::Hash(key, kSeed); }

/// `count` keys whose home is this bucket.
inline std::vector<std::string> KeysOfBucket(size_t bucket, size_t count) {
  std::vector<std::string> keys;
  for (uint64_t i = 0; keys.size() < count; ++i) {
    std::string key = "key " + std::to_string(i);
    if (HashOf(key) % TestIndex::kBuckets == bucket) keys.push_back(std::move(key));
  }
  return keys;
}

/// What a shard is made of, and what its threads do with it. The first thing that goes wrong is
/// kept.
class World {
 public:
  explicit World(uint64_t seed) : random(seed) {
    Ended().last_values.clear();
    Ended().uses = 0;
    EXPECT_TRUE(index.Start());
  }

  void Complain(const std::string& complaint) {
    if (complaint_.empty()) complaint_ = complaint;
  }
  const std::string& complaint() const { return complaint_; }

  /// Puts a body's steps in another phase to those of the others than they were before.
  void Dawdle(uint64_t steps_max) {
    for (uint64_t i = random.Below(steps_max + 1); i > 0; --i) DeterministicScheduler::Point();
  }

  // Of readers.

  /// Looks the key up inside an epoch, and reads the value there.
  uint64_t Get(Slot* slot, std::string_view key) {
    domain.Enter(slot);
    const uint64_t value = Read(key);
    domain.Leave(slot);
    return value;
  }
  uint64_t Read(std::string_view key) {
    const TestIndex::Found found = index.Find(HashOf(key), key);
    if (!found) return kNothing;
    DeterministicScheduler::Point();
    const uint64_t value = found.entry()->value;
    if (value == kPoison) Complain("a reader met a freed entry");
    TestIndex::RaiseFrequency(found);
    return value;
  }

  // Of writers, under the lock where there are several.

  Item* Make(std::string_view key, uint64_t value) {
    Item& item = items_.emplace_back();
    item.name = key;
    item.value = value;
    return &item;
  }
  void Put(std::string_view key, uint64_t value) {
    Item* const item = Make(key, value);
    if (const TestIndex::Found found = index.Find(HashOf(key), key)) {
      index.Replace(found, item, false);
      retired.Retire(found.entry());
    } else {
      Fill(item);
    }
  }
  void Fill(Item* item) {
    const TestIndex::Room room = index.FindRoom(HashOf(item->name));
    if (room.slot == nullptr) return Complain("there was no room");
    index.Fill(room, HashOf(item->name), item, false, 0);
  }
  void Delete(std::string_view key, uint64_t ghost_number = 0) {
    const TestIndex::Found found = index.Find(HashOf(key), key);
    if (!found) return;
    index.Remove(found, ghost_number);
    retired.Retire(found.entry());
  }
  void Collect() {
    index.Collect();
    retired.Collect([this](Item* item) { FreeOrOrphan(item); });
  }
  /// After the grace period.
  void FreeOrOrphan(Item* item) {
    if (item->state.is_pinned() && !item->state.Orphan()) return;
    Free(item);
  }
  void Free(Item* item) {
    ++item->times_freed;
    item->value = kPoison;
    std::ranges::fill(item->name, '\xDD');
  }

  /// When all bodies have ended: nothing is lost, freed twice, or counted wrongly.
  void CheckEnd() {
    if (Ended().uses != 0) Complain("a part of the index was read after it was freed");
    retired.Drain([this](Item* item) { FreeOrOrphan(item); });
    std::set<const Item*> linked;
    TestIndex::Cursor cursor;
    do {
      CheckBucket(cursor, &linked);
    } while (index.Advance(&cursor));
    for (const Item& item : items_) {
      if (linked.contains(&item)) {
        if (item.times_freed != 0) Complain("a linked entry was freed");
      } else if (item.times_freed != 1) {
        Complain("an unlinked entry was freed " + std::to_string(item.times_freed) + " times");
      }
    }
  }

  Domain domain;
  MemoryBudget budget{uint64_t{1} << 40};
  TestIndex index{&domain, &budget, kSeed};
  BasicRetireQueue<MortalAtomic, Item> retired{&domain};
  base::BasicSpinLock<MortalAtomic> lock;
  base::Random random;
  bool writer_ended = false;

 private:
  void CheckBucket(const TestIndex::Cursor& cursor, std::set<const Item*>* linked) {
    uint64_t away = 0;
    for (const auto& slot : index.At({cursor.hash, cursor.bucket ^ 1})->slots) {
      const uint64_t word = slot.load();
      if (!Word::IsLive(word)) continue;
      if ((word & Word::kAway) != 0) ++away;
      if (!linked->insert(TestIndex::EntryOf(word)).second) Complain("an entry is linked twice");
    }
    if (index.At(cursor)->away.load() != away) Complain("a count of away keys is wrong");
  }

  std::deque<Item> items_;
  std::string complaint_;
};

/// The bodies of a run on a fresh world, and what is checked after it.
struct Scene {
  std::vector<DeterministicScheduler::Body> bodies;
  std::function<void()> check_end = [] {};
};
using MakeScene = std::function<Scene(World*)>;

/// One run after the other of the same scene.
class Runs {
 public:
  explicit Runs(MakeScene make) : make_(std::move(make)) {}

  std::vector<DeterministicScheduler::Body> Start() {
    Ended().are_noted = false;
    world_ = nullptr;
    world_ = std::make_unique<World>(++seed_);
    scene_ = make_(world_.get());
    Ended().are_noted = true;
    return scene_.bodies;
  }
  /// What went wrong; nothing if it is empty.
  const std::string& End() {
    Ended().are_noted = false;
    scene_.check_end();
    world_->CheckEnd();
    return world_->complaint();
  }

 private:
  const MakeScene make_;
  uint64_t seed_ = 0;  ///< The schedule's: these are counted from 1 as well.
  std::unique_ptr<World> world_;
  Scene scene_;
};

/// For scenes with thousands of steps, in which few moments matter.
inline constexpr base::ScheduleOptions kLong{.strategy = base::ScheduleStrategy::kPriorities};

inline void ExpectNoComplaint(uint64_t count, const MakeScene& make,
                              const base::ScheduleOptions& options = {}) {
  Runs runs(make);
  base::ExploreInterleavings(
      count, 1, [&] { return runs.Start(); }, [&] { EXPECT_EQ(runs.End(), ""); }, options);
}

/// The mistake in this scene leads to this complaint.
inline void ExpectComplaint(const std::string& complaint, const MakeScene& make,
                            const base::ScheduleOptions& options = {}) {
  constexpr uint64_t kSeeds = 5'000;
  Runs runs(make);
  const auto seed = base::FindInterleaving(
      kSeeds, 1, [&] { return runs.Start(); }, [&] { return runs.End() == complaint; }, options);
  EXPECT_TRUE(seed.has_value()) << "no run has shown that " << complaint;
  if (seed) testing::Test::RecordProperty("seed", static_cast<int>(*seed));
}

}  // namespace basalt::cache

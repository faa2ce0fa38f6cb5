#include "base/epoch.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/deterministic_scheduler.h"
#include "base/random.h"

namespace basalt::base {
namespace {

int freed_count = 0;
void CountFreed(void* /*object*/) { ++freed_count; }

class EpochTest : public testing::Test {
 protected:
  EpochTest() { freed_count = 0; }
  EpochDomain domain_;
  int object_ = 0;
};

TEST_F(EpochTest, WithNobodyInsideCollectFreesAtOnce) {
  BasicRetireList<> list(&domain_);
  list.Retire(list.NewNote(), &object_, 100, CountFreed);
  list.Retire(list.NewNote(), &object_, 20, CountFreed);
  EXPECT_EQ(list.bytes(), 120u);
  EXPECT_EQ(freed_count, 0);
  EXPECT_EQ(list.Collect(), 120u);
  EXPECT_EQ(freed_count, 2);
  EXPECT_EQ(list.bytes(), 0u);
}

TEST_F(EpochTest, WhatAReaderInsideMaySeeStays) {
  BasicRetireList<> list(&domain_);
  auto* reader = domain_.TakeSlot();
  domain_.Enter(reader);
  list.Retire(list.NewNote(), &object_, 100, CountFreed);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(list.Collect(), 0u);
  EXPECT_EQ(list.bytes(), 100u);
  domain_.Leave(reader);
  EXPECT_EQ(list.Collect(), 100u);
}

TEST_F(EpochTest, AReaderHoldsOnlyWhatWasRetiredAfterItEntered) {
  BasicRetireList<> list(&domain_);
  BasicRetireList<> other(&domain_);
  list.Retire(list.NewNote(), &object_, 1, CountFreed);
  other.Retire(other.NewNote(), &object_, 16, CountFreed);
  other.Collect();  // The epoch advances.
  auto* reader = domain_.TakeSlot();
  domain_.Enter(reader);
  list.Retire(list.NewNote(), &object_, 2, CountFreed);
  EXPECT_EQ(list.Collect(), 1u);
  domain_.Leave(reader);
  EXPECT_EQ(list.Collect(), 2u);
}

TEST_F(EpochTest, WhatOneScanFoundIsKnownToAll) {
  BasicRetireList<> list(&domain_);
  BasicRetireList<> other(&domain_);
  auto* reader = domain_.TakeSlot();
  domain_.Enter(reader);
  list.Retire(list.NewNote(), &object_, 1, CountFreed);
  other.Retire(other.NewNote(), &object_, 1, CountFreed);
  EXPECT_EQ(other.Collect(), 0u);
  EXPECT_EQ(list.CollectKnown(), 0u);
  domain_.Leave(reader);
  EXPECT_EQ(list.CollectKnown(), 0u);  // It is free, but nobody has looked.
  EXPECT_EQ(other.Collect(), 1u);
  list.Retire(list.NewNote(), &object_, 2, CountFreed);  // After the scan.
  EXPECT_EQ(list.CollectKnown(), 1u);
  EXPECT_EQ(list.bytes(), 2u);
}

TEST_F(EpochTest, TheOldestOfManyReadersCounts) {
  BasicRetireList<> list(&domain_);
  auto* old_reader = domain_.TakeSlot();
  auto* new_reader = domain_.TakeSlot();
  domain_.Enter(old_reader);
  list.Retire(list.NewNote(), &object_, 1, CountFreed);
  list.Collect();
  domain_.Enter(new_reader);
  list.Retire(list.NewNote(), &object_, 2, CountFreed);
  domain_.Leave(new_reader);
  EXPECT_EQ(list.Collect(), 0u);
  domain_.Leave(old_reader);
  EXPECT_EQ(list.Collect(), 3u);
}

TEST_F(EpochTest, NestedEntriesLeaveWithTheOutermost) {
  BasicRetireList<> list(&domain_);
  auto* reader = domain_.TakeSlot();
  domain_.Enter(reader);
  list.Retire(list.NewNote(), &object_, 1, CountFreed);
  list.Collect();  // The epoch advances: the inner entry must not raise the slot's.
  domain_.Enter(reader);
  EXPECT_EQ(list.Collect(), 0u);
  EXPECT_FALSE(domain_.Leave(reader));
  EXPECT_EQ(list.Collect(), 0u);
  EXPECT_TRUE(domain_.Leave(reader));
  EXPECT_EQ(list.Collect(), 1u);
}

TEST_F(EpochTest, ADestroyedListLeavesTheRestToOthers) {
  auto* reader = domain_.TakeSlot();
  domain_.Enter(reader);
  {
    BasicRetireList<> list(&domain_);
    list.Retire(list.NewNote(), &object_, 1, CountFreed);
    list.Retire(list.NewNote(), &object_, 1, CountFreed);
  }
  BasicRetireList<> other(&domain_);
  other.Collect();
  EXPECT_EQ(freed_count, 0);
  domain_.Leave(reader);
  other.Collect();
  EXPECT_EQ(freed_count, 2);
}

TEST_F(EpochTest, ADestroyedDomainFreesWhatListsLeft) {
  {
    EpochDomain domain;
    auto* reader = domain.TakeSlot();
    domain.Enter(reader);
    {
      BasicRetireList<> list(&domain);
      list.Retire(list.NewNote(), &object_, 1, CountFreed);
    }
    domain.Leave(reader);
  }
  EXPECT_EQ(freed_count, 1);
}

TEST_F(EpochTest, ADeleterMayRetireAndCollect) {
  static BasicRetireList<>* list_of_deleter = nullptr;
  BasicRetireList<> list(&domain_);
  list_of_deleter = &list;
  list.Retire(list.NewNote(), &object_, 1, [](void* object) {
    list_of_deleter->Retire(list_of_deleter->NewNote(), object, 2, CountFreed);
    list_of_deleter->Collect();
  });
  list.Collect();
  EXPECT_EQ(freed_count, 1);
  EXPECT_EQ(list.bytes(), 0u);
}

TEST_F(EpochTest, ThereIsASlotForEveryThreadAndReturnedOnesAreReused) {
  std::set<EpochDomain::Slot*> slots;
  for (int i = 0; i < 300; ++i) slots.insert(domain_.TakeSlot());
  EXPECT_EQ(slots.size(), 300u);
  EpochDomain::Slot* returned = *slots.begin();
  domain_.ReturnSlot(returned);
  EXPECT_EQ(domain_.TakeSlot(), returned);
}

TEST_F(EpochTest, ReadersInLaterBlocksAreScannedToo) {
  BasicRetireList<> list(&domain_);
  EpochDomain::Slot* last = nullptr;
  for (int i = 0; i < 200; ++i) last = domain_.TakeSlot();
  domain_.Enter(last);
  list.Retire(list.NewNote(), &object_, 1, CountFreed);
  EXPECT_EQ(list.Collect(), 0u);
  domain_.Leave(last);
  EXPECT_EQ(list.Collect(), 1u);
}

TEST(EpochGuard, HoldsBackTheProcessesRetireLists) {
  freed_count = 0;
  RetireList list;
  int object = 0;
  {
    const EpochGuard outer;
    const EpochGuard inner;
    list.Retire(list.NewNote(), &object, 8, CountFreed);
    EXPECT_EQ(list.Collect(), 0u);
  }
  EXPECT_EQ(list.Collect(), 8u);
  EXPECT_EQ(freed_count, 1);
}

TEST(EpochGuard, ThreadsThatEndReturnTheirSlots) {
  std::set<EpochDomain::Slot*> slots;
  for (int i = 0; i < 200; ++i) {
    std::thread([&slots] {
      const EpochGuard guard;
      slots.insert(internal::thread_epoch_slot.slot);
    }).join();
  }
  EXPECT_EQ(slots.size(), 1u);
}

TEST(EpochGuard, WorksInDestructorsThatRunAfterTheSlotWasReturned) {
  static std::atomic<int> entered{0};
  struct EntersAtThreadEnd {
    ~EntersAtThreadEnd() {
      const EpochGuard guard;
      const EpochGuard nested;
      if (internal::thread_epoch_slot.slot != nullptr) ++entered;
    }
    int used = 0;
  };
  for (int i = 0; i < 200; ++i) {
    std::thread([] {
      // Made before the thread's slot, so destroyed after it was returned.
      static thread_local EntersAtThreadEnd late;
      ++late.used;
      const EpochGuard guard;
    }).join();
  }
  EXPECT_EQ(entered, 200);
  // No slot was kept by an ended thread: the next one gets a slot of the first block still.
  EpochDomain::Slot* slot = ProcessEpochs()->TakeSlot();
  const auto distance =
      reinterpret_cast<uintptr_t>(slot) - reinterpret_cast<uintptr_t>(ProcessEpochs());
  EXPECT_LT(distance, sizeof(EpochDomain));
  ProcessEpochs()->ReturnSlot(slot);
}

/// Called before each operation on a HookedAtomic.
void (*operation_hook)() = nullptr;

/// std::atomic that lets a test decide what happens between any two operations.
template <class T>
class HookedAtomic {
 public:
  constexpr HookedAtomic(T value) noexcept : value_(value) {}
  T load(std::memory_order order) const noexcept {
    operation_hook();
    return value_.load(order);
  }
  void store(T value, std::memory_order order) noexcept {
    operation_hook();
    value_.store(value, order);
  }
  T exchange(T value, std::memory_order order) noexcept {
    operation_hook();
    return value_.exchange(value, order);
  }
  T fetch_add(T value, std::memory_order order) noexcept {
    operation_hook();
    return value_.fetch_add(value, order);
  }
  T fetch_sub(T value, std::memory_order order) noexcept {
    operation_hook();
    return value_.fetch_sub(value, order);
  }
  template <class... Orders>
  bool compare_exchange_weak(T& expected, T value, Orders... orders) noexcept {
    operation_hook();
    return value_.compare_exchange_weak(expected, value, orders...);
  }
  template <class... Orders>
  bool compare_exchange_strong(T& expected, T value, Orders... orders) noexcept {
    operation_hook();
    return value_.compare_exchange_strong(expected, value, orders...);
  }

 private:
  std::atomic<T> value_;
};

/// A reader that enters, and a writer that retires what the reader got, at a chosen operation of a
/// Collect that was started before.
struct Intruder {
  using Domain = BasicEpochDomain<HookedAtomic>;
  Domain domain;
  Domain::Slot* reader = domain.TakeSlot();
  BasicRetireList<HookedAtomic> list{&domain};
  int operations_before = 0;
  int object = 0;

  void Act() {
    domain.Enter(reader);
    list.Retire(list.NewNote(), &object, 16, CountFreed);
  }
};
Intruder* intruder = nullptr;

TEST(Epoch, WhatIsRetiredDuringACollectStaysForAReaderThatEnteredDuringIt) {
  int moments = 0;
  for (int moment = 0;; ++moment) {
    operation_hook = [] {};
    freed_count = 0;
    Intruder present;
    intruder = &present;
    present.list.Retire(present.list.NewNote(), &present.object, 1, CountFreed);
    present.operations_before = moment;
    operation_hook = [] {
      if (intruder->operations_before-- != 0) return;
      const auto hook = std::exchange(operation_hook, [] {});
      intruder->Act();
      operation_hook = hook;
    };
    present.list.Collect();
    operation_hook = [] {};
    if (present.operations_before >= 0) break;  // The whole Collect has fewer operations.
    ++moments;
    EXPECT_GE(present.list.bytes(), 16u) << "at operation " << moment;
    present.domain.Leave(present.reader);
    present.list.Collect();
    EXPECT_EQ(present.list.bytes(), 0u);
    EXPECT_EQ(freed_count, 2);
  }
  EXPECT_GT(moments, 64);
}

constexpr uint64_t kAlive = 0xA11FE;
constexpr uint64_t kPoison = 0xDEAD;

struct Node {
  uint64_t state = kAlive;
  uint64_t number = 0;
};

/// Poisoned first and then freed: a reader that comes too late sees the poison, or a sanitizer sees
/// it.
void PoisonNode(void* object) {
  auto* node = static_cast<Node*>(object);
  *const_cast<volatile uint64_t*>(&node->state) = kPoison;
  delete node;
}

/// Threads read, replace, retire and collect a few shared nodes at once; no reader may meet poison,
/// and every node is freed in the end.
template <template <class> class Atomic>
void StressReaders(int readers, int writers, int rounds) {
  using Domain = BasicEpochDomain<Atomic>;
  constexpr size_t kPlaces = 4;
  // A thread that yields on a busy machine waits for all others there: time is bounded too.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(3);
  Domain domain;
  std::atomic<int> too_early{0};
  {
    BasicRetireList<Atomic> list(&domain);
    std::array<Atomic<Node*>, kPlaces> places{new Node, new Node, new Node, new Node};
    std::atomic<int> running_writers{writers};
    std::vector<std::thread> threads;
    threads.reserve(static_cast<size_t>(readers) + static_cast<size_t>(writers));
    for (int reader = 0; reader < readers; ++reader) {
      threads.emplace_back([&, reader] {
        Random random(static_cast<uint64_t>(reader));
        while (running_writers.load() > 0) {
          auto* slot = domain.TakeSlot();
          for (int i = 0; i < 20; ++i) {
            domain.Enter(slot);
            const Node* node = places[random.Below(kPlaces)].load(std::memory_order_seq_cst);
            for (int look = 0; look < 3; ++look) {
              if (*const_cast<const volatile uint64_t*>(&node->state) != kAlive) ++too_early;
              if (random.OneIn(64)) std::this_thread::yield();
            }
            domain.Leave(slot);
          }
          domain.ReturnSlot(slot);
        }
      });
    }
    for (int writer = 0; writer < writers; ++writer) {
      threads.emplace_back([&, writer] {
        Random random(1000 + static_cast<uint64_t>(writer));
        for (int i = 0; i < rounds && std::chrono::steady_clock::now() < deadline; ++i) {
          Node* old = places[random.Below(kPlaces)].exchange(new Node, std::memory_order_seq_cst);
          list.Retire(list.NewNote(), old, sizeof(Node), PoisonNode);
          if (random.OneIn(3)) list.Collect();
        }
        --running_writers;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(too_early, 0);
    list.Collect();
    EXPECT_EQ(list.bytes(), 0u);
    for (Atomic<Node*>& place : places) delete place.load(std::memory_order_seq_cst);
  }
}

TEST(EpochStress, NoReaderMeetsAFreedNode) { StressReaders<std::atomic>(3, 2, 50'000); }

TEST(EpochStress, NoReaderMeetsAFreedNodeWhenThreadsYieldAnywhere) {
  operation_hook = [] {
    static thread_local Random random(std::hash<std::thread::id>()(std::this_thread::get_id()));
    if (random.OneIn(32)) std::this_thread::yield();
  };
  StressReaders<HookedAtomic>(3, 2, 20'000);
}

/// A reader and two writers of one place, for a scheduler that decides how they interleave. A freed
/// node stays in memory, marked: meeting it is no undefined behaviour.
struct ScheduledReaders {
  using Domain = BasicEpochDomain<ScheduledAtomic>;
  Domain domain;
  Domain::Slot* slot = domain.TakeSlot();
  BasicRetireList<ScheduledAtomic> list{&domain};
  std::deque<Node> nodes{Node()};
  ScheduledAtomic<Node*> place{&nodes.front()};
  bool met_a_freed_node = false;

  static void MarkFreed(void* object) { static_cast<Node*>(object)->state = kPoison; }

  void Read() {
    for (int i = 0; i < 3; ++i) {
      domain.Enter(slot);
      const Node* node = place.load();
      DeterministicScheduler::Point();
      if (node->state != kAlive) met_a_freed_node = true;
      domain.Leave(slot);
    }
  }
  /// Retires what it replaces, or frees it at once, as would be wrong.
  void Write(bool waits_for_readers) {
    for (int i = 0; i < 2; ++i) {
      Node* old = place.exchange(&nodes.emplace_back());
      if (waits_for_readers) {
        list.Retire(list.NewNote(), old, sizeof(Node), MarkFreed);
        list.Collect();
      } else {
        MarkFreed(old);
      }
    }
  }
  static MakeBodies Bodies(std::unique_ptr<ScheduledReaders>* state, bool waits_for_readers) {
    return [=] {
      *state = std::make_unique<ScheduledReaders>();
      const auto write = [=] { (*state)->Write(waits_for_readers); };
      return std::vector<std::function<void()>>{[=] { (*state)->Read(); }, write, write};
    };
  }
};

TEST(EpochInterleavings, NoReaderMeetsAFreedNode) {
  std::unique_ptr<ScheduledReaders> state;
  ExploreInterleavings(2000, 0, ScheduledReaders::Bodies(&state, true), [&] {
    EXPECT_FALSE(state->met_a_freed_node);
    state->list.Collect();
    EXPECT_EQ(state->list.bytes(), 0u);
  });
}

TEST(EpochInterleavings, AWriterThatDoesNotWaitForReadersIsCaught) {
  std::unique_ptr<ScheduledReaders> state;
  EXPECT_TRUE(FindInterleaving(100, 0, ScheduledReaders::Bodies(&state, false),
                               [&] { return state->met_a_freed_node; }));
}

}  // namespace
}  // namespace basalt::base

#include "memtable/insert_gate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/deterministic_scheduler.h"

namespace basalt::memtable {
namespace {

using base::DeterministicScheduler;
using base::ExploreInterleavings;
using base::ScheduledAtomic;

// Words that move from one table to the next, as those of an index that doubles. A visitor stores a
// word in the first empty place of the table that it finds.
template <template <class> class Atomic>
class Words {
 public:
  using Gate = BasicInsertGate<Atomic>;
  static constexpr size_t kVisitors = 2;
  static constexpr size_t kWords = 8;
  static constexpr size_t kTables = 4;

  Words() {
    for (size_t i = 0; i < kVisitors; ++i) places_[i] = &in_memory_[i];
  }

  /// With a fence before it searches.
  void StoreInside(size_t visitor, uint32_t word) {
    typename Gate::Visit visit(gate_, places_[visitor]);
    visit.Enter();
    while (!TryToStore(tables_[table_.load()], word)) {
    }
  }
  /// Searches first, and has a fence for another reason then.
  void StoreIfInside(size_t visitor, uint32_t word) {
    typename Gate::Visit visit(gate_, places_[visitor]);
    for (;;) {
      Table& table = tables_[table_.load()];
      fences_[visitor].exchange(1, std::memory_order_seq_cst);
      if (!visit.IsInside()) {
        visit.BeginAgain();
      } else if (TryToStore(table, word)) {
        return;
      }
    }
  }
  void Move() {
    gate_.Close(places_);
    const uint32_t from = table_.load();
    for (size_t i = 0; i < kWords; ++i) tables_[from + 1][i].store(tables_[from][i].load());
    table_.store(from + 1);
    gate_.Open();
  }

  std::vector<uint32_t> Stored() {
    std::vector<uint32_t> stored;
    for (const auto& word : tables_[table_.load()]) {
      if (word.load() != 0) stored.push_back(word.load());
    }
    std::ranges::sort(stored);
    return stored;
  }

 private:
  using Table = std::array<Atomic<uint32_t>, kWords>;

  static bool TryToStore(Table& table, uint32_t word) {
    for (auto& place : table) {
      if (place.load() != 0) continue;
      uint32_t empty = 0;
      return place.compare_exchange_strong(empty, word, std::memory_order_seq_cst);
    }
    ADD_FAILURE() << "the table is full";
    return true;
  }

  Gate gate_;
  std::array<typename Gate::Place, kVisitors> in_memory_;
  std::array<typename Gate::Place*, kVisitors> places_;
  std::array<Atomic<uint32_t>, kVisitors> fences_{};
  Atomic<uint32_t> table_{0};
  std::array<Table, kTables> tables_{};
};

TEST(InsertGateInterleavings, WhatIsStoredMovesWithTheOthers) {
  std::unique_ptr<Words<ScheduledAtomic>> words;
  ExploreInterleavings(
      10'000, 1,
      [&] {
        words = std::make_unique<Words<ScheduledAtomic>>();
        return std::vector<DeterministicScheduler::Body>{[&] {
                                                           words->StoreInside(0, 1);
                                                           words->StoreIfInside(0, 2);
                                                         },
                                                         [&] {
                                                           words->StoreIfInside(1, 3);
                                                           words->StoreIfInside(1, 4);
                                                         },
                                                         [&] {
                                                           words->Move();
                                                           words->Move();
                                                         }};
      },
      [&] { EXPECT_EQ(words->Stored(), (std::vector<uint32_t>{1, 2, 3, 4})); });
}

// Here the processor may keep a store of a place to itself until the fence, as no schedule does.
TEST(InsertGate, NothingIsLostWhereStoresAreSeenLate) {
  constexpr int kRounds = 50'000;
  constexpr int kSpinsMax = 1'000;
  std::unique_ptr<Words<std::atomic>> words;
  std::atomic<int> begun{0};
  std::atomic<int> ended{0};
  const auto wait_until = [](const std::atomic<int>& number, int wanted) {
    for (int spins = 0; number.load() < wanted; ++spins) {
      if (spins > kSpinsMax) std::this_thread::yield();
    }
  };
  std::thread visitor([&] {
    for (int round = 1; round <= kRounds; ++round) {
      wait_until(begun, round);
      for (const uint32_t word : {1, 2, 3, 4}) words->StoreIfInside(0, word);
      ended.store(round);
    }
  });
  int lost = 0;
  for (int round = 1; round <= kRounds; ++round) {
    words = std::make_unique<Words<std::atomic>>();
    begun.store(round);
    for (int i = 0; i < round % 64; ++i) static_cast<void>(ended.load());  // as late as that
    for (int i = 0; i < 3; ++i) words->Move();
    wait_until(ended, round);
    if (words->Stored() != std::vector<uint32_t>{1, 2, 3, 4}) ++lost;
  }
  visitor.join();
  EXPECT_EQ(lost, 0);
}

}  // namespace
}  // namespace basalt::memtable

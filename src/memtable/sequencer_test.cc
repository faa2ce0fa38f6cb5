#include "memtable/sequencer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <ranges>
#include <set>
#include <vector>

#include "base/deterministic_scheduler.h"

namespace basalt::memtable {
namespace {

using base::DeterministicScheduler;
using base::ExploreInterleavings;
using base::ScheduledAtomic;
using base::SequenceNumber;

SequenceNumber TakeAndEnd(Sequencer* sequencer, uint32_t thread, SequenceNumber above = 0,
                          uint64_t generation = 1) {
  Sequencer::Slot* const slot = sequencer->Of(thread);
  const SequenceNumber number = sequencer->Take(slot, generation, above);
  sequencer->End(slot);
  return number;
}

// By turns, so that both have blocks of several numbers.
template <class S>
void WriteByTurns(S* sequencer, int times) {
  for (int i = 0; i < times; ++i) {
    for (const uint32_t thread : {0, 1}) {
      auto* const slot = sequencer->Of(thread);
      sequencer->Take(slot, 1, 0);
      sequencer->End(slot);
    }
  }
}

TEST(Sequencer, NumbersOfOneWriterHaveNoGaps) {
  Sequencer sequencer;
  for (SequenceNumber i = 1; i <= 100; ++i) {
    EXPECT_EQ(TakeAndEnd(&sequencer, 0), i);
    EXPECT_EQ(sequencer.last(), i);
  }
  Sequencer::Slot* const slot = sequencer.Of(0);
  EXPECT_EQ(sequencer.TakeRange(slot, 10), 101u);
  sequencer.End(slot);
  EXPECT_EQ(TakeAndEnd(&sequencer, 0), 111u);
}

TEST(Sequencer, WritersByTurnsTakeBlocksAndALoneOneStops) {
  Sequencer sequencer;
  std::set<SequenceNumber> taken;
  constexpr int kTimes = 1000;
  uint64_t blocks = 0;
  for (int i = 0; i < kTimes; ++i) {
    for (const uint32_t thread : {0, 1}) {
      const SequenceNumber last = sequencer.last();
      EXPECT_TRUE(taken.insert(TakeAndEnd(&sequencer, thread)).second);
      blocks += sequencer.last() != last ? 1 : 0;
    }
  }
  EXPECT_LT(blocks, 2 * kTimes / 64 + 20);
  EXPECT_LE(sequencer.last(), uint64_t{2} * kTimes + 2 * 64);

  for (int i = 0; i < 400; ++i) TakeAndEnd(&sequencer, 0);
  const SequenceNumber last = sequencer.last();
  EXPECT_EQ(TakeAndEnd(&sequencer, 0), last + 1) << "one at a time again";
}

TEST(Sequencer, ANumberIsAboveTheNewestVersionOfItsKey) {
  Sequencer sequencer;
  WriteByTurns(&sequencer, 100);
  SequenceNumber newest = 0;
  for (int i = 0; i < 1000; ++i) {
    const SequenceNumber number = TakeAndEnd(&sequencer, static_cast<uint32_t>(i % 2), newest);
    EXPECT_GT(number, newest);
    newest = number;
  }
}

TEST(Sequencer, ANumberIsAboveThoseOfEarlierGenerationsAndOfACut) {
  Sequencer sequencer;
  WriteByTurns(&sequencer, 100);
  SequenceNumber last = sequencer.last();
  EXPECT_LT(TakeAndEnd(&sequencer, 0), last) << "of a block";
  EXPECT_GT(TakeAndEnd(&sequencer, 0, 0, /*generation=*/2), last);
  EXPECT_LT(TakeAndEnd(&sequencer, 1), last) << "of a block";

  last = sequencer.last();
  sequencer.CutAt(last);
  EXPECT_GT(TakeAndEnd(&sequencer, 0, 0, 2), last);
  EXPECT_GT(TakeAndEnd(&sequencer, 1), last);
}

TEST(Sequencer, ThreadsBeyondTheFirstSlotsHaveSlotsToo) {
  Sequencer sequencer;
  std::set<Sequencer::Slot*> slots;
  for (uint32_t thread = 0; thread < 100; ++thread) {
    EXPECT_TRUE(slots.insert(sequencer.Of(thread)).second);
    TakeAndEnd(&sequencer, thread);
  }
  EXPECT_EQ(sequencer.Settle(), sequencer.last());
}

TEST(Sequencer, ABatchIsUnderWayUntilItsEnd) {
  for (const uint32_t thread : {2, 15, 16, 77}) {
    Sequencer sequencer;
    WriteByTurns(&sequencer, 100);
    Sequencer::Slot* const slot = sequencer.Of(thread);
    const SequenceNumber first = sequencer.TakeRange(slot, 3);
    sequencer.SetBatch(slot, first, first + 2);
    TakeAndEnd(&sequencer, 0);
    EXPECT_FALSE(sequencer.IsUnderWay(first - 1)) << thread;
    for (uint64_t i = 0; i < 3; ++i) EXPECT_TRUE(sequencer.IsUnderWay(first + i)) << thread;
    EXPECT_FALSE(sequencer.IsUnderWay(first + 3)) << thread;
    EXPECT_LE(sequencer.BatchesSettledBelow(), first) << thread;
    sequencer.End(slot);
    for (uint64_t i = 0; i < 3; ++i) EXPECT_FALSE(sequencer.IsUnderWay(first + i)) << thread;
  }
}

// ---- Interleavings ----

// Two writers of single records, of whom each has a block with some numbers left, and others. A
// record "appears" by its number in `records`.
class World {
 public:
  static constexpr size_t kPuts = 4;
  using Records = std::vector<SequenceNumber>;

  World() { WriteByTurns(&sequencer_, 3); }

  BasicSequencer<ScheduledAtomic>& sequencer() noexcept { return sequencer_; }

  // What appears while the generation that it goes to is the active one.
  void Put(uint32_t thread, size_t i) {
    auto* const slot = sequencer_.Of(thread);
    const uint64_t generation = active_.load();
    const SequenceNumber above = must_be_above_.load();
    const SequenceNumber number = sequencer_.Take(slot, generation, 0);
    EXPECT_GT(number, above);
    if (active_.load() == generation) {
      generations_[thread][i] = generation;
      records_[thread][i].store(number);
    }
    sequencer_.End(slot);
  }
  void PutAll(uint32_t thread) {
    for (size_t i = 0; i < kPuts; ++i) Put(thread, i);
  }
  void Seal() { active_.fetch_add(1); }
  void DeleteRange(uint32_t thread) {
    auto* const slot = sequencer_.Of(thread);
    const SequenceNumber number = sequencer_.TakeRange(slot, 1);
    sequencer_.CutAt(number);
    sequencer_.End(slot);
    must_be_above_.store(number);
  }

  // Records with numbers up to `most`, of generations up to `generation`.
  Records Seen(SequenceNumber most, uint64_t generation = UINT64_MAX) {
    Records seen;
    for (size_t thread = 0; thread < records_.size(); ++thread) {
      for (size_t i = 0; i < kPuts; ++i) {
        const SequenceNumber number = records_[thread][i].load();
        const bool is_in = number != 0 && generations_[thread][i] <= generation;
        if (is_in && number <= most) seen.push_back(number);
      }
    }
    std::ranges::sort(seen);
    return seen;
  }

 private:
  BasicSequencer<ScheduledAtomic> sequencer_;
  ScheduledAtomic<uint64_t> active_{1};
  ScheduledAtomic<SequenceNumber> must_be_above_{0};
  std::array<std::array<ScheduledAtomic<SequenceNumber>, kPuts>, 2> records_;
  std::array<std::array<uint64_t, kPuts>, 2> generations_{};
};

void Explore(const std::function<void(World*)>& other, const std::function<void(World*)>& check) {
  std::unique_ptr<World> world;
  ExploreInterleavings(
      4'000, 1,
      [&] {
        world = std::make_unique<World>();
        return std::vector<DeterministicScheduler::Body>{
            [&] { world->PutAll(0); }, [&] { world->PutAll(1); }, [&] { other(world.get()); }};
      },
      [&] { check(world.get()); });
}

TEST(SequencerInterleavings, WhatIsSettledNeverChanges) {
  SequenceNumber at = 0;
  World::Records seen;
  Explore(
      [&](World* world) {
        // What is known of batches says nothing of single records.
        EXPECT_FALSE(world->sequencer().IsUnderWay(world->sequencer().last()));
        at = world->sequencer().Settle();
        seen = world->Seen(at);
      },
      [&](World* world) { EXPECT_EQ(world->Seen(at), seen); });
}

TEST(SequencerInterleavings, ASnapshotsNumberMayBeTakenBeforeItIsSettled) {
  std::array<SequenceNumber, 2> at{};
  std::array<World::Records, 2> seen;
  Explore(
      [&](World* world) {
        for (size_t i = 0; i < at.size(); ++i) at[i] = world->sequencer().last();
        for (size_t i = at.size(); i-- > 0;) {
          world->sequencer().Settle(at[i]);
          seen[i] = world->Seen(at[i]);
        }
      },
      [&](World* world) {
        for (size_t i = 0; i < at.size(); ++i) EXPECT_EQ(world->Seen(at[i]), seen[i]);
      });
}

TEST(SequencerInterleavings, WhatBeginsAfterARangeDeleteIsAboveIt) {
  Explore([](World* world) { world->DeleteRange(2); }, [](World*) {});
}

TEST(SequencerInterleavings, GenerationsFollowOneAnotherAndAreCompleteOnceSettled) {
  World::Records seen;
  Explore(
      [&](World* world) {
        world->Seal();
        world->sequencer().Settle();
        seen = world->Seen(base::kMaxSequence, 1);
        world->Seal();
      },
      [&](World* world) {
        EXPECT_EQ(world->Seen(base::kMaxSequence, 1), seen);
        for (const uint64_t generation : {1, 2}) {
          const World::Records older = world->Seen(base::kMaxSequence, generation);
          const World::Records both = world->Seen(base::kMaxSequence, generation + 1);
          EXPECT_TRUE(std::ranges::equal(older, both | std::views::take(older.size())));
        }
      });
}

TEST(SequencerInterleavings, ABatchThatIsNotUnderWayIsThere) {
  std::array<ScheduledAtomic<SequenceNumber>, 2> batch;
  std::unique_ptr<World> world;
  ExploreInterleavings(
      4'000, 1,
      [&] {
        world = std::make_unique<World>();
        for (auto& record : batch) record.store(0);
        return std::vector<DeterministicScheduler::Body>{
            [&] { world->PutAll(0); },
            [&] {
              auto& sequencer = world->sequencer();
              auto* const slot = sequencer.Of(2);
              const SequenceNumber first = sequencer.TakeRange(slot, batch.size());
              sequencer.SetBatch(slot, first, first + 1);
              for (size_t i = 0; i < batch.size(); ++i) batch[i].store(first + i);
              sequencer.End(slot);
            },
            [&] {
              for (int looks = 0; looks < 4; ++looks) {
                const SequenceNumber first = batch[0].load();
                if (first == 0 || world->sequencer().IsUnderWay(first)) continue;
                EXPECT_EQ(batch[1].load(), first + 1);
              }
            }};
      },
      [] {});
}

}  // namespace
}  // namespace basalt::memtable

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <semaphore>
#include <thread>
#include <utility>
#include <vector>

#include "base/buffered_atomic.h"
#include "base/deterministic_scheduler.h"
#include "base/epoch.h"

// The epochs with their pair of fences, on a machine whose stores are seen late.

namespace basalt::base {

static uint64_t heavy_fences = 0;
static bool heavy_fence_works = true;
/// Called before and after what it does, if set.
static std::function<void(bool is_done)> at_heavy_fence;

/// What membarrier does: the buffers of all threads are empty at some moment of the call.
template <>
struct EpochFences<BufferedAtomic> {
  static bool IsLight() noexcept { return true; }
  static void Prepare() noexcept {}
  static void Light() noexcept {}
  static void Heavy() noexcept {
    ++heavy_fences;
    DeterministicScheduler::Point();
    if (at_heavy_fence) at_heavy_fence(false);
    if (heavy_fence_works) StoreBuffers::DrainAll();
    if (at_heavy_fence) at_heavy_fence(true);
    DeterministicScheduler::Point();
  }
};

namespace {

struct FencedNode {
  bool is_freed = false;
};

/// Two readers, and two writers with a place each, as shards of a cache are: what a writer has
/// replaced it frees some turns later, when ScanFor says that nobody sees it any more.
struct World {
  using Domain = BasicEpochDomain<BufferedAtomic>;
  struct Replaced {
    FencedNode* node;
    uint64_t noted;
  };
  static constexpr int kThreads = 4;

  Domain domain;
  std::array<Domain::Slot*, 2> slots{domain.TakeSlot(), domain.TakeSlot()};
  std::deque<FencedNode> nodes{2};
  std::array<std::deque<Replaced>, 2> waiting_of;
  std::array<BufferedAtomic<FencedNode*>, 2> places{&nodes[0], &nodes[1]};
  bool met_a_freed_node = false;
  uint64_t freed = 0;
  uint64_t scans = 0;

  void Read(size_t reader) {
    StoreBuffers::Be(reader);
    Domain::Slot* const slot = slots[reader];
    for (size_t i = 0; i < 6; ++i) {
      if (i % 3 == 2) {
        domain.Enter(slot);
      } else {
        EXPECT_TRUE(domain.EnterQuickly(slot));
      }
      for (const auto& place : places) {
        const FencedNode* const node = place.load(std::memory_order_acquire);
        Look(node);
        DeterministicScheduler::Point();
        Look(node);
      }
      if (i % 3 == 2) {
        domain.Leave(slot);
      } else {
        domain.LeaveQuickly(slot);
      }
    }
    StoreBuffers::DrainOwn();
  }
  /// As reader 0: what it gets.
  const FencedNode* EnterAsFirst() {
    StoreBuffers::Be(0);
    EXPECT_TRUE(domain.EnterQuickly(slots[0]));
    return places[0].load(std::memory_order_acquire);
  }
  void LeaveAsFirst() { domain.LeaveQuickly(slots[0]); }
  void Look(const FencedNode* node) { met_a_freed_node |= node->is_freed; }

  void Write(size_t writer) {
    for (int i = 0; i < 6; ++i) TakeTurn(writer);
    StoreBuffers::DrainOwn();
  }
  void TakeTurn(size_t writer) {
    StoreBuffers::Be(slots.size() + writer);
    std::deque<Replaced>& waiting = waiting_of[writer];
    FencedNode* const old = places[writer].load(std::memory_order_relaxed);
    places[writer].store(&nodes.emplace_back(), std::memory_order_release);
    waiting.push_back({.node = old, .noted = domain.NoteAndAdvance()});
    if (waiting.size() < 2) return;
    ++scans;
    if (domain.ScanFor(waiting.front().noted) <= waiting.front().noted) return;
    waiting.front().node->is_freed = true;
    waiting.pop_front();
    ++freed;
  }
};

class EpochWithBuffers : public testing::Test {
 protected:
  void SetUp() override {
    heavy_fences = 0;
    heavy_fence_works = true;
  }
  void TearDown() override { heavy_fence_works = true; }

  MakeBodies Bodies(size_t readers, size_t writers) {
    return [=, this] {
      StoreBuffers::Begin(World::kThreads, ++runs_);
      world_ = std::make_unique<World>();
      World* const world = world_.get();
      std::vector<DeterministicScheduler::Body> bodies;
      for (size_t i = 0; i < readers; ++i) bodies.emplace_back([=] { world->Read(i); });
      for (size_t i = 0; i < writers; ++i) bodies.emplace_back([=] { world->Write(i); });
      return bodies;
    };
  }
  void Sum() {
    StoreBuffers::DrainAll();
    freed_ += world_->freed;
    scans_ += world_->scans;
  }

  uint64_t runs_ = 0;
  std::unique_ptr<World> world_;
  uint64_t freed_ = 0;
  uint64_t scans_ = 0;
};

TEST_F(EpochWithBuffers, NoReaderMeetsAFreedNode) {
  for (const auto& [readers, writers] : {std::pair(1, 1), std::pair(1, 2), std::pair(2, 2)}) {
    ExploreInterleavings(10'000, 0, Bodies(readers, writers),
                         [&] {
                           Sum();
                           EXPECT_FALSE(world_->met_a_freed_node);
                         },
                         {.strategy = ScheduleStrategy::kPriorities});
  }
  EXPECT_GT(freed_, runs_) << "else nothing was shown";
  EXPECT_GT(scans_ - heavy_fences, runs_) << "scans without a fence";
  EXPECT_GT(heavy_fences, runs_);
}

TEST_F(EpochWithBuffers, AHeavyFenceThatDoesNothingIsCaught) {
  heavy_fence_works = false;
  const auto seed = FindInterleaving(10'000, 0, Bodies(1, 1), [&] {
    Sum();
    return world_->met_a_freed_node;
  });
  EXPECT_TRUE(seed);
}

// In a stay of a reader, none of whose stores becomes visible before it must, a writer takes turns
// at two moments.
TEST_F(EpochWithBuffers, AWriterTakesTurnsAtAnyTwoMomentsOfAStay) {
  constexpr int kTurnsMax = 4;
  int moments = 0;
  for (int first = 0; first <= moments; ++first) {
    for (int second = first; second <= std::max(moments, first); ++second) {
      for (int turns = 0; turns < kTurnsMax * kTurnsMax; ++turns) {
        StoreBuffers::Begin(World::kThreads);
        World world;
        const auto stay = [&] {
          const FencedNode* const node = world.EnterAsFirst();
          StoreBuffers::Step();
          world.Look(node);
          world.LeaveAsFirst();
        };
        stay();  // Wakes.
        for (int i = 0; i < 2; ++i) world.TakeTurn(0);
        int moment = 0;
        StoreBuffers::at_step = [&] {
          if (moment == first) {
            for (int i = 0; i < turns / kTurnsMax; ++i) world.TakeTurn(0);
          }
          if (moment == second) {
            for (int i = 0; i < turns % kTurnsMax; ++i) world.TakeTurn(0);
          }
          ++moment;
        };
        stay();
        StoreBuffers::at_step = nullptr;
        moments = moment;
        StoreBuffers::DrainAll();
        ASSERT_FALSE(world.met_a_freed_node) << turns / kTurnsMax << " turns at " << first << ", "
                                             << turns % kTurnsMax << " at " << second;
      }
    }
  }
  EXPECT_GE(moments, 5);
}

// At any moment of a writer's turns a reader enters, or has stayed, left and entered again; some of
// its stores become visible.
TEST_F(EpochWithBuffers, AReaderEntersAtAnyMomentOfAWritersTurns) {
  constexpr size_t kDrainedMax = 5;
  bool was_met = true;
  for (int first = 0; was_met; ++first) {
    for (size_t variant = 0; variant < 4 * kDrainedMax; ++variant) {
      StoreBuffers::Begin(World::kThreads);
      World world;
      // Awake, or parked.
      if (variant % 2 == 0) {
        world.EnterAsFirst();
        world.LeaveAsFirst();
      }
      StoreBuffers::DrainAll();
      const FencedNode* node = nullptr;
      int moment = 0;
      StoreBuffers::at_step = [&] {
        if (moment++ != first) return;
        node = world.EnterAsFirst();
        if (variant / 2 % 2 != 0) {
          world.LeaveAsFirst();
          node = world.EnterAsFirst();
        }
        StoreBuffers::DrainOwn(variant / 4);
      };
      for (int i = 0; i < 6; ++i) world.TakeTurn(0);
      StoreBuffers::at_step = nullptr;
      StoreBuffers::DrainAll();
      was_met = node != nullptr;
      ASSERT_FALSE(was_met && node->is_freed) << "at " << first << ", variant " << variant;
    }
  }
}

// At one moment of a writer's turns a reader that was parked wakes, leaves and enters again; at a
// later one some of its stores become visible, so that a scan may have looked at its slot between
// them: it must not take a reader for parked that it sees to have left after it woke.
TEST_F(EpochWithBuffers, AReadersStoresAreSeenAtAnyMomentOfAWritersTurns) {
  constexpr size_t kDrainedMax = 4;
  int moments = 1;
  for (int first = 0; first < moments; ++first) {
    for (int second = first; second < moments; ++second) {
      for (size_t drained = 1; drained <= kDrainedMax; ++drained) {
        StoreBuffers::Begin(World::kThreads);
        World world;
        const FencedNode* node = nullptr;
        int moment = 0;
        StoreBuffers::at_step = [&] {
          if (moment == first) {
            world.EnterAsFirst();
            world.LeaveAsFirst();
            node = world.EnterAsFirst();
          }
          if (moment == second) {
            StoreBuffers::Be(0);
            StoreBuffers::DrainOwn(drained);
          }
          ++moment;
        };
        for (int i = 0; i < 4; ++i) world.TakeTurn(0);
        StoreBuffers::at_step = nullptr;
        moments = std::max(moments, moment);
        StoreBuffers::DrainAll();
        ASSERT_FALSE(node != nullptr && node->is_freed)
            << "entered at " << first << ", " << drained << " seen at " << second;
      }
    }
  }
  EXPECT_GE(moments, 20);
}

// One scan has made its fence when a reader enters and another scan asks to park that reader; the
// first goes on before the other has made its own.
TEST_F(EpochWithBuffers, AScanParksOnlyWhatItHasAskedForItself) {
  StoreBuffers::Begin(World::kThreads);
  World world;
  world.EnterAsFirst();
  world.LeaveAsFirst();
  StoreBuffers::DrainOwn();

  std::binary_semaphore first_has_fenced{0};
  std::binary_semaphore other_has_asked{0};
  std::binary_semaphore first_has_ended{0};
  const auto first_id = std::make_shared<std::thread::id>();
  at_heavy_fence = [&, first_id, calls = 0](bool is_done) mutable {
    const bool is_first = std::this_thread::get_id() == *first_id;
    if (is_first && is_done && calls++ == 0) {
      first_has_fenced.release();
      other_has_asked.acquire();
    } else if (!is_first && !is_done) {
      other_has_asked.release();
      first_has_ended.acquire();
    }
  };
  std::thread first([&] {
    *first_id = std::this_thread::get_id();
    StoreBuffers::Be(2);
    // Older than the reader's stay, which it does not ask about.
    static_cast<void>(world.domain.AdvanceAndScan());
    for (int i = 0; i < 3; ++i) world.TakeTurn(0);
    first_has_ended.release();
  });
  first_has_fenced.acquire();
  const FencedNode* const node = world.EnterAsFirst();
  std::thread other([&] {
    StoreBuffers::Be(3);
    static_cast<void>(world.domain.ScanFor(world.domain.NoteAndAdvance()));
  });
  other.join();
  first.join();
  at_heavy_fence = nullptr;
  StoreBuffers::DrainAll();
  EXPECT_FALSE(node->is_freed);
}

TEST_F(EpochWithBuffers, OfThreadsThatEnterOnlyTheFirstScanNeedsAHeavyFence) {
  World world;
  StoreBuffers::Begin(World::kThreads);
  const auto enter = [&](size_t reader) {
    EXPECT_TRUE(world.domain.EnterQuickly(world.slots[reader]));
    world.domain.LeaveQuickly(world.slots[reader]);
  };
  enter(0);
  enter(1);
  uint64_t noted = world.domain.NoteAndAdvance();
  EXPECT_GT(world.domain.ScanFor(noted), noted);
  EXPECT_EQ(heavy_fences, 1u) << "both may have just entered; they are parked now";
  for (int i = 0; i < 10; ++i) {
    noted = world.domain.NoteAndAdvance();
    if (i > 2) enter(0);
    EXPECT_GT(world.domain.ScanFor(noted), noted);
  }
  EXPECT_EQ(heavy_fences, 1u) << "an idle thread, and one that enters again and again";
  noted = world.domain.NoteAndAdvance();
  ASSERT_TRUE(world.domain.EnterQuickly(world.slots[0]));
  EXPECT_GT(world.domain.ScanFor(noted), noted) << "entered after it";
  noted = world.domain.NoteAndAdvance();
  EXPECT_LE(world.domain.ScanFor(noted), noted);
  world.domain.LeaveQuickly(world.slots[0]);
  EXPECT_EQ(heavy_fences, 2u) << "one that stays inside";
}

}  // namespace
}  // namespace basalt::base

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "cache/test_world.h"

// The state word of an entry: pins, deadlines and links, set by several threads at a time.

namespace basalt::cache {
namespace {

// ---- Pins ----

/// Readers pin an entry inside an epoch and hold it beyond; a writer replaces and erases it.
struct PinScene {
  enum class Mistake { kNone, kPinsOutside, kOrphansInTwoSteps };
  Mistake mistake = Mistake::kNone;

  Scene operator()(World* world) const {
    world->Put("key", 1);
    Scene scene;
    scene.bodies.push_back([this, world] {
      for (uint64_t value = 2; value <= 3; ++value) {
        const TestIndex::Found found = world->index.Find(HashOf("key"), "key");
        found.entry()->state.SetDeadline(value);
        world->Put("key", value);
        Collect(world);
      }
      world->Delete("key");
      for (int i = 0; i < 3; ++i) Collect(world);
    });
    for (int reader = 0; reader < 2; ++reader) {
      Slot* const slot = world->domain.TakeSlot();
      scene.bodies.push_back([this, world, slot] {
        for (int pins = 0; pins < 3; ++pins) PinAndRead(world, slot);
      });
    }
    return scene;
  }

  void Collect(World* world) const {
    if (mistake != Mistake::kOrphansInTwoSteps) return world->Collect();
    world->retired.Collect([world](Item* item) {
      // Who drops the last pin between these two sees no orphan.
      if (item->state.is_pinned()) {
        item->state.Orphan();
      } else {
        world->Free(item);
      }
    });
  }

  void PinAndRead(World* world, Slot* slot) const {
    world->domain.Enter(slot);
    const TestIndex::Found found = world->index.Find(HashOf("key"), "key");
    const bool pins_outside = mistake == Mistake::kPinsOutside;
    if (pins_outside) world->domain.Leave(slot);
    const bool is_pinned = found && found.entry()->state.TryPin();
    if (!pins_outside) world->domain.Leave(slot);
    if (!is_pinned) return;
    world->Dawdle(80);
    if (found.entry()->value == kPoison) world->Complain("a pinned entry was freed");
    if (found.entry()->state.Unpin()) world->Free(found.entry());
  }
};

TEST(EntryInterleavings, APinnedEntryStaysAndIsFreedOnceWhenItsLastPinGoes) {
  ExpectNoComplaint(1'500, PinScene{});
}

TEST(EntryInterleavings, APinTakenOutsideTheEpochWouldComeTooLate) {
  ExpectComplaint("a pinned entry was freed", PinScene{.mistake = PinScene::Mistake::kPinsOutside});
}

TEST(EntryInterleavings, OrphaningWithoutRegardToTheLastPinWouldLoseTheEntry) {
  ExpectComplaint("an unlinked entry was freed 0 times",
                  PinScene{.mistake = PinScene::Mistake::kOrphansInTwoSteps});
}

/// Threads pin at the same time an entry that has nearly as many pins as fit.
Scene PinAtTheLimit(World* world) {
  using State = BasicEntryState<MortalAtomic>;
  auto state = std::make_shared<State>();
  auto pins = std::make_shared<uint64_t>(0);
  while (*pins < State::kPinsMax - 1 && state->TryPin()) ++*pins;
  Scene scene;
  for (int body = 0; body < 4; ++body) {
    scene.bodies.push_back([=] { *pins += state->TryPin() ? 1 : 0; });
  }
  scene.check_end = [=] {
    if (*pins < State::kPinsMax) world->Complain("there was room for a pin");
    for (; *pins > 0; --*pins) {
      if (!state->is_pinned() || state->Unpin()) return world->Complain("pins were miscounted");
    }
    if (state->is_pinned() || !state->Orphan()) world->Complain("pins were miscounted");
  };
  return scene;
}

TEST(EntryInterleavings, PinsTakenAtOnceAtTheLimitDoNotSpillOver) {
  ExpectNoComplaint(200, PinAtTheLimit);
}

// ---- Deadlines ----

/// A reader asks for the deadline of an entry that is touched, and then retired: its state holds a
/// link from then on, and the reader looks the key up again.
struct DeadlineScene {
  enum class Mistake { kNone, kLinksUnmarked, kRetiresFirst };
  Mistake mistake = Mistake::kNone;

  Scene operator()(World* world) const {
    world->Put("other", 1);
    PutUntil(world, 1'000);
    Scene scene;
    scene.bodies.push_back([this, world] {
      world->index.Find(HashOf("key"), "key").entry()->state.SetDeadline(2'000);
      Item* const other = world->index.Find(HashOf("other"), "other").entry();
      world->Delete("other");
      if (mistake == Mistake::kRetiresFirst) {
        const TestIndex::Found found = world->index.Find(HashOf("key"), "key");
        world->retired.Retire(found.entry());
        world->index.Remove(found, 0);
      } else if (mistake == Mistake::kLinksUnmarked) {
        const TestIndex::Found found = world->index.Find(HashOf("key"), "key");
        world->index.Remove(found, 0);
        found.entry()->state.SetDeadline(reinterpret_cast<uintptr_t>(other) >> 3);
      } else {
        world->Delete("key");
      }
      PutUntil(world, 3'000);
      for (int i = 0; i < 2; ++i) world->Collect();
    });
    for (int reader = 0; reader < 2; ++reader) {
      Slot* const slot = world->domain.TakeSlot();
      scene.bodies.push_back([world, slot] {
        for (int reads = 0; reads < 8; ++reads) ReadDeadline(world, slot);
      });
    }
    return scene;
  }

  static void PutUntil(World* world, uint64_t deadline_ms) {
    Item* const item = world->Make("key", 1);
    item->state.SetDeadline(deadline_ms);
    world->Fill(item);
  }

  static void ReadDeadline(World* world, Slot* slot) {
    world->domain.Enter(slot);
    const Item* retired = nullptr;
    for (;;) {
      const TestIndex::Found found = world->index.Find(HashOf("key"), "key");
      if (!found) break;
      if (found.entry() == retired) {
        world->Complain("a retired entry was found again");
        break;
      }
      uint64_t deadline_ms = 0;
      if (!found.entry()->state.ReadDeadline(&deadline_ms)) {
        retired = found.entry();
        continue;
      }
      if (deadline_ms != 1'000 && deadline_ms != 2'000 && deadline_ms != 3'000) {
        world->Complain("a link was taken for a deadline");
      }
      break;
    }
    world->domain.Leave(slot);
  }
};

TEST(EntryInterleavings, ALinkIsNotTakenForADeadlineAndARetiredEntryIsNotFoundAgain) {
  ExpectNoComplaint(1'200, DeadlineScene{});
}

TEST(EntryInterleavings, AnUnmarkedLinkWouldBeTakenForADeadline) {
  ExpectComplaint("a link was taken for a deadline",
                  DeadlineScene{.mistake = DeadlineScene::Mistake::kLinksUnmarked});
}

TEST(EntryInterleavings, RetiringBeforeUnlinkingWouldLetReadersFindItAgain) {
  ExpectComplaint("a retired entry was found again",
                  DeadlineScene{.mistake = DeadlineScene::Mistake::kRetiresFirst});
}

}  // namespace
}  // namespace basalt::cache

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cache/test_world.h"

// The results of readers while a writer changes the index, and that nothing is freed under them.

namespace basalt::cache {
namespace {

using base::Schedule;

// ---- Splits ----

/// Keys of a whole segment: some buckets with overflow, the others sparse.
const std::vector<std::string>& KeysToSplit() {
  static const auto* keys = [] {
    auto* made = new std::vector<std::string>(KeysOfBucket(4, TestIndex::kSlots + 3));
    for (const size_t bucket : {5, 9, 30}) {
      for (std::string& key : KeysOfBucket(bucket % TestIndex::kBuckets, 2)) {
        made->push_back(std::move(key));
      }
    }
    return made;
  }();
  return *keys;
}

/// Readers look for keys that are there all the while.
struct SplitScene {
  int splits = 1;
  int joins = 0;              ///< After them.
  bool readers_enter = true;  ///< An epoch.
  bool moves_entries = false;

  Scene operator()(World* world) const {
    const std::vector<std::string>& keys = KeysToSplit();
    for (size_t i = 0; i < keys.size(); ++i) world->Put(keys[i], i + 1);
    Scene scene;
    scene.bodies.push_back([this, world] { Write(world); });
    for (size_t first : {size_t{0}, keys.size() / 2}) {
      Slot* const slot = world->domain.TakeSlot();
      scene.bodies.push_back([this, world, slot, first] { ReadAll(world, slot, first); });
    }
    return scene;
  }

  void Write(World* world) const {
    world->Dawdle(Schedule::kSpinSteps);
    const std::vector<std::string>& keys = KeysToSplit();
    std::vector<Item*> items;
    for (const std::string& key : keys) {
      const TestIndex::Found found = world->index.Find(HashOf(key), key);
      items.push_back(found.entry());
      if (moves_entries) world->index.Remove(found, 0);
    }
    for (int i = 0; i < splits; ++i) {
      if (!world->index.Split(HashOf(keys[0]), 0)) world->Complain("it was not split");
    }
    for (Item* item : items) {
      if (moves_entries) world->Fill(item);
    }
    for (int i = 0; i < joins; ++i) {
      if (!world->index.Join(HashOf(keys[0]))) world->Complain("it was not joined");
      world->Collect();
    }
    world->Collect();
    world->writer_ended = true;
  }

  void ReadAll(World* world, Slot* slot, size_t first) const {
    const std::vector<std::string>& keys = KeysToSplit();
    for (size_t gets = 0; !world->writer_ended; ++gets) {
      const size_t i = (first + gets) % keys.size();
      const uint64_t value = readers_enter ? world->Get(slot, keys[i]) : world->Read(keys[i]);
      if (value != i + 1) world->Complain("a key that was there was not found");
    }
  }
};

TEST(IndexInterleavings, AKeyThatIsThereIsFoundAtEveryMomentOfASplit) {
  ExpectNoComplaint(1'000, SplitScene{.splits = 1}, kLong);
}

TEST(IndexInterleavings, ASplitThatTookTheEntriesOutFirstWouldHideThem) {
  ExpectComplaint("a key that was there was not found", SplitScene{.moves_entries = true}, kLong);
}

TEST(IndexInterleavings, AKeyThatIsThereIsFoundWhileTheDirectoryDoubles) {
  ExpectNoComplaint(800, SplitScene{.splits = 4}, kLong);
}

TEST(IndexInterleavings, WithoutAnEpochAReaderWouldMeetAFreedSegmentOrDirectory) {
  for (const int splits : {1, 4}) {
    ExpectComplaint("a part of the index was read after it was freed",
                    SplitScene{.splits = splits, .readers_enter = false}, kLong);
  }
}

TEST(IndexInterleavings, AKeyThatIsThereIsFoundAtEveryMomentOfAJoin) {
  ExpectNoComplaint(1'000, SplitScene{.splits = 1, .joins = 1}, kLong);
  ExpectNoComplaint(500, SplitScene{.splits = 3, .joins = 3}, kLong);
}

TEST(IndexInterleavings, WithoutAnEpochAReaderWouldMeetASegmentThatWasJoinedWithAnother) {
  ExpectComplaint("a part of the index was read after it was freed",
                  SplitScene{.splits = 1, .joins = 1, .readers_enter = false}, kLong);
}

/// Readers look for one key, which a writer puts and erases; each time that nothing is there he
/// begins the index anew.
struct ResetScene {
  static constexpr uint64_t kValues = 4;
  bool readers_enter = true;  ///< An epoch.

  Scene operator()(World* world) const {
    Scene scene;
    scene.bodies.push_back([world] {
      for (uint64_t value = 1; value <= kValues; ++value) {
        world->Put("key", value);
        if (!world->index.Split(HashOf("key"), 0)) world->Complain("it was not split");
        world->Delete("key", value);
        if (!world->index.Reset()) world->Complain("it did not begin anew");
        world->Collect();
      }
      world->Put("key", kValues + 1);
      world->writer_ended = true;
    });
    for (int reader = 0; reader < 2; ++reader) {
      Slot* const slot = world->domain.TakeSlot();
      scene.bodies.push_back([this, world, slot] {
        uint64_t newest = 0;
        while (!world->writer_ended) {
          const uint64_t value = readers_enter ? world->Get(slot, "key") : world->Read("key");
          if (value == kNothing) continue;
          if (value < newest) world->Complain("an older value came after a newer one");
          newest = value;
        }
        if (world->Get(slot, "key") != kValues + 1) world->Complain("the last put was not found");
      });
    }
    return scene;
  }
};

TEST(IndexInterleavings, AnEmptyIndexBeginsAnewUnderItsReaders) {
  ExpectNoComplaint(1'000, ResetScene{}, kLong);
}

TEST(IndexInterleavings, WithoutAnEpochAReaderWouldMeetWhatAFreshIndexReplaced) {
  ExpectComplaint("a part of the index was read after it was freed",
                  ResetScene{.readers_enter = false}, kLong);
}

// ---- Replacing ----

/// Frees by the epoch at which the first of a list was retired, not the last.
class HastyRetireQueue {
 public:
  explicit HastyRetireQueue(World* world) : world_(world) {}
  void Retire(Item* item) {
    if (items_.empty()) epoch_ = world_->domain.Note();
    items_.push_back(item);
    world_->domain.AdvanceAndScan();  // As another shard does it at any time.
  }
  void Collect() {
    if (items_.size() < 2 || world_->domain.AdvanceAndScan() <= epoch_) return;
    for (Item* item : std::exchange(items_, {})) world_->Free(item);
  }

 private:
  World* const world_;
  std::vector<Item*> items_;
  uint64_t epoch_ = 0;
};

/// Readers look for one key, of which a writer puts one value after the other.
struct ReplaceScene {
  enum class Mistake { kNone, kEmptiesFirst, kFreesAtOnce, kFreesByTheFirst };
  Mistake mistake = Mistake::kNone;
  static constexpr uint64_t kValues = 5;

  Scene operator()(World* world) const {
    world->Put("key", 1);
    Scene scene;
    scene.bodies.push_back([this, world] { Write(world); });
    for (int reader = 0; reader < 2; ++reader) {
      Slot* const slot = world->domain.TakeSlot();
      scene.bodies.push_back([world, slot] {
        uint64_t newest = 1;
        for (int gets = 0; gets < 8; ++gets) {
          const uint64_t value = world->Get(slot, "key");
          if (value == kNothing) world->Complain("a key was not found while it was replaced");
          if (value < newest) world->Complain("an older value came after a newer one");
          newest = value;
        }
      });
    }
    return scene;
  }

  void Write(World* world) const {
    HastyRetireQueue hasty(world);
    for (uint64_t value = 2; value <= kValues; ++value) {
      if (mistake == Mistake::kNone) {
        world->Put("key", value);
        world->Collect();
        continue;
      }
      const TestIndex::Found found = world->index.Find(HashOf("key"), "key");
      if (mistake == Mistake::kEmptiesFirst) {
        world->index.Remove(found, 0);
        world->Fill(world->Make("key", value));
        world->retired.Retire(found.entry());
        continue;
      }
      world->index.Replace(found, world->Make("key", value), false);
      if (mistake == Mistake::kFreesAtOnce) {
        world->Free(found.entry());
      } else {
        hasty.Retire(found.entry());
        hasty.Collect();
      }
    }
  }
};

TEST(IndexInterleavings, WhileAKeyIsReplacedItsOldOrItsNewValueIsFound) {
  ExpectNoComplaint(1'500, ReplaceScene{});
}

TEST(IndexInterleavings, EmptyingTheSlotBeforeItIsFilledAnewWouldHideTheKey) {
  ExpectComplaint("a key was not found while it was replaced",
                  ReplaceScene{.mistake = ReplaceScene::Mistake::kEmptiesFirst});
}

TEST(IndexInterleavings, FreeingTheOldEntryAtOnceWouldBeSeen) {
  ExpectComplaint("a reader met a freed entry",
                  ReplaceScene{.mistake = ReplaceScene::Mistake::kFreesAtOnce});
}

TEST(IndexInterleavings, FreeingAListByItsFirstEpochWouldBeSeen) {
  ExpectComplaint("a reader met a freed entry",
                  ReplaceScene{.mistake = ReplaceScene::Mistake::kFreesByTheFirst});
}

// ---- Putting and evicting ----

/// Two keys of the same bucket and tag: one's ghost is taken for the other's.
const std::pair<std::string, std::string>& Twins() {
  static const auto* twins = [] {
    constexpr uint64_t kBucketsAndTags = TestIndex::kBuckets << 14;
    std::unordered_map<uint64_t, std::string> by_bits;
    for (uint64_t i = 0;; ++i) {
      const std::string key = "twin " + std::to_string(i);
      const auto [known, is_new] = by_bits.try_emplace(HashOf(key) % kBucketsAndTags, key);
      if (!is_new) return new std::pair<std::string, std::string>(known->second, key);
    }
  }();
  return *twins;
}

/// Two writers put two keys and evict them, a third thread reads them. A value's hundreds say whose
/// it is.
struct EvictScene {
  enum class Mistake { kNone, kNoLock, kTouchesTheWord };
  Mistake mistake = Mistake::kNone;

  struct State {
    std::map<std::string, uint64_t> expected;  ///< By the operations, in the lock's order.
    uint64_t evictions = 0;
  };

  Scene operator()(World* world) const {
    auto state = std::make_shared<State>();
    const auto& [one, other] = Twins();
    Slot* const slot = world->domain.TakeSlot();
    Scene scene;
    scene.bodies = {
        [=, this] {
          Put(world, state.get(), one, 101);
          Evict(world, state.get(), one);
          Put(world, state.get(), other, 201);
          Put(world, state.get(), one, 102);
        },
        [=, this] {
          Put(world, state.get(), other, 202);
          Evict(world, state.get(), one);
          Evict(world, state.get(), other);
          Put(world, state.get(), one, 103);
        },
        [=, this] {
          for (int gets = 0; gets < 4; ++gets) {
            Read(world, slot, one, 1);
            Read(world, slot, other, 2);
          }
        },
    };
    scene.check_end = [=] {
      for (const std::string& key : {one, other}) {
        const auto known = state->expected.find(key);
        if (world->Read(key) != (known == state->expected.end() ? kNothing : known->second)) {
          world->Complain("the last operation on a key is not what is found");
        }
      }
    };
    return scene;
  }

  template <class Operation>
  void Locked(World* world, const Operation& operation) const {
    if (mistake == Mistake::kNoLock) return operation();
    const std::lock_guard guard(world->lock);
    operation();
  }
  void Put(World* world, State* state, const std::string& key, uint64_t value) const {
    Locked(world, [&] {
      world->Put(key, value);
      state->expected[key] = value;
      world->Collect();
    });
  }
  /// As the hand does it: what was read since is lowered, and stays.
  void Evict(World* world, State* state, const std::string& key) const {
    Locked(world, [&] {
      const TestIndex::Found found = world->index.Find(HashOf(key), key);
      if (!found) return;
      if (const uint8_t frequency = TestIndex::Frequency(found.slot); frequency != 0) {
        TestIndex::SetFrequency(found.slot, frequency - 1);
        return;
      }
      world->index.Remove(found, ++state->evictions);
      state->expected.erase(key);
      world->retired.Retire(found.entry());
      world->Collect();
    });
  }
  void Read(World* world, Slot* slot, const std::string& key, uint64_t owner) const {
    world->domain.Enter(slot);
    const TestIndex::Found found = world->index.Find(HashOf(key), key);
    if (found) {
      DeterministicScheduler::Point();
      if (found.entry()->value == kPoison) world->Complain("a reader met a freed entry");
      if (found.entry()->value / 100 != owner) world->Complain("a reader got another key's value");
      if (mistake == Mistake::kTouchesTheWord) {
        found.slot->store(found.word);
      } else {
        TestIndex::RaiseFrequency(found);
      }
    }
    world->domain.Leave(slot);
  }
};

TEST(IndexInterleavings, PutsAndEvictionsTakeEffectInTheOrderOfTheLock) {
  ExpectNoComplaint(1'500, EvictScene{});
}

TEST(IndexInterleavings, WithoutTheLockPutsAndEvictionsWouldBeLost) {
  ExpectComplaint("the last operation on a key is not what is found",
                  EvictScene{.mistake = EvictScene::Mistake::kNoLock});
}

TEST(IndexInterleavings, AReaderThatStoredTheWordWouldLinkAnEvictedEntryAnew) {
  ExpectComplaint("a linked entry was freed",
                  EvictScene{.mistake = EvictScene::Mistake::kTouchesTheWord});
}

// ---- Erasing and putting again ----

/// A writer erases a key, splits its segment perhaps, and puts it again.
struct ReinsertScene {
  bool splits = false;
  bool erases_where_it_was = false;  ///< By a slot that was found before the split.

  Scene operator()(World* world) const {
    const std::vector<std::string> keys = KeysOfBucket(4, TestIndex::kSlots + 2);
    // The last one is away.
    for (const std::string& key : keys) world->Put(key, 1);
    const std::string& key = keys[TestIndex::kSlots];
    auto phase = std::make_shared<int>(0);
    Scene scene;
    scene.bodies.push_back([this, world, key, phase] {
      if (splits || erases_where_it_was) world->Dawdle(Schedule::kSpinSteps);
      Delete(world, key);
      *phase = 1;
      if (splits) world->index.Split(HashOf(key), 0);
      world->Put(key, 2);
      *phase = 2;
      world->Collect();
      world->writer_ended = true;
    });
    for (int reader = 0; reader < 2; ++reader) {
      Slot* const slot = world->domain.TakeSlot();
      scene.bodies.push_back([world, key, phase, slot] {
        while (!world->writer_ended) {
          const int phase_before = *phase;
          const uint64_t value = world->Get(slot, key);
          if (phase_before >= 1 && value == 1) {
            world->Complain("an erased value was found");
          } else if (phase_before == 2 && value != 2) {
            world->Complain("a key was not found after it was put");
          }
        }
      });
    }
    return scene;
  }

  void Delete(World* world, const std::string& key) const {
    if (!erases_where_it_was) return world->Delete(key);
    const TestIndex::Found found = world->index.Find(HashOf(key), key);
    world->index.Split(HashOf(key), 0);
    world->index.Remove(found, 0);
  }
};

TEST(IndexInterleavings, AnErasedValueIsNotFoundAnyMoreAndThePutOneIs) {
  ExpectNoComplaint(1'500, ReinsertScene{});
}

TEST(IndexInterleavings, AnErasedValueIsNotFoundAnyMoreAlsoAfterASplit) {
  ExpectNoComplaint(1'000, ReinsertScene{.splits = true}, kLong);
}

TEST(IndexInterleavings, ErasingASlotThatWasFoundBeforeASplitWouldEraseNothing) {
  ExpectComplaint("an erased value was found", ReinsertScene{.erases_where_it_was = true}, kLong);
}

// ---- Overflow ----

/// A key lies in the buddy of its full home, while others come and go in both.
struct OverflowScene {
  enum class Mistake { kNone, kCountsAfterwards, kMovesHome };
  Mistake mistake = Mistake::kNone;

  Scene operator()(World* world) const {
    const std::vector<std::string> keys = KeysOfBucket(4, TestIndex::kSlots + 3);
    for (size_t i = 0; i < TestIndex::kSlots; ++i) world->Put(keys[i], 1);
    const std::string& away = keys[TestIndex::kSlots];
    auto is_put = std::make_shared<bool>(false);
    Scene scene;
    scene.bodies.push_back([=, this] {
      PutAway(world, away, is_put.get());
      world->Put(keys[TestIndex::kSlots + 1], 1);  // Away as well.
      world->Delete(keys[2]);
      if (mistake == Mistake::kMovesHome) MoveHome(world, away);
      world->Delete(keys[TestIndex::kSlots + 1], 1);
      world->Put(keys[TestIndex::kSlots + 2], 1);  // Takes the empty slot at home.
      world->Put(away, 2);
      world->Collect();
    });
    for (int reader = 0; reader < 2; ++reader) {
      Slot* const slot = world->domain.TakeSlot();
      scene.bodies.push_back([=] {
        uint64_t newest = kNothing;
        for (int gets = 0; gets < 12; ++gets) {
          const bool is_there = *is_put || newest != kNothing;
          const uint64_t value = world->Get(slot, away);
          if (is_there && value == kNothing) world->Complain("a key in the buddy was not found");
          if (value < newest) world->Complain("an older value came after a newer one");
          newest = value;
        }
      });
    }
    return scene;
  }

  void PutAway(World* world, const std::string& key, bool* is_put) const {
    if (mistake != Mistake::kCountsAfterwards) {
      world->Put(key, 1);
      *is_put = true;
      return;
    }
    TestIndex::Room room = world->index.FindRoom(HashOf(key));
    room.is_away = false;
    world->index.Fill(room, HashOf(key), world->Make(key, 1), false, 0);
    *is_put = true;
    room.slot->fetch_or(Word::kAway);
    world->index.BucketsOf(HashOf(key)).first->away.fetch_add(1);
  }
  static void MoveHome(World* world, const std::string& key) {
    const TestIndex::Found found = world->index.Find(HashOf(key), key);
    world->Fill(found.entry());
    world->index.Remove(found, 0);
  }
};

TEST(IndexInterleavings, AKeyThatOverflowedIsFoundWhileOthersComeAndGo) {
  ExpectNoComplaint(1'500, OverflowScene{});
}

TEST(IndexInterleavings, CountingAnOverflowAfterThePutWouldHideTheKey) {
  ExpectComplaint("a key in the buddy was not found",
                  OverflowScene{.mistake = OverflowScene::Mistake::kCountsAfterwards});
}

TEST(IndexInterleavings, MovingAnOverflowedKeyHomeWouldHideIt) {
  ExpectComplaint("a key in the buddy was not found",
                  OverflowScene{.mistake = OverflowScene::Mistake::kMovesHome});
}

}  // namespace
}  // namespace basalt::cache

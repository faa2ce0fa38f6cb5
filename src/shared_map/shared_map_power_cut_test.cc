#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>
#include <vector>

#include "base/coding.h"
#include "base/random.h"
#include "shared_map/change_log.h"
#include "shared_map/test_map.h"
#include "shared_map/test_workload.h"

// Power cuts and killed writers on a simulated disk.

namespace basalt::shared_map {
namespace {

TEST(SharedMapPowerCut, WhatIsSyncedSurvivesWhenItIsCutAtAnyCall) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    TestMachine machine;
    Workload workload(seed, Durability::kPower);
    auto map = machine.Create().value();
    for (int cut = 0; cut < 3; ++cut) {
      const uint64_t at_call = 1 + workload.random().Below(300);
      machine.fs().ResetCalls();
      const uint64_t cut_seed = workload.random().Next();
      machine.fs().SetObserver([&](uint64_t call, std::string_view, std::string_view) {
        if (call != at_call) return;
        machine.Restart(cut_seed);
        // The process is gone, too.
        machine.fs().SetFault(
            {.kind = io::Fault::Kind::kError, .at_call = 1, .error = EIO, .sticky = true});
      });
      int steps = 0;
      while (workload.Step(map.get()) && steps < 500) ++steps;
      machine.fs().SetObserver({});
      map.reset();
      machine.fs().ClearFault();
      {
        // A reader may come before any writer.
        auto attached = machine.Attach();
        ASSERT_TRUE(attached) << attached.error().ToString();
        const Model read = ContentsOf(**attached);
        EXPECT_TRUE(read == workload.model() || read == workload.before());
        auto opened = machine.Open();
        ASSERT_TRUE(opened) << opened.error().ToString();
        map = std::move(*opened);
        const Model contents = ContentsOf(*map);
        EXPECT_TRUE(contents == workload.model() || contents == workload.before());
        EXPECT_EQ(map->GetStats().value().entries, contents.size());
        // What is in doubt must not change any more.
        workload = Workload(seed + 1000 * static_cast<uint64_t>(cut + 1), Durability::kPower);
        for (const auto& [key, value] : contents) ASSERT_TRUE(map->Delete(key).ok());
        ASSERT_TRUE(map->Sync().ok());
        auto reader = (*attached)->NewReader().value();
        EXPECT_TRUE(Contents(&reader).empty()) << "a reader from before the writer follows it";
      }
    }
  }
}

TEST(SharedMapPowerCut, WhatIsNotSyncedLeavesAPrefix) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    TestMachine machine;
    Workload workload(seed, Durability::kProcess);
    auto map = machine.Create().value();
    std::vector<Model> states = {workload.model()};
    size_t durable = 0;
    const uint64_t steps = 1 + workload.random().Below(300);
    for (uint64_t step = 0; step < steps; ++step) {
      ASSERT_TRUE(workload.Step(map.get()));
      states.push_back(workload.model());
      if (workload.random().OneIn(50)) {
        ASSERT_TRUE(map->Sync().ok());
        durable = states.size() - 1;
      }
    }
    machine.Restart(seed);
    map.reset();
    auto opened = machine.Open();
    ASSERT_TRUE(opened) << opened.error().ToString();
    const Model contents = ContentsOf(**opened);
    const auto found =
        std::find(states.begin() + static_cast<ptrdiff_t>(durable), states.end(), contents);
    EXPECT_NE(found, states.end());
  }
}

/// Opens a map whose last change, of a value that wants a log of its own, was torn by a power cut.
/// Takes no more than 20 s.
Result<std::unique_ptr<SharedMap>> OpenWithTorn(TestMachine* machine, std::string_view value) {
  auto map = machine->Create().value();
  EXPECT_TRUE(map->Put("a", "1", {.durability = Durability::kPower}).ok());
  EXPECT_TRUE(map->Put("an array", value).ok());
  std::string log;
  const auto names = machine->fs().List(TestMachine::kPath).value();
  for (const std::string& name : names) {
    if (name.starts_with("log-")) log = io::JoinPath(TestMachine::kPath, name);
  }
  EXPECT_TRUE(machine->fs().FlipBit(log, 8 * (kLogHeaderBytes + kChangeHeaderBytes + 8)).ok());
  machine->Restart(1, io::CrashMode::kAll);
  map.reset();

  const auto begin = std::chrono::steady_clock::now();
  auto opened = machine->Open();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  return opened;
}

TEST(SharedMapPowerCut, ATornValueThatLooksLikeHeadersIsPassedSoon) {
  // Numbers with 16 bits behind the point, say: 32, 1, 32, 1. Two of them are the header of a
  // record of 2 MiB, and to hash that for each would take minutes.
  constexpr uint64_t kValueBytes = uint64_t{4} << 20;
  std::string value;
  while (value.size() < kValueBytes) {
    base::Append(&value, uint32_t{32 << 16});
    base::Append(&value, uint32_t{1 << 16});
  }
  TestMachine machine;
  auto opened = OpenWithTorn(&machine, value);
  ASSERT_TRUE(opened) << opened.error().ToString();
  ExpectHolds(**opened, {{"a", "1"}});
}

/// As many changes of `bytes` of value as there is room for, `step` bytes from one to the next,
/// none of which is one; they say that the log was synced up to some place behind a first change in
/// it.
std::string ValueLikeChanges(uint64_t value_bytes, uint64_t step, uint32_t bytes) {
  // The first log has 64 KiB, so that the next one begins there.
  constexpr Location kSynced = (uint64_t{64} << 10) / kLogUnit + kLogHeaderBytes / kLogUnit + 1;
  std::string change;
  AppendChange(&change, RecordKind::kPut, 0, 0, kSynced, "", std::string(bytes, '\0'));
  change.resize(std::min<uint64_t>(change.size(), step));
  std::string value;
  while (value.size() < value_bytes) value += change;
  return value;
}

TEST(SharedMapPowerCut, ATornValueLikeChangesInOneAnotherIsRefusedSoon) {
  constexpr uint64_t kValueBytes = uint64_t{16} << 20;
  TestMachine machine;
  const auto opened = OpenWithTorn(
      &machine, ValueLikeChanges(kValueBytes, kChangeHeaderBytes + 8, kValueBytes / 2));
  EXPECT_EQ(opened.status().code(), StatusCode::kCorruption);
  EXPECT_NE(opened.error().message().find("look like changes"), std::string::npos)
      << opened.status().ToString();
}

TEST(SharedMapPowerCut, ATornValueLikeALogIsPassed) {
  TestMachine machine;
  constexpr uint32_t kBytes = 1000;
  const auto opened = OpenWithTorn(
      &machine, ValueLikeChanges(uint64_t{4} << 20, kChangeHeaderBytes + 8 + kBytes, kBytes));
  ASSERT_TRUE(opened) << opened.error().ToString();
  ExpectHolds(**opened, {{"a", "1"}});
}

/// 400 keys in a base.
std::unique_ptr<SharedMap> MapOf400(TestMachine* machine, Model* model) {
  auto map = machine->Create({.compact_in_background = false}).value();
  for (uint64_t i = 0; i < 400; ++i) (*model)[KeyOf(i)] = "value";
  EXPECT_TRUE(PutAll(map.get(), *model).ok());
  EXPECT_TRUE(map->Compact().ok());
  EXPECT_TRUE(map->Sync().ok());
  return map;
}

/// After a power cut that took all that was not synced: the map counts what it holds, also after
/// more writes than a wrong count would survive.
void ExpectCountsAfterACut(TestMachine* machine, Model model) {
  machine->Restart(1, io::CrashMode::kNone);
  ExpectHolds(*machine->Attach().value(), model);
  auto map = machine->Open().value();
  ExpectHolds(*map, model);
  for (uint64_t i = 0; i < 390; ++i) {
    ASSERT_TRUE(map->Delete(KeyOf(i)).ok());
    model.erase(KeyOf(i));
  }
  const Status closed = map->Close();
  EXPECT_TRUE(closed.ok()) << closed.ToString();
  map = machine->Open().value();
  ExpectHolds(*map, model);
}

TEST(SharedMapPowerCut, EntriesDoNotCountWhatAGrownIndexHadAndTheLogLost) {
  TestMachine machine;
  Model model;
  auto map = MapOf400(&machine, &model);
  const uint64_t index_bytes = map->GetStats().value().index_bytes;
  for (uint64_t i = 0; i < 350; ++i) ASSERT_TRUE(map->Delete(KeyOf(i)).ok());
  ASSERT_GT(map->GetStats().value().index_bytes, index_bytes);
  ExpectCountsAfterACut(&machine, model);
}

TEST(SharedMapPowerCut, EntriesDoNotCountWhatWasWrittenDuringACompactionAndLost) {
  TestMachine machine;
  Model model;
  auto map = MapOf400(&machine, &model);
  ASSERT_TRUE(map->Put("more", "1").ok());
  uint64_t erased = 0;
  const Status compacted = map->Compact([&](const SharedMapProgress&) {
    for (; erased < 300; ++erased) EXPECT_TRUE(map->Delete(KeyOf(erased)).ok());
    return true;
  });
  ASSERT_TRUE(compacted.ok()) << compacted.ToString();
  ASSERT_EQ(erased, 300u);
  model["more"] = "1";
  ExpectCountsAfterACut(&machine, model);
}

TEST(SharedMapKill, ACompactionOfManyErasuresThatWasBrokenOffIsOpenedAndAttachedTo) {
  TestMachine machine;
  Model model;
  auto map = MapOf400(&machine, &model);
  for (uint64_t i = 0; i < 350; ++i) {
    ASSERT_TRUE(map->Delete(KeyOf(i)).ok());
    model.erase(KeyOf(i));
  }
  EXPECT_EQ(map->Compact([](const SharedMapProgress&) { return false; }).code(),
            StatusCode::kCancelled);
  map.reset();
  for (int time = 0; time < 2; ++time) {
    map = machine.Open({.compact_in_background = false}).value();
    ASSERT_TRUE(map->GetStats().value().compacting);
    ExpectHolds(*map, model);
    auto attached = machine.Attach();
    ASSERT_TRUE(attached) << attached.error().ToString();
    ExpectHolds(**attached, model);
    map.reset();
    machine.Restart(1);
    ExpectHolds(*machine.Attach().value(), model);
  }
}

bool IsOfNames(std::string_view operation) {
  return operation == "rename" || operation == "remove" || operation == "syncdir";
}

/// A map whose writer is killed and whose machine loses its power, at any call, also while a map is
/// created or recovered; and what it may hold then.
class Chain {
 public:
  Chain(uint64_t seed, Durability durability)
      : workload_(seed, durability),
        random_(seed),
        synced_by_write_(durability == Durability::kPower) {}

  /// From here to the next kill or cut.
  void Link() {
    Arm();
    if (auto map = OpenOrCreate()) {
      is_created_ = true;
      Expect(**map);
      StartFrom(ContentsOf(**map));
      Work(map->get());
    } else {
      ASSERT_TRUE(is_broken_) << map.error().ToString();
    }
    Disarm();
    if (random_.OneIn(2)) ExpectAttached();
  }
  void ExpectRecovered() {
    auto map = OpenOrCreate();
    ASSERT_TRUE(map) << map.error().ToString();
    Expect(**map);
  }

 private:
  /// At some call from now on the process dies, by itself or with the machine: at any, or at one
  /// that changes names.
  void Arm() {
    is_broken_ = false;
    calls_left_ = 1 + random_.Below(random_.OneIn(2) ? 10 : 200);
    const bool of_names = random_.OneIn(2);
    const bool cut = random_.OneIn(2);
    const uint64_t cut_seed = random_.Next();
    machine_.fs().SetObserver([=, this](uint64_t, std::string_view operation, auto) {
      if ((of_names && !IsOfNames(operation)) || calls_left_ == 0 || --calls_left_ != 0) return;
      is_broken_ = true;
      if (cut) {
        machine_.Restart(cut_seed);
        first_possible_ = durable_;
        is_restarted_ = true;
      } else {
        left_by_kill_ = machine_.fs().Clone();
      }
      machine_.fs().SetFault(
          {.kind = io::Fault::Kind::kError, .at_call = 1, .error = EIO, .sticky = true});
    });
  }
  void Disarm() {
    machine_.fs().SetObserver({});
    machine_.fs().ClearFault();
    if (left_by_kill_ != nullptr) machine_.ReplaceDisk(std::move(left_by_kill_));
  }
  Result<std::unique_ptr<SharedMap>> OpenOrCreate() {
    auto opened = machine_.Open();
    if (opened || is_created_ || opened.error().code() != StatusCode::kNotFound) return opened;
    return machine_.Create();
  }
  void StartFrom(const Model& model) {
    workload_.SetModel(model);
    states_ = {model};
    durable_ = 0;
    first_possible_ = 0;
    is_restarted_ = false;
  }
  void Work(SharedMap* map) {
    for (int step = 0; step < 300; ++step) {
      const Model before = workload_.model();
      const bool done = workload_.Step(map);
      if (done || workload_.model() != before) states_.push_back(workload_.model());
      if (!done) break;
      if (!is_restarted_) first_possible_ = states_.size() - 1;
      const bool synced = synced_by_write_ || (random_.OneIn(20) && map->Sync().ok());
      if (synced && !is_restarted_) durable_ = states_.size() - 1;
    }
  }
  void ExpectAttached() {
    const auto map = machine_.Attach();
    if (!map && !is_created_) {
      EXPECT_EQ(map.error().code(), StatusCode::kNotFound) << map.error().ToString();
      return;
    }
    ASSERT_TRUE(map) << map.error().ToString();
    Expect(**map);
    // Nothing that comes later shows another state.
    if (is_restarted_) StartFrom(ContentsOf(**map));
  }
  void Expect(const SharedMap& map) {
    const Model contents = ContentsOf(map);
    const auto first = states_.begin() + static_cast<ptrdiff_t>(first_possible_);
    EXPECT_NE(std::find(first, states_.end(), contents), states_.end());
    EXPECT_EQ(map.GetStats().value().entries, contents.size());
  }

  TestMachine machine_;
  std::unique_ptr<io::SimFileSystem> left_by_kill_;
  Workload workload_;
  base::Random random_;
  const bool synced_by_write_;
  bool is_created_ = false;
  bool is_broken_ = false;
  uint64_t calls_left_ = 0;    ///< Until it is.
  bool is_restarted_ = false;  ///< Since states_ began.
  /// What the map has held, one write after the other; the last may be in doubt.
  std::vector<Model> states_ = {{}};
  size_t durable_ = 0;         ///< The last one that was synced.
  size_t first_possible_ = 0;  ///< The first one that the map may hold now.
};

/// Machines as writers leave them that are killed at any call of names, in installations of all
/// kinds.
std::vector<std::unique_ptr<TestMachine>> LeftByKills(const Model& model) {
  std::vector<std::unique_ptr<TestMachine>> left;
  TestMachine machine;
  auto map = machine.Create({.durability = Durability::kPower}).value();
  EXPECT_TRUE(PutAll(map.get(), model).ok());
  machine.fs().SetObserver([&](uint64_t, std::string_view operation, auto) {
    if (!IsOfNames(operation)) return;
    left.push_back(std::make_unique<TestMachine>(machine.fs().Clone(), machine.boots()));
  });
  EXPECT_TRUE(map->Compact().ok());
  // Makes room for itself, a log whose header is written first, and is refused then.
  machine.fs().SetFault({.kind = io::Fault::Kind::kError,
                         .at_call = 2,
                         .error = EIO,
                         .matches = [](std::string_view operation, std::string_view path) {
                           return operation == "write" && path.starts_with("/map/log-");
                         }});
  EXPECT_FALSE(map->Put("large", std::string(100'000, 'l')).ok());
  EXPECT_TRUE(map->Close().ok());
  machine.Restart(1);
  EXPECT_TRUE(machine.Open());
  return left;
}

TEST(SharedMapPowerCut, ACutAtAnyCallOfTheRecoveryFromAnyKillLosesNothing) {
  const Model model = {{"a", "1"}, {"b", "2"}};
  base::Random random(1);
  for (const auto& left : LeftByKills(model)) {
    for (int draw = 0; draw < 12; ++draw) {
      const uint64_t seed = random.Next();
      bool is_cut = true;
      for (uint64_t at_call = 1; is_cut; ++at_call) {
        TestMachine machine(left->fs().Clone(), left->boots());
        uint64_t calls = 0;
        machine.fs().SetObserver([&](uint64_t, std::string_view operation, auto) {
          if (IsOfNames(operation) && ++calls == at_call) machine.Restart(seed);
        });
        static_cast<void>(machine.Open());
        machine.fs().SetObserver({});
        is_cut = calls >= at_call;
        const auto attached = machine.Attach();
        ASSERT_TRUE(attached) << attached.error().ToString();
        ExpectHolds(**attached, model);
        const auto opened = machine.Open();
        ASSERT_TRUE(opened) << opened.error().ToString();
        ExpectHolds(**opened, model);
      }
    }
  }
}

TEST(SharedMapPowerCut, KillsAndCutsInARowAlsoWithinRecoveryLoseNothing) {
  for (const Durability durability : {Durability::kPower, Durability::kProcess}) {
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      SCOPED_TRACE(seed);
      Chain chain(seed, durability);
      for (int link = 0; link < 8; ++link) {
        chain.Link();
        if (testing::Test::HasFailure()) return;
      }
      chain.ExpectRecovered();
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(SharedMapKill, AKilledWriterLosesNothingThatItAcknowledged) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    TestMachine machine;
    Workload workload(seed, Durability::kProcess);
    auto map = machine.Create().value();
    auto attached = machine.Attach().value();
    auto reader = attached->NewReader().value();
    for (int kill = 0; kill < 3; ++kill) {
      // From some call on nothing that the writer does reaches the disk, also what it would undo.
      machine.fs().SetFault({.kind = io::Fault::Kind::kError,
                             .at_call = 1 + workload.random().Below(200),
                             .error = EIO,
                             .sticky = true});
      int steps = 0;
      while (workload.Step(map.get()) && steps < 500) ++steps;
      map.reset();
      machine.fs().ClearFault();
      const Model read = Contents(&reader);
      EXPECT_TRUE(read == workload.model() || read == workload.before());
      auto opened = machine.Open();
      ASSERT_TRUE(opened) << opened.error().ToString();
      map = std::move(*opened);
      const Model contents = ContentsOf(*map);
      EXPECT_TRUE(contents == workload.model() || contents == workload.before());
      EXPECT_EQ(Contents(&reader), contents);
      for (const auto& [key, value] : contents) ASSERT_TRUE(map->Delete(key).ok());
      workload = Workload(seed + 1000 * static_cast<uint64_t>(kill + 1), Durability::kProcess);
    }
  }
}

}  // namespace
}  // namespace basalt::shared_map

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
        EXPECT_EQ(map->GetStats()->entries, contents.size());
        // What is in doubt must not change any more.
        workload = Workload(seed + 1000 * static_cast<uint64_t>(cut + 1), Durability::kPower);
        for (const auto& [key, value] : contents) ASSERT_TRUE(map->Erase(key).ok());
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
  EXPECT_NE(opened.status().message().find("too many changes"), std::string::npos)
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
  auto map = machine->Create({.optimize_in_background = false}).value();
  for (uint64_t i = 0; i < 400; ++i) (*model)[KeyOf(i)] = "value";
  EXPECT_TRUE(PutAll(map.get(), *model).ok());
  EXPECT_TRUE(map->Optimize().ok());
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
    ASSERT_TRUE(map->Erase(KeyOf(i)).ok());
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
  const uint64_t index_bytes = map->GetStats()->index_bytes;
  for (uint64_t i = 0; i < 350; ++i) ASSERT_TRUE(map->Erase(KeyOf(i)).ok());
  ASSERT_GT(map->GetStats()->index_bytes, index_bytes);
  ExpectCountsAfterACut(&machine, model);
}

TEST(SharedMapPowerCut, EntriesDoNotCountWhatWasWrittenDuringAFoldAndLost) {
  TestMachine machine;
  Model model;
  auto map = MapOf400(&machine, &model);
  ASSERT_TRUE(map->Put("more", "1").ok());
  uint64_t erased = 0;
  const Status folded = map->Optimize([&](const SharedMapProgress&) {
    for (; erased < 300; ++erased) EXPECT_TRUE(map->Erase(KeyOf(erased)).ok());
    return true;
  });
  ASSERT_TRUE(folded.ok()) << folded.ToString();
  ASSERT_EQ(erased, 300u);
  model["more"] = "1";
  ExpectCountsAfterACut(&machine, model);
}

TEST(SharedMapKill, AFoldOfManyErasuresThatWasBrokenOffIsOpenedAndAttachedTo) {
  TestMachine machine;
  Model model;
  auto map = MapOf400(&machine, &model);
  for (uint64_t i = 0; i < 350; ++i) {
    ASSERT_TRUE(map->Erase(KeyOf(i)).ok());
    model.erase(KeyOf(i));
  }
  EXPECT_EQ(map->Optimize([](const SharedMapProgress&) { return false; }).code(),
            StatusCode::kCancelled);
  map.reset();
  for (int time = 0; time < 2; ++time) {
    map = machine.Open({.optimize_in_background = false}).value();
    ASSERT_TRUE(map->GetStats()->optimizing);
    ExpectHolds(*map, model);
    auto attached = machine.Attach();
    ASSERT_TRUE(attached) << attached.error().ToString();
    ExpectHolds(**attached, model);
    map.reset();
    machine.Restart(1);
    ExpectHolds(*machine.Attach().value(), model);
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
      for (const auto& [key, value] : contents) ASSERT_TRUE(map->Erase(key).ok());
      workload = Workload(seed + 1000 * static_cast<uint64_t>(kill + 1), Durability::kProcess);
    }
  }
}

}  // namespace
}  // namespace basalt::shared_map

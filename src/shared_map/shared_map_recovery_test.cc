#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/coding.h"
#include "base/random.h"
#include "base/test_fork.h"
#include "shared_map/change_index.h"
#include "shared_map/change_log.h"
#include "shared_map/file_names.h"
#include "shared_map/test_map.h"
#include "shared_map/test_workload.h"
#include "shared_map/version.h"

// Failing calls, full disks and flipped bits on a simulated disk.

namespace basalt::shared_map {
namespace {

TEST(SharedMapFaults, AnyCallThatFailsOnceIsAnErrorAndLosesNothing) {
  for (const int error : {EIO, ENOSPC}) {
    uint64_t happened = 0;
    for (uint64_t at_call = 1;; ++at_call) {
      SCOPED_TRACE(at_call);
      TestMachine machine;
      Workload workload(5, Durability::kPower);
      auto map = machine.Create().value();
      auto reader = map->NewReader().value();
      machine.fs().SetFault({.kind = io::Fault::Kind::kError, .at_call = at_call, .error = error});
      for (int step = 0; step < 40; ++step) {
        if (workload.Step(map.get())) continue;
        // In doubt: asked until it is known. A writer that goes on has the one or the other.
        const Model contents = Contents(&reader);
        EXPECT_TRUE(contents == workload.model() || contents == workload.before());
        break;
      }
      const bool done = !machine.fs().FaultHappened();
      machine.fs().ClearFault();
      map.reset();
      auto opened = machine.Open();
      ASSERT_TRUE(opened) << opened.error().ToString();
      const Model contents = ContentsOf(**opened);
      EXPECT_TRUE(contents == workload.model() || contents == workload.before());
      if (done) break;
      ++happened;
    }
    EXPECT_GT(happened, 100u);
  }
}

Status BuildOne(TestMachine* machine) {
  auto builder =
      CreateMapBuilder(TestMachine::kPath, {}, Duplicates::kRefuse, machine->environment());
  if (!builder) return builder.error();
  if (Status added = (*builder)->Add("key", "value"); !added.ok()) return added;
  return (*builder)->Finish().status();
}

TEST(SharedMapFaults, CreateOpenAndBuildSurviveAnyFailedCall) {
  for (uint64_t at_call = 1;; ++at_call) {
    SCOPED_TRACE(at_call);
    TestMachine machine;
    machine.fs().SetFault({.kind = io::Fault::Kind::kError, .at_call = at_call, .error = EIO});
    const Model model = {{"a", "1"}, {"b", "2"}};
    bool acknowledged = false;
    {
      auto builder =
          CreateMapBuilder(TestMachine::kPath, {}, Duplicates::kRefuse, machine.environment());
      if (builder && (*builder)->Add("a", "1").ok() && (*builder)->Add("b", "2").ok()) {
        acknowledged = (*builder)->Finish().has_value();
      }
    }
    if (acknowledged) {
      static_cast<void>(machine.Open());
      static_cast<void>(machine.Attach());
    }
    const bool done = !machine.fs().FaultHappened();
    machine.fs().ClearFault();
    auto opened = machine.Open();
    if (acknowledged) {
      ASSERT_TRUE(opened) << opened.error().ToString();
    }
    if (opened) {
      EXPECT_EQ(ContentsOf(**opened), model);
    } else {
      auto again =
          CreateMapBuilder(TestMachine::kPath, {}, Duplicates::kRefuse, machine.environment());
      ASSERT_TRUE(again) << again.error().ToString();
      EXPECT_TRUE((*again)->Finish());
    }
    if (done) break;
  }
}

TEST(SharedMapFaults, ACloseThatFailedIsNoOtherOnesSuccess) {
  TestMachine machine;
  auto map = machine.Create().value();
  ASSERT_TRUE(map->Put("a", "1").ok());
  machine.fs().SetFault({.kind = io::Fault::Kind::kError, .at_call = 1, .error = EIO});
  EXPECT_EQ(map->Close().code(), StatusCode::kIoError);
  machine.fs().ClearFault();
  EXPECT_EQ(map->Close().code(), StatusCode::kIoError);
  ExpectHolds(*machine.Open().value(), {{"a", "1"}});
}

TEST(SharedMapFaults, AListThatCannotBeRemovedKeepsItsFiles) {
  TestMachine machine;
  auto map = machine.Create().value();
  ASSERT_TRUE(map->Put("a", "1", {.durability = Durability::kPower}).ok());
  const auto fails = [](std::string_view operation, std::string_view path) {
    return operation == "syncdir" ||
           (operation == "remove" && path.starts_with("/map/gen-") && !path.ends_with(".tmp"));
  };
  machine.fs().SetFault({.kind = io::Fault::Kind::kError,
                         .at_call = 1,
                         .error = EIO,
                         .sticky = true,
                         .matches = fails});
  // Wants a log of its own, and so a new list.
  EXPECT_EQ(map->Put("b", std::string(100'000, 'b')).code(), StatusCode::kIoError);
  machine.fs().ClearFault();
  machine.Restart(1, io::CrashMode::kAll);
  map.reset();
  auto opened = machine.Open();
  ASSERT_TRUE(opened) << opened.error().ToString();
  ExpectHolds(**opened, {{"a", "1"}});
}

// Also not the directory, unless it was there.
TEST(SharedMapFaults, ACreationThatFailsLeavesNothing) {
  for (const bool is_build : {false, true}) {
    for (const bool had_directory : {false, true}) {
      uint64_t failures = 0;
      for (uint64_t at_call = 1;; ++at_call) {
        SCOPED_TRACE(at_call);
        TestMachine machine;
        if (had_directory) {
          ASSERT_TRUE(machine.fs().CreateDirectory(TestMachine::kPath).ok());
        }
        machine.fs().SetFault(
            {.kind = io::Fault::Kind::kError, .at_call = at_call, .error = ENOSPC});
        Status made = is_build ? BuildOne(&machine) : machine.Create().status();
        if (!machine.fs().FaultHappened()) break;
        machine.fs().ClearFault();
        if (made.ok()) continue;
        ++failures;
        if (had_directory) {
          EXPECT_EQ(machine.fs().List(TestMachine::kPath).value(), std::vector<std::string>());
        } else {
          EXPECT_FALSE(machine.fs().Exists(TestMachine::kPath).value());
        }
        EXPECT_TRUE(machine.Create().ok()) << made.ToString();
      }
      EXPECT_GT(failures, 10u);
    }
  }
}

TEST(SharedMapFullDisk, AWriteThatFindsNoRoomFailsAndLaterOnesGoOn) {
  TestMachine machine;
  auto map = machine.Create().value();
  Model model;
  machine.fs().SetCapacity(machine.fs().BytesUsed() + (uint64_t{6} << 20));
  Status status;
  for (uint64_t i = 0; status.ok(); ++i) {
    const std::string value(2000, static_cast<char>('a' + i % 26));
    status = map->Put(KeyOf(i), value);
    if (status.ok()) model[KeyOf(i)] = value;
    ASSERT_LT(i, 20'000u);
  }
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status.ToString();
  EXPECT_EQ(map->Compact().code(), StatusCode::kResourceExhausted);
  ExpectHolds(*map, model);
  machine.fs().SetCapacity(0);
  ASSERT_TRUE(map->Put("later", "1").ok());
  model["later"] = "1";
  ASSERT_TRUE(map->Compact().ok());
  ExpectHolds(*map, model);
  map.reset();
  ExpectHolds(*machine.Open().value(), model);
}

// The next log would be twice as large as the one before.
TEST(SharedMapFullDisk, AWriteTakesASmallerLogBeforeItIsRefused) {
  TestMachine machine;
  auto map = machine.Create({.compact_in_background = false}).value();
  Model model;
  uint64_t puts = 0;
  const auto put = [&](uint64_t value_bytes) {
    const std::string key = KeyOf(puts % 100);
    const std::string value(value_bytes, static_cast<char>('a' + puts++ % 26));
    Status status = map->Put(key, value);
    if (status.ok()) model[key] = value;
    return status;
  };
  const auto log_capacity = [&] { return map->GetStats().value().log_capacity_bytes; };
  while (log_capacity() < uint64_t{2} << 20) ASSERT_TRUE(put(2000).ok());
  // Beside the next index and list, room for a log of some pages.
  machine.fs().SetCapacity(machine.fs().BytesUsed() + map->GetStats().value().index_bytes + 40'000);
  const uint64_t before = log_capacity();
  Status status;
  while (status.ok()) status = put(2000);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status.ToString();
  EXPECT_GT(log_capacity(), before);
  EXPECT_LT(log_capacity(), before + 40'000);

  machine.fs().SetCapacity(machine.fs().BytesUsed() + map->GetStats().value().index_bytes + 8'000);
  EXPECT_EQ(put(10'000).code(), StatusCode::kResourceExhausted);
  ASSERT_TRUE(map->Delete(KeyOf(0)).ok());
  model.erase(KeyOf(0));
  ASSERT_TRUE(put(100).ok());
  ExpectHolds(*map, model);
  machine.fs().SetCapacity(0);
  map.reset();
  map = machine.Open().value();
  ExpectHolds(*map, model);
  while (log_capacity() < uint64_t{8} << 20) ASSERT_TRUE(put(100'000).ok());
  ASSERT_TRUE(map->Compact().ok());
  ExpectHolds(*map, model);
}

// Far fewer changes than a compaction begins with fill the disk.
TEST(SharedMapFullDisk, ACompactionGivesBackTheRoomOfReplacedChanges) {
  TestMachine machine;
  auto map = machine.Create().value();
  machine.fs().SetCapacity(machine.fs().BytesUsed() + (uint64_t{1} << 20));
  Model model;
  for (int i = 0; i < 2000; ++i) {
    model["key"] = std::string(2000, static_cast<char>('a' + i % 26));
    const Status put = PutAll(map.get(), model);
    ASSERT_TRUE(put.ok()) << put.ToString();
  }
  EXPECT_GT(map->GetStats().value().optimizations, 1u);
  EXPECT_LT(map->GetStats().value().optimizations, 10u);
  ExpectHolds(*map, model);
}

TEST(SharedMapFullDisk, ACompactionThatFindsNoRoomIsTriedAgainNowAndThen) {
  TestMachine machine;
  auto map = machine.Create().value();
  const std::string value(30'000, 'v');  // Its base is larger than the reserve.
  machine.fs().SetCapacity(machine.fs().BytesUsed() + 1);
  while (map->Put("key", value).ok()) {
  }
  const uint64_t changes = map->GetStats().value().changes;
  for (int time = 0; time < 2; ++time) {
    ASSERT_EQ(machine.executor().RunAll(), 1u);
    EXPECT_NE(map->GetStats().value().compact_error, "");
    uint64_t refused = 0;
    for (; machine.executor().pending() == 0 && refused < 5000; ++refused) {
      ASSERT_EQ(map->Put("key", value).code(), StatusCode::kResourceExhausted);
    }
    EXPECT_GE(refused, 1000u);
    EXPECT_LE(refused, 1000u + changes);
  }
  machine.fs().SetCapacity(machine.fs().BytesUsed() + 150'000);
  machine.executor().RunAll();
  EXPECT_EQ(map->GetStats().value().compact_error, "");
  ASSERT_TRUE(map->Put("key", value).ok());
}

// A list with one file more could not be read. The changes alone are too few for a compaction.
TEST(SharedMapFullDisk, ALogOfTooManySmallFilesIsCompacted) {
  TestMachine machine;
  auto builder =
      CreateMapBuilder(TestMachine::kPath, {}, Duplicates::kRefuse, machine.environment()).value();
  Model model;
  for (uint64_t i = 0; i < 1000; ++i) {
    model[KeyOf(i)] = std::string(4000, 'v');
    ASSERT_TRUE(builder->Add(KeyOf(i), model[KeyOf(i)]).ok());
  }
  auto map = builder->Finish().value();
  Status status;
  for (uint64_t i = 0; status.ok(); ++i) {
    ASSERT_LT(i, 2000u);
    machine.fs().SetCapacity(machine.fs().BytesUsed() + map->GetStats().value().index_bytes +
                             12'000);
    status = map->Put(KeyOf(0), std::string(1000, static_cast<char>('a' + i % 26)));
    if (status.ok()) model[KeyOf(0)] = std::string(1000, static_cast<char>('a' + i % 26));
  }
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status.ToString();
  EXPECT_NE(status.message().find("Compact makes it short"), std::string::npos)
      << status.ToString();
  machine.fs().SetCapacity(0);
  int refused = 0;
  model["later"] = std::string(10'000, 'l');
  while (!map->Put("later", model["later"]).ok()) ASSERT_LT(refused++, 2000);
  EXPECT_GT(map->GetStats().value().optimizations, 0u);
  ExpectHolds(*map, model);
}

/// Puts until one is refused for lack of space, then leaves no free space on the disk.
Model FillDisk(TestMachine* machine, SharedMap* map) {
  Model model;
  Status status;
  for (uint64_t i = 0; status.ok(); ++i) {
    const std::string value(1000, static_cast<char>('a' + i % 26));
    status = map->Put(KeyOf(i), value);
    if (status.ok()) model[KeyOf(i)] = value;
  }
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status.ToString();
  machine->fs().SetCapacity(machine->fs().BytesUsed());
  return model;
}

TEST(SharedMapFullDisk, AFullMapTakesAllDeletesThenCompactThenPuts) {
  for (const uint64_t disk_kib : {300, 1000, 6000}) {
    for (const bool in_background : {false, true}) {
      SCOPED_TRACE(disk_kib);
      TestMachine machine;
      auto map = machine.Create({.compact_in_background = in_background}).value();
      machine.fs().SetCapacity(machine.fs().BytesUsed() + (disk_kib << 10));
      Model model = FillDisk(&machine, map.get());
      ASSERT_GT(model.size(), disk_kib / 4);
      while (!model.empty()) {
        const std::string key = model.begin()->first;
        const Status deleted = map->Delete(key);
        ASSERT_TRUE(deleted.ok()) << model.size() << " left: " << deleted.ToString();
        model.erase(key);
        if (model.size() % 500 == 0) ExpectHolds(*map, model);
      }
      const Status compacted = map->Compact();
      ASSERT_TRUE(compacted.ok()) << compacted.ToString();
      for (int i = 0; i < 20; ++i) {
        const Status put = map->Put("again", std::string(1000, 'v'));
        ASSERT_TRUE(put.ok()) << put.ToString();
      }
      model["again"] = std::string(1000, 'v');
      ExpectHolds(*map, model);
      map.reset();
      ExpectHolds(*machine.Open().value(), model);
    }
  }
}

TEST(SharedMapFullDisk, PutsDoNotTakeTheSpaceOfDeletes) {
  TestMachine machine;
  auto map = machine.Create({.compact_in_background = false}).value();
  machine.fs().SetCapacity(machine.fs().BytesUsed() + (uint64_t{1} << 20));
  Model model = FillDisk(&machine, map.get());
  const std::string reserve = io::JoinPath(TestMachine::kPath, kReserveName);
  EXPECT_GT(machine.fs().FileSize(reserve).value(), 128 * model.size());
  while (machine.fs().Exists(reserve).value()) {
    ASSERT_TRUE(map->Delete(model.begin()->first).ok());
    model.erase(model.begin());
  }
  // The log has free space, for deletes only.
  const Status put = map->Put("key", "value");
  EXPECT_EQ(put.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(put.message().find("kept for deletes"), std::string::npos) << put.ToString();
  // A reserve that could not be looked at is not whole.
  machine.fs().SetFault(
      {.at_call = 1,
       .error = EMFILE,
       .sticky = true,
       .matches = [&](std::string_view, std::string_view path) { return path == reserve; }});
  EXPECT_EQ(map->Put("key", "value").code(), StatusCode::kResourceExhausted);
  machine.fs().ClearFault();
  EXPECT_EQ(map->Put("key", "value").code(), StatusCode::kResourceExhausted);
  // A new writer knows of it, too.
  map.reset();
  machine.fs().SetCapacity(machine.fs().BytesUsed() + 60'000);
  map = machine.Open({.compact_in_background = false}).value();
  EXPECT_FALSE(machine.fs().Exists(reserve).value());
  EXPECT_EQ(map->Put("key", "value").code(), StatusCode::kResourceExhausted);
  machine.fs().SetCapacity(0);
  ASSERT_TRUE(map->Put("key", "value").ok());
  model["key"] = "value";
  ExpectHolds(*map, model);
  EXPECT_TRUE(machine.fs().Exists(reserve).value());
  ASSERT_TRUE(map->Close().ok());
  EXPECT_LE(machine.fs().FileSize(reserve).value(), uint64_t{1} << 20);
  ASSERT_TRUE(DestroyMap(TestMachine::kPath, machine.environment()).ok());
  EXPECT_FALSE(machine.fs().Exists(TestMachine::kPath).value());
}

TEST(SharedMapFullDisk, OpeningUsesTheReserve) {
  TestMachine machine;
  auto map = machine.Create().value();
  machine.fs().SetCapacity(machine.fs().BytesUsed() + (uint64_t{1} << 20));
  Model model = FillDisk(&machine, map.get());
  map.reset();
  machine.fs().SetCapacity(machine.fs().BytesUsed());
  auto opened = machine.Open();
  ASSERT_TRUE(opened) << opened.error().ToString();
  map = std::move(*opened);
  ExpectHolds(*map, model);
  EXPECT_EQ(map->Put("key", std::string(1000, 'v')).code(), StatusCode::kResourceExhausted);
  while (!model.empty()) {
    ASSERT_TRUE(map->Delete(model.begin()->first).ok()) << model.size() << " left";
    model.erase(model.begin());
  }
  ExpectHolds(*map, model);
}

// By then it may be the reserve of another process.
TEST(SharedMapFullDisk, ACompactionAfterCloseLeavesTheReserve) {
  TestMachine machine;
  auto map = machine.Create().value();
  for (uint64_t i = 0; i < 12'000; ++i) ASSERT_TRUE(map->Put(KeyOf(i), "").ok());
  ASSERT_TRUE(map->Compact().ok());
  ASSERT_TRUE(map->Close().ok());
  const std::string reserve = io::JoinPath(TestMachine::kPath, kReserveName);
  EXPECT_EQ(machine.fs().FileSize(reserve).value(), uint64_t{1} << 20);
  EXPECT_EQ(map->Compact().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(machine.fs().FileSize(reserve).value(), uint64_t{1} << 20);
}

// A fresh log as large as the one before would be larger than what the compaction gives back.
TEST(SharedMapFullDisk, ACompactionBeginsWithASmallLogBeforeItIsRefused) {
  TestMachine machine;
  auto map = machine.Create().value();
  const Model model{{"key", std::string(2000, 'v')}};
  while (map->GetStats().value().log_capacity_bytes < uint64_t{2} << 20) {
    ASSERT_TRUE(PutAll(map.get(), model).ok());
  }
  machine.fs().SetCapacity(machine.fs().BytesUsed() + 40'000);
  const Status compacted = map->Compact();
  ASSERT_TRUE(compacted.ok()) << compacted.ToString();
  EXPECT_LT(map->GetStats().value().log_capacity_bytes, 10'000u);
  ExpectHolds(*map, model);
  ASSERT_TRUE(map->Put("later", std::string(100'000, 'l')).ok());
}

TEST(SharedMapRestart, AReaderWithoutAWriterDoesNotBelieveTheIndex) {
  TestMachine machine;
  auto map = machine.Create().value();
  ASSERT_TRUE(map->Put("a", "old").ok());
  ASSERT_TRUE(map->Compact().ok());
  WriteOptions power;
  power.durability = Durability::kPower;
  ASSERT_TRUE(map->Put("a", "new", power).ok());
  // All that was synced is there; the index never was.
  machine.Restart(1, io::CrashMode::kNone);
  map.reset();
  auto attached = machine.Attach().value();
  ExpectHolds(*attached, {{"a", "new"}});
  map = machine.Open().value();
  ASSERT_TRUE(map->Put("a", "newest").ok());
  auto reader = attached->NewReader().value();
  EXPECT_EQ(Lookup(&reader, "a"), "newest");
}

void Overwrite(io::FileSystem* fs, std::string_view path, std::string_view bytes) {
  ASSERT_TRUE(fs->Open(path, io::OpenMode::kReadWrite).value()->WriteAt(0, bytes).ok());
}

// A copy that took the lists anew, but not CONTROL.
TEST(SharedMapCopy, AWriterTakesANewerVersionThanTheOneThatIsGone) {
  TestMachine machine;
  auto map = machine.Create().value();
  ASSERT_TRUE(map->Put("a", "old").ok());
  const std::string control = io::ReadWholeFile(&machine.fs(), "/map/CONTROL", 1 << 20).value();
  ASSERT_TRUE(map->Compact().ok());
  ASSERT_TRUE(map->Put("a", "new").ok());
  ASSERT_TRUE(map->Close().ok());
  Overwrite(&machine.fs(), "/map/CONTROL", control);
  EXPECT_EQ(machine.Attach().status().code(), StatusCode::kCorruption);
  map = machine.Open().value();
  ExpectHolds(*map, {{"a", "new"}});
  ExpectHolds(*machine.Attach().value(), {{"a", "new"}});
}

TEST(SharedMapCopy, AnOlderVersionThanTheOneThatIsGoneIsNotTaken) {
  TestMachine machine;
  io::FileSystem* const fs = &machine.fs();
  auto map = machine.Create().value();
  const auto path_of_newest = [&] {
    return io::JoinPath(TestMachine::kPath,
                        NameOf(FileKind::kVersion, NewestVersionNumber(fs, "/map").value()));
  };
  const std::string older = path_of_newest();
  const std::string list = io::ReadWholeFile(fs, older, 1 << 20).value();
  ASSERT_TRUE(map->Put("a", "1").ok());
  ASSERT_TRUE(map->Close().ok());
  ASSERT_TRUE(fs->RemoveFile(path_of_newest()).ok());
  ASSERT_TRUE(io::ReplaceFile(fs, older, list).ok());
  EXPECT_EQ(machine.Open().status().code(), StatusCode::kCorruption);
}

constexpr std::string_view kLastErased = "key:7";
constexpr std::string_view kValueOfLastErased = "value 7";

/// A small map with all kinds of files in use, and what it holds.
Model FillSmall(SharedMap* map) {
  Model model;
  for (uint64_t i = 0; i < 12; ++i) {
    model[KeyOf(i)] = "value " + std::to_string(i);
    EXPECT_TRUE(map->Put(KeyOf(i), model[KeyOf(i)]).ok());
  }
  EXPECT_TRUE(map->Compact().ok());
  for (uint64_t i = 3; i < 6; ++i) {
    model[KeyOf(i)] = "changed";
    EXPECT_TRUE(map->Put(KeyOf(i), "changed").ok());
  }
  model.erase(std::string(kLastErased));
  EXPECT_TRUE(map->Delete(kLastErased).ok());
  return model;
}

/// Every answer is an error or that of one of the models.
void ExpectErrorsOrRightAnswers(const Result<std::unique_ptr<SharedMap>>& map,
                                const std::vector<Model>& models) {
  if (!map) return;
  auto reader = (*map)->NewReader();
  if (!reader) return;
  Model contents;
  const Status scanned = reader->ParallelScan(1, [&](std::string_view key, std::string_view value) {
    contents.emplace(key, value);
    return Status();
  });
  bool right = false;
  for (const Model& model : models) {
    bool fits = !scanned.ok() || contents == model;
    for (uint64_t i = 0; i < 14; ++i) {
      const auto found = reader->Get(KeyOf(i));
      if (!found) continue;
      const auto at = model.find(KeyOf(i));
      fits = fits && found->has_value() == (at != model.end()) &&
             (at == model.end() || **found == std::string_view(at->second));
    }
    right = right || fits;
  }
  ASSERT_TRUE(right);
}

/// After a power cut a damaged last change cannot be told from one that was being written.
enum class Ending { kClosed, kKilled, kRestarted };

void DamageEverything(
    Ending ending, SharedMapLayout layout,
    const std::function<void(io::SimFileSystem*, const std::string& path, uint64_t size,
                             const std::function<void()>&)>& damage) {
  TestMachine machine;
  auto map = machine.Create({.durability = Durability::kPower, .layout = layout}).value();
  std::vector<Model> models = {FillSmall(map.get())};
  if (ending == Ending::kRestarted) {
    models.push_back(models.front());
    models.back()[std::string(kLastErased)] = kValueOfLastErased;
  }
  if (ending == Ending::kClosed) map.reset();
  auto disk = machine.fs().Clone();  // Without the lock: the writer was killed.
  map.reset();
  const uint64_t boots = machine.boots() + (ending == Ending::kRestarted ? 1 : 0);
  const std::vector<std::string> names = disk->List("/map").value();
  for (const std::string& name : names) {
    if (name == kLockName) continue;
    const std::string path = "/map/" + name;
    uint64_t calls = 0;
    damage(disk.get(), path, disk->FileSize(path).value(), [&] {
      SCOPED_TRACE(path);
      Environment environment = machine.environment();
      environment.fs = disk.get();
      environment.boot_id = boots;
      ExpectErrorsOrRightAnswers(AttachMap(TestMachine::kPath, environment), models);
      // A writer changes the disk.
      if (calls++ % 8 != 0) return;
      TestMachine other(disk->Clone(), boots);
      ExpectErrorsOrRightAnswers(other.Open(), models);
    });
  }
}

/// Beyond this a log is zeros that nobody has written yet; other files are shorter.
constexpr uint64_t kWrittenBytes = uint64_t{16} << 10;

TEST(SharedMapDamage, EveryFlippedByteIsAnErrorOrARightAnswer) {
  for (const Ending ending : {Ending::kClosed, Ending::kKilled, Ending::kRestarted}) {
    for (const SharedMapLayout layout : {SharedMapLayout::kFixed, SharedMapLayout::kVariable}) {
      if (ending != Ending::kClosed && layout == SharedMapLayout::kVariable) continue;
      SCOPED_TRACE(static_cast<int>(ending));
      DamageEverything(ending, layout,
                       [&](io::SimFileSystem* disk, const std::string& path, uint64_t size,
                           const std::function<void()>& expect) {
                         // Every byte of it, and some of the zeros behind.
                         base::Random random(size);
                         for (uint64_t at = 0; at < std::min<uint64_t>(size, kWrittenBytes); ++at) {
                           const uint64_t bit = 8 * at + random.Below(8);
                           ASSERT_TRUE(disk->FlipBit(path, bit).ok());
                           expect();
                           ASSERT_TRUE(disk->FlipBit(path, bit).ok());
                           if (testing::Test::HasFatalFailure()) return;
                         }
                         for (int i = 0; i < 300; ++i) {
                           const uint64_t bit = random.Below(8 * size);
                           ASSERT_TRUE(disk->FlipBit(path, bit).ok());
                           expect();
                           ASSERT_TRUE(disk->FlipBit(path, bit).ok());
                           if (testing::Test::HasFatalFailure()) return;
                         }
                       });
    }
  }
}

TEST(SharedMapDamage, EveryTruncationIsAnErrorOrARightAnswer) {
  for (const Ending ending : {Ending::kClosed, Ending::kRestarted}) {
    DamageEverything(ending, SharedMapLayout::kDerived,
                     [&](io::SimFileSystem* disk, const std::string& path, uint64_t size,
                         const std::function<void()>& expect) {
                       const std::string whole = io::ReadWholeFile(disk, path, size).value();
                       const auto file = disk->Open(path, io::OpenMode::kReadWrite).value();
                       for (uint64_t at = 0; at < size;
                            at += at < kWrittenBytes ? 1 : 1 + size / 97) {
                         ASSERT_TRUE(file->Truncate(at).ok());
                         ASSERT_TRUE(file->Sync().ok());
                         expect();
                         ASSERT_TRUE(file->WriteAt(0, whole).ok());
                         if (testing::Test::HasFatalFailure()) return;
                       }
                     });
  }
}

TEST(SharedMapDamage, ATruncatedFileOfTheMachineIsNoSignal) {
  std::string home = (std::filesystem::temp_directory_path() / "basalt_cut_XXXXXX").string();
  ASSERT_NE(mkdtemp(home.data()), nullptr);
  const std::string path = home + "/map";
  Model model;
  {
    auto map = SharedMap::Create(path).value();
    model = FillSmall(map.get());
  }
  io::FileSystem* const fs = io::FileSystem::Posix();
  const std::vector<std::string> names = fs->List(path).value();
  const int code = base::InChild([&] {
    for (const std::string& name : names) {
      if (name == kLockName) continue;
      const std::string file_path = io::JoinPath(path, name);
      const auto file = fs->Open(file_path, io::OpenMode::kReadWrite).value();
      const uint64_t size = file->Size().value();
      const std::string whole = io::ReadWholeFile(fs, file_path, size).value();
      for (uint64_t at = 0; at < size; at += at < kWrittenBytes ? 1 : 1 + size / 97) {
        if (!file->Truncate(at).ok()) return 2;
        ExpectErrorsOrRightAnswers(SharedMap::Attach(path), {model});
        if (testing::Test::HasFailure()) return 3;
        if (!file->WriteAt(0, whole).ok()) return 2;
      }
    }
    // Whole again, it is read: so each of the errors was over a file that was cut.
    ExpectHolds(*SharedMap::Attach(path).value(), model);
    return testing::Test::HasFailure() ? 4 : 0;
  });
  EXPECT_EQ(code, 0);
  std::filesystem::remove_all(home);
}

}  // namespace
}  // namespace basalt::shared_map

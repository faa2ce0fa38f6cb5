// Each allocation of a call fails in turn, alone or with those behind it. Calls answer
// ResourceExhausted, and throw nothing; what was acknowledged is there, also after a restart of the
// machine, what was refused is not; all later calls work, and leave no file that the map does not
// name.

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/test_memory_operators.h"
#include "base/test_update.h"
#include "shared_map/file_names.h"
#include "shared_map/test_map.h"
#include "shared_map/version.h"

namespace basalt::shared_map {
namespace {

using base::EachAllocation;
using base::MemoryThatFails;

/// A map with a base and changes, and what it has to hold.
class World {
 public:
  World()
      : machine_(std::make_unique<io::SimFileSystem>(io::SimFileSystem::Durability::kIgnored)) {}

  TestMachine& machine() { return machine_; }
  SharedMap* map() { return map_.get(); }
  Model& model() { return model_; }

  Status Open() {
    auto opened = machine_.Open();
    if (opened) map_ = std::move(*opened);
    return opened.status();
  }
  void Release() { map_.reset(); }
  Status Put(const std::string& key, const std::string& value, const WriteOptions& options = {}) {
    Status written = map_->Put(key, value, options);
    if (written.ok()) model_[key] = value;
    return written;
  }

  void Fill() {
    map_ = machine_.Create().value();
    for (uint64_t i = 0; i < 20; ++i) ASSERT_TRUE(Put(KeyOf(i), std::string(i, 'a')).ok());
    ASSERT_TRUE(map_->Compact().ok());
    for (uint64_t i = 10; i < 30; ++i) ASSERT_TRUE(Put(KeyOf(i), std::string(i, 'b')).ok());
    ASSERT_TRUE(map_->Delete(KeyOf(3)).ok());
    model_.erase(KeyOf(3));
  }

  void Verify() {
    // A list of files that could not even be removed has ended the writing.
    if (map_ != nullptr && !map_->Sync().ok()) map_.reset();
    if (map_ == nullptr) {
      ASSERT_EQ(Open().ToString(), "Ok");
    }
    ASSERT_NO_FATAL_FAILURE(ExpectHolds(*map_, model_));
    ASSERT_NO_FATAL_FAILURE(ExpectHoldsAfterRestart());
    ASSERT_EQ(Put("later", std::string(100, 'l'), {.durability = Durability::kPower}).ToString(),
              "Ok");
    ASSERT_NO_FATAL_FAILURE(ExpectHolds(*map_, model_));
    ASSERT_NO_FATAL_FAILURE(ExpectHoldsAfterRestart());
    machine_.executor().RunAll();
    ASSERT_EQ(map_->Compact().ToString(), "Ok");
    ASSERT_EQ(Put("last", std::string(100'000, 'l')).ToString(), "Ok");
    ASSERT_NO_FATAL_FAILURE(ExpectHolds(*map_, model_));
    ASSERT_EQ(map_->Close().ToString(), "Ok");
    map_.reset();
    ASSERT_EQ(Open().ToString(), "Ok");
    ASSERT_NO_FATAL_FAILURE(ExpectHolds(*map_, model_));
    const auto report = CheckMap(TestMachine::kPath, {}, machine_.environment()).value();
    ASSERT_TRUE(report.ok()) << report.problems.front();
    ExpectFilesOfList();
  }

 private:
  void ExpectHoldsAfterRestart() {
    TestMachine restarted(machine_.fs().Clone(), machine_.boots() + 1);
    const auto opened = restarted.Open();
    ASSERT_TRUE(opened) << opened.error().ToString();
    ExpectHolds(**opened, model_);
  }
  void ExpectFilesOfList() {
    io::FileSystem* const fs = &machine_.fs();
    const std::string directory(TestMachine::kPath);
    const uint64_t number = NewestVersionNumber(fs, directory).value();
    std::vector<std::string> named =
        ListFile::Open(fs, directory, number, std::nullopt).value().list.FileNames();
    named.emplace_back(kControlName);
    named.emplace_back(kLockName);
    named.emplace_back(kReserveName);
    std::sort(named.begin(), named.end());
    EXPECT_EQ(fs->List(directory).value(), named);
  }

  TestMachine machine_;
  std::unique_ptr<SharedMap> map_;
  Model model_;
};

struct Operation {
  const char* name;
  std::function<Status(World*)> run;
  std::function<void(World*)> prepare = [](World*) {};  ///< Before allocations fail.
  Model sets{};  ///< What it sets when it answers that it does; nothing otherwise.
};

/// Fails each allocation of `operation`, alone and with all behind it.
void Sweep(const Operation& operation) {
  for (const int64_t failing : {int64_t{1}, MemoryThatFails::kAll}) {
    EachAllocation each({.failing = failing});
    while (each.Next()) {
      SCOPED_TRACE(operation.name + (": " + each.ToString()));
      World world;
      ASSERT_NO_FATAL_FAILURE(world.Fill());
      operation.prepare(&world);
      const Status status = each.Call([&] { return operation.run(&world); });
      ASSERT_FALSE(testing::Test::HasFailure());
      if (status.ok()) {
        for (const auto& [key, value] : operation.sets) world.model()[key] = value;
      }
      ASSERT_NO_FATAL_FAILURE(world.Verify());
    }
  }
}

const std::string kLarge(70'000, 'x');  // Wants a log of its own.

Status PutNew(World* world) { return world->map()->Put("new", "value"); }
Status PutLarge(World* world) { return world->map()->Put("new", kLarge); }
void Nothing(World*) {}
void Release(World* world) { world->Release(); }
void Reopen(World* world) {
  world->Release();
  ASSERT_TRUE(world->Open().ok());
}

TEST(SharedMapMemory, WritesAreWholeOrNotThere) {
  const auto update = [](World* world) {
    return world->map()->Update(KeyOf(29),
                                base::ByValue([](auto) -> Result<std::optional<std::string>> {
                                  return std::string("updated");
                                }));
  };
  Sweep({"put", PutNew, Nothing, {{"new", "value"}}});
  Sweep({"first put after opening", PutNew, Reopen, {{"new", "value"}}});
  Sweep({"update", update, Nothing, {{KeyOf(29), "updated"}}});
  Sweep({"sync", [](World* world) { return world->map()->Sync(); }});
}

TEST(SharedMapMemory, LogsAndIndexesThatGrowLoseNothing) {
  Sweep({"log", PutLarge, Nothing, {{"new", kLarge}}});
  // More keys than an index has words for at first.
  Model keys;
  WriteBatch batch;
  for (uint64_t i = 1000; i < 1400; ++i) {
    batch.Put(KeyOf(i), "m");
    keys[KeyOf(i)] = "m";
  }
  Sweep({"index", [&](World* world) { return world->map()->Write(batch); }, Nothing, keys});
}

TEST(SharedMapMemory, CompactionsLoseNothing) {
  Sweep({"compact", [](World* world) { return world->map()->Compact(); }});
  // One that was broken off goes on in the background with the next write.
  const auto break_off = [](World* world) {
    const Status status = world->map()->Compact([](const auto&) { return false; });
    ASSERT_EQ(status.code(), StatusCode::kCancelled);
  };
  const auto schedule = [&](World* world) {
    break_off(world);
    ASSERT_TRUE(world->Put("before", "value").ok());
    ASSERT_EQ(world->machine().executor().pending(), 1u);
  };
  const auto run = [](World* world) {
    world->machine().executor().RunAll();
    return Status();
  };
  Sweep({"a write that schedules one", PutNew, break_off, {{"new", "value"}}});
  Sweep({"one in the background", run, schedule});
}

TEST(SharedMapMemory, CompactionsLeaveNoneBehind) {
  TestMachine machine(std::make_unique<io::SimFileSystem>(io::SimFileSystem::Durability::kIgnored));
  auto map = machine.Create().value();
  const auto after_compactions = [&] {
    for (int i = 0; i < 500; ++i) {
      EXPECT_TRUE(map->Put("key", std::to_string(i)).ok());
      EXPECT_TRUE(map->Compact().ok());
    }
    return mallinfo2().uordblks;
  };
  const size_t before = after_compactions();
  EXPECT_LT(after_compactions(), before + (8 << 10));
}

TEST(SharedMapMemory, OpeningAndClosing) {
  const auto close = [](World* world) {
    const Status closed = world->map()->Close();
    world->Release();
    return closed;
  };
  const auto attach = [](World* world) { return world->machine().Attach().status(); };
  const auto check = [](World* world) {
    return CheckMap(TestMachine::kPath, {}, world->machine().environment()).status();
  };
  Sweep({"close", close});
  Sweep({"open", [](World* world) { return world->Open(); }, Release});
  Sweep({"attach", attach});
  Sweep({"check", check});
  Sweep({"reader", [](World* world) { return world->map()->NewReader().status(); }});
  Sweep({"stats", [](World* world) { return world->map()->GetStats().status(); }});
}

TEST(SharedMapMemory, ABuildThatIsRefusedCanBeMadeAgain) {
  const auto build = [](TestMachine* machine) -> Status {
    const SharedMapOptions options = {.overwrite = true, .build_memory = 1 << 20};
    BASALT_ASSIGN_OR_RETURN(
        auto builder,
        CreateMapBuilder(TestMachine::kPath, options, Duplicates::kRefuse, machine->environment()));
    // More than its memory takes.
    for (uint64_t i = 0; i < 16; ++i) BASALT_RETURN_IF_ERROR(builder->Add(KeyOf(i), kLarge));
    return builder->Finish().status();
  };
  for (const int64_t failing : {int64_t{1}, MemoryThatFails::kAll}) {
    EachAllocation each({.failing = failing, .later_stride = 7});
    while (each.Next()) {
      SCOPED_TRACE(each.ToString());
      TestMachine machine(
          std::make_unique<io::SimFileSystem>(io::SimFileSystem::Durability::kIgnored));
      if (each.Call([&] { return build(&machine); }).ok()) continue;
      ASSERT_EQ(build(&machine).ToString(), "Ok");
    }
  }
}

}  // namespace
}  // namespace basalt::shared_map

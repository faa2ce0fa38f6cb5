#include "shared_map/build.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/seeded_hash.h"
#include "shared_map/record_spool.h"
#include "shared_map/test_map.h"

namespace basalt::shared_map {
namespace {

TEST(SharedMapBuild, AMapThatWasFinishedWhileAnotherWaitedForTheLockIsKept) {
  for (const bool by_builder : {false, true}) {
    SCOPED_TRACE(by_builder);
    TestMachine machine;
    const Environment environment = machine.environment();
    auto first = CreateMapBuilder(TestMachine::kPath, {}, Duplicates::kRefuse, environment).value();
    ASSERT_TRUE(first->Add("key", "precious").ok());
    // The second one has found no map there, and is about to take the lock.
    machine.fs().SetObserver([&](uint64_t, std::string_view operation, std::string_view) {
      if (operation != "lock" || first == nullptr) return;
      const auto finishing = std::move(first);
      EXPECT_TRUE(finishing->Finish().value()->Close().ok());
    });
    const Status second =
        by_builder
            ? CreateMapBuilder(TestMachine::kPath, {}, Duplicates::kRefuse, environment).status()
            : machine.Create().status();
    machine.fs().SetObserver({});
    EXPECT_EQ(second.code(), StatusCode::kAlreadyExists) << second.ToString();
    ExpectHolds(*machine.Open().value(), {{"key", "precious"}});
  }
}

std::vector<std::string> NamesIn(io::FileSystem* fs, std::string_view path) {
  auto names = fs->List(path);
  return names ? std::move(*names) : std::vector<std::string>();
}

TEST(SharedMapLock, IsWaitedForAsLongAsAnyTimeoutSays) {
  TestMachine machine;
  auto map = machine.Create().value();
  std::thread holder([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    map.reset();
  });
  const auto opened = machine.Open({.lock_timeout = std::chrono::milliseconds::max()});
  holder.join();
  ASSERT_TRUE(opened) << opened.error().ToString();
}

TEST(SharedMapBuild, OneThatIsRefusedLeavesNoFilesOfEarlierShards) {
  TestMachine machine(std::make_unique<io::SimFileSystem>(io::SimFileSystem::Durability::kIgnored));
  ASSERT_TRUE(machine.Create().value()->Close().ok());
  const auto before = NamesIn(&machine.fs(), TestMachine::kPath);
  auto build = CreateMapBuilder(TestMachine::kPath, {.overwrite = true}, Duplicates::kRefuse,
                                machine.environment())
                   .value();
  // Enough for two shards, with a key that is there twice in the second.
  const std::string value(RecordSpool::kShardBytesMax / 64, 'v');
  for (int i = 0; i < 65; ++i) ASSERT_TRUE(build->Add("key" + std::to_string(i), value).ok());
  std::string twice = "twice";
  const base::SeededHash hash_of(TestMachine::kMapId);
  while (hash_of(twice) >> 63 == 0) twice += "!";
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(build->Add(twice, "").ok());
  EXPECT_EQ(build->Finish().status().code(), StatusCode::kInvalidArgument);
  build.reset();
  EXPECT_EQ(NamesIn(&machine.fs(), TestMachine::kPath), before);
}

TEST(SharedMapBuild, OneThatIsGivenUpLeavesThePlaceAsItWas) {
  TestMachine machine;
  const auto give_up = [&] {
    auto build = CreateMapBuilder(TestMachine::kPath, {.overwrite = true}, Duplicates::kRefuse,
                                  machine.environment())
                     .value();
    ASSERT_TRUE(build->Add("key", "value").ok());
  };
  give_up();
  EXPECT_FALSE(machine.fs().Exists(TestMachine::kPath).value());
  ASSERT_TRUE(machine.fs().CreateDirectory(TestMachine::kPath).ok());
  give_up();
  EXPECT_TRUE(machine.fs().IsDirectory(TestMachine::kPath).value());
  EXPECT_EQ(NamesIn(&machine.fs(), TestMachine::kPath), std::vector<std::string>());
  ASSERT_TRUE(machine.Create().value()->Close().ok());
  const auto before = NamesIn(&machine.fs(), TestMachine::kPath);
  give_up();
  EXPECT_EQ(NamesIn(&machine.fs(), TestMachine::kPath), before);
}

TEST(SharedMapBuild, OneThatFailsAtAnyCallLeavesNoRecords) {
  uint64_t failed = 0;
  for (uint64_t at_call = 1;; ++at_call) {
    SCOPED_TRACE(at_call);
    TestMachine machine;
    auto build =
        CreateMapBuilder(TestMachine::kPath, {}, Duplicates::kRefuse, machine.environment())
            .value();
    ASSERT_TRUE(build->Add("key", "value").ok());
    machine.fs().SetFault({.kind = io::Fault::Kind::kError, .at_call = at_call, .error = EIO});
    static_cast<void>(build->Finish());
    build.reset();
    if (!machine.fs().FaultHappened()) break;
    machine.fs().ClearFault();
    const auto names = NamesIn(&machine.fs(), TestMachine::kPath);
    const auto any = [&](std::string_view prefix) {
      return std::any_of(names.begin(), names.end(),
                         [&](const std::string& name) { return name.starts_with(prefix); });
    };
    if (any("gen-")) continue;
    ++failed;
    EXPECT_FALSE(any("base-"));
  }
  EXPECT_GT(failed, 20u);
}

}  // namespace
}  // namespace basalt::shared_map

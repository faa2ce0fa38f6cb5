#include "basalt/shared_map.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/random.h"
#include "base/seeded_hash.h"
#include "base/test_fork.h"
#include "base/test_update.h"
#include "shared_map/change_index.h"
#include "shared_map/test_map.h"

namespace basalt::shared_map {
namespace {

TEST(SharedMap, HoldsWhatWasPut) {
  TestMachine machine;
  auto map = machine.Create().value();
  Model model = {{"a", "1"}, {"", "empty key"}, {"b", ""}, {std::string(65'535, 'k'), "long"}};
  model["large"] = std::string(3 << 20, 'v');
  ASSERT_TRUE(PutAll(map.get(), model).ok());
  ExpectHolds(*map, model);
  ASSERT_TRUE(map->Compact().ok());
  ExpectHolds(*map, model);
  ASSERT_TRUE(map->Delete("a").ok());
  ASSERT_TRUE(map->Delete("never there").ok());
  ASSERT_TRUE(map->Put("b", "two").ok());
  model.erase("a");
  model["b"] = "two";
  ExpectHolds(*map, model);
  EXPECT_EQ(map->GetStats().value().changes, 2);
  map.reset();
  map = machine.Open().value();
  ExpectHolds(*map, model);
  ASSERT_TRUE(map->Compact().ok());
  ExpectHolds(*map, model);
  EXPECT_EQ(map->GetStats().value().changes, 0);
}

TEST(SharedMap, AgreesWithAModelThroughCompactionsAndReopenings) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    TestMachine machine;
    base::Random random(seed);
    SharedMapOptions options;
    options.layout = static_cast<SharedMapLayout>(random.Below(3));
    auto map = machine.Create(options).value();
    Model model;
    for (int step = 0; step < 3000; ++step) {
      const std::string key = KeyOf(random.Below(400));
      const std::string value(random.Below(100), static_cast<char>('a' + random.Below(26)));
      switch (random.Below(40)) {
        case 0:
          ASSERT_TRUE(map->Compact().ok());
          break;
        case 1:
          map.reset();
          map = machine.Open(options).value();
          break;
        case 2: {
          WriteBatch batch;
          for (int i = 0; i < 20; ++i) {
            const std::string other = KeyOf(random.Below(400));
            if (random.OneIn(3)) {
              batch.Delete(other);
              model.erase(other);
            } else {
              batch.Put(other, value);
              model[other] = value;
            }
          }
          ASSERT_TRUE(map->Write(batch).ok());
          break;
        }
        case 3:
        case 4:
        case 5:
        case 6:
          ASSERT_TRUE(map->Delete(key).ok());
          model.erase(key);
          break;
        default:
          ASSERT_TRUE(map->Put(key, value).ok());
          model[key] = value;
      }
      if (step % 500 == 0) ExpectHolds(*map, model);
    }
    ExpectHolds(*map, model);
    ExpectHolds(*machine.Attach().value(), model);
  }
}

TEST(SharedMap, LogAndIndexGrowWithoutLosingAnything) {
  TestMachine machine;
  auto map = machine.Create({.compact_in_background = false}).value();
  auto reader = map->NewReader().value();
  Model model;
  for (int i = 0; i < 9000; ++i) {
    model[KeyOf(static_cast<uint64_t>(i))] = std::string(600, static_cast<char>('a' + i % 26));
    ASSERT_TRUE(
        map->Put(KeyOf(static_cast<uint64_t>(i)), model[KeyOf(static_cast<uint64_t>(i))]).ok());
    if (i % 1000 == 0) {
      EXPECT_TRUE(Lookup(&reader, KeyOf(static_cast<uint64_t>(i))));
    }
  }
  EXPECT_GT(map->GetStats().value().log_capacity_bytes, 4u << 20);
  ExpectHolds(*map, model);
  map.reset();
  ExpectHolds(*machine.Open().value(), model);
}

TEST(SharedMap, AnIndexIsAsLargeAsItsKeysWantHoweverOftenTheyChanged) {
  TestMachine machine;
  auto map = machine.Create({.compact_in_background = false}).value();
  Model model;
  for (uint64_t i = 0; i < 20'000; ++i) {
    model[KeyOf(i % 100)] = std::to_string(i);
    ASSERT_TRUE(map->Put(KeyOf(i % 100), std::to_string(i)).ok());
  }
  const uint64_t index_bytes = map->GetStats().value().index_bytes;
  map.reset();
  map = machine.Open({.compact_in_background = false}).value();
  EXPECT_EQ(map->GetStats().value().index_bytes, index_bytes);
  ExpectHolds(*map, model);
  map.reset();
  machine.Restart(1, io::CrashMode::kAll);
  const auto attached = machine.Attach().value();
  EXPECT_EQ(attached->GetStats().value().index_bytes, index_bytes);
  EXPECT_EQ(attached->GetStats().value().changed_keys, 100u);
  EXPECT_EQ(attached->GetStats().value().changes, 20'000u);
  ExpectHolds(*attached, model);
}

TEST(SharedMap, CompactsInTheBackgroundWhenChangesPileUp) {
  TestMachine machine;
  auto map = machine.Create().value();
  Model model;
  while (machine.executor().pending() == 0) {
    const std::string key = KeyOf(model.size());
    model[key] = "value";
    ASSERT_TRUE(map->Put(key, "value").ok());
    ASSERT_LT(model.size(), 200'000u);
  }
  ASSERT_TRUE(map->Put("during", "1").ok());
  machine.executor().RunAll();
  EXPECT_EQ(map->GetStats().value().optimizations, 1);
  EXPECT_EQ(map->GetStats().value().compact_error, "");
  model["during"] = "1";
  auto reader = map->NewReader().value();
  EXPECT_EQ(Contents(&reader, 2), model);
}

TEST(SharedMap, AWriteBesideACompactionLeavesNoCompactionBehindThatIsNotDue) {
  TestMachine machine;
  auto map = machine.Create().value();
  ASSERT_TRUE(map->Put("before", "value").ok());
  const Status compacted = map->Compact([&](const SharedMapProgress&) {
    EXPECT_TRUE(map->Put("during", "value").ok());
    return true;
  });
  ASSERT_TRUE(compacted.ok()) << compacted.ToString();
  EXPECT_EQ(machine.executor().pending(), 0u);
  EXPECT_EQ(map->GetStats().value().changed_keys, 1u);
}

TEST(SharedMap, ACompactionInTheBackgroundHasNothingToDoWhereAnotherOneCameFirst) {
  TestMachine machine;
  auto map = machine.Create().value();
  for (uint64_t i = 0; machine.executor().pending() == 0; ++i) {
    ASSERT_TRUE(map->Put(KeyOf(i), "value").ok());
  }
  ASSERT_TRUE(map->Compact().ok());
  ASSERT_TRUE(map->Put("later", "value").ok());
  machine.executor().RunAll();
  EXPECT_EQ(map->GetStats().value().optimizations, 1u);
  EXPECT_EQ(map->GetStats().value().changed_keys, 1u);
}

TEST(SharedMap, ACompactionThatWasBrokenOffGoesOnInTheBackground) {
  TestMachine machine;
  auto map = machine.Create().value();
  ASSERT_TRUE(map->Put("before", "value").ok());
  ASSERT_EQ(map->Compact([](const SharedMapProgress&) { return false; }).code(),
            StatusCode::kCancelled);
  ASSERT_TRUE(map->GetStats().value().compacting);
  ASSERT_TRUE(map->Put("later", "value").ok());
  machine.executor().RunAll();
  EXPECT_FALSE(map->GetStats().value().compacting);
  ExpectHolds(*map, {{"before", "value"}, {"later", "value"}});
}

TEST(SharedMap, WritesWaitForCompactionsThatDoNotKeepUp) {
  TestMachine machine;
  auto map = machine.Create().value();
  Model model;
  uint64_t log_bytes_max = 0;
  while (map->GetStats().value().optimizations < 3) {
    const std::string key = KeyOf(model.size());
    model[key] = std::string(1 << 20, 'v');
    ASSERT_TRUE(map->Put(key, model[key]).ok());
    log_bytes_max = std::max(log_bytes_max, map->GetStats().value().log_bytes);
    ASSERT_LT(model.size(), 300u) << "the log grows without bound";
  }
  // The simulated machine compacts nothing unless somebody waits for it.
  EXPECT_EQ(map->GetStats().value().compact_waits, 3);
  EXPECT_GT(log_bytes_max, 16u << 20) << "it waits before a compaction is due";
  EXPECT_EQ(map->GetStats().value().compact_error, "");
  auto reader = map->NewReader().value();
  EXPECT_EQ(Contents(&reader), model);
}

/// Keeps jobs until they are taken, and lends itself to nobody.
class HeldJobs final : public base::Executor {
 public:
  void Schedule(std::function<void()> job) override {
    const std::lock_guard guard(mutex_);
    jobs_.push_back(std::move(job));
  }
  /// False: there is none.
  bool Run() {
    std::function<void()> job;
    {
      const std::lock_guard guard(mutex_);
      if (jobs_.empty()) return false;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job();
    return true;
  }

 private:
  std::mutex mutex_;
  std::deque<std::function<void()>> jobs_;
};

TEST(SharedMap, AWriteThatWaitsForACompactionGoesOnWithIt) {
  HeldJobs jobs;
  TestMachine machine;
  Environment environment = machine.environment();
  environment.executor = &jobs;
  auto map = CreateMap(TestMachine::kPath, {}, environment).value();
  constexpr uint64_t kPuts = 60;
  std::thread writer([&] {
    const std::string value(1 << 20, 'v');
    for (uint64_t i = 0; i < kPuts; ++i) ASSERT_TRUE(map->Put(KeyOf(i), value).ok());
  });
  while (map->GetStats().value().compact_waits == 0) std::this_thread::yield();
  EXPECT_LT(map->GetStats().value().entries, kPuts);
  while (map->GetStats().value().entries < kPuts) jobs.Run();
  writer.join();
  EXPECT_EQ(map->GetStats().value().entries, kPuts);
  ASSERT_TRUE(map->Close().ok());
  while (jobs.Run()) {
  }
}

TEST(SharedMap, AViewKeepsItsReaderOnItsVersion) {
  TestMachine machine;
  auto map = machine.Create().value();
  ASSERT_TRUE(map->Put("a", "old").ok());
  ASSERT_TRUE(map->Compact().ok());
  auto reader = map->NewReader().value();
  auto other = map->NewReader().value();
  auto held = reader.Get("a").value();
  const uint64_t before = reader.version();
  ASSERT_TRUE(map->Put("a", "new").ok());
  ASSERT_TRUE(map->Compact().ok());
  EXPECT_EQ(held->view(), "old");
  EXPECT_EQ(Lookup(&reader, "a"), "new") << "written to the log of its version";
  EXPECT_EQ(reader.version(), before);
  ASSERT_TRUE(map->Put("a", "newest").ok());
  EXPECT_EQ(Lookup(&reader, "a"), "new");
  EXPECT_EQ(Lookup(&other, "a"), "newest");
  EXPECT_GT(map->GetStats().value().versions_held, 0u);
  held.reset();
  EXPECT_EQ(Lookup(&reader, "a"), "newest");
  EXPECT_EQ(map->GetStats().value().versions_held, 0u);
}

TEST(SharedMap, ViewsOutliveReaderAndMap) {
  TestMachine machine;
  SharedMap::MaybeView view;
  {
    auto map = machine.Create().value();
    ASSERT_TRUE(map->Put("a", std::string(1000, 'x')).ok());
    auto reader = map->NewReader().value();
    view = reader.Get("a").value();
  }
  EXPECT_EQ(view->view(), std::string(1000, 'x'));
}

TEST(SharedMap, SnapshotsStayAndSeeNoPartsOfBatches) {
  TestMachine machine;
  auto map = machine.Create().value();
  Model model = {{"a", "1"}, {"b", "2"}, {"c", "3"}};
  ASSERT_TRUE(PutAll(map.get(), model).ok());
  ASSERT_TRUE(map->Compact().ok());
  ASSERT_TRUE(map->Put("b", "later").ok());
  model["b"] = "later";
  auto reader = map->NewReader().value();
  auto snapshot = reader.GetSnapshot().value();
  ASSERT_TRUE(map->Put("a", "changed").ok());
  ASSERT_TRUE(map->Put("b", "changed").ok());
  ASSERT_TRUE(map->Delete("c").ok());
  ASSERT_TRUE(map->Put("d", "new").ok());
  ExpectReads(&snapshot, model, {"d"});
  ASSERT_TRUE(map->Compact().ok());
  ASSERT_TRUE(map->Put("e", "newer").ok());
  ExpectReads(&snapshot, model, {"d", "e"});
  EXPECT_EQ(Lookup(&reader, "d"), "new");
  auto again = snapshot.GetSnapshot().value();
  ExpectReads(&again, model, {"d", "e"});
}

// Each layout has its own way through a batch, and changes have another.
TEST(SharedMap, MultiGetAnswersBatchesOfEverySizeInEachLayout) {
  constexpr size_t kSizeMax = 130;
  for (const SharedMapLayout layout : {SharedMapLayout::kFixed, SharedMapLayout::kVariable}) {
    SCOPED_TRACE(static_cast<int>(layout));
    TestMachine machine;
    auto map = machine.Create({.layout = layout}).value();
    Model model;
    std::vector<std::string> names;
    for (size_t i = 0; i < kSizeMax; ++i) {
      names.push_back("key:" + std::to_string(i));
      if (i % 3 != 0) model[names.back()] = std::string(3 * i, 'v') + std::to_string(i);
    }
    ASSERT_TRUE(PutAll(map.get(), model).ok());
    ASSERT_TRUE(map->Compact().ok());
    auto reader = map->NewReader().value();
    const auto expect_batches = [&] {
      for (size_t size = 0; size <= kSizeMax; ++size) {
        SCOPED_TRACE(size);
        ExpectMultiGet(&reader, model, std::span(names).first(size));
      }
    };
    expect_batches();
    for (size_t i = 0; i < kSizeMax; i += 5) {
      ASSERT_TRUE(map->Put(names[i], "changed").ok());
      model[names[i]] = "changed";
    }
    expect_batches();
  }
}

TEST(SharedMap, KeysThatTheIndexOfChangesCannotTellApart) {
  const std::string key = "key:1436250";
  const std::string other = "key:1999015";
  constexpr uint64_t kIndexed = ~uint64_t{0} << 32 | (ChangeIndex::kCapacityMin - 1);
  const base::SeededHash hash_of(TestMachine::kMapId);
  ASSERT_EQ(hash_of(key) & kIndexed, hash_of(other) & kIndexed);

  TestMachine machine;
  auto map = machine.Create().value();
  Model model = {{key, "change"}};
  ASSERT_TRUE(map->Put(key, "change").ok());
  auto reader = map->NewReader().value();
  ExpectReads(&reader, model, {other});
  ASSERT_TRUE(map->Put(other, "another").ok());
  model[other] = "another";
  ExpectHolds(*map, model);
  ASSERT_TRUE(map->Compact().ok());
  ASSERT_TRUE(map->Put(key, "later").ok());
  model[key] = "later";
  ExpectHolds(*map, model);
  ASSERT_TRUE(map->Delete(key).ok());
  model.erase(key);
  ExpectHolds(*map, model);
}

TEST(SharedMap, UpdateSeesThePresentValueAndMayRemoveIt) {
  TestMachine machine;
  auto map = machine.Create().value();
  const auto increment =
      [](std::optional<std::string_view> present) -> Result<std::optional<std::string>> {
    return std::optional<std::string>(
        std::to_string(present ? std::stoi(std::string(*present)) + 1 : 1));
  };
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(map->Update("n", base::ByValue(increment)).ok());
  auto reader = map->NewReader().value();
  EXPECT_EQ(Lookup(&reader, "n"), "3");
  const auto refuse = [](std::optional<std::string_view>) -> Result<std::optional<std::string>> {
    return Status(StatusCode::kAborted, "no");
  };
  EXPECT_EQ(map->Update("n", base::ByValue(refuse)).code(), StatusCode::kAborted);
  EXPECT_THROW(
      static_cast<void>(map->Update(
          "n",
          base::ByValue([](std::optional<std::string_view>) -> Result<std::optional<std::string>> {
            throw std::runtime_error("mine");
          }))),
      std::runtime_error);
  EXPECT_EQ(Lookup(&reader, "n"), "3");
  const auto remove = [](std::optional<std::string_view>) -> Result<std::optional<std::string>> {
    return std::optional<std::string>();
  };
  ASSERT_TRUE(map->Update("n", base::ByValue(remove)).ok());
  EXPECT_EQ(Lookup(&reader, "n"), std::nullopt);
  EXPECT_EQ(map->GetStats().value().entries, 0u);
}

TEST(SharedMap, ConcurrentUpdatesCountEachOther) {
  auto map = SharedMap::Create(":memory:").value();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        ASSERT_TRUE(map->Update("n", base::ByValue([](std::optional<std::string_view> present)
                                                       -> Result<std::optional<std::string>> {
                                  return std::optional<std::string>(std::to_string(
                                      present ? std::stoi(std::string(*present)) + 1 : 1));
                                }))
                        .ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  auto reader = map->NewReader().value();
  EXPECT_EQ(Lookup(&reader, "n"), "2000");
}

TEST(SharedMap, RefusesWhatItDoesNotHave) {
  TestMachine machine;
  auto map = machine.Create().value();
  EXPECT_EQ(map->Put(std::string(65'536, 'k'), "").code(), StatusCode::kInvalidArgument);
  WriteOptions options;
  options.ttl = std::chrono::milliseconds(1);
  EXPECT_EQ(
      map->Put("a", "", options).ToString(),
      "Unsupported: WriteOptions::ttl: a shared map has no expiry; leave it out, or keep what "
      "expires in a DB or a Cache");
  options = {};
  options.keyspace = static_cast<KeyspaceId>(1);
  EXPECT_EQ(map->Put("a", "", options).ToString(),
            "Unsupported: WriteOptions::keyspace: a shared map has no keyspaces; make a map for "
            "each, or use a DB");
  options = {};
  options.durability = Durability::kMemory;
  EXPECT_EQ(map->Put("a", "", options).code(), StatusCode::kInvalidArgument);
  options.durability = static_cast<Durability>(4);
  EXPECT_EQ(map->Put("a", "", options).code(), StatusCode::kInvalidArgument);
  WriteBatch batch;
  batch.Put("a", "1");
  batch.DeleteRange("a", "b");
  EXPECT_EQ(map->Write(batch).code(), StatusCode::kUnsupported);
  batch.Clear();
  batch.Put("a", "1", {.expiry = WallTime(std::chrono::years(100))});
  EXPECT_EQ(map->Write(batch).code(), StatusCode::kUnsupported);
  EXPECT_EQ(map->GetStats().value().entries, 0u) << "nothing of a refused batch";
  auto reader = map->NewReader().value();
  std::vector<std::string_view> keys(2);
  std::vector<Result<SharedMap::MaybeView>> results(1);
  EXPECT_EQ(reader.MultiGet(keys, results).code(), StatusCode::kInvalidArgument);
  ASSERT_TRUE(map->Close().ok());
  ASSERT_TRUE(map->Close().ok());
  EXPECT_EQ(map->Put("a", "1").code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Lookup(&reader, "a"), std::nullopt) << "readers go on";
  EXPECT_EQ(machine.Create().error().code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(SharedMap::Open("").error().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(machine.Open({.durability = Durability::kMemory}).error().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(machine.Open({.durability = static_cast<Durability>(4)}).error().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(machine.Open({.layout = static_cast<SharedMapLayout>(3)}).error().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(machine.Open({.build_memory = 1}).error().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(SharedMapBuilder::Create(":memory:", {}, static_cast<Duplicates>(2)).status().code(),
            StatusCode::kInvalidArgument);
}

TEST(SharedMap, ViewsEqualWhatHasTheSameBytes) {
  TestMachine machine;
  auto map = machine.Create().value();
  for (const auto& [key, value] : {std::pair{"a", "1"}, {"b", "1"}, {"c", "2"}}) {
    ASSERT_TRUE(map->Put(key, value).ok());
  }
  auto reader = map->NewReader().value();
  const SharedMap::View a = reader.Get("a").value().value();
  EXPECT_TRUE(a == reader.Get("b").value().value());
  EXPECT_TRUE(a != reader.Get("c").value().value());
  EXPECT_TRUE(a == "1" && "1" == a);
}

TEST(SharedMap, OneWriterAndAnyNumberOfReaders) {
  TestMachine machine;
  auto map = machine.Create().value();
  EXPECT_EQ(machine.Open().error().code(), StatusCode::kBusy);
  ASSERT_TRUE(map->Put("a", "1").ok());
  auto attached = machine.Attach().value();
  EXPECT_EQ(attached->Put("a", "2").code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(attached->Compact().code(), StatusCode::kFailedPrecondition);
  auto reader = attached->NewReader().value();
  EXPECT_EQ(Lookup(&reader, "a"), "1");
  ASSERT_TRUE(map->Put("a", "2").ok());
  EXPECT_EQ(Lookup(&reader, "a"), "2");
  ASSERT_TRUE(map->Compact().ok());
  ASSERT_TRUE(map->Put("b", "3").ok());
  EXPECT_EQ(Lookup(&reader, "b"), "3");
  map.reset();
  map = machine.Open().value();
  ASSERT_TRUE(map->Put("b", "4").ok());
  EXPECT_EQ(Lookup(&reader, "b"), "4") << "follows the next writer";
}

TEST(SharedMap, ReadersFollowAMapThatIsReplaced) {
  TestMachine machine;
  auto map = machine.Create().value();
  ASSERT_TRUE(map->Put("a", "1").ok());
  auto attached = machine.Attach().value();
  auto reader = attached->NewReader().value();
  EXPECT_EQ(Lookup(&reader, "a"), "1");
  map.reset();
  auto builder =
      CreateMapBuilder(TestMachine::kPath, {.overwrite = true}, {}, machine.environment()).value();
  ASSERT_TRUE(builder->Add("b", "2").ok());
  EXPECT_EQ(Lookup(&reader, "a"), "1") << "the old one stays until the new one is whole";
  map = builder->Finish().value();
  EXPECT_EQ(Lookup(&reader, "a"), std::nullopt);
  EXPECT_EQ(Lookup(&reader, "b"), "2");
  ExpectHolds(*map, {{"b", "2"}});
}

TEST(SharedMap, BuilderRefusesDuplicatesOrKeepsTheLast) {
  TestMachine machine;
  {
    auto builder =
        CreateMapBuilder(TestMachine::kPath, {}, Duplicates::kRefuse, machine.environment())
            .value();
    ASSERT_TRUE(builder->Add("same", "1").ok());
    ASSERT_TRUE(builder->Add("same", "2").ok());
    const auto refused = builder->Finish();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(refused.error().message().find("same"), std::string::npos);
  }
  EXPECT_EQ(machine.Open().error().code(), StatusCode::kNotFound) << "no map is left";
  auto builder =
      CreateMapBuilder(TestMachine::kPath, {}, Duplicates::kKeepLast, machine.environment())
          .value();
  ASSERT_TRUE(builder->Add("same", "1").ok());
  ASSERT_TRUE(builder->Add("same", "2").ok());
  auto map = builder->Finish().value();
  ExpectHolds(*map, {{"same", "2"}});
  EXPECT_EQ(builder->Finish().error().code(), StatusCode::kFailedPrecondition);
}

TEST(SharedMap, AForkedChildLeavesItsParentsMapAlone) {
  const std::string path = testing::TempDir() + "/shared_map_fork_" + std::to_string(getpid());
  auto builder = SharedMapBuilder::Create(path).value();
  ASSERT_TRUE(builder->Add("a", "1").ok());
  EXPECT_TRUE(base::TrueInChild([&] {
    const bool refused = builder->Add("b", "2").code() == StatusCode::kFailedPrecondition;
    builder.reset();
    return refused;
  }));
  auto map = builder->Finish().value();
  auto reader = map->NewReader().value();
  EXPECT_TRUE(base::TrueInChild([&] {
    const bool refused = map->Put("b", "2").code() == StatusCode::kFailedPrecondition &&
                         map->Compact().code() == StatusCode::kFailedPrecondition;
    const bool reads = Lookup(&reader, "a") == "1";
    map.reset();
    return refused && reads;
  }));
  ASSERT_TRUE(map->Put("b", "2").ok());
  EXPECT_EQ(SharedMap::Open(path).error().code(), StatusCode::kBusy) << "the lock is still held";
  map.reset();
  ASSERT_TRUE(SharedMap::Destroy(path).ok());
}

TEST(SharedMap, ProgressEndsAtTheWholeAndCanCancel) {
  TestMachine machine;
  auto map = machine.Create().value();
  Model model;
  for (uint64_t i = 0; i < 5000; ++i) model[KeyOf(i)] = "value";
  ASSERT_TRUE(PutAll(map.get(), model).ok());
  EXPECT_EQ(map->Compact([](const SharedMapProgress&) { return false; }).code(),
            StatusCode::kCancelled);
  EXPECT_TRUE(map->GetStats().value().compacting);
  ASSERT_TRUE(map->Put("later", "1").ok());
  model["later"] = "1";
  ExpectHolds(*map, model);
  map.reset();
  map = machine.Open().value();
  ExpectHolds(*map, model);
  SharedMapProgress last;
  ASSERT_TRUE(map->Compact([&](const SharedMapProgress& progress) {
                   last = progress;
                   return true;
                 })
                  .ok());
  EXPECT_EQ(last.done_records, last.total_records);
  EXPECT_FALSE(map->GetStats().value().compacting);
  EXPECT_EQ(map->GetStats().value().changes, 0u)
      << "also those made since the compaction was broken off";
  ExpectHolds(*map, model);
}

// The word of a change is stored before it is noted that there are any: a reader may come between.
// (Seen by chance: what MultiGet had found already, Get did not find yet.)
TEST(SharedMap, TheFirstChangeBesideACompactionIsFoundInEveryWayOrInNone) {
  const std::string path =
      testing::TempDir() + "/shared_map_first_change_" + std::to_string(getpid());
  auto map = SharedMap::Create(path, {.compact_in_background = false}).value();
  ASSERT_TRUE(map->Put("key", "old").ok());
  ASSERT_EQ(map->Compact([](const SharedMapProgress&) { return false; }).code(),
            StatusCode::kCancelled);
  ASSERT_TRUE(map->Put("key", "new").ok());
  auto reader = map->NewReader().value();
  ASSERT_EQ(Lookup(&reader, "key"), "new");

  // As it stands between the two stores: in the newest index there are no changes yet.
  std::string newest;
  for (const auto& file : std::filesystem::directory_iterator(path)) {
    const std::string name = file.path().filename();
    if (name.starts_with("index-")) newest = std::max(newest, name);
  }
  std::fstream index(path + "/" + newest, std::ios::in | std::ios::out | std::ios::binary);
  index.seekp(64);
  index.write("\0\0\0\0\0\0\0\0", 8);
  index.close();
  ASSERT_TRUE(index.good());

  const std::string_view keys[] = {"key"};
  Result<SharedMap::MaybeView> results[1];
  ASSERT_TRUE(reader.MultiGet(keys, results).ok());
  EXPECT_EQ((**results[0]).view(), "new");
  results[0] = SharedMap::MaybeView();
  EXPECT_EQ(Lookup(&reader, "key"), "new");
  map.reset();
  ASSERT_TRUE(SharedMap::Destroy(path).ok());
}

TEST(SharedMap, ReadersSeeAcknowledgedWritesOfAnotherThreadWhole) {
  auto map = SharedMap::Create(":memory:", {.compact_in_background = false}).value();
  constexpr uint64_t kKeys = 200;
  // A value is its write's number, as often as the number says.
  const auto value_of = [](uint64_t write) {
    std::string value;
    for (uint64_t i = 0; i <= write % 16; ++i) value += std::to_string(write) + ",";
    return value;
  };
  for (uint64_t i = 0; i < kKeys; ++i) ASSERT_TRUE(map->Put(KeyOf(i), value_of(0)).ok());
  std::atomic<bool> stop{false};
  std::vector<std::atomic<uint64_t>> acknowledged(kKeys);
  std::vector<std::thread> readers;
  for (uint64_t t = 0; t < 2; ++t) {
    readers.emplace_back([&, t] {
      auto reader = map->NewReader().value();
      base::Random random(t);
      while (!stop.load()) {
        const uint64_t key = random.Below(kKeys);
        const uint64_t least = acknowledged[key].load();
        const std::string value = Lookup(&reader, KeyOf(key)).value();
        const uint64_t write = std::stoull(value);
        ASSERT_EQ(value, value_of(write)) << "torn";
        ASSERT_GE(write, least) << "stale";
      }
    });
  }
  base::Random random(7);
  for (uint64_t i = 1; i < 4000; ++i) {
    const uint64_t key = random.Below(kKeys);
    ASSERT_TRUE(map->Put(KeyOf(key), value_of(i)).ok());
    acknowledged[key].store(i);
    if (i % 500 == 0) {
      ASSERT_TRUE(map->Compact().ok());
    }
  }
  stop.store(true);
  for (std::thread& reader : readers) reader.join();
}

TEST(SharedMap, CloseSetsTheTimesOfWhatWasStoredThroughMappings) {
  const std::string path = testing::TempDir() + "/shared_map_times_" + std::to_string(getpid());
  auto map = SharedMap::Create(path).value();
  ASSERT_TRUE(map->Put("a", "1").ok());
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(24);
  for (const auto& file : std::filesystem::directory_iterator(path)) {
    std::filesystem::last_write_time(file, long_ago);
  }
  ASSERT_TRUE(map->Put("b", "2").ok());
  ASSERT_TRUE(map->Close().ok());
  for (const auto& file : std::filesystem::directory_iterator(path)) {
    if (file.path().filename() == kReserveName) continue;
    EXPECT_GT(std::filesystem::last_write_time(file), long_ago + std::chrono::hours(1)) << file;
  }
  ASSERT_TRUE(SharedMap::Destroy(path).ok());
}

TEST(SharedMap, AMapInMemoryIsFoundByNoPath) {
  const auto map = SharedMap::Create(":memory:").value();
  const std::string refusal =
      "NotFound: :memory: is a new map for each Create and SharedMapBuilder::Create, and no other "
      "call finds one; name a directory";
  EXPECT_EQ(SharedMap::Open(":memory:").status().ToString(), refusal);
  EXPECT_EQ(SharedMap::Attach(":memory:").status().ToString(), refusal);
  EXPECT_EQ(SharedMap::Check(":memory:").status().ToString(), refusal);
  EXPECT_EQ(SharedMap::Destroy(":memory:").ToString(), refusal);
}

TEST(SharedMap, AFileInPlaceOfAMapIsNamed) {
  TestMachine machine;
  ASSERT_TRUE(machine.fs().Open("/plain", io::OpenMode::kCreate).ok());
  const Status refused[] = {OpenMap("/plain", {}, machine.environment()).status(),
                            AttachMap("/plain", machine.environment()).status(),
                            DestroyMap("/plain", machine.environment())};
  for (const Status& status : refused) {
    EXPECT_EQ(status.ToString(), "InvalidArgument: /plain is a file; a shared map is a directory");
  }
}

TEST(SharedMap, DestroyRemovesAMapAndNothingElse) {
  TestMachine machine;
  machine.Create().value().reset();
  auto held = machine.Open().value();
  EXPECT_EQ(DestroyMap(TestMachine::kPath, machine.environment()).code(), StatusCode::kBusy);
  held.reset();
  static_cast<void>(machine.fs().Open("/map/foreign", io::OpenMode::kCreate));
  ASSERT_TRUE(DestroyMap(TestMachine::kPath, machine.environment()).ok());
  EXPECT_EQ(machine.fs().List("/map").value(), std::vector<std::string>{"foreign"});
  EXPECT_EQ(DestroyMap(TestMachine::kPath, machine.environment()).code(), StatusCode::kNotFound);
}

TEST(SharedMap, DestroyLetsNobodyMakeAMapThereUntilItIsDone) {
  TestMachine machine;
  ASSERT_TRUE(machine.Create().value()->Close().ok());
  bool lock_is_gone = false;
  machine.fs().SetObserver([&](uint64_t, std::string_view operation, std::string_view path) {
    if (operation != "remove") return;
    EXPECT_FALSE(lock_is_gone) << path;
    lock_is_gone = path.ends_with("/LOCK");
  });
  ASSERT_TRUE(DestroyMap(TestMachine::kPath, machine.environment()).ok());
  machine.fs().SetObserver({});
  EXPECT_TRUE(lock_is_gone);
}

}  // namespace
}  // namespace basalt::shared_map

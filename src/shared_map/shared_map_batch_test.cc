#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/coding.h"
#include "shared_map/change_index.h"
#include "shared_map/file_names.h"
#include "shared_map/guarded_word.h"
#include "shared_map/test_map.h"
#include "shared_map/test_workload.h"

// Readers see a batch whole or not at all, also when its writer stands still or is killed.

namespace basalt::shared_map {
namespace {

constexpr uint64_t kKeys = 100;

Status WriteAll(SharedMap* map, const std::string& value) {
  WriteBatch batch;
  for (uint64_t i = 0; i < kKeys; ++i) batch.Put(KeyOf(i), value);
  return map->Write(batch);
}

Model AllHave(const std::string& value) {
  Model model;
  for (uint64_t i = 0; i < kKeys; ++i) model[KeyOf(i)] = value;
  return model;
}

/// The newest index of a map that has one change set, as a writer leaves it that is killed before
/// it makes its last batch visible: it says that changes end at `end`. Gives where they ended.
uint64_t SetVisibleEnd(io::FileSystem* fs, uint64_t end) {
  constexpr uint64_t kVisibleEndAt = 128;
  std::string path;
  const std::vector<std::string> names = fs->List(TestMachine::kPath).value();
  for (const std::string& name : names) {
    const auto parsed = ParseFileName(name);
    if (parsed && parsed->kind == FileKind::kIndex) path = io::JoinPath(TestMachine::kPath, name);
  }
  const auto file = fs->Open(path, io::OpenMode::kReadWrite).value();
  std::string word(sizeof(uint64_t), '\0');
  EXPECT_TRUE(file->ReadExactAt(kVisibleEndAt, word).ok());
  if (end != 0) {
    const uint64_t guarded = Guarded(end);
    EXPECT_TRUE(file->WriteAt(kVisibleEndAt, {reinterpret_cast<const char*>(&guarded), 8}).ok());
  }
  return Unguarded(base::Load<uint64_t>(word.data())).value();
}

TEST(SharedMapBatch, OneWhoseWriterWasKilledIsNotSeenUntilTheNextWriterOpens) {
  for (const bool is_in_base : {false, true}) {
    SCOPED_TRACE(is_in_base);
    TestMachine machine;
    auto map = machine.Create().value();
    ASSERT_TRUE(WriteAll(map.get(), "before").ok());
    if (is_in_base) {
      ASSERT_TRUE(map->Compact().ok());
    }
    auto attached = machine.Attach().value();
    auto reader = attached->NewReader().value();
    ExpectReads(&reader, AllHave("before"));

    const uint64_t end = SetVisibleEnd(&machine.fs(), 0);
    ASSERT_TRUE(WriteAll(map.get(), "after").ok());
    SetVisibleEnd(&machine.fs(), end);
    auto left = machine.fs().Clone();
    ExpectReads(&reader, AllHave("before"));
    ExpectReads(&reader, AllHave("before"));  // However often it asks.
    Environment environment = machine.environment();
    environment.fs = left.get();
    ExpectHolds(*AttachMap(TestMachine::kPath, environment).value(), AllHave("before"));
    ExpectHolds(*OpenMap(TestMachine::kPath, {}, environment).value(), AllHave("after"));
  }
}

TEST(SharedMapBatch, IsSeenWholeByReadersBesideItsWriter) {
  auto map = SharedMap::Create(":memory:", {.compact_in_background = false}).value();
  ASSERT_TRUE(WriteAll(map.get(), "0").ok());
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> acknowledged{0};
  std::vector<std::thread> readers;
  for (int thread = 0; thread < 2; ++thread) {
    readers.emplace_back([&, thread] {
      auto reader = map->NewReader().value();
      std::vector<std::string> names;
      for (uint64_t i = 0; i < kKeys; ++i) names.push_back(KeyOf(i));
      const std::vector<std::string_view> keys(names.begin(), names.end());
      std::vector<Result<SharedMap::MaybeView>> results(kKeys);
      while (!stop.load()) {
        uint64_t seen = acknowledged.load();
        // The last key's word is stored last: with it any part of a batch is seen.
        for (uint64_t i = 0; i < kKeys; ++i) {
          const uint64_t key = thread == 0 ? i : kKeys - 1 - i;
          const uint64_t number = std::stoull(Lookup(&reader, names[key]).value());
          ASSERT_GE(number, seen) << names[key];
          seen = number;
        }
        ASSERT_TRUE(reader.MultiGet(keys, results).ok());
        for (auto& result : results) ASSERT_EQ((*result)->view(), (*results[0])->view());
        ASSERT_GE(std::stoull((*results[0])->ToString()), seen);
        for (auto& result : results) result->reset();
      }
    });
  }
  for (uint64_t number = 1; number < 1000; ++number) {
    ASSERT_TRUE(WriteAll(map.get(), std::to_string(number)).ok());
    acknowledged.store(number);
    if (number % 150 == 0) {
      ASSERT_TRUE(map->Compact().ok());
    }
  }
  stop.store(true);
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace basalt::shared_map

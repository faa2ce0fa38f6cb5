#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/coding.h"
#include "base/seeded_hash.h"
#include "shared_map/change_index.h"
#include "shared_map/change_log.h"
#include "shared_map/guarded_word.h"
#include "shared_map/test_map.h"

// Check of a map that a writer has. Which damage it finds, shared_map_recovery_test.cc asks.

namespace basalt::shared_map {
namespace {

void ExpectNoProblems(const Result<SharedMapReport>& report) {
  ASSERT_TRUE(report) << report.error().ToString();
  for (const std::string& problem : report->problems) ADD_FAILURE() << problem;
}

const base::SeededHash kHashOf(TestMachine::kMapId);

/// Of the map's first file of that kind.
std::string PathOf(io::FileSystem* fs, std::string_view prefix) {
  const auto names = fs->List(TestMachine::kPath).value();
  const auto at = std::find_if(names.begin(), names.end(),
                               [&](const std::string& name) { return name.starts_with(prefix); });
  return io::JoinPath(TestMachine::kPath, *at);
}

TEST(SharedMapCheck, CompactionsThatEndMeanwhileAreNoDamage) {
  TestMachine machine;
  auto builder =
      CreateMapBuilder(TestMachine::kPath, {}, Duplicates::kRefuse, machine.environment()).value();
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_TRUE(builder->Add("key" + std::to_string(i), std::string(1000, 'v')).ok());
  }
  auto map = builder->Finish().value();
  int calls = 0;
  const auto report = CheckMap(
      TestMachine::kPath,
      [&](const SharedMapProgress& at) {
        EXPECT_LE(at.done_records, at.total_records);
        ++calls;
        EXPECT_TRUE(map->Put("key1", std::to_string(calls)).ok());
        EXPECT_TRUE(map->Compact().ok());
        return true;
      },
      machine.environment());
  EXPECT_GT(calls, 0);
  ExpectNoProblems(report);
  EXPECT_EQ(report->records, 10'000u);
}

TEST(SharedMapCheck, WhatIsLackingToLookIsNoDamage) {
  TestMachine machine;
  auto map = machine.Create().value();
  ASSERT_TRUE(map->Put("compacted", "value").ok());
  ASSERT_TRUE(map->Compact().ok());
  ASSERT_TRUE(map->Put("changed", "value").ok());
  bool has_failed = true;
  for (uint64_t at_call = 1; has_failed; ++at_call) {
    SCOPED_TRACE(at_call);
    machine.fs().SetFault({.kind = io::Fault::Kind::kError, .at_call = at_call, .error = EMFILE});
    const auto report = CheckMap(TestMachine::kPath, nullptr, machine.environment());
    has_failed = machine.fs().FaultHappened();
    // It may have tried again.
    if (!has_failed || report) {
      ExpectNoProblems(report);
    } else {
      EXPECT_EQ(report.error().code(), StatusCode::kResourceExhausted);
    }
  }
}

/// The words of the only index of a map, as its file has them.
class IndexWords {
 public:
  IndexWords(io::FileSystem* fs, std::string_view path)
      : file_(fs->Open(path, io::OpenMode::kReadWrite).value()) {}
  uint64_t At(uint64_t position) const {
    std::string word(8, '\0');
    EXPECT_TRUE(file_->ReadExactAt(OffsetOf(position), word).ok());
    return base::Load<uint64_t>(word.data());
  }
  void Store(uint64_t position, uint64_t word) {
    std::string bytes;
    base::Append(&bytes, word);
    ASSERT_TRUE(file_->WriteAt(OffsetOf(position), bytes).ok());
  }
  uint64_t PositionOf(uint64_t hash) const {
    uint64_t position = hash % kCapacity;
    while (!ChangeIndex::Matches(At(position), hash)) position = (position + 1) % kCapacity;
    return position;
  }
  uint64_t FreeFrom(uint64_t position) const {
    position %= kCapacity;
    while (At(position) != 0) position = (position + 1) % kCapacity;
    return position;
  }

  static constexpr uint64_t kCapacity = ChangeIndex::kCapacityMin;

 private:
  static uint64_t OffsetOf(uint64_t position) {
    return ChangeIndex::kHeaderBytes + kCapacity + 8 * position;
  }
  std::unique_ptr<io::File> file_;
};

// What Check meets that comes to the end of the log, and looks on after two more writes: the first
// of them is not what it was, the second knows that the first is on the disk, and no word leads to
// either yet.
TEST(SharedMapCheck, WritesMeanwhileAreNoDamage) {
  TestMachine machine;
  io::FileSystem* const fs = &machine.fs();
  auto map = machine.Create({.durability = Durability::kPower}).value();
  ASSERT_TRUE(map->Put("key0", "value").ok());
  const uint64_t end = map->GetStats().value().log_bytes;
  for (const char* key : {"key1", "key2"}) ASSERT_TRUE(map->Put(key, "value").ok());

  ASSERT_TRUE(machine.fs().FlipBit(PathOf(fs, "log-"), 8 * end).ok());
  constexpr uint64_t kVisibleEndAt = 128;
  std::string word;
  base::Append(&word, Guarded(end / kLogUnit));
  const std::string index_path = PathOf(fs, "index-");
  const auto index = fs->Open(index_path, io::OpenMode::kReadWrite).value();
  ASSERT_TRUE(index->WriteAt(kVisibleEndAt, word).ok());
  IndexWords words(fs, index_path);
  for (const char* key : {"key1", "key2"}) words.Store(words.PositionOf(kHashOf(key)), 0);
  ExpectNoProblems(CheckMap(TestMachine::kPath, nullptr, machine.environment()));
}

TEST(SharedMapCheck, FindsEachWordOfAnIndexThatIsNotWhatTheLogSays) {
  for (const bool closed : {false, true}) {
    SCOPED_TRACE(closed);
    TestMachine machine;
    auto map = machine.Create().value();
    ASSERT_TRUE(map->Put("key", "older").ok());
    ASSERT_TRUE(map->Put("other", "value").ok());
    ASSERT_TRUE(map->Put("key", "newer").ok());
    if (closed) map.reset();
    IndexWords words(&machine.fs(), PathOf(&machine.fs(), "index-"));
    const uint64_t hash = kHashOf("key");
    const uint64_t position = words.PositionOf(hash);
    const uint64_t word = words.At(position);
    const uint64_t other = words.At(words.PositionOf(kHashOf("other")));
    const Location first = kLogHeaderBytes / kLogUnit;
    const auto expect_problem = [&](const char* what, uint64_t at, uint64_t stored) {
      SCOPED_TRACE(what);
      const uint64_t before = words.At(at);
      words.Store(at, stored);
      const auto report = CheckMap(TestMachine::kPath, nullptr, machine.environment());
      ASSERT_TRUE(report) << report.error().ToString();
      EXPECT_FALSE(report->ok());
      words.Store(at, before);
      ExpectNoProblems(CheckMap(TestMachine::kPath, nullptr, machine.environment()));
    };
    expect_problem("leads to an older change", position, ChangeIndex::WordOf(hash, first));
    expect_problem("is missing", position, 0);
    expect_problem("leads to another key's change", position,
                   ChangeIndex::WordOf(hash, ChangeIndex::LocationOf(other)));
    expect_problem("leads nowhere", position, ChangeIndex::WordOf(hash, first + 1));
    expect_problem("is of another hash", position, word ^ uint64_t{1} << 40);
    // Scans go over all words, wherever they stand.
    const uint64_t free = words.FreeFrom(position);
    expect_problem("stands there twice", free, word);
    expect_problem("leads to an older change, behind the newer", free,
                   ChangeIndex::WordOf(hash, first));
    expect_problem("stands where no lookup comes", words.FreeFrom(position + 100), word);
    expect_problem("is too many, and leads nowhere", words.FreeFrom(position + 100), word + 1);
  }
}

}  // namespace
}  // namespace basalt::shared_map

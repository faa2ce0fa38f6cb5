#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>

#include "base/coding.h"
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

TEST(SharedMapCheck, FoldsThatEndMeanwhileAreNoDamage) {
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
        EXPECT_TRUE(map->Optimize().ok());
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
  ASSERT_TRUE(map->Put("folded", "value").ok());
  ASSERT_TRUE(map->Optimize().ok());
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

// What Check meets that comes to the end of the log, and looks on after two more writes: the first
// of them is not what it was, the second knows that the first is on the disk.
TEST(SharedMapCheck, WritesMeanwhileAreNoDamage) {
  TestMachine machine;
  io::FileSystem* const fs = &machine.fs();
  auto map = machine.Create({.durability = Durability::kPower}).value();
  ASSERT_TRUE(map->Put("key0", "value").ok());
  const uint64_t end = map->GetStats()->log_bytes;
  for (const char* key : {"key1", "key2"}) ASSERT_TRUE(map->Put(key, "value").ok());

  const auto path_of = [&](std::string_view prefix) {
    const auto names = fs->List(TestMachine::kPath).value();
    const auto at = std::find_if(names.begin(), names.end(),
                                 [&](const std::string& name) { return name.starts_with(prefix); });
    return io::JoinPath(TestMachine::kPath, *at);
  };
  ASSERT_TRUE(machine.fs().FlipBit(path_of("log-"), 8 * end).ok());
  constexpr uint64_t kVisibleEndAt = 128;
  std::string word;
  base::Append(&word, Guarded(end / kLogUnit));
  const auto index = fs->Open(path_of("index-"), io::OpenMode::kReadWrite).value();
  ASSERT_TRUE(index->WriteAt(kVisibleEndAt, word).ok());
  ExpectNoProblems(CheckMap(TestMachine::kPath, nullptr, machine.environment()));
}

}  // namespace
}  // namespace basalt::shared_map

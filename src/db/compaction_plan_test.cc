#include "db/compaction_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "base/random.h"
#include "db/expiry_profile.h"
#include "db/tree_key.h"

namespace basalt::db {
namespace {

constexpr size_t kLast = Tree::kLevels - 1;
constexpr uint64_t kDayMs = uint64_t{24} * 60 * 60 * 1000;

std::string Key(uint64_t number) {
  char text[16];
  std::snprintf(text, sizeof text, "%08llu", static_cast<unsigned long long>(number));
  return text;
}

/// A table that is only talked about.
struct Table {
  std::string smallest;
  std::string largest;
  uint64_t bytes = 100;
  uint64_t records = 1000;
  uint64_t deletes = 0;
  uint64_t merges = 0;
  uint64_t expiring = 0;
  uint64_t earliest_expiry_ms = 0;
  uint64_t latest_expiry_ms = 0;
  uint64_t half_expired_ms = 0;
  uint64_t raw_bytes = 100'000;
  uint64_t retained_bytes = 0;
  RetainedVersions retained{};
  base::SequenceNumber smallest_sequence = 1;
  base::SequenceNumber largest_sequence = 10;
  base::SequenceNumber ranges_applied = 0;
  uint64_t created_ms = 0;
};

std::shared_ptr<TableFile> Make(const Table& table) {
  static uint64_t number = 0;
  ++number;
  table::TableProperties properties;
  properties.file_bytes = table.bytes;
  properties.records = table.records;
  properties.deletes = table.deletes;
  properties.merges = table.merges;
  properties.expiring = table.expiring;
  properties.earliest_expiry_ms = table.earliest_expiry_ms;
  properties.latest_expiry_ms = table.latest_expiry_ms;
  properties.raw_value_bytes = table.raw_bytes;
  properties.smallest_sequence = table.smallest_sequence;
  properties.largest_sequence = table.largest_sequence;
  properties.smallest_key = table.smallest;
  properties.largest_key = table.largest;
  return std::make_shared<TableFile>(nullptr, "table " + std::to_string(number),
                                     TableFile::Place{.number = number,
                                                      .ranges_applied = table.ranges_applied,
                                                      .created_ms = table.created_ms,
                                                      .half_expired_ms = table.half_expired_ms,
                                                      .retained_bytes = table.retained_bytes},
                                     std::move(properties), TableFile::Resources{}, table.retained);
}

Version VersionOf(const Tree& tree) { return Version({std::make_shared<const Tree>(tree)}); }

std::optional<CompactionJob> Pick(const Tree& tree, const CompactionLimits& limits,
                                  RunningJobs running = {}) {
  return PickCompaction(VersionOf(tree), limits, running);
}

CompactionLimits Limits() {
  return {.level0_tables = 4, .base_bytes = 1000, .job_bytes_max = 2000};
}

size_t InputsOf(const CompactionJob& job) {
  size_t count = 0;
  for (const TableFiles& tables : job.inputs) count += tables.size();
  return count;
}

std::vector<TableFile*> Pointers(const TableFiles& tables) {
  std::vector<TableFile*> pointers;
  for (const auto& table : tables) pointers.push_back(table.get());
  return pointers;
}

/// `smallest` and `largest` of tables of 100 bytes in key order.
TableFiles Tables(const std::vector<std::pair<const char*, const char*>>& ranges) {
  TableFiles tables;
  for (const auto& [smallest, largest] : ranges) {
    tables.push_back(Make({.smallest = smallest, .largest = largest}));
  }
  return tables;
}

// Sizes

TEST(CompactionPlan, AnEmptyTreeHasNothingToDo) {
  EXPECT_FALSE(PickCompaction(Version(), Limits()));
  EXPECT_FALSE(Pick(Tree(), Limits()));
  EXPECT_EQ(CompactionDebt(VersionOf(Tree()), Limits()), 0U);
}

TEST(CompactionPlan, AimsAreDerivedFromTheLargestLevelUpwards) {
  Tree tree;
  EXPECT_EQ(AimsOf(tree, Limits()).base_level, kLast);
  EXPECT_EQ(AimsOf(tree, Limits()).bytes[kLast], 1000U);

  tree.levels[kLast] = {Make({.smallest = "a", .largest = "b", .bytes = 9999})};
  EXPECT_EQ(AimsOf(tree, Limits()).base_level, kLast);

  tree.levels[kLast] = {Make({.smallest = "a", .largest = "b", .bytes = 10'000})};
  EXPECT_EQ(AimsOf(tree, Limits()).base_level, kLast - 1);
  EXPECT_EQ(AimsOf(tree, Limits()).bytes[kLast - 1], 1000U);

  tree.levels[kLast] = {Make({.smallest = "a", .largest = "b", .bytes = 1'234'567})};
  const LevelAims aims = AimsOf(tree, Limits());
  EXPECT_EQ(aims.base_level, kLast - 3);
  EXPECT_EQ(aims.bytes[kLast], 1'234'567U);
  EXPECT_EQ(aims.bytes[kLast - 1], 123'456U);
  EXPECT_EQ(aims.bytes[kLast - 2], 12'345U);
  EXPECT_EQ(aims.bytes[kLast - 3], 1234U);
  EXPECT_EQ(aims.bytes[kLast - 4], 0U);
}

TEST(CompactionPlan, ALevelInUseGoesOutOfUseBelowHalfOfTheLeastAim) {
  Tree tree;
  tree.levels[kLast] = {Make({.smallest = "a", .largest = "b", .bytes = 5000})};
  EXPECT_EQ(AimsOf(tree, Limits()).base_level, kLast);
  tree.levels[kLast - 1] = Tables({{"a", "b"}});
  EXPECT_EQ(AimsOf(tree, Limits()).base_level, kLast - 1);
  tree.levels[kLast] = {Make({.smallest = "a", .largest = "b", .bytes = 4999})};
  EXPECT_EQ(AimsOf(tree, Limits()).base_level, kLast);
}

TEST(CompactionPlan, AimsNeverReachLevel0) {
  Tree tree;
  tree.levels[kLast] = {Make({.smallest = "a", .largest = "b", .bytes = uint64_t{1} << 60})};
  const LevelAims aims = AimsOf(tree, {.base_bytes = 0});
  EXPECT_EQ(aims.base_level, 1U);
  EXPECT_EQ(aims.bytes[0], 0U);
}

// Level 0

TEST(CompactionPlan, Level0WaitsForEnoughTables) {
  Tree tree;
  tree.levels[0] = Tables({{"a", "m"}, {"b", "n"}, {"c", "o"}});
  EXPECT_FALSE(Pick(tree, Limits()));
}

TEST(CompactionPlan, AllOfLevel0GoesIntoTheBaseLevelWithWhatItOverlaps) {
  Tree tree;
  tree.levels[0] = Tables({{"d", "e"}, {"f", "g"}, {"k", "m"}, {"d", "k"}});
  tree.levels[kLast] = Tables({{"a", "b"}, {"c", "d"}, {"h", "i"}, {"l", "p"}, {"q", "r"}});
  const auto job = Pick(tree, Limits());
  ASSERT_TRUE(job);
  EXPECT_EQ(job->output_level, kLast);
  EXPECT_EQ(job->reason, CompactionReason::kSize);
  EXPECT_EQ(Pointers(job->inputs[0]), Pointers(tree.levels[0]));
  EXPECT_EQ(Pointers(job->inputs[kLast]),
            Pointers({tree.levels[kLast].begin() + 1, tree.levels[kLast].begin() + 4}));
  EXPECT_EQ(job->smallest_key(), "c");
  EXPECT_EQ(job->largest_key(), "p");
  EXPECT_EQ(job->input_bytes(), 700U);
  EXPECT_FALSE(job->is_move());
}

TEST(CompactionPlan, Level0TakesWhatLiesInUnusedLevelsAlong) {
  Tree tree;
  tree.levels[0] = Tables({{"d", "e"}, {"d", "f"}, {"d", "g"}, {"d", "h"}});
  tree.levels[2] = Tables({{"a", "b"}, {"g", "k"}});
  tree.levels[4] = Tables({{"a", "c"}, {"j", "m"}, {"o", "p"}});
  tree.levels[kLast] = {Make({.smallest = "l", .largest = "z", .bytes = 500})};
  CompactionLimits limits = Limits();
  limits.level0_tables = 1;  // level 0 scores higher than what must move down
  const auto job = Pick(tree, limits);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->output_level, kLast);
  EXPECT_EQ(job->inputs[0].size(), 4U);
  EXPECT_EQ(Pointers(job->inputs[2]), Pointers({tree.levels[2][1]}));
  EXPECT_EQ(Pointers(job->inputs[4]), Pointers({tree.levels[4][1]}));
  EXPECT_EQ(Pointers(job->inputs[kLast]), Pointers(tree.levels[kLast]));
}

TEST(CompactionPlan, TheOldestOfLevel0MovesWhenItOverlapsNothing) {
  Tree tree;
  tree.levels[0] = Tables({{"g", "h"}, {"e", "f"}, {"g", "g"}, {"c", "d"}});
  tree.levels[kLast] = Tables({{"a", "b"}});
  auto job = Pick(tree, Limits());
  ASSERT_TRUE(job);
  EXPECT_TRUE(job->is_move());
  EXPECT_EQ(Pointers(job->inputs[0]), Pointers({tree.levels[0][3]}));

  tree.levels[kLast] = Tables({{"a", "c"}});
  job = Pick(tree, Limits());
  ASSERT_TRUE(job);
  EXPECT_EQ(job->inputs[0].size(), 4U);

  tree.levels[kLast] = {};
  tree.levels[0] = Tables({{"g", "h"}, {"d", "f"}, {"g", "g"}, {"c", "d"}});
  job = Pick(tree, Limits());
  ASSERT_TRUE(job);
  EXPECT_EQ(job->inputs[0].size(), 4U);
}

TEST(CompactionPlan, ASmallTableIsMergedRatherThanMovedOutOfLevel0) {
  Tree tree;
  tree.levels[0] = Tables({{"g", "h"}, {"e", "f"}, {"i", "j"}});
  tree.levels[0].push_back(Make({.smallest = "a", .largest = "b", .bytes = 14}));
  const auto job = Pick(tree, Limits());
  ASSERT_TRUE(job);
  EXPECT_EQ(job->inputs[0].size(), 4U);
}

TEST(CompactionPlan, Level0IsMergedOnceScansOverItHaveCostAsMuch) {
  Tree tree;
  tree.levels[0] = Tables({{"a", "m"}, {"b", "n"}});
  tree.levels[kLast] = Tables({{"c", "d"}, {"x", "z"}});
  TableFile& oldest = *tree.levels[0].back();
  oldest.AddScanCost(299);
  EXPECT_FALSE(Pick(tree, Limits()));
  oldest.AddScanCost(1);
  const auto job = Pick(tree, Limits());
  ASSERT_TRUE(job);
  EXPECT_EQ(job->reason, CompactionReason::kScans);
  EXPECT_EQ(Pointers(job->inputs[0]), Pointers(tree.levels[0]));
  EXPECT_EQ(Pointers(job->inputs[kLast]), Pointers({tree.levels[kLast][0]}));
  EXPECT_EQ(job->input_bytes(), 300U);
  tree.levels[kLast][0]->busy = true;
  EXPECT_FALSE(Pick(tree, Limits()));
}

TEST(CompactionPlan, AJobInstallsPiecesUnlessMergesLieAboveWhatItReplaces) {
  CompactionJob job;
  job.output_level = 3;
  job.inputs[0] = Tables({{"a", "z"}});
  EXPECT_FALSE(job.may_install_pieces()) << "it replaces nothing in its output level";
  job.inputs[3] = {Make({.smallest = "b", .largest = "c", .merges = 1}),
                   Make({.smallest = "d", .largest = "e"})};
  EXPECT_TRUE(job.may_install_pieces());
  job.inputs[2] = {Make({.smallest = "b", .largest = "x", .merges = 1})};
  EXPECT_FALSE(job.may_install_pieces());
  job.inputs[2].clear();
  job.inputs[0].push_back(Make({.smallest = "b", .largest = "x", .merges = 1}));
  EXPECT_FALSE(job.may_install_pieces());
}

TEST(CompactionPlan, AJobKeepsTheKeyRangeOfWhatItHasInstalled) {
  Tree tree;
  tree.levels[0] = Tables({{"d", "k"}});
  tree.levels[kLast] = Tables({{"a", "c"}, {"d", "f"}, {"g", "m"}});
  CompactionJob running;
  running.output_level = kLast;
  running.inputs[0] = tree.levels[0];
  running.inputs[kLast] = {tree.levels[kLast][2]};
  running.outputs = {tree.levels[kLast][0], tree.levels[kLast][1]};
  EXPECT_EQ(running.smallest_key(), "a");
  EXPECT_EQ(running.largest_key(), "m");
  for (const auto& table : tree.levels[kLast]) table->busy = true;
  tree.levels[0].front()->busy = true;
  // Tables that would come to lie between those that it has written, and right beside them.
  tree.levels[kLast - 1] = {Make({.smallest = "c5", .largest = "c6", .bytes = 5000})};
  const CompactionJob* const jobs[] = {&running};
  EXPECT_FALSE(Pick(tree, Limits(), jobs));
  tree.levels[kLast - 1] = {Make({.smallest = "n", .largest = "o", .bytes = 5000})};
  EXPECT_TRUE(Pick(tree, Limits(), jobs));
}

TEST(CompactionPlan, Level0NeverStartsTwice) {
  Tree tree;
  tree.levels[0] = Tables({{"a", "b"}, {"a", "c"}, {"a", "d"}, {"a", "e"}, {"a", "f"}});
  tree.levels[0].back()->busy = true;
  EXPECT_FALSE(Pick(tree, Limits()));
}

// Levels below

/// A tree whose base level is kLast - 1 with an aim of 1000, both levels filled by the caller's
/// tables and one table of `filling` far to the right.
Tree TwoLevels(TableFiles upper, TableFiles lower, uint64_t filling) {
  Tree tree;
  tree.levels[kLast - 1] = std::move(upper);
  tree.levels[kLast] = std::move(lower);
  tree.levels[kLast].push_back(Make({.smallest = "zz", .largest = "zzz", .bytes = filling}));
  return tree;
}

TEST(CompactionPlan, ALevelAtItsAimGivesTheTableWithTheLeastOverlap) {
  const auto upper = [](uint64_t bytes) {
    return TableFiles{Make({.smallest = "a", .largest = "c", .bytes = 300}),
                      Make({.smallest = "e", .largest = "g", .bytes = 300}),
                      Make({.smallest = "i", .largest = "k", .bytes = bytes})};
  };
  const auto lower = [] {
    return Tables({{"a", "a"}, {"b", "b"}, {"e", "f"}, {"i", "i"}, {"j", "k"}});
  };
  Tree tree = TwoLevels(upper(399), lower(), 9'500);
  EXPECT_FALSE(Pick(tree, Limits()));  // 999 of 1000 bytes

  tree = TwoLevels(upper(400), lower(), 9'500);
  auto job = Pick(tree, Limits());
  ASSERT_TRUE(job);
  EXPECT_EQ(job->output_level, kLast);
  EXPECT_EQ(Pointers(job->inputs[kLast - 1]), Pointers({tree.levels[kLast - 1][1]}));
  EXPECT_EQ(Pointers(job->inputs[kLast]), Pointers({tree.levels[kLast][2]}));
  EXPECT_FALSE(job->is_move());

  tree = TwoLevels(upper(800), lower(), 9'500);  // the most overlap, but the least for its size
  job = Pick(tree, Limits());
  ASSERT_TRUE(job);
  EXPECT_EQ(Pointers(job->inputs[kLast - 1]), Pointers({tree.levels[kLast - 1][2]}));
}

TEST(CompactionPlan, OfEqualTablesTheFirstInKeyOrderIsChosen) {
  TableFiles upper;
  TableFiles lower;
  for (const char* key : {"b", "d", "f", "h"}) {
    upper.push_back(Make({.smallest = key, .largest = key, .bytes = 300}));
    lower.push_back(Make({.smallest = key, .largest = key, .bytes = 100}));
  }
  const Tree tree = TwoLevels(upper, lower, 9'600);
  const auto job = Pick(tree, Limits());
  ASSERT_TRUE(job);
  EXPECT_EQ(job->inputs[kLast - 1].front(), upper.front());
}

TEST(CompactionPlan, BusyTablesAndThoseOverBusyOnesAreLeftOut) {
  TableFiles upper;
  TableFiles lower;
  for (const char* key : {"b", "d", "f", "h", "j"}) {
    upper.push_back(Make({.smallest = key, .largest = key, .bytes = 500}));
    lower.push_back(Make({.smallest = key, .largest = key, .bytes = 100}));
  }
  const Tree tree = TwoLevels(upper, lower, 9'600);
  upper[0]->busy = true;
  lower[1]->busy = true;
  auto job = Pick(tree, Limits());
  ASSERT_TRUE(job);
  EXPECT_EQ(Pointers(job->inputs[kLast - 1]), Pointers({upper[2]}));

  for (size_t i = 2; i < 5; ++i) lower[i]->busy = true;
  EXPECT_FALSE(Pick(tree, Limits()));
}

TEST(CompactionPlan, BusyTablesDoNotCountForASize) {
  TableFiles upper = Tables({{"a", "b"}, {"c", "d"}});
  upper.push_back(Make({.smallest = "e", .largest = "f", .bytes = 800}));
  const Tree tree = TwoLevels(upper, {}, 10'000);
  EXPECT_TRUE(Pick(tree, Limits()));
  upper[2]->busy = true;
  EXPECT_FALSE(Pick(tree, Limits()));
}

TEST(CompactionPlan, NeighboursComeAlongWhileTheOverlapStaysAndTheJobIsSmall) {
  const TableFiles upper = {Make({.smallest = "a", .largest = "b", .bytes = 300}),
                            Make({.smallest = "d", .largest = "e", .bytes = 300}),
                            Make({.smallest = "f", .largest = "g", .bytes = 301}),
                            Make({.smallest = "h", .largest = "i", .bytes = 300}),
                            Make({.smallest = "n", .largest = "o", .bytes = 300})};
  // Between "i" and "n" lies "k", which none of them overlaps.
  const TableFiles lower = {Make({.smallest = "b", .largest = "b", .bytes = 3000}),
                            Make({.smallest = "e", .largest = "h", .bytes = 700}),
                            Make({.smallest = "k", .largest = "l", .bytes = 3000}),
                            Make({.smallest = "o", .largest = "o", .bytes = 3000})};
  const Tree tree = TwoLevels(upper, lower, 300);
  CompactionLimits limits = Limits();
  limits.job_bytes_max = 100'000;
  auto job = Pick(tree, limits);
  ASSERT_TRUE(job);
  EXPECT_EQ(Pointers(job->inputs[kLast - 1]), Pointers({upper.begin() + 1, upper.begin() + 4}));
  EXPECT_EQ(Pointers(job->inputs[kLast]), Pointers({lower[1]}));

  limits.job_bytes_max = 1301;
  job = Pick(tree, limits);
  ASSERT_TRUE(job);
  EXPECT_EQ(Pointers(job->inputs[kLast - 1]), Pointers({upper[1], upper[2]}));

  limits.job_bytes_max = 0;  // the least job is done all the same
  job = Pick(tree, limits);
  ASSERT_TRUE(job);
  EXPECT_EQ(Pointers(job->inputs[kLast - 1]), Pointers({upper[2]}));

  limits.job_bytes_max = 100'000;
  upper[1]->busy = true;
  job = Pick(tree, limits);
  ASSERT_TRUE(job);
  EXPECT_EQ(Pointers(job->inputs[kLast - 1]), Pointers({upper[2], upper[3]}));
}

TEST(CompactionPlan, ATableWithoutOverlapMovesUnlessWritingItAnewDropsSomething) {
  TableFiles upper = {Make({.smallest = "a", .largest = "b", .bytes = 900}),
                      Make({.smallest = "c", .largest = "d", .bytes = 900})};
  auto job = Pick(TwoLevels(upper, {}, 10'000), Limits());
  ASSERT_TRUE(job);
  EXPECT_TRUE(job->is_move());
  EXPECT_EQ(InputsOf(*job), 1U);

  CompactionLimits limits = Limits();
  limits.boundaries = {10};
  upper[0] = Make({.smallest = "a", .largest = "b", .bytes = 900, .deletes = 200});
  job = Pick(TwoLevels(upper, {}, 10'000), limits);
  ASSERT_TRUE(job);
  EXPECT_EQ(InputsOf(*job), 1U);
  EXPECT_TRUE(job->drops);
  EXPECT_FALSE(job->is_move());

  limits.boundaries = {9};  // its deletes may have to stay
  job = Pick(TwoLevels(upper, {}, 10'000), limits);
  ASSERT_TRUE(job);
  EXPECT_TRUE(job->is_move());
}

TEST(CompactionPlan, WhatLiesAboveTheBaseLevelMovesDownToTheNextLevelWithTables) {
  Tree tree;
  tree.levels[1] = Tables({{"a", "d"}});
  tree.levels[3] = Tables({{"c", "f"}});
  tree.levels[kLast] = Tables({{"g", "h"}});
  auto job = Pick(tree, Limits());
  ASSERT_TRUE(job);
  EXPECT_EQ(job->output_level, 3U);
  EXPECT_EQ(InputsOf(*job), 2U);

  tree.levels[1] = {};
  job = Pick(tree, Limits());
  ASSERT_TRUE(job);
  EXPECT_EQ(job->output_level, kLast);
  EXPECT_TRUE(job->is_move());
}

TEST(CompactionPlan, TheHighestScoreOfAllTreesWins) {
  auto small = std::make_shared<Tree>();
  small->keyspace = 3;
  small->levels[0] = Tables({{"a", "z"}, {"a", "z"}, {"a", "z"}, {"a", "z"}});  // 1.0
  auto large = std::make_shared<Tree>();
  *large = TwoLevels({Make({.smallest = "a", .largest = "b", .bytes = 1500})},
                     {Make({.smallest = "a", .largest = "b", .bytes = 100})}, 10'000);  // 1.5
  large->keyspace = 8;
  auto job = PickCompaction(Version({small, large}), Limits());
  ASSERT_TRUE(job);
  EXPECT_EQ(job->keyspace, 8U);

  for (int i = 0; i < 3; ++i) small->levels[0].push_back(Tables({{"a", "z"}})[0]);  // 1.75
  job = PickCompaction(Version({small, large}), Limits());
  ASSERT_TRUE(job);
  EXPECT_EQ(job->keyspace, 3U);

  for (const auto& table : small->levels[0]) table->busy = true;
  job = PickCompaction(Version({small, large}), Limits());
  ASSERT_TRUE(job);
  EXPECT_EQ(job->keyspace, 8U);
}

TEST(CompactionPlan, ADueLevel0ScoresByItsBytesToo) {
  Tree tree = TwoLevels({Make({.smallest = "a", .largest = "b", .bytes = 1500})},
                        {Make({.smallest = "a", .largest = "b", .bytes = 100})}, 10'000);
  for (int i = 0; i < 3; ++i) {
    tree.levels[0].push_back(Make({.smallest = "a", .largest = "b", .bytes = 800}));
  }
  auto job = Pick(tree, Limits());
  ASSERT_TRUE(job);
  EXPECT_EQ(job->output_level, kLast);  // three tables are not due, however large
  tree.levels[0].push_back(tree.levels[0].front());
  job = Pick(tree, Limits());
  ASSERT_TRUE(job);
  EXPECT_EQ(job->output_level, kLast - 1);
}

TEST(CompactionPlan, WhileLevel0WaitsNothingElseLeavesTheBaseLevel) {
  const TableFiles upper = {Make({.smallest = "a", .largest = "b", .bytes = 900}),
                            Make({.smallest = "c", .largest = "d", .bytes = 900}),
                            Make({.smallest = "e", .largest = "f", .bytes = 900})};
  const TableFiles lower = {Make({.smallest = "c", .largest = "d", .bytes = 100})};
  Tree tree = TwoLevels(upper, lower, 10'000);
  upper[0]->busy = true;
  EXPECT_TRUE(Pick(tree, Limits()));
  for (int i = 0; i < 12; ++i) tree.levels[0].push_back(Tables({{"a", "z"}})[0]);
  EXPECT_FALSE(Pick(tree, Limits()));
  upper[0]->busy = false;
  const auto job = Pick(tree, Limits());
  ASSERT_TRUE(job);
  EXPECT_EQ(job->inputs[0].size(), 12U);
}

// Tombstones

TEST(CompactionPlan, ATableOfMostlyDeletesIsPushedDownWhenSizeGivesNoJob) {
  const auto tree = [](uint64_t records, uint64_t deletes) {
    return TwoLevels(
        {Make({.smallest = "a", .largest = "b"}),
         Make({.smallest = "c", .largest = "d", .records = records, .deletes = deletes})},
        Tables({{"a", "b"}, {"c", "c"}}), 10'000);
  };
  EXPECT_FALSE(Pick(tree(1000, 500), Limits()));
  EXPECT_FALSE(Pick(tree(63, 63), Limits()));
  const Tree dense = tree(1000, 501);
  const auto job = Pick(dense, Limits());
  ASSERT_TRUE(job);
  EXPECT_EQ(job->reason, CompactionReason::kTombstones);
  EXPECT_EQ(job->output_level, kLast);
  EXPECT_EQ(Pointers(job->inputs[kLast - 1]), Pointers({dense.levels[kLast - 1][1]}));
  EXPECT_EQ(Pointers(job->inputs[kLast]), Pointers({dense.levels[kLast][1]}));
}

TEST(CompactionPlan, SizeGoesBeforeTombstones) {
  const Tree tree = TwoLevels({Make({.smallest = "a", .largest = "b", .bytes = 1000}),
                               Make({.smallest = "c", .largest = "d", .deletes = 900})},
                              Tables({{"c", "d"}}), 10'000);
  const auto job = Pick(tree, Limits());
  ASSERT_TRUE(job);
  EXPECT_EQ(job->reason, CompactionReason::kSize);
}

TEST(CompactionPlan, Level0IsPushedForItsDeletesIfThatIsNotTooExpensive) {
  Tree tree;
  tree.levels[0] = {Make({.smallest = "a", .largest = "d", .deletes = 400}),
                    Make({.smallest = "a", .largest = "d", .deletes = 601})};
  // Of the first table less than half is deletes: the other one's pay for eleven times as many.
  tree.levels[kLast] = {Make({.smallest = "a", .largest = "d", .records = 11 * 601 - 2000})};
  auto job = Pick(tree, Limits());
  ASSERT_TRUE(job);
  EXPECT_EQ(job->reason, CompactionReason::kTombstones);
  EXPECT_EQ(job->inputs[0].size(), 2U);

  tree.levels[kLast] = {Make({.smallest = "a", .largest = "d", .records = 11 * 601 - 1999})};
  EXPECT_FALSE(Pick(tree, Limits()));

  tree.levels[0][1] = Make({.smallest = "a", .largest = "d", .deletes = 500});
  tree.levels[kLast] = {};
  EXPECT_FALSE(Pick(tree, Limits()));
}

TEST(CompactionPlan, ATableMostlyUnderNewerRangeDeletesIsRewrittenWhereItIs) {
  const auto tree = [](const Table& table, std::vector<RangeDelete> ranges) {
    const TableFiles below = {Make({.smallest = "k100", .largest = "k200", .ranges_applied = 99})};
    Tree made = TwoLevels({Make(table)}, below, 10'000);
    made.range_deletes = RangeDeletes(std::move(ranges));
    return made;
  };
  const Table table{.smallest = "k100", .largest = "k200", .largest_sequence = 50};
  CompactionLimits limits = Limits();
  limits.boundaries = {60};

  auto job = Pick(tree(table, {{60, "k120", "k180"}}), limits);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->reason, CompactionReason::kTombstones);
  EXPECT_EQ(job->output_level, kLast - 1);
  EXPECT_EQ(InputsOf(*job), 1U);
  EXPECT_FALSE(job->is_move());

  // Together they cover more than half, also where they overlap.
  EXPECT_TRUE(Pick(tree(table, {{55, "k170", "k2"}, {60, "k100", "k140"}}), limits));
  EXPECT_FALSE(Pick(tree(table, {{55, "k100", "k135"}, {60, "k100", "k140"}}), limits));

  EXPECT_FALSE(Pick(tree(table, {{61, "k120", "k180"}}), limits)) << "somebody may read behind it";
  EXPECT_FALSE(Pick(tree(table, {{50, "k120", "k180"}}), limits)) << "not newer than the table";
  EXPECT_FALSE(Pick(tree(table, {{60, "k300", "k400"}}), limits));
  Table applied = table;
  applied.ranges_applied = 60;
  EXPECT_FALSE(Pick(tree(applied, {{60, "k120", "k180"}}), limits));
}

TEST(CompactionPlan, ATableWithOneKeyLiesUnderARangeDeleteOrNot) {
  CompactionLimits limits = Limits();
  limits.boundaries = {60};
  Tree tree = TwoLevels({Make({.smallest = "k", .largest = "k"})}, {}, 10'000);
  tree.range_deletes = RangeDeletes({{60, "a", "k"}});
  EXPECT_FALSE(Pick(tree, limits));
  tree.range_deletes = RangeDeletes({{60, "a", "l"}});
  EXPECT_TRUE(Pick(tree, limits));
}

// The last level

TEST(CompactionPlan, TheLastLevelIsRewrittenForDeletesThatNobodyNeeds) {
  Tree tree;
  tree.levels[kLast] = {Make({.smallest = "a", .largest = "b"}),
                        Make({.smallest = "c", .largest = "d", .deletes = 125})};
  CompactionLimits limits = Limits();
  limits.boundaries = {9};
  EXPECT_FALSE(Pick(tree, limits)) << "a delete of sequence 10 would have to stay";
  limits.boundaries = {10};
  const auto job = Pick(tree, limits);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->reason, CompactionReason::kTombstones);
  EXPECT_EQ(job->output_level, kLast);
  EXPECT_EQ(InputsOf(*job), 1U);
  EXPECT_EQ(job->inputs[kLast].front(), tree.levels[kLast][1]);
  EXPECT_FALSE(job->is_move());
  tree.levels[kLast][1]->busy = true;
  EXPECT_FALSE(Pick(tree, limits));
}

TEST(CompactionPlan, ForFewDeletesTheLastLevelWaitsADay) {
  Tree tree;
  tree.levels[kLast] = {Make({.smallest = "c", .largest = "d", .deletes = 1, .created_ms = 5000})};
  CompactionLimits limits = Limits();
  limits.boundaries = {10};
  limits.now_ms = 5000 + kDayMs - 1;
  EXPECT_FALSE(Pick(tree, limits));
  limits.now_ms += 1;
  EXPECT_TRUE(Pick(tree, limits));
  limits.boundaries = {9};
  EXPECT_FALSE(Pick(tree, limits));
}

TEST(CompactionPlan, WhereMergesMayKeepDeletesTheLastLevelWaitsADay) {
  Tree tree;
  tree.levels[kLast] = {Make({.smallest = "c",
                              .largest = "d",
                              .records = 3,
                              .deletes = 1,
                              .merges = 2,
                              .created_ms = 5000})};
  CompactionLimits limits = Limits();
  limits.boundaries = {10};
  limits.now_ms = 5000 + kDayMs - 1;
  EXPECT_FALSE(Pick(tree, limits));
  limits.now_ms += 1;
  EXPECT_TRUE(Pick(tree, limits));
}

TEST(CompactionPlan, TheLastLevelIsRewrittenForRangeDeletesThatWereNotAppliedToIt) {
  Tree tree;
  tree.levels[kLast] = {Make({.smallest = "k100",
                              .largest = "k200",
                              .smallest_sequence = 20,
                              .largest_sequence = 50,
                              .created_ms = 5000})};
  CompactionLimits limits = Limits();
  limits.boundaries = {60};
  limits.now_ms = 5000;
  tree.range_deletes = RangeDeletes({{60, "k150", "k165"}});
  EXPECT_TRUE(Pick(tree, limits));

  // A small part waits a day, unless there are many such ranges.
  tree.range_deletes = RangeDeletes({{60, "k150", "k151"}});
  EXPECT_FALSE(Pick(tree, limits));
  limits.now_ms = 5000 + kDayMs;
  EXPECT_TRUE(Pick(tree, limits));
  limits.now_ms = 5000;
  std::vector<RangeDelete> many(255, RangeDelete{60, "z", "zz"});
  many.push_back({60, "k150", "k151"});
  tree.range_deletes = RangeDeletes(many);
  EXPECT_TRUE(Pick(tree, limits));
  many.back().sequence = 61;
  tree.range_deletes = RangeDeletes(many);
  EXPECT_FALSE(Pick(tree, limits));
  many.back().sequence = 20;  // all of the table is newer
  tree.range_deletes = RangeDeletes(many);
  EXPECT_FALSE(Pick(tree, limits));
  limits.now_ms = 5000 + kDayMs;
  EXPECT_FALSE(Pick(tree, limits));

  tree.range_deletes = RangeDeletes({{60, "k150", "k151"}});
  EXPECT_TRUE(Pick(tree, limits));
  tree.levels[kLast] = {Make({.smallest = "k100",
                              .largest = "k200",
                              .smallest_sequence = 20,
                              .largest_sequence = 50,
                              .ranges_applied = 60,
                              .created_ms = 5000})};
  EXPECT_FALSE(Pick(tree, limits));
}

// Expiry

TEST(CompactionPlan, AMostlyExpiredTableIsPushedDown) {
  const Tree tree = TwoLevels({Make({.smallest = "a", .largest = "b", .half_expired_ms = 7000})},
                              Tables({{"a", "b"}}), 10'000);
  CompactionLimits limits = Limits();
  limits.now_ms = 6999;
  EXPECT_FALSE(Pick(tree, limits));
  limits.now_ms = 7000;
  const auto job = Pick(tree, limits);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->reason, CompactionReason::kExpired);
  EXPECT_EQ(job->output_level, kLast);
  EXPECT_EQ(InputsOf(*job), 2U);
}

TEST(CompactionPlan, AMostlyExpiredTableOfTheLastLevelIsRewrittenAlone) {
  Tree tree;
  tree.levels[kLast] = {Make({.smallest = "a", .largest = "b", .half_expired_ms = 7000})};
  CompactionLimits limits = Limits();
  limits.boundaries = {0};  // a reader before it sees nothing of what has expired either
  limits.now_ms = 6999;
  EXPECT_FALSE(Pick(tree, limits));
  limits.now_ms = 7000;
  const auto job = Pick(tree, limits);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->reason, CompactionReason::kExpired);
  EXPECT_EQ(job->output_level, kLast);
  EXPECT_FALSE(job->is_move());
}

TEST(CompactionPlan, NeighboursThatAreDueAreRewrittenTogether) {
  Tree tree;
  for (const auto& [smallest, largest] :
       {std::pair("a", "b"), {"c", "d"}, {"e", "f"}, {"g", "h"}}) {
    tree.levels[kLast].push_back(
        Make({.smallest = smallest, .largest = largest, .half_expired_ms = 7000}));
  }
  const TableFiles& tables = tree.levels[kLast];
  CompactionLimits limits = Limits();
  limits.now_ms = 7000;
  const auto picked = [&] {
    const auto job = Pick(tree, limits);
    return job ? InputsOf(*job) : 0;
  };
  EXPECT_EQ(picked(), 4U);
  limits.job_bytes_max = 299;
  EXPECT_EQ(picked(), 2U);
  limits.job_bytes_max = 1000;
  tables[3]->busy = true;
  EXPECT_EQ(picked(), 3U);
  tree.levels[kLast][2] = Make({.smallest = "e", .largest = "f"});
  EXPECT_EQ(picked(), 2U);
  // Another job may write between the first two.
  CompactionJob running;
  running.output_level = kLast;
  running.inputs[kLast - 1] = Tables({{"bb", "bc"}});
  const CompactionJob* const jobs[] = {&running};
  const auto job = Pick(tree, limits, jobs);
  ASSERT_TRUE(job);
  EXPECT_EQ(InputsOf(*job), 1U);
}

TEST(CompactionPlan, WhatHadExpiredWhenItsTableWasWrittenIsTriedAgainAfterADay) {
  Table table{.smallest = "a",
              .largest = "b",
              .expiring = 501,
              .latest_expiry_ms = 7000,
              .created_ms = 7000};
  CompactionLimits limits = Limits();
  limits.boundaries = {10};
  const auto is_due = [&] {
    Tree tree;
    tree.levels[kLast] = {Make(table)};
    return Pick(tree, limits).has_value();
  };
  limits.now_ms = 7000 + kDayMs - 1;
  EXPECT_FALSE(is_due());
  limits.now_ms = 7000 + kDayMs;
  EXPECT_TRUE(is_due());
  limits.boundaries = {9};
  EXPECT_FALSE(is_due()) << "somebody may need what it hides";
  limits.boundaries = {10};
  table.expiring = 500;
  EXPECT_FALSE(is_due()) << "not most of it";
}

TEST(CompactionPlan, Level0IsPushedForWhatExpired) {
  Tree tree;
  tree.levels[0] = {Make({.smallest = "a", .largest = "b", .half_expired_ms = 7001}),
                    Make({.smallest = "a", .largest = "b"})};
  CompactionLimits limits = Limits();
  limits.now_ms = 7000;
  EXPECT_FALSE(Pick(tree, limits));
  limits.now_ms = 7001;
  const auto job = Pick(tree, limits);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->reason, CompactionReason::kExpired);
  // Not where that means to read more than the tenfold.
  tree.levels[kLast] = {Make({.smallest = "a", .largest = "b", .raw_bytes = 350'001})};
  EXPECT_FALSE(Pick(tree, limits));
  tree.levels[kLast] = {Make({.smallest = "a", .largest = "b", .raw_bytes = 350'000})};
  EXPECT_TRUE(Pick(tree, limits));
}

// Snapshots

/// Of 100,000 bytes, `bytes` at 20 are hidden by versions up to 40.
Table WithRetained(uint64_t bytes) {
  Table table{.smallest = "a", .largest = "b", .retained_bytes = bytes, .largest_sequence = 50};
  table.retained.Add(20, 41, bytes);
  return table;
}

TEST(CompactionPlan, WhatWasKeptForASnapshotGoesWithItInAnyLevel) {
  for (const size_t level : {kLast - 1, kLast}) {
    SCOPED_TRACE(level);
    Tree tree;
    tree.levels[level] = {Make(WithRetained(12'500))};
    if (level < kLast) {
      tree.levels[kLast] = {Make({.smallest = "a", .largest = "b", .bytes = 10'000})};
    }
    CompactionLimits limits = Limits();
    limits.boundaries = {20, 60};
    EXPECT_FALSE(Pick(tree, limits));
    limits.boundaries = {30, 60};
    EXPECT_FALSE(Pick(tree, limits));
    limits.boundaries = {10, 41, 60};
    const auto job = Pick(tree, limits);
    ASSERT_TRUE(job);
    EXPECT_EQ(job->reason, CompactionReason::kSnapshots);
    EXPECT_EQ(job->output_level, level);
    EXPECT_EQ(InputsOf(*job), 1U);
    EXPECT_FALSE(job->is_move());
    tree.levels[level] = {Make(WithRetained(12'499))};
    EXPECT_FALSE(Pick(tree, limits)) << "less than an eighth";
  }
}

TEST(CompactionPlan, WhatAnEarlierOpeningKeptForSnapshotsGoes) {
  Table table = WithRetained(12'500);
  table.retained = {};
  Tree tree;
  tree.levels[kLast] = {Make(table)};
  CompactionLimits limits = Limits();
  limits.boundaries = {49};
  EXPECT_FALSE(Pick(tree, limits));
  limits.boundaries = {50};
  EXPECT_TRUE(Pick(tree, limits));
}

TEST(CompactionPlan, Level0IsPushedForWhatSnapshotsKept) {
  Tree tree;
  tree.levels[0] = {Make(WithRetained(50'001)), Make({.smallest = "a", .largest = "b"})};
  CompactionLimits limits = Limits();
  limits.boundaries = {20, 60};
  EXPECT_FALSE(Pick(tree, limits));
  limits.boundaries = {60};
  const auto job = Pick(tree, limits);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->reason, CompactionReason::kSnapshots);
  EXPECT_EQ(InputsOf(*job), 2U);
}

// Age

TEST(CompactionPlan, ATableThatWasNotRewrittenForAMonthIsPushedDown) {
  Tree tree = TwoLevels({Make({.smallest = "a", .largest = "b", .created_ms = 1})},
                        Tables({{"a", "b"}}), 10'000);
  CompactionLimits limits = Limits();
  limits.now_ms = 30 * kDayMs;
  EXPECT_FALSE(Pick(tree, limits));
  limits.now_ms += 1;
  auto job = Pick(tree, limits);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->reason, CompactionReason::kAge);
  EXPECT_EQ(InputsOf(*job), 2U);

  Tree level0;
  level0.levels[0] = {Make({.smallest = "a", .largest = "b", .created_ms = 2}),
                      Make({.smallest = "a", .largest = "b", .created_ms = 1})};
  job = Pick(level0, limits);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->reason, CompactionReason::kAge);
  EXPECT_EQ(job->inputs[0].size(), 2U);

  Tree last;
  last.levels[kLast] = {Make({.smallest = "a", .largest = "b", .created_ms = 1})};
  EXPECT_FALSE(Pick(last, limits));
}

TEST(CompactionPlan, TimeAloneMakesATableDueOnlyAtAForetoldMoment) {
  constexpr uint64_t kStepMs = kDayMs / 4;
  constexpr uint64_t kSteps = 4 * 40;
  uint64_t foretold = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    base::Random random(seed);
    Tree tree;
    for (const size_t level : {size_t{0}, kLast - 1, kLast}) {
      const char* const keys[] = {"a", "b", "c", "d", "e", "f"};
      for (size_t i = random.Below(3); i < 3; ++i) {
        tree.levels[level].push_back(Make({.smallest = keys[2 * i],
                                           .largest = keys[2 * i + 1],
                                           .bytes = level == kLast ? 10'000U : 100U,
                                           .deletes = random.OneIn(4) ? random.Below(400) : 0,
                                           .expiring = random.OneIn(2) ? random.Below(1001) : 0,
                                           .latest_expiry_ms = random.Below(kSteps) * kStepMs,
                                           .half_expired_ms = random.Below(kSteps) * kStepMs,
                                           .created_ms = random.Below(20) * kStepMs}));
      }
    }
    const Version version = VersionOf(tree);
    CompactionLimits limits = Limits();
    limits.boundaries = {10};
    // Time goes on while nothing is done.
    std::optional<uint64_t> next_ms;  // foretold when nothing was due
    for (uint64_t step = 20; step < kSteps; ++step) {
      limits.now_ms = step * kStepMs;
      const bool is_due = PickCompaction(version, limits).has_value();
      if (is_due && next_ms) {
        EXPECT_GT(*next_ms, limits.now_ms - kStepMs) << "seed " << seed;
        EXPECT_LE(*next_ms, limits.now_ms) << "seed " << seed << ": it would have been missed";
        ++foretold;
      }
      if (is_due) break;
      next_ms = NextDueMs(version, limits.now_ms);
      EXPECT_TRUE(*next_ms == 0 || *next_ms > limits.now_ms);
    }
  }
  EXPECT_GT(foretold, 50U);
  EXPECT_EQ(NextDueMs(Version(), 0), 0U);
}

// Ranges

std::optional<CompactionJob> PickAll(const Tree& tree, const CompactionLimits& limits = {}) {
  bool busy = false;
  return PickRange(tree, std::nullopt, std::nullopt, &busy, limits);
}

TEST(CompactionPlan, ARangeTakesEveryLevelDownToTheLast) {
  Tree tree;
  tree.levels[0] = Tables({{"e", "f"}, {"x", "y"}, {"f", "h"}});
  tree.levels[3] = Tables({{"a", "b"}, {"g", "k"}, {"l", "m"}});
  tree.levels[kLast] = Tables({{"a", "c"}, {"d", "d"}, {"j", "l"}, {"m", "n"}});
  bool busy = true;
  auto job = PickRange(tree, "d", "e", &busy);
  ASSERT_TRUE(job);
  EXPECT_FALSE(busy);
  EXPECT_EQ(job->reason, CompactionReason::kManual);
  EXPECT_EQ(job->output_level, kLast);
  EXPECT_EQ(Pointers(job->inputs[0]), Pointers({tree.levels[0][0], tree.levels[0][2]}));
  EXPECT_EQ(Pointers(job->inputs[3]), Pointers({tree.levels[3][1]}));
  EXPECT_EQ(Pointers(job->inputs[kLast]), Pointers({tree.levels[kLast][1], tree.levels[kLast][2]}));

  job = PickAll(tree);
  ASSERT_TRUE(job);
  EXPECT_EQ(InputsOf(*job), 10U);

  tree.levels[3][1]->busy = true;
  EXPECT_FALSE(PickRange(tree, "d", "e", &busy));
  EXPECT_TRUE(busy);
  job = PickRange(tree, "x", "y", &busy);
  ASSERT_TRUE(job);
  EXPECT_TRUE(job->is_move());
  EXPECT_FALSE(PickRange(tree, "o", "p", &busy));
  EXPECT_FALSE(busy);
}

TEST(CompactionPlan, ARangeTakesWhatIsOlderAlongAndLeavesWhatIsNewer) {
  Tree tree;
  tree.levels[0] = Tables({{"g", "i"}, {"c", "h"}, {"f", "k"}, {"j", "m"}, {"p", "q"}});
  bool busy = false;
  const auto job = PickRange(tree, "a", "d", &busy);
  ASSERT_TRUE(job);
  EXPECT_EQ(Pointers(job->inputs[0]),
            Pointers({tree.levels[0].begin() + 1, tree.levels[0].begin() + 4}));
}

TEST(CompactionPlan, ARangeOfTheLastLevelAloneIsRewrittenOnlyForWhatItDrops) {
  Tree tree;
  tree.levels[kLast] = {Make({.smallest = "a", .largest = "b"}),
                        Make({.smallest = "c", .largest = "d", .deletes = 1}),
                        Make({.smallest = "e", .largest = "f"}),
                        Make({.smallest = "g", .largest = "h", .deletes = 1}),
                        Make({.smallest = "i", .largest = "j"})};
  EXPECT_FALSE(PickAll(tree));
  CompactionLimits limits;
  limits.boundaries = {10};
  const auto job = PickAll(tree, limits);
  ASSERT_TRUE(job);
  EXPECT_EQ(Pointers(job->inputs[kLast]),
            Pointers({tree.levels[kLast].begin() + 1, tree.levels[kLast].begin() + 4}));
  bool busy = false;
  EXPECT_FALSE(PickRange(tree, "e", "f", &busy, limits));
  EXPECT_FALSE(PickAll(Tree(), limits));
}

TEST(CompactionPlan, ARangeOfTheLastLevelIsRewrittenForOneExpiredRecordOrRetainedByte) {
  CompactionLimits limits;
  limits.now_ms = 7000;
  limits.boundaries = {20, 60};
  Tree tree;
  tree.levels[kLast] = {Make({.smallest = "a", .largest = "b", .earliest_expiry_ms = 7001})};
  EXPECT_FALSE(PickAll(tree, limits));
  tree.levels[kLast] = {Make({.smallest = "a", .largest = "b", .earliest_expiry_ms = 7000})};
  EXPECT_TRUE(PickAll(tree, limits));
  tree.levels[kLast] = {Make(WithRetained(1))};
  EXPECT_FALSE(PickAll(tree, limits));
  limits.boundaries = {60};
  EXPECT_TRUE(PickAll(tree, limits));
}

// Several jobs

TEST(CompactionPlan, NoTwoJobsWriteOverlappingTablesOfOneLevel) {
  // The first takes both tables of level 4 to level 5, with a gap between them.
  Tree tree;
  tree.levels[4] = Tables({{"a", "c"}, {"x", "z"}});
  CompactionJob running;
  running.output_level = kLast;
  running.inputs[4] = tree.levels[4];
  for (const auto& table : tree.levels[4]) table->busy = true;
  const CompactionJob* const jobs[] = {&running};
  tree.levels[0] = Tables({{"m", "n"}, {"m", "o"}, {"m", "p"}, {"m", "q"}});
  EXPECT_TRUE(Pick(tree, Limits()));
  EXPECT_FALSE(Pick(tree, Limits(), jobs));
  bool busy = false;
  EXPECT_TRUE(PickRange(tree, "m", "n", &busy));
  EXPECT_FALSE(PickRange(tree, "m", "n", &busy, {}, jobs));
  EXPECT_TRUE(busy);

  running.keyspace = 1;  // another tree's
  EXPECT_TRUE(Pick(tree, Limits(), jobs));
}

TEST(CompactionPlan, ANeighbourBehindARunningJobStaysWhereItIs) {
  const Tree tree = TwoLevels({Make({.smallest = "a", .largest = "c", .created_ms = 1}),
                               Make({.smallest = "o", .largest = "p"})},
                              Tables({{"b", "c"}}), 10'000);
  CompactionLimits limits = Limits();
  limits.now_ms = 40 * kDayMs;
  auto job = Pick(tree, limits);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->reason, CompactionReason::kAge);
  EXPECT_EQ(job->inputs[kLast - 1].size(), 2U);

  CompactionJob running;
  running.output_level = kLast;
  running.inputs[0] = Tables({{"m", "n"}});
  const CompactionJob* const jobs[] = {&running};
  job = Pick(tree, limits, jobs);
  ASSERT_TRUE(job);
  EXPECT_EQ(Pointers(job->inputs[kLast - 1]), Pointers({tree.levels[kLast - 1][0]}));
}

// Debt

TEST(CompactionPlan, DebtIsWhatIsTooMuchAndWhatItMeets) {
  Tree tree;
  tree.levels[0] = Tables({{"a", "f"}, {"a", "f"}, {"a", "f"}});
  tree.levels[kLast] = {Make({.smallest = "a", .largest = "b", .bytes = 700}),
                        Make({.smallest = "c", .largest = "d", .bytes = 500}),
                        Make({.smallest = "k", .largest = "l", .bytes = 3000})};
  EXPECT_EQ(CompactionDebt(VersionOf(tree), Limits()), 0U);
  tree.levels[0].push_back(Tables({{"a", "f"}})[0]);
  EXPECT_EQ(CompactionDebt(VersionOf(tree), Limits()), 400U + 1200U);

  // 500 bytes too many in the base level, a third of it, meet a third of the last.
  tree = TwoLevels({Make({.smallest = "a", .largest = "b", .bytes = 1500})}, {}, 10'000);
  EXPECT_EQ(CompactionDebt(VersionOf(tree), Limits()), 500U + 3333U);

  // Above the base level everything is too much.
  tree = Tree();
  tree.levels[2] = Tables({{"a", "f"}});
  tree.levels[kLast] = Tables({{"b", "c"}, {"k", "l"}});
  EXPECT_EQ(CompactionDebt(VersionOf(tree), Limits()), 100U + 100U);
}

// Random trees

/// The range in which a job's outputs lie.
bool Touches(const CompactionJob& job, const TableFile& table) {
  return table.properties().largest_key >= job.smallest_key() &&
         table.properties().smallest_key <= job.largest_key();
}

bool Overlap(const TableFile& a, const TableFile& b) {
  return a.properties().smallest_key <= b.properties().largest_key &&
         b.properties().smallest_key <= a.properties().largest_key;
}

/// The rule of CompactionJob, table by table.
void CheckClosed(const Tree& tree, const CompactionJob& job) {
  std::set<const TableFile*> inputs;
  for (size_t level = 0; level < Tree::kLevels; ++level) {
    size_t last = 0;
    for (const auto& table : job.inputs[level]) {
      ASSERT_LE(level, job.output_level);
      ASSERT_FALSE(table->busy);
      ASSERT_TRUE(inputs.insert(table.get()).second);
      const auto at = std::ranges::find(tree.levels[level], table) - tree.levels[level].begin();
      ASSERT_LT(static_cast<size_t>(at), tree.levels[level].size());
      ASSERT_GE(static_cast<size_t>(at), last) << "inputs of a level keep its order";
      last = static_cast<size_t>(at);
    }
  }
  ASSERT_FALSE(inputs.empty());
  for (size_t level = 0; level < job.output_level; ++level) {
    for (const auto& input : job.inputs[level]) {
      for (size_t older = level; older < job.output_level; ++older) {
        bool behind = older > level;
        for (const auto& table : tree.levels[older]) {
          if (behind && Overlap(*input, *table)) {
            ASSERT_TRUE(inputs.contains(table.get()));
          }
          behind = behind || table == input;  // only level 0's tables overlap one another
        }
      }
    }
  }
  for (const auto& table : tree.levels[job.output_level]) {
    if (Touches(job, *table)) {
      ASSERT_TRUE(inputs.contains(table.get()));
    }
  }
  if (job.is_move()) {
    ASSERT_EQ(inputs.size(), 1U);
  }
}

std::shared_ptr<TableFile> RandomTable(base::Random* random, uint64_t first, uint64_t last,
                                       base::SequenceNumber newest) {
  Table table{.smallest = Key(first), .largest = Key(last)};
  table.bytes = 1 + random->Below(200);
  table.records = 1 + random->Below(300);
  if (random->OneIn(4)) table.deletes = random->Below(table.records + 1);
  if (random->OneIn(8)) {
    table.expiring = random->Below(table.records + 1);
    table.latest_expiry_ms = 1 + random->Below(60 * kDayMs);
    table.half_expired_ms = table.latest_expiry_ms;
  }
  if (random->OneIn(8)) {
    table.retained_bytes = random->Below(table.raw_bytes);
    table.retained.Add(newest - 5, newest, table.retained_bytes);
  }
  table.largest_sequence = newest;
  table.smallest_sequence = newest - random->Below(10);
  table.ranges_applied = random->Below(2000);
  table.created_ms = random->Below(60 * kDayMs);
  return Make(table);
}

Tree RandomTree(base::Random* random, uint32_t keyspace) {
  constexpr uint64_t kKeys = 400;
  Tree tree;
  tree.keyspace = keyspace;
  for (uint64_t i = 0, tables = random->Below(8); i < tables; ++i) {
    const uint64_t first = random->Below(kKeys);
    const uint64_t last = std::min(kKeys, first + random->Below(random->OneIn(3) ? kKeys : 30));
    tree.levels[0].push_back(RandomTable(random, first, last, 1000 - i * 10));
  }
  const bool is_young = random->OneIn(8);
  for (size_t level = 1; level < Tree::kLevels; ++level) {
    if (is_young || random->OneIn(3)) continue;
    std::set<uint64_t> ends;
    for (uint64_t i = 0, count = random->Below(level * 12); i < count; ++i) {
      ends.insert(random->Below(kKeys));
    }
    for (auto end = ends.begin(); end != ends.end(); ++end) {
      const uint64_t first = *end;
      if (!random->OneIn(3) && std::next(end) != ends.end()) ++end;  // else it has one key
      tree.levels[level].push_back(RandomTable(random, first, *end, 900 - level * 100));
    }
  }
  std::vector<RangeDelete> ranges;
  for (uint64_t i = 0, count = random->Below(6); i < count; ++i) {
    const uint64_t first = random->Below(kKeys);
    ranges.push_back({random->Below(1500), Key(first), Key(first + random->Below(60))});
  }
  tree.range_deletes = RangeDeletes(std::move(ranges));
  if (!tree.levels[0].empty()) tree.levels[0].back()->AddScanCost(random->Below(100'000));
  return tree;
}

TEST(CompactionPlan, JobsOfRandomTreesAreClosedAndDisjoint) {
  size_t jobs_of_reason[7] = {};
  size_t together = 0;
  for (uint64_t seed = 1; seed <= 4000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    base::Random random(seed);
    Version::Trees trees;
    for (uint32_t keyspace = 0; keyspace < 1 + random.Below(2); ++keyspace) {
      trees.push_back(std::make_shared<const Tree>(RandomTree(&random, TreeOf(keyspace))));
      ASSERT_TRUE(trees.back()->CheckOrder().ok());
    }
    const Version version(trees);
    const CompactionLimits limits{.level0_tables = 1 + random.Below(8),
                                  .base_bytes = random.Below(2000),
                                  .job_bytes_max = random.Below(4000),
                                  .now_ms = random.Below(70 * kDayMs),
                                  .boundaries = {random.Below(1500)}};
    std::vector<CompactionJob> jobs;
    jobs.reserve(100);
    std::vector<const CompactionJob*> running;
    while (jobs.size() < 100) {
      std::optional<CompactionJob> job;
      if (random.OneIn(4)) {
        const uint64_t first = random.Below(400);
        bool busy = false;
        job = PickRange(*version.trees().front(), Key(first), Key(first + random.Below(100)), &busy,
                        limits, running);
        if (job) {
          ASSERT_FALSE(busy);
        }
      }
      if (!job) job = PickCompaction(version, limits, running);
      if (!job) break;
      const Tree* const tree = version.tree(job->keyspace);
      ASSERT_NE(tree, nullptr);
      ASSERT_NO_FATAL_FAILURE(CheckClosed(*tree, *job));
      for (const CompactionJob* other : running) {
        if (other->keyspace != job->keyspace || other->output_level != job->output_level) continue;
        ASSERT_TRUE(other->largest_key() < job->smallest_key() ||
                    job->largest_key() < other->smallest_key());
      }
      for (const TableFiles& tables : job->inputs) {
        for (const auto& table : tables) table->busy = true;
      }
      ++jobs_of_reason[static_cast<size_t>(job->reason)];
      together += running.empty() ? 0 : 1;
      jobs.push_back(*std::move(job));
      running.push_back(&jobs.back());
    }
    ASSERT_LT(jobs.size(), 100U);
    CompactionDebt(version, limits);
  }
  for (const size_t jobs : jobs_of_reason) EXPECT_GT(jobs, 100U);
  EXPECT_GT(together, 1000U);
}

// A database in miniature: tables with records in them, and jobs that are carried out.

struct Record {
  std::string key;
  base::SequenceNumber sequence = 0;
  bool is_delete = false;
  uint64_t expiry_ms = 0;
};

class Miniature {
 public:
  explicit Miniature(uint64_t seed) : random_(seed) {}

  CompactionLimits limits{.level0_tables = 4, .base_bytes = 600, .job_bytes_max = 600};
  uint64_t table_records = 40;
  bool overwritten_versions_go = true;
  uint64_t flushed = 0;  // records
  uint64_t written = 0;  // by jobs, without those moved
  uint64_t jobs_done = 0;

  void Put(const std::string& key, bool is_delete = false, uint64_t expiry_ms = 0) {
    memtable_.push_back({key, ++sequence_, is_delete, expiry_ms});
    newest_[key] = memtable_.back();
  }
  void DeleteRange(const std::string& begin, const std::string& end) {
    ranges_.push_back({++sequence_, begin, end});
    for (auto at = newest_.lower_bound(begin); at != newest_.end() && at->first < end; ++at) {
      at->second.is_delete = true;
    }
  }
  base::SequenceNumber sequence() const { return sequence_; }
  const Tree& tree() const { return tree_; }

  void Flush() {
    if (!memtable_.empty()) {
      Sort(&memtable_);
      flushed += memtable_.size();
      tree_.levels[0].insert(tree_.levels[0].begin(), MakeTable(std::exchange(memtable_, {}), 0));
    }
    tree_.range_deletes = RangeDeletes(ranges_);
  }

  /// Begins a job if one is due and there are fewer than `jobs`, else ends one; false: neither.
  bool Step(size_t jobs) {
    if (running_.size() < jobs) {
      std::vector<const CompactionJob*> others;
      for (const auto& job : running_) others.push_back(&job->plan);
      std::optional<CompactionJob> plan = Pick(tree_, limits, others);
      if (plan) {
        CheckClosed(tree_, *plan);
        running_.push_back(
            std::make_unique<Running>(*std::move(plan), tree_, limits.oldest_needed()));
        for (const TableFiles& tables : running_.back()->plan.inputs) {
          for (const auto& table : tables) table->busy = true;
        }
        return true;
      }
    }
    if (running_.empty()) return false;
    const auto at = running_.begin() + static_cast<ptrdiff_t>(random_.Below(running_.size()));
    Carry(**at);
    running_.erase(at);
    return true;
  }

  /// What a reader finds must be what was written last.
  void CheckContents() const {
    ASSERT_TRUE(tree_.CheckOrder().ok()) << tree_.CheckOrder().ToString();
    for (const auto& [key, newest] : newest_) {
      const Record* found = nullptr;
      for (size_t level = 0; level < Tree::kLevels && found == nullptr; ++level) {
        for (const auto& table : tree_.levels[level]) {
          found = FindIn(*table, key);
          if (found != nullptr) break;
        }
      }
      const bool live = found != nullptr && !found->is_delete && !Expired(*found) &&
                        tree_.range_deletes.SequenceAt(key, base::kMaxSequence) < found->sequence;
      ASSERT_EQ(live, !newest.is_delete && !Expired(newest)) << key;
      if (live) {
        ASSERT_EQ(found->sequence, newest.sequence) << key;
      }
    }
  }

  /// Records of any kind in the tables.
  uint64_t Stored() const {
    uint64_t records = 0;
    for (const TableFiles& tables : tree_.levels) {
      for (const auto& table : tables) records += table->properties().records;
    }
    return records;
  }
  uint64_t Live() const {
    return static_cast<uint64_t>(std::ranges::count_if(newest_, [this](const auto& entry) {
      return !entry.second.is_delete && !Expired(entry.second);
    }));
  }

 private:
  struct Running {
    Running(CompactionJob job, Tree from, base::SequenceNumber needed)
        : plan(std::move(job)), begun(std::move(from)), oldest_needed(needed) {
      begun.IndexLevels();
    }
    CompactionJob plan;
    Tree begun;
    base::SequenceNumber oldest_needed;
  };

  bool Expired(const Record& record) const {
    return record.expiry_ms > 0 && record.expiry_ms <= limits.now_ms;
  }
  static void Sort(std::vector<Record>* records) {
    std::ranges::sort(*records, [](const Record& a, const Record& b) {
      return a.key != b.key ? a.key < b.key : a.sequence > b.sequence;
    });
  }

  const Record* FindIn(const TableFile& table, const std::string& key) const {
    const std::vector<Record>& records = contents_.at(&table);
    const auto at = std::ranges::lower_bound(records, key, {}, &Record::key);
    return at != records.end() && at->key == key ? &*at : nullptr;
  }

  std::shared_ptr<TableFile> MakeTable(std::vector<Record> records,
                                       base::SequenceNumber ranges_applied) {
    Table table{.smallest = records.front().key, .largest = records.back().key};
    table.bytes = table.records = table.raw_bytes = records.size();
    ExpiryProfile expiry;
    table.smallest_sequence = base::kMaxSequence;
    table.largest_sequence = 0;
    for (const Record& record : records) {
      table.deletes += record.is_delete ? 1 : 0;
      table.expiring += record.expiry_ms > 0 ? 1 : 0;
      table.latest_expiry_ms = std::max(table.latest_expiry_ms, record.expiry_ms);
      if (record.expiry_ms > limits.now_ms) expiry.Add(record.expiry_ms, 1);
      table.smallest_sequence = std::min(table.smallest_sequence, record.sequence);
      table.largest_sequence = std::max(table.largest_sequence, record.sequence);
    }
    table.ranges_applied = ranges_applied;
    table.created_ms = limits.now_ms;
    table.half_expired_ms = expiry.HalfExpiredMs(table.raw_bytes);
    auto made = Make(table);
    contents_[made.get()] = std::move(records);
    kept_.push_back(made);
    return made;
  }

  /// What SurvivingRecords leaves, for one boundary.
  std::vector<Record> Survivors(const Running& running) const {
    std::vector<Record> records;
    for (const TableFiles& tables : running.plan.inputs) {
      for (const auto& table : tables) {
        const std::vector<Record>& more = contents_.at(table.get());
        records.insert(records.end(), more.begin(), more.end());
      }
    }
    Sort(&records);
    std::vector<Record> survivors;
    std::string hidden;
    for (Record& record : records) {
      if (record.key == hidden) continue;
      if (record.sequence <= running.oldest_needed) {
        hidden = record.key;
        if (running.begun.range_deletes.SequenceAt(record.key, running.oldest_needed) >
            record.sequence) {
          continue;
        }
        if (Expired(record)) {
          record.is_delete = true;
          record.expiry_ms = 0;
        }
        bool is_bottom = true;
        for (size_t level = running.plan.output_level + 1; level < Tree::kLevels; ++level) {
          is_bottom = is_bottom && running.begun.Find(level, record.key) == nullptr;
        }
        if (record.is_delete && is_bottom) continue;
      }
      survivors.push_back(record);
    }
    return survivors;
  }

  void Carry(const Running& running) {
    ++jobs_done;
    const CompactionJob& job = running.plan;
    TableFiles outputs;
    if (job.is_move()) {
      for (const TableFiles& tables : job.inputs) {
        outputs.insert(outputs.end(), tables.begin(), tables.end());
      }
    } else {
      const std::vector<Record> survivors = Survivors(running);
      written += survivors.size();
      for (auto at = survivors.begin(); at != survivors.end();) {
        auto end = survivors.end() - at > static_cast<ptrdiff_t>(table_records)
                       ? at + static_cast<ptrdiff_t>(table_records)
                       : survivors.end();
        while (end != survivors.end() && end->key == std::prev(end)->key) ++end;
        outputs.push_back(MakeTable({at, end}, running.oldest_needed));
        at = end;
      }
    }
    for (size_t level = 0; level < Tree::kLevels; ++level) {
      for (const auto& table : job.inputs[level]) {
        table->busy = false;
        std::erase(tree_.levels[level], table);
      }
    }
    TableFiles& output = tree_.levels[job.output_level];
    output.insert(output.end(), outputs.begin(), outputs.end());
    std::ranges::sort(output, {},
                      [](const auto& table) { return table->properties().smallest_key; });
  }

  base::Random random_;
  Tree tree_;
  base::SequenceNumber sequence_ = 0;
  std::vector<Record> memtable_;
  std::vector<RangeDelete> ranges_;
  std::map<std::string, Record> newest_;
  std::vector<std::unique_ptr<Running>> running_;
  std::map<const TableFile*, std::vector<Record>> contents_;
  TableFiles kept_;  // so that no two have one address
};

TEST(CompactionPlan, RandomHistoriesKeepTheirContentsAndComeToRest) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    base::Random random(seed);
    Miniature database(seed * 7);
    database.limits.now_ms = kDayMs;
    database.limits.base_bytes = 50 + random.Below(500);
    database.limits.level0_tables = 1 + random.Below(6);
    const uint64_t keys = 50 + random.Below(3000);
    const size_t jobs = 1 + random.Below(4);
    for (int flush = 0; flush < 120; ++flush) {
      for (uint64_t i = 0, count = 1 + random.Below(80); i < count; ++i) {
        const std::string key = Key(random.Below(keys));
        const uint64_t kind = random.Below(10);
        database.Put(key, kind < 3,
                     kind == 9 ? database.limits.now_ms + random.Below(1000) + 1 : 0);
      }
      if (random.OneIn(8)) {
        const uint64_t first = random.Below(keys);
        database.DeleteRange(Key(first), Key(first + random.Below(keys / 4)));
      }
      database.Flush();
      database.limits.now_ms += random.OneIn(10) ? random.Below(kDayMs) : 10;
      // A snapshot may hold the boundary back for a while.
      if (random.OneIn(3)) database.limits.boundaries = {database.sequence()};
      const TableFiles& level0 = database.tree().levels[0];
      if (!level0.empty() && random.OneIn(4)) level0.back()->AddScanCost(random.Below(5000));
      for (uint64_t i = 0, steps = random.Below(12); i < steps; ++i) database.Step(jobs);
      ASSERT_NO_FATAL_FAILURE(database.CheckContents());
    }
    for (size_t month = 0; month <= Tree::kLevels; ++month) {  // in each, all go one level down
      if (month > 0) {
        database.limits.now_ms += 31 * kDayMs;
        database.limits.boundaries = {database.sequence()};
      }
      size_t steps = 0;
      while (database.Step(jobs)) ASSERT_LT(++steps, 20'000U) << "does not come to rest";
      ASSERT_NO_FATAL_FAILURE(database.CheckContents());
    }
    // Everything lies in the last level now, and nothing dead is left there.
    for (size_t level = 0; level < kLast; ++level)
      EXPECT_TRUE(database.tree().levels[level].empty());
    for (const auto& table : database.tree().levels[kLast]) {
      EXPECT_EQ(table->properties().deletes, 0U);
      EXPECT_LE(table->properties().expiring, table->properties().records / 2);
    }
    EXPECT_LE(database.Stored(), database.Live() * 2);
  }
}

TEST(CompactionPlan, ARewrittenTableIsNotRewrittenAgain) {
  Miniature database(1);
  database.limits.now_ms = 1000;
  for (uint64_t i = 0; i < 1000; ++i) database.Put(Key(i), false, i % 4 == 0 ? 0 : 5000);
  for (int i = 0; i < 4; ++i) {  // four tables make level 0 due
    database.Put(Key(2000), false);
    database.Flush();
  }
  for (uint64_t i = 0; i < 1000; i += 2) database.Put(Key(i), true);
  database.DeleteRange(Key(100), Key(300));
  for (int i = 0; i < 4; ++i) {
    database.Put(Key(2000), false);
    database.Flush();
  }
  // A snapshot from before everything keeps all of it.
  while (database.Step(1)) {
  }
  const uint64_t before = database.jobs_done;
  EXPECT_FALSE(database.Step(1));
  database.limits.boundaries = {database.sequence()};
  while (database.Step(1)) ASSERT_LT(database.jobs_done, before + 200);
  ASSERT_NO_FATAL_FAILURE(database.CheckContents());
  const uint64_t tables = database.tree().levels[kLast].size();
  ASSERT_GT(tables, 0U);
  database.limits.now_ms = 5000;
  const uint64_t settled = database.jobs_done;
  while (database.Step(1)) ASSERT_LE(database.jobs_done, settled + tables);
  ASSERT_GT(database.jobs_done, settled);
  ASSERT_NO_FATAL_FAILURE(database.CheckContents());
}

TEST(CompactionPlan, ARandomFillIsWrittenAFewTimesAndInOrderOnce) {
  const auto fill = [](bool in_order) {
    base::Random random(5);
    Miniature database(6);
    database.limits.base_bytes = 4 * 40;
    for (uint64_t i = 0; i < 20'000; ++i) {
      database.Put(Key(in_order ? i : random.Below(10'000'000)));
      if (i % 40 != 39) continue;
      database.Flush();
      database.limits.boundaries = {database.sequence()};
      while (database.Step(1)) {
      }
    }
    database.CheckContents();
    size_t levels = 0;
    for (size_t level = 1; level < Tree::kLevels; ++level) {
      levels += database.tree().levels[level].empty() ? 0 : 1;
    }
    EXPECT_EQ(levels, 3U);
    return static_cast<double>(database.written) / static_cast<double>(database.flushed);
  };
  // Each of the three levels may cost up to 11; the choice by overlap makes that much less.
  const double at_random = fill(false);
  EXPECT_LT(at_random, 20.0);
  EXPECT_GT(at_random, 2.0);
  EXPECT_EQ(fill(true), 0.0);
}

}  // namespace
}  // namespace basalt::db

// `basalt check`, `repair`, `compact` and `stat`: run as a person or a
// script runs it.

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "basalt/db.h"
#include "tests/command.h"
#include "tests/command_output.h"

namespace basalt {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using std::string_literals::operator""s;

using CheckCli = CommandTest;

TEST_F(CheckCli, WhatCannotBeReadIsNoDamage) {
  EXPECT_EQ(Out("$B put db k v && mv db/MANIFEST away && mkdir db/MANIFEST"), "");
  for (const char* const verb : {"check db", "get db k", "scan db", "stat db", "repair db"}) {
    const Outcome outcome = Run("$B "s + verb);
    EXPECT_EQ(outcome.code, 3) << verb << outcome.err;
    EXPECT_EQ((outcome.out + outcome.err).find("copy"), std::string::npos) << outcome.out;
  }
  EXPECT_EQ(Out("rmdir db/MANIFEST && mv away db/MANIFEST && $B compact db >/dev/null"), "");
  const std::string table = OnlyFile(".tbl");
  EXPECT_EQ(Out("mv " + table + " away && mkdir " + table), "");
  EXPECT_EQ(Run("$B check db").code, 3);
  EXPECT_EQ(Out("rmdir " + table + " && mv away " + table + " && truncate -s 100 " + table), "");
  EXPECT_EQ(Run("$B check db").code, 4);
}

TEST_F(CheckCli, CheckCountsWhatIsThere) {
  WriteFile("many", Out("seq 1 20000 | sed 's/$/\\tvalue/'"));
  EXPECT_EQ(Out("$B load db many >/dev/null"), "");
  const std::string report = Out("$B check db");
  EXPECT_NE(report.find("No faults found."), std::string::npos) << report;
  const std::string repair = Out("$B repair db");
  EXPECT_NE(repair.find("lost  nothing"), std::string::npos) << repair;
  EXPECT_EQ(Out("$B dump db | wc -l"), "20000\n");
}

TEST_F(CheckCli, AGapInTheLogIsCorruptionUntilItIsRepaired) {
  WriteFile("many", Out("seq -w 1 1000 | sed 's/.*/key&\\tvalue-&/'"));
  EXPECT_EQ(Out("$B load db many --batch 10 >/dev/null"), "");
  size_t damaged = 0;
  for (const auto& entry : fs::directory_iterator(At("db"))) {
    if (entry.path().extension() != ".log") continue;
    const size_t offset = ReadFile("db/" + entry.path().filename().string()).find("value-0500");
    if (offset == std::string::npos) continue;
    FlipBit(entry.path(), offset);
    ++damaged;
  }
  ASSERT_EQ(damaged, 1U);

  ExpectRefused("$B get db key0001", 4, "Corruption");
  ExpectRefused("$B put db key0001 other", 4, "Corruption");
  EXPECT_EQ(Run("$B check db").code, 4);
  const std::string repair = Out("$B repair db");
  EXPECT_NE(repair.find("up to record 49\n"), std::string::npos) << repair;
  EXPECT_NE(repair.find("log records 50 to 100\n"), std::string::npos) << repair;
  EXPECT_NE(repair.find("moved db/lost/"), std::string::npos) << repair;
  EXPECT_EQ(Out("$B scan db --reverse --limit 1; $B scan db | wc -l"),
            "key0490\tvalue-0490\n490\n");
  EXPECT_NE(Out("$B check db").find("No faults found."), std::string::npos);
}

TEST_F(CheckCli, ADamagedTableIsCorruption) {
  {
    const auto db = DB::Open(At("db").string()).value();
    for (int i = 0; i < 2000; ++i) {
      ASSERT_TRUE(db->Put("key" + std::to_string(i), std::string(100, 'v')).ok());
    }
    ASSERT_TRUE(db->CompactRange().ok());
    ASSERT_TRUE(db->Close().ok());
  }
  fs::path largest;
  for (const auto& entry : fs::directory_iterator(At("db"))) {
    if (entry.path().extension() != ".tbl") continue;
    if (largest.empty() || entry.file_size() > fs::file_size(largest)) largest = entry.path();
  }
  ASSERT_FALSE(largest.empty());
  FlipBit(largest, fs::file_size(largest) / 2);

  const Outcome check = Run("$B check db");
  EXPECT_EQ(check.code, 4) << check.err;
  EXPECT_NE(check.out.find("FINDING"), std::string::npos) << check.out;
  EXPECT_NE(check.out.find(largest.filename().string()), std::string::npos) << check.out;
  EXPECT_EQ(Run("$B dump db >/dev/null").code, 4);
}

TEST_F(CheckCli, CheckAndRepairSayTheSameInEveryFormat) {
  WriteFile("many", Out("seq -w 1 1000 | sed 's/.*/key&\\tvalue-&/'"));
  EXPECT_EQ(Out("$B load db many --batch 10 >/dev/null"), "");
  json::object report = Figures(*this, "$B check db");
  EXPECT_EQ(Number(report, "log_records"), 100U);
  EXPECT_TRUE(report.at("findings").as_array().empty());

  const std::string log = OnlyFile(".log");
  FlipBit(At(log), ReadFile(log).find("value-0500"));
  report = Figures(*this, "$B check db", 4);
  ASSERT_EQ(report.at("findings").as_array().size(), 1U);
  EXPECT_NE(Text(report.at("findings").as_array()[0].as_object(), "status").find("LSN 50 to 50"),
            std::string::npos);

  const json::object repaired = ParseObject(Out("$B repair db --output json"));
  EXPECT_EQ(Number(repaired, "last_lsn_kept"), 49U);
  EXPECT_EQ(Number(repaired, "first_lsn_lost"), 50U);
  EXPECT_EQ(Number(repaired, "last_lsn_lost"), 100U);
  EXPECT_EQ(repaired.at("moved_to_lost").as_array().size(), 1U);
  EXPECT_EQ(Number(Figures(*this, "$B repair db"), "first_lsn_lost"), 0U);
}

TEST_F(CheckCli, RepairNamesATableThatIsMissing) {
  EXPECT_EQ(Out("$B put db k v"), "");
  EXPECT_NE(Out("$B compact db"), "");
  const std::string table = OnlyFile(".tbl");
  ASSERT_TRUE(std::filesystem::remove(At(table)));
  const Outcome repaired = Run("$B repair db");
  EXPECT_EQ(repaired.code, 4);
  EXPECT_NE(repaired.out.find("FINDING"), std::string::npos) << repaired.out;
  EXPECT_NE(repaired.out.find(table), std::string::npos) << repaired.out;
  const json::object report = Figures(*this, "$B repair db", 4);
  EXPECT_EQ(report.at("findings").as_array().size(), 1U);
}

TEST_F(CheckCli, StatShowsTheSameFiguresInEveryFormat) {
  WriteFile("many", Out("seq -w 1 5000 | sed 's/$/\\tvalue/'"));
  EXPECT_NE(Out("$B load db many; $B compact db; $B put db k v"), "");
  const std::string table = Out("$B stat db");
  for (const char* row : {"level ", "\nL0 ", "\nL1 ", "\nall ", "\n  last_sequence ", " 5,001\n",
                          "\n  compaction_debt ", "\n  memory_budget ", "\n  memtable_bytes ",
                          " %\n", "\n  log_bytes ", "\n  write_waits ", "\n  snapshots "}) {
    EXPECT_NE(("\n" + table).find(row), std::string::npos) << row << "\n" << table;
  }
  const json::object figures = Figures(*this, "$B stat db");
  EXPECT_EQ(Number(figures, "last_sequence"), 5001U);
  EXPECT_EQ(Number(figures, "recovered_records"), 1U);
  EXPECT_EQ(Text(figures, "background_error"), "");
  uint64_t records = 0;
  uint64_t tables = 0;
  for (const json::value& level : figures.at("levels").as_array()) {
    records += Number(level.as_object(), "records");
    tables += Number(level.as_object(), "tables");
  }
  EXPECT_EQ(records, 5000U);
  EXPECT_EQ(tables, 1U);
  EXPECT_EQ(Out("$B stat db --json"), Out("$B stat db --output json"));
  ExpectRefused("$B stat db --json --output csv", 2, "excludes");
  ExpectRefused("$B stat db --output yaml", 2, "yaml not in {table,csv,json,raw}");
}

TEST_F(CheckCli, CompactDropsWhatIsDeletedAndOverwritten) {
  WriteFile("many", Out("seq -w 1 3000 | sed 's/$/\\tvalue/'"));
  EXPECT_NE(Out("$B load db many; $B compact db; $B load db many"), "");
  EXPECT_EQ(Out("$B del db $(seq -w 1 2000)"), "");
  const std::string said = Out("$B compact db --progress");
  EXPECT_NE(said.find("after  1,000 records in 1 table, "), std::string::npos) << said;
  EXPECT_NE(said.find("took "), std::string::npos) << said;
  uint64_t deletes = 0;
  const json::object figures = Figures(*this, "$B stat db");
  for (const json::value& level : figures.at("levels").as_array()) {
    deletes += Number(level.as_object(), "deletes");
  }
  EXPECT_EQ(deletes, 0U);
  EXPECT_EQ(Out("$B scan db --keys-only | wc -l; $B scan db --limit 1"), "1000\n2001\tvalue\n");
  EXPECT_EQ(ParseObject(Out("$B check db --output json")).at("findings").as_array().size(), 0U);
}

TEST_F(CheckCli, CompactTakesARange) {
  EXPECT_EQ(Out("$B put db a 1; $B put db b 2; $B put db c 3"), "");
  EXPECT_NE(Out("$B compact db --from a --to b").find("after  3 records"), std::string::npos);
  EXPECT_NE(Out("$B compact db --base64 --from YQ== --to Yg==").find("after  3 records"),
            std::string::npos);
  EXPECT_NE(Out("$B compact db --to b").find("after  3 records"), std::string::npos);
  ExpectRefused("$B compact db --from b --to a", 2, "must be below");
  ExpectRefused("$B compact db --from a --to a", 2, "must be below");
  ExpectRefused("$B compact db --to ''", 2, "must be below");
  ExpectRefused("$B compact db --base64 --from '?'", 2, "not base64");
  EXPECT_EQ(Out("$B scan db"), "a\t1\nb\t2\nc\t3\n");
}

}  // namespace
}  // namespace basalt

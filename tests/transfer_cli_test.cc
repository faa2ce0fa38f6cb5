// `basalt dump` and `load`, and when what they carry expires, run as a person or a script runs
// them.

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "basalt/db.h"
#include "tests/command.h"

namespace basalt {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

/// Of each key of the default keyspace when it expires.
using Expiries = std::map<std::string, std::optional<WallTime>>;

class CliTransfer : public CommandTest {
 protected:
  std::unique_ptr<DB> Open(const std::string& name) const {
    return DB::Open(At(name).string()).value();
  }
  Expiries ExpiriesOf(const std::string& name) const {
    Expiries expiries;
    const std::unique_ptr<DB> db = Open(name);
    const auto it = db->NewIterator();
    for (it->SeekToFirst(); it->Valid(); it->Next())
      expiries[std::string(it->key())] = it->expiry();
    EXPECT_TRUE(it->status().ok()) << it->status().ToString();
    return expiries;
  }
};

TEST_F(CliTransfer, ACopyExpiresAtTheSameMoments) {
  {
    const auto db = Open("db");
    ASSERT_TRUE(db->Put("always", "1").ok());
    ASSERT_TRUE(db->Put("an hour", "1", {.ttl = hours(1)}).ok());
    ASSERT_TRUE(db->Put("for as long as can be", "1", {.ttl = milliseconds::max()}).ok());
    ASSERT_TRUE(db->Put("merged", "1", {.ttl = hours(2)}).ok());
    ASSERT_TRUE(db->Flush().ok());
    ASSERT_TRUE(db->Merge("merged", MergeOperator::kAppend, "2").ok());
    ASSERT_TRUE(db->Put("\xff\t", "\xff\t", {.ttl = hours(3)}).ok());
  }
  const Expiries expected = ExpiriesOf("db");
  EXPECT_EQ(expected.size(), 5U);
  EXPECT_EQ(expected.at("always"), std::nullopt);
  EXPECT_EQ(expected.at("for as long as can be"), WallTime::max());
  EXPECT_TRUE(expected.at("merged"));
  for (const std::string form : {"", " --json"}) {
    EXPECT_EQ(Out("rm -rf copy; $B dump db" + form + " >first && $B load copy first --batch 2" +
                  form + " >/dev/null && $B dump copy" + form + " | cmp first -"),
              "");
    EXPECT_EQ(ExpiriesOf("copy"), expected);
    EXPECT_EQ(Out("grep -c expiry_ms first"), "4\n");
  }
}

TEST_F(CliTransfer, ALoadLeavesOutWhatHasExpiredAndSaysHowMany) {
  WriteFile("past", "a\t1\nb\t2\texpiry_ms=1\nc\t3\texpiry_ms=1700000000000\n");
  const std::string loaded = Out("$B put db b before && $B load db past");
  EXPECT_TRUE(loaded.starts_with("loaded 1 records, 2 B ")) << loaded;
  EXPECT_TRUE(loaded.ends_with("; left out 2 that have expired\n")) << loaded;
  EXPECT_EQ(Out("$B dump db"), "a\t1\nb\tbefore\n");

  WriteFile("past.json", R"({"key":"d","value":"4","expiry_ms":1})"
                         "\nnonsense\n");
  ExpectRefused("$B load db past.json --json", 2, "past.json:2: not JSON");
  EXPECT_NE(ReadFile(".err").find("; left out 1 that has expired"), std::string::npos);
}

TEST_F(CliTransfer, WhatIsNoMomentIsRefusedWithItsLine) {
  WriteFile("lines", "a\t1\nb\t2\t1700000000000\n");
  ExpectRefused("$B load db lines", 2, "lines:2: a second tab at column 4");
  WriteFile("lines", "{\"key\":\"a\",\"value\":\"1\",\"expiry_ms\":\"tomorrow\"}\n");
  ExpectRefused("$B load db lines --json", 2, "lines:1: \"expiry_ms\" must be a whole number");
}

TEST_F(CliTransfer, AMapIsBuiltFromADumpOfWhatExpires) {
  ASSERT_TRUE(Open("db")->Put("later", "1", {.ttl = hours(1)}).ok());
  EXPECT_EQ(Out("$B dump db --json >lines && $B map build map lines >/dev/null"), "");
  EXPECT_EQ(Out("$B map export map"), "{\"key\":\"later\",\"value\":\"1\"}\n");
  WriteFile("lines", R"({"key":"a","value":"1"})"
                     "\n"
                     R"({"key":"b","value":"2","expiry_ms":1})"
                     "\n");
  EXPECT_EQ(Out("$B map build other lines >/dev/null && $B map export other"),
            "{\"key\":\"a\",\"value\":\"1\"}\n");
}

}  // namespace
}  // namespace basalt

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

TEST_F(CliTransfer, AllKeyspacesAreCopiedByOneDump) {
  {
    const auto db = Open("db");
    const KeyspaceId users = db->CreateKeyspace("users").value();
    const KeyspaceId odd = db->CreateKeyspace("\xff\t").value();
    ASSERT_TRUE(db->Put("k", "default").ok());
    ASSERT_TRUE(db->Put("k", "user", {.keyspace = users, .ttl = hours(1)}).ok());
    ASSERT_TRUE(db->Put("\t", "\xff", {.keyspace = odd}).ok());
  }
  for (const std::string form : {"", " --json"}) {
    EXPECT_EQ(
        Out("rm -rf copy; $B dump db --all-keyspaces" + form + " >first && $B load copy first" +
            form + " >/dev/null && $B dump copy --all-keyspaces" + form + " | cmp first -"),
        "");
    EXPECT_EQ(Out("wc -l <first; grep -c keyspace first"), "3\n2\n");
    EXPECT_EQ(Out("$B get copy k; $B get copy --keyspace users k"), "default\nuser\n");
    ExpectRefused("$B load copy first --keyspace users" + form, 2, "leave out --keyspace");
  }
  ExpectRefused("$B dump db --all-keyspaces --keyspace users", 2, "excludes");
  WriteFile("lines", "a\t1\tkeyspace=x\tkeyspace=y\n");
  ExpectRefused("$B load db lines", 2, "lines:1: a second tab at column 15");
  ExpectRefused("$B map build m first", 2, "dump one keyspace alone");
}

TEST_F(CliTransfer, AByteOrderMarkIsNoPartOfAKey) {
  const std::string mark = "\xef\xbb\xbf";
  WriteFile("text", mark + "a\t1\n" + mark + "b\t2\n");
  EXPECT_NE(Out("$B load db text"), "");
  EXPECT_EQ(Out("$B scan db"), "a\t1\n\\xEF\\xBB\\xBFb\t2\n") << "only before the first line";
  EXPECT_EQ(Out("$B del db a && $B dump db | $B load copy - >/dev/null && $B scan copy"),
            "\\xEF\\xBB\\xBFb\t2\n");
  WriteFile("json", mark + R"({"key":"a","value":"1"})" + "\n");
  EXPECT_EQ(Out("$B load db json --json >/dev/null && $B get db a"), "1\n");
  for (const std::string& utf16 : {std::string("\xff\xfe"
                                               "a\0\t\0"
                                               "1\0\n\0",
                                               10),
                                   std::string("\xfe\xff\0a\0\t\0"
                                               "1\0\n",
                                               10)}) {
    WriteFile("utf16", utf16);
    ExpectRefused("$B load db utf16", 2, "utf16:1: UTF-16");
    ExpectRefused("$B load db utf16 --json", 2, "utf16:1: UTF-16");
    ExpectRefused("$B phash build f utf16", 2, "utf16:1: UTF-16");
    ExpectRefused("$B graph load db utf16", 2, "UTF-16");
    ExpectRefused("$B ingest db utf16", 2, "UTF-16");
  }
  WriteFile("keys", mark + "a\nb\n");
  WriteFile("plain", "a\nb\n");
  EXPECT_NE(Out("$B phash build marked keys && $B phash build f plain"), "");
  EXPECT_EQ(Out("$B phash query marked a b"), Out("$B phash query f a b"));
}

TEST_F(CliTransfer, ACsvOfAScanIsBuiltIntoAMapUnchanged) {
  {
    const auto db = Open("db");
    ASSERT_TRUE(db->Put("", "").ok());
    for (int i = 0; i < 256; ++i) {
      const std::string byte(1, static_cast<char>(i));
      ASSERT_TRUE(db->Put(byte, byte + "\\n" + byte).ok());
    }
    ASSERT_TRUE(db->Put("\r\n\"", "\"\r\n").ok());
  }
  EXPECT_NE(Out("$B scan db --output csv | $B map build m --csv --header -"), "");
  EXPECT_EQ(Out("$B map export m | LC_ALL=C sort >m.json; $B dump db --json | LC_ALL=C sort "
                "| cmp - m.json; wc -l <m.json"),
            "258\n");
  EXPECT_EQ(Out("$B scan db --output csv --keys-only | head -n 2"), "key\n\"\"\n");
}

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

// The command-line program, run as a person or a script runs it: by a shell, in a directory of its
// own. This is how records are read and written; other verbs have files of their own.

#include <gtest/gtest.h>

#include <boost/json/src.hpp>  // Compiled into this file: no library is linked for it.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "basalt/db.h"
#include "tests/command.h"
#include "tests/command_output.h"

namespace basalt {
namespace {

namespace fs = std::filesystem;
using std::string_literals::operator""s;

using Cli = CommandTest;

TEST_F(Cli, EveryVerbExplainsItselfWithExamples) {
  const std::string help = Out("$B --help");
  for (const char* verb : {"get", "put", "del", "scan", "load", "dump", "check", "repair", "stat",
                           "compact", "inspect", "bench", "phash", "demo"}) {
    EXPECT_NE(help.find("\n  "s + verb + " "), std::string::npos) << verb;
    EXPECT_NE(Out("$B "s + verb + " --help").find("Examples:\n  basalt "s + verb),
              std::string::npos)
        << verb;
  }
  for (const char* verb : {"build", "query", "stat"}) {
    EXPECT_NE(Out("$B phash --help").find("\n  "s + verb + " "), std::string::npos) << verb;
    EXPECT_NE(Out("$B phash "s + verb + " --help").find("Examples:\n  basalt phash "s + verb),
              std::string::npos)
        << verb;
  }
  EXPECT_EQ(help.find("demo-writer"), std::string::npos);
  EXPECT_EQ(Out("$B --version").substr(0, 7), "basalt ");
  EXPECT_EQ(Out("$B help"), help);
  EXPECT_EQ(Out("$B help phash build"), Out("$B phash build --help"));
}

TEST_F(Cli, MistakesAreUsageErrorsThatTeach) {
  ExpectRefused("$B", 2, "Verbs:");
  ExpectRefused("$B gte db k", 2, "did you mean `basalt get`?");
  ExpectRefused("$B delete db k", 2, "did you mean `basalt del`?");
  ExpectRefused("$B frobnicate", 2, "no verb 'frobnicate'");
  ExpectRefused("$B help frobnicate", 2, "no verb 'frobnicate'");
  EXPECT_EQ(Run("$B hulp").err.find("did you mean"), std::string::npos);
  ExpectRefused("$B get db", 2, "KEY is required");
  ExpectRefused("$B get db k more", 2, "more");
  ExpectRefused("$B put db k v --durability fast", 2, "fast");
  ExpectRefused("$B scan db --limit -1", 2, "-1");
  ExpectRefused("$B scan db --prefix a --from b", 2, "--from");
  ExpectRefused("$B get --base64 db '?'", 2, "not base64");
  EXPECT_FALSE(fs::exists(At("db")));
}

TEST_F(Cli, WhatIsPutIsGot) {
  EXPECT_EQ(Out("$B put db user/42 Ada"), "");
  EXPECT_EQ(Out("$B get db user/42"), "Ada\n");
  EXPECT_EQ(Out("$B get --raw db user/42"), "Ada");
  EXPECT_EQ(Out("$B put db user/42 Grace --durability power"), "");
  EXPECT_EQ(Out("$B get db user/42"), "Grace\n");
  ExpectRefused("$B get db user/43", 1, "user/43");
}

TEST_F(Cli, AnyBytesMayBeAKeyOrAValue) {
  for (const char* key : {"''", "get", "'[a,b]'", "%%", "'\"q\"'", "'two words'"}) {
    EXPECT_EQ(Out("$B put db "s + key + " v-" + key), "");
    EXPECT_EQ(Out("$B get db "s + key), Out("printf '%s\\n' v-"s + key)) << key;
  }
  EXPECT_EQ(Out("$B put db -- -x --y"), "");
  EXPECT_EQ(Out("$B get db -- -x"), "--y\n");
  EXPECT_EQ(Out("$B put --base64 db AP8= /w=="), "");
  EXPECT_EQ(Out("$B get --raw --base64 db AP8="), "\xff");
  EXPECT_EQ(Out("$B scan db --base64 --prefix AA=="), "\\x00\\xFF\t\\xFF\n");
  WriteFile("bytes", std::string("\0\n\r\xff\t", 5) + std::string(300'000, 'x'));
  EXPECT_EQ(Out("$B put db big - <bytes && $B get db big --raw | cmp - bytes"), "");
  WriteFile("long", std::string(65'536, 'k') + "\tv\n");
  ExpectRefused("$B load db long", 2, "long:1: the key has 65,536 bytes");
}

TEST_F(Cli, DelRemovesExactlyTheKeysItIsGiven) {
  EXPECT_EQ(Out("for k in a b c d -e '[a,b]'; do $B put db -- \"$k\" v || exit; done"), "");
  EXPECT_EQ(Out("$B del db '[a,b]' no-such-key"), "");
  EXPECT_EQ(Out("$B scan db --keys-only"), "-e\na\nb\nc\nd\n");
  EXPECT_EQ(Out("$B del db a b"), "");
  ExpectRefused("$B del db c d --base64", 2, "--base64");
  ExpectRefused("$B del db", 2, "KEY is required");
  EXPECT_EQ(Out("$B scan db --keys-only"), "-e\nc\nd\n");
  EXPECT_EQ(Out("$B del db -- -e d"), "");
  EXPECT_EQ(Out("$B scan db --keys-only"), "c\n");
}

TEST_F(Cli, DelRemovesAPrefixOrARange) {
  WriteFile("records", "a\t1\nb\t1\nb/1\t1\nb/2\t1\nc\t1\nd\t1\n\\xFF\t1\n\\xFF\\xFF\t1\n");
  EXPECT_NE(Out("$B load db records && $B load --keyspace users db records"), "");
  EXPECT_EQ(Out("$B del --prefix db b/ && $B scan db --keys-only"),
            "a\nb\nc\nd\n\\xFF\n\\xFF\\xFF\n");
  EXPECT_EQ(Out("$B del --range db b d && $B scan db --keys-only"), "a\nd\n\\xFF\n\\xFF\\xFF\n");
  EXPECT_EQ(Out("$B del --prefix --base64 db /w== && $B scan db --keys-only"), "a\nd\n");
  EXPECT_EQ(Out("$B del --prefix db '' && $B scan db --keys-only"), "");
  EXPECT_EQ(Out("$B del --prefix --keyspace users db b && $B scan db --keyspace users --keys-only"),
            "a\nc\nd\n\\xFF\n\\xFF\\xFF\n");
  ExpectRefused("$B del --prefix db a b", 2, "--prefix takes one argument");
  ExpectRefused("$B del --range db a", 2, "--range takes two arguments");
  ExpectRefused("$B del --range --prefix db a", 2, "excludes");
}

TEST_F(Cli, PutSetsHowLongARecordLives) {
  for (const char* const ttl : {"3600", "3600s", "60m", "1h", "1d", "3600000ms"}) {
    EXPECT_EQ(
        Out("rm -rf db && $B put --ttl "s + ttl + " db k v && $B dump db | grep -c expiry_ms"),
        "1\n");
  }
  EXPECT_EQ(Out("$B put --ttl 1ms db k v && sleep 0.05 && $B scan db"), "");
  for (const char* const ttl : {"0", "-1", "1y", "soon", "''", "106751991168d"}) {
    ExpectRefused("$B put db k v --ttl "s + ttl, 2, "such as 500ms");
  }
}

TEST_F(Cli, ScanShowsPrefixesRangesAndBothDirections) {
  EXPECT_EQ(Out("printf 'a\\t1\\nb/1\\t2\\nb/2\\t3\\nc\\t4\\n' | $B load db - >/dev/null"), "");
  EXPECT_EQ(Out("$B scan db"), "a\t1\nb/1\t2\nb/2\t3\nc\t4\n");
  EXPECT_EQ(Out("$B scan db --prefix b/"), "b/1\t2\nb/2\t3\n");
  EXPECT_EQ(Out("$B scan db --from b/2 --to c"), "b/2\t3\n");
  EXPECT_EQ(Out("$B scan db --to ''"), "");
  EXPECT_EQ(Out("$B scan db --reverse --limit 2"), "c\t4\nb/2\t3\n");
  EXPECT_EQ(Out("$B scan db --prefix b/ --reverse --limit 1 --json"),
            "{\"key\":\"b/2\",\"value\":\"3\"}\n");
  EXPECT_EQ(Out("$B scan db --from b --keys-only --json --limit 1"), "{\"key\":\"b/1\"}\n");
  EXPECT_EQ(Out("$B scan db --limit 0"), "");
}

TEST_F(Cli, DumpAndLoadRoundTripAnyBytesInBothForms) {
  {
    const auto db = DB::Open(At("db").string()).value();
    ASSERT_TRUE(db->Put("", "").ok());
    for (int i = 0; i < 256; ++i) {
      const std::string byte(1, static_cast<char>(i));
      ASSERT_TRUE(db->Put(byte, "before" + byte + "after").ok());
      ASSERT_TRUE(db->Put("\xe2\x82\xac/" + std::to_string(i), byte + byte).ok());
    }
    ASSERT_TRUE(db->Put("zero", std::string(100'000, '\0')).ok());
    ASSERT_TRUE(db->Close().ok());
  }
  for (const std::string form : {"", " --json"}) {
    EXPECT_EQ(Out("rm -rf copy; $B dump db" + form + " >first && $B load copy first --batch 7" +
                  form + " >/dev/null && $B dump copy" + form + " | cmp first -"),
              "");
    EXPECT_EQ(Out("wc -l <first"), "514\n");
  }
  EXPECT_EQ(Out("$B get copy --raw zero | tr -d '\\0' | wc -c; $B get copy zero --raw | wc -c"),
            "0\n100000\n");
}

TEST_F(Cli, EachKeyspaceIsReadAndWrittenByItsName) {
  EXPECT_EQ(Out("$B put db 1 default"), "");
  EXPECT_EQ(Out("$B put --keyspace users db 1 Ada && $B put --keyspace users db 2 Bob"), "");
  EXPECT_EQ(Out("$B get db 1"), "default\n");
  EXPECT_EQ(Out("$B get --keyspace users db 1"), "Ada\n");
  EXPECT_EQ(Out("$B scan db"), "1\tdefault\n");
  EXPECT_EQ(Out("$B scan db --keyspace users --reverse"), "2\tBob\n1\tAda\n");
  EXPECT_EQ(Out("$B del --keyspace users db 2 && $B scan db --keyspace users"), "1\tAda\n");
  EXPECT_EQ(Out("$B dump db --keyspace users | $B load copy - --keyspace people | cut -c1-16"),
            "loaded 1 records\n");
  EXPECT_EQ(Out("$B dump copy --keyspace people"), "1\tAda\n");
  EXPECT_EQ(Out("$B scan copy"), "");
  for (const char* const verb : {"get --keyspace none db 1", "del --keyspace none db 1",
                                 "scan --keyspace none db", "dump --keyspace none db"}) {
    ExpectRefused("$B "s + verb, 3, "no keyspace \"none\"");
  }
}

TEST_F(Cli, KeyspacesAreListedAndDropped) {
  EXPECT_EQ(Out("$B put db k v && $B keyspace list db"), "");
  EXPECT_EQ(Out("$B put --keyspace users db k v && $B put --keyspace 'a,b' db k v"), "");
  EXPECT_EQ(Out("$B keyspace list db | LC_ALL=C sort"), "a,b\nusers\n");
  EXPECT_EQ(Out("$B keyspace list db --output raw | LC_ALL=C sort"), "a,b\nusers\n");
  EXPECT_EQ(Out("$B keyspace list db --output csv | LC_ALL=C sort"), "\"a,b\"\nname\nusers\n");
  EXPECT_EQ(Out("$B keyspace drop db a,b && $B keyspace list db --json"), "{\"name\":\"users\"}\n");
  EXPECT_EQ(Out("$B get db k"), "v\n");
  ExpectRefused("$B keyspace drop db a,b", 3, "no keyspace \"a,b\"");
  ExpectRefused("$B keyspace drop none users", 3, "no database at");
  ExpectRefused("$B keyspace", 2, "a verb is missing");
}

TEST_F(Cli, AFreshMountTakesADatabase) {
  EXPECT_EQ(Out("mkdir -p db/lost+found && $B put db k v && $B get db k"), "v\n");
  EXPECT_EQ(Out("ls -d db/lost+found"), "db/lost+found\n");
  ExpectRefused("mkdir -p other/lost+found other/photos && $B put other k v", 2, "holds photos");
}

TEST_F(Cli, WhatIsExhaustedIsNamed) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer needs descriptors to look at an object";
#endif
  for (const int descriptors : {6, 7, 8}) {  // Of which the program's own libraries need some.
    const Outcome outcome =
        Run("(ulimit -n " + std::to_string(descriptors) + "; $B put db k v; $B put none/db k v)");
    EXPECT_EQ(outcome.err.find("is a file"), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find("disk"), std::string::npos) << outcome.err;
  }
  ExpectRefused("(ulimit -n 6; $B put db k v)", 5, "(Descriptors)");
}

TEST_F(Cli, WhatCannotBeWrittenIsRead) {
  EXPECT_EQ(Out("$B put db k v && rm db/LOCK && mkdir db/LOCK"), "");
  ExpectRefused("$B put db k w", 3, "cannot lock");
  EXPECT_EQ(Out("$B get db k && $B scan db && $B dump db"), "v\nk\tv\nk\tv\n");
  EXPECT_NE(Out("$B stat db"), "");
  EXPECT_NE(Out("$B check db").find("No faults found"), std::string::npos);
}

TEST_F(Cli, NothingIsPutWhereItWouldBeGone) {
  for (const char* const verb : {"put :memory: k v", "load :memory: /dev/null", "get :memory: k",
                                 "scan :memory:", "dump :memory:", "stat :memory:",
                                 "compact :memory:", "del :memory: k", "keyspace list :memory:"}) {
    ExpectRefused("$B "s + verb, 2, "name a directory");
    EXPECT_EQ(Run("$B "s + verb).err.find("/memory"), std::string::npos) << verb;
  }
}

TEST_F(Cli, ADumpSaysWhichKeyspacesItLeavesOut) {
  EXPECT_EQ(Out("$B put db 1 default && $B dump db"), "1\tdefault\n")
      << "none, so that it is still";
  EXPECT_EQ(Out("$B put --keyspace users db 1 Ada && $B put --keyspace mails db 1 Hello"), "");
  const Outcome dumped = Run("$B dump db");
  EXPECT_EQ(dumped.code, 0);
  EXPECT_EQ(dumped.out, "1\tdefault\n");
  EXPECT_NE(dumped.err.find("users, mails"), std::string::npos) << dumped.err;
  EXPECT_EQ(Out("$B dump db --keyspace ''"), "1\tdefault\n") << "the default one, by its name";
}

TEST_F(Cli, ADumpGoesOnBehindMergesThatDoNotFit) {
  {
    const auto db = DB::Open(At("db").string()).value();
    for (const char* key : {"a", "bad1", "bad2", "c", "z"}) ASSERT_TRUE(db->Put(key, "text").ok());
    for (const char* key : {"bad1", "bad2", "z"}) {
      ASSERT_TRUE(db->Merge(key, MergeOperator::kAdd, "12345678").ok());
    }
  }
  const Outcome ended = Run("$B dump db");
  EXPECT_EQ(ended.code, 3);
  EXPECT_EQ(ended.out, "a\ttext\n");
  EXPECT_NE(ended.err.find("--skip-bad"), std::string::npos) << ended.err;

  const Outcome rescued = Run("$B dump db --skip-bad");
  EXPECT_EQ(rescued.code, 4);
  EXPECT_EQ(rescued.out, "a\ttext\nc\ttext\n");
  for (const char* key : {"'bad1'", "'bad2'", "'z'", "3 records are left out"}) {
    EXPECT_NE(rescued.err.find(key), std::string::npos) << key << "\n" << rescued.err;
  }
  EXPECT_EQ(Out("$B del db bad1 bad2 z && $B dump db --skip-bad"), "a\ttext\nc\ttext\n");
}

TEST_F(Cli, ABadLineEndsALoadAndNothingBeforeItIsLost) {
  WriteFile("bad", "a\t1\nb\t2\nc 3\nd\t4\n");
  ExpectRefused("$B load db bad", 2, "bad:3: no tab");
  EXPECT_NE(ReadFile(".err").find("2 records before that are loaded"), std::string::npos);
  EXPECT_EQ(Out("$B scan db"), "a\t1\nb\t2\n");

  WriteFile("bad.json", "{\"key\":\"e\",\"value\":\"5\"}\n{\"key\":\"f\",\"value\":6}\n");
  ExpectRefused("$B load db bad.json --json", 2, "bad.json:2: \"value\" must be a string");
  EXPECT_EQ(Out("$B scan db --from c"), "e\t5\n");

  WriteFile("twice.json",
            "{\"key\":\"g\",\"value\":\"7\"}\n{\"key\":\"h\",\"key\":\"i\",\"value\":\"\"}");
  ExpectRefused("$B load db twice.json --json", 2, "twice.json:2: a member stands twice");
  EXPECT_EQ(Out("$B scan db --from f"), "g\t7\n");
}

TEST_F(Cli, AKeyThatIsNotThereIsNamedByItsBeginning) {
  EXPECT_EQ(Out("$B put db k v"), "");
  const Outcome absent = Run("$B get db \"$(printf '%65536s' x)\"");
  EXPECT_EQ(absent.code, 1);
  EXPECT_EQ(absent.err, "basalt: no key '" + std::string(64, ' ') + "'... (65,536 bytes) in db\n");
}

TEST_F(Cli, ADirectoryThatHasNoPlaceIsNotMade) {
  for (const char* const verb : {"put none/x/db k v", "load none/x/db /dev/null"}) {
    const Outcome refused = Run("$B "s + verb);
    EXPECT_EQ(refused.code, 3);
    EXPECT_NE(refused.err.find("make the directory above it"), std::string::npos) << refused.err;
    EXPECT_EQ(refused.err.find("never do"), std::string::npos) << refused.err;
  }
}

TEST_F(Cli, LoadTakesLinesAsTheyCome) {
  WriteFile("lines", "a\t1\r\n\n\r\nb\t\\x41\\t\\\\\nc\tno newline at the end");
  EXPECT_EQ(Out("$B load db lines").substr(0, 17), "loaded 3 records,");
  EXPECT_EQ(Out("$B scan db"), "a\t1\nb\tA\\t\\\\\nc\tno newline at the end\n");
}

TEST_F(Cli, ReadersNeverMakeADatabase) {
  for (const char* command : {"get db k", "del db k", "scan db", "dump db", "check db", "repair db",
                              "stat db", "compact db", "inspect db/MANIFEST"}) {
    ExpectRefused("$B "s + command, 3, "db");
    EXPECT_FALSE(fs::exists(At("db"))) << command;
  }
  WriteFile("file", "no directory");
  ExpectRefused("$B get file k", 2, "file is a file");
  ExpectRefused("$B put file k v", 2, "file is a file");
  ExpectRefused("$B load db no-such-file", 3, "no-such-file");
  ExpectRefused("$B load db .", 3, "directory");
  EXPECT_EQ(ReadFile("file"), "no directory");
}

TEST_F(Cli, ALockedDatabaseIsUnavailableToVerbsThatWriteOrCheck) {
  const auto db = DB::Open(At("db").string()).value();
  for (const char* command : {"put db k v", "del db k", "check db", "compact db"}) {
    ExpectRefused("$B "s + command, 5, "Busy");
  }
}

TEST_F(Cli, ADatabaseThatIsOpenElsewhereIsReadAsItIs) {
  const auto db = DB::Open(At("db").string()).value();
  ASSERT_TRUE(db->Put("a", "1").ok());
  ASSERT_TRUE(db->Flush().ok());
  ASSERT_TRUE(db->Put("b", "2").ok());
  const std::string note =
      "basalt: db is open in another process: it is read as it is at this moment\n";
  const auto expect = [&](const std::string& command, const std::string& printed) {
    const Outcome outcome = Run(command);
    EXPECT_EQ(outcome.code, 0) << command << "\n" << outcome.err;
    EXPECT_EQ(outcome.err, note) << command;
    EXPECT_EQ(outcome.out, printed) << command;
  };
  for (const char* flag : {"", " --read-only"}) {
    expect("$B get db b"s + flag, "2\n");
    expect("$B scan db"s + flag, "a\t1\nb\t2\n");
    expect("$B dump db"s + flag, "a\t1\nb\t2\n");
  }
  const Outcome stat = Run("$B stat db --output raw | grep ^keyspaces");
  EXPECT_EQ(stat.code, 0) << stat.err;
  EXPECT_EQ(stat.err, note);
  EXPECT_EQ(Run("$B get db none").code, 1);
}

TEST_F(Cli, TheMemoryBudgetDecidesHowLargeAValueMayBe) {
  Out("head -c 1000000 /dev/zero >zeros");
  ExpectRefused("$B put --memory-budget 4M db k - <zeros", 2, "the limit is 524288 bytes");
  EXPECT_EQ(Out("$B put --memory-budget 8M db k - <zeros"), "");
  EXPECT_EQ(Out("$B get --memory-budget 1M --raw db k | wc -c"), "1000000\n");
  EXPECT_EQ(Out("$B get --memory-budget 1M --read-only --raw db k | wc -c"), "1000000\n");
  // More records than one batch takes.
  Out("seq -f %06g 1 3000 | sed \"s/$/\\t$(head -c 400 /dev/zero | tr '\\0' v)/\" >records");
  EXPECT_NE(Out("$B load --memory-budget 1M other records").find("3,000 records"),
            std::string::npos);
  ExpectRefused("$B load --memory-budget 1K other records", 2, "memory_budget");
}

TEST_F(Cli, ReadOnlyTakesNoLockAndChangesNothing) {
  Out("$B put db k v");
  const std::string before = Out("ls -l --full-time db");
  EXPECT_EQ(Out("$B get --read-only db k"), "v\n");
  EXPECT_EQ(Out("$B scan --read-only db"), "k\tv\n");
  EXPECT_EQ(Out("ls -l --full-time db"), before);
  ExpectRefused("$B get --read-only none k", 3, "no database");
  EXPECT_FALSE(fs::exists(At("none")));
}

TEST_F(Cli, AReaderThatGoesAwayEndsAScanInSilence) {
  WriteFile("many", Out("seq 1 100000 | sed 's/$/\\tvalue/'"));
  EXPECT_EQ(Out("$B load db many >/dev/null; { $B scan db; echo $? >code; } | head -n 1; cat code"),
            "1\tvalue\n0\n");
}

TEST_F(Cli, OutputThatCannotBeWrittenIsReported) {
  EXPECT_EQ(Out("$B put db k v"), "");
  ExpectRefused("$B get db k >/dev/full", 3, "No space left");
  ExpectRefused("$B scan db >/dev/full", 3, "No space left");
  ExpectRefused("$B get db k >&-", 3, "standard output");
}

TEST_F(Cli, ClosedStandardStreamsNeverTakeADatabaseFileTheirPlace) {
  EXPECT_EQ(Out("$B put db k v"), "");
  EXPECT_EQ(Run("$B scan db >&-").code, 3);
  EXPECT_EQ(Run("$B get db absent 2>&-").code, 1);
  EXPECT_EQ(Run("$B put db k - <&-").code, 3);
  EXPECT_EQ(Out("$B scan db"), "k\tv\n");
  EXPECT_NE(Out("$B check db").find("No faults found."), std::string::npos);
}

TEST_F(Cli, RecordsComeInEveryFormat) {
  EXPECT_EQ(Out("printf 'a,b\\tsay \"hi\"\\nline\\\\nbreak\\t\\\\xFF\\nplain\\tvalue\\n' "
                "| $B load db - >/dev/null"),
            "");
  EXPECT_EQ(
      ParseCsv(Out("$B scan db --output csv")),
      (std::vector<std::vector<std::string>>{
          {"key", "value"}, {"a,b", "say \"hi\""}, {"line\nbreak", "\xff"}, {"plain", "value"}}));
  EXPECT_EQ(Out("$B scan db --output csv --keys-only"), "key\n\"a,b\"\n\"line\nbreak\"\nplain\n");
  EXPECT_EQ(Out("$B scan db --output raw"), "a,b\tsay \"hi\"\nline\nbreak\t\xff\nplain\tvalue\n");
  EXPECT_EQ(Out("$B scan db --output raw --keys-only --reverse"), "plain\nline\nbreak\na,b\n");
  EXPECT_EQ(Out("$B scan db --output table"), Out("$B scan db"));
  EXPECT_EQ(Out("$B scan db --output json"), Out("$B scan db --json"));
  EXPECT_EQ(Out("$B scan db --output csv --prefix none"), "key,value\n");

  EXPECT_EQ(Out("$B get db plain --output raw"), "value");
  EXPECT_EQ(Out("$B get db plain --output table"), "value\n");
  EXPECT_EQ(Out("$B get db plain --output csv"), "key,value\nplain,value\n");
  EXPECT_EQ(Out("$B get db 'a,b' --output json"),
            "{\"key\":\"a,b\",\"value\":\"say \\\"hi\\\"\"}\n");
  ExpectRefused("$B get db absent --output json", 1, "absent");
  ExpectRefused("$B get db plain --raw --output csv", 2, "excludes");
}

}  // namespace
}  // namespace basalt

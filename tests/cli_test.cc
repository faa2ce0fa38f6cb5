// The command-line program, run as a person or a script runs it: by a shell, in a directory of its
// own.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "basalt/db.h"

namespace basalt {
namespace {

namespace fs = std::filesystem;
using std::string_literals::operator""s;

struct Outcome {
  int code;
  std::string out;
  std::string err;
};

class Cli : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "basalt_cli_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    home_ = name;
    ::setenv("B", BASALT_TOOL, 1);
    ::unsetenv("TERM");
  }
  void TearDown() override { fs::remove_all(home_); }

  fs::path At(const std::string& name) const { return home_ / name; }

  void WriteFile(const std::string& name, const std::string& bytes) const {
    std::ofstream(At(name), std::ios::binary) << bytes;
  }
  std::string ReadFile(const std::string& name) const {
    std::ostringstream bytes;
    bytes << std::ifstream(At(name), std::ios::binary).rdbuf();
    return bytes.str();
  }

  /// Runs a shell command, in which $B is the program, in the test's directory.
  Outcome Run(const std::string& command) const {
    const std::string line = "cd '" + home_.string() + "' && { " + command + "\n} >.out 2>.err";
    const int status = std::system(line.c_str());
    EXPECT_TRUE(WIFEXITED(status)) << command;
    return {WEXITSTATUS(status), ReadFile(".out"), ReadFile(".err")};
  }

  /// Runs a command that must succeed in silence on stderr; gives what it printed.
  std::string Out(const std::string& command) const {
    const Outcome outcome = Run(command);
    EXPECT_EQ(outcome.code, 0) << command << "\n" << outcome.err;
    EXPECT_EQ(outcome.err, "") << command;
    return outcome.out;
  }

  /// Runs a command that must fail with `code`, print nothing, and name `word` on stderr.
  void ExpectRefused(const std::string& command, int code, const std::string& word) const {
    const Outcome outcome = Run(command);
    EXPECT_EQ(outcome.code, code) << command << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "") << command;
    EXPECT_NE(outcome.err.find(word), std::string::npos) << command << "\n" << outcome.err;
  }

  fs::path home_;
};

TEST_F(Cli, EveryVerbExplainsItselfWithExamples) {
  const std::string help = Out("$B --help");
  for (const char* verb :
       {"get", "put", "del", "scan", "load", "dump", "check", "repair", "stat", "demo"}) {
    EXPECT_NE(help.find("\n  "s + verb + " "), std::string::npos) << verb;
    EXPECT_NE(Out("$B "s + verb + " --help").find("Examples:\n  basalt "s + verb),
              std::string::npos)
        << verb;
  }
  EXPECT_EQ(help.find("demo-writer"), std::string::npos);
  EXPECT_EQ(Out("$B --version").substr(0, 7), "basalt ");
}

TEST_F(Cli, MistakesAreUsageErrorsThatTeach) {
  ExpectRefused("$B", 2, "Verbs:");
  ExpectRefused("$B gte db k", 2, "did you mean `basalt get`?");
  ExpectRefused("$B delete db k", 2, "did you mean `basalt del`?");
  ExpectRefused("$B frobnicate", 2, "no verb 'frobnicate'");
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

TEST_F(Cli, ABadLineEndsALoadAndNothingBeforeItIsLost) {
  WriteFile("bad", "a\t1\nb\t2\nc 3\nd\t4\n");
  ExpectRefused("$B load db bad", 2, "bad:3: no tab");
  EXPECT_NE(ReadFile(".err").find("2 records before that are loaded"), std::string::npos);
  EXPECT_EQ(Out("$B scan db"), "a\t1\nb\t2\n");

  WriteFile("bad.json", "{\"key\":\"e\",\"value\":\"5\"}\n{\"key\":\"f\",\"value\":6}\n");
  ExpectRefused("$B load db bad.json --json", 2, "bad.json:2: \"value\" must be a string");
  EXPECT_EQ(Out("$B scan db --from c"), "e\t5\n");
}

TEST_F(Cli, LoadTakesLinesAsTheyCome) {
  WriteFile("lines", "a\t1\r\n\n\r\nb\t\\x41\\t\\\\\nc\tno newline at the end");
  EXPECT_EQ(Out("$B load db lines").substr(0, 17), "loaded 3 records,");
  EXPECT_EQ(Out("$B scan db"), "a\t1\nb\tA\\t\\\\\nc\tno newline at the end\n");
}

TEST_F(Cli, ReadersNeverMakeADatabase) {
  for (const char* command :
       {"get db k", "del db k", "scan db", "dump db", "check db", "repair db", "stat db"}) {
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

TEST_F(Cli, ALockedDatabaseIsUnavailable) {
  const auto db = DB::Open(At("db").string()).value();
  for (const char* command : {"get db k", "put db k v", "scan db", "stat db", "check db"}) {
    ExpectRefused("$B "s + command, 5, "Busy");
  }
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

TEST_F(Cli, CheckCountsWhatIsThere) {
  WriteFile("many", Out("seq 1 20000 | sed 's/$/\\tvalue/'"));
  EXPECT_EQ(Out("$B load db many >/dev/null"), "");
  const std::string report = Out("$B check db");
  EXPECT_NE(report.find("No faults found."), std::string::npos) << report;
  const std::string repair = Out("$B repair db");
  EXPECT_NE(repair.find("lost  nothing"), std::string::npos) << repair;
  EXPECT_EQ(Out("$B dump db | wc -l"), "20000\n");
}

/// Changes one bit of the byte at `offset`.
void FlipBit(const fs::path& path, uintmax_t offset) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  const char byte = static_cast<char>(file.get() ^ 1);
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(byte);
}

TEST_F(Cli, AGapInTheLogIsCorruptionUntilItIsRepaired) {
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

TEST_F(Cli, ADamagedTableIsCorruption) {
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

TEST_F(Cli, StatIsATableOrJson) {
  EXPECT_EQ(Out("$B put db k v"), "");
  EXPECT_NE(Out("$B stat db").find("last_sequence"), std::string::npos);
  const std::string json = Out("$B stat db --json");
  EXPECT_EQ(json.find("{\"last_sequence\":1,"), 0U) << json;
  EXPECT_NE(json.find("\"levels\":["), std::string::npos);
}

TEST_F(Cli, TheDemoProvesWhatItSaysOnAnyText) {
  WriteFile("text", Out("seq 1 5000 | sed 's/$/ is a number/'"));
  const std::string shown = Out("$B demo 'my demo' --input text");
  EXPECT_EQ(shown.find('\x1b'), std::string::npos) << "control characters without a terminal";
  EXPECT_NE(shown.find("5,000 lines became 5,000 records"), std::string::npos) << shown;
  EXPECT_NE(shown.find("killed after one second"), std::string::npos) << shown;
  EXPECT_NE(shown.find("without a hole"), std::string::npos) << shown;
  EXPECT_EQ(Out("$B get 'my demo' line/00000042"), "42 is a number\n");
  EXPECT_EQ(Out("$B get 'my demo' demo/greeting"), "good evening\n");
}

TEST_F(Cli, TheDemoReadsPackageParagraphs) {
  WriteFile("packages",
            "Package: alpha\nDepends: beta (>= 2), beta (<< 3), gamma | delta:any\n"
            "Section: games\nDescription: the first\n more of it\n\n"
            "Package: beta\nDescription: the second\n");
  const std::string shown = Out("$B demo --input packages");
  EXPECT_NE(shown.find("2 packages became 7 records"), std::string::npos) << shown;
  EXPECT_EQ(Out("$B scan basalt-demo --prefix depends/"),
            "depends/alpha/beta\t>= 2, << 3\ndepends/alpha/delta:any\t\ndepends/alpha/gamma\t\n");
  EXPECT_EQ(Out("$B scan basalt-demo --prefix section/"),
            "section/games/alpha\tthe first\nsection/none/beta\tthe second\n");
}

TEST_F(Cli, TheDemoReplacesADemoAndNothingElse) {
  WriteFile("text", "one line\n");
  EXPECT_NE(Out("$B demo d --input text && $B put d mine too && $B demo d --input text"), "");
  ExpectRefused("$B get d mine", 1, "mine");

  EXPECT_EQ(Out("$B put db mine too; mkdir other; touch other/file"), "");
  ExpectRefused("$B demo db --input text", 3, "no demo has made");
  ExpectRefused("$B demo other --input text", 3, "no demo database");
  EXPECT_EQ(Out("$B get db mine"), "too\n");
  EXPECT_EQ(Out("ls other"), "file\n");
}

}  // namespace
}  // namespace basalt

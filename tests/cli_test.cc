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
       {"get", "put", "del", "scan", "load", "dump", "check", "repair", "stat", "phash", "demo"}) {
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

class CliPhash : public Cli {
 protected:
  /// The lines that a command prints, sorted as numbers.
  std::string Sorted(const std::string& command) const { return Out(command + " | sort -n"); }

  /// No file has come to be but those that a test has made.
  void ExpectFiles(const std::string& names) const {
    EXPECT_EQ(Out("ls | tr '\\n' ' '"), names) << "files in the working directory";
  }
};

TEST_F(CliPhash, EachKeyOfAFileOrAPipeHasANumberOfItsOwn) {
  WriteFile("words", "apple\nbanana\r\ngrape\n\nlast");
  const std::string built = Out("$B phash build w.phf words");
  EXPECT_EQ(built.find("built w.phf: a function of 5 keys, "), 0U) << built;
  EXPECT_NE(built.find(" bits a key), in "), std::string::npos) << built;
  EXPECT_EQ(Sorted("$B phash query w.phf <words"), "0\n1\n2\n3\n4\n");
  EXPECT_EQ(Out("$B phash query w.phf apple banana grape '' last"),
            Out("$B phash query w.phf <words"));
  EXPECT_EQ(
      Out("$B phash build p.phf <words >/dev/null; cat words | $B phash build q.phf >/dev/null; "
          "cmp w.phf p.phf && cmp w.phf q.phf"),
      "")
      << "the same bytes, however the keys come";
}

TEST_F(CliPhash, AHundredThousandKeysTakeTwoBitsEachAndEveryNumberOnce) {
  WriteFile("keys", Out("seq -f 'user/%09.0f' 1 100000"));
  WriteFile("numbers", Out("seq 0 99999"));
  for (const std::string options :
       {"", " --dense", " --threads 2", " --threads 1 --memory 6M", " --progress"}) {
    Run("$B phash build k.phf keys --force" + options + " >/dev/null");
    EXPECT_EQ(Out("$B phash query k.phf <keys | sort -n | cmp - numbers"), "") << options;
    const std::string json = Out("$B phash stat k.phf --json");
    EXPECT_NE(json.find("\"keys\":100000,"), std::string::npos) << json;
    EXPECT_NE(json.find("\"bits_per_key\":2."), std::string::npos) << json;
    EXPECT_NE(json.find(options == " --dense" ? "\"dense\"" : "\"shift\""), std::string::npos)
        << json;
  }
  ExpectRefused("$B phash build small.phf keys --memory 1", 2, "memory_budget");
  ExpectFiles("k.phf keys numbers ");
}

TEST_F(CliPhash, AnyBytesMayBeAKey) {
  EXPECT_EQ(Out("printf '%s\\n' '\\x00\\t\\n\\\\' '\\xFF' stat -a '[a,b]' "
                "| $B phash build t.phf >/dev/null"),
            "");
  EXPECT_EQ(Out("printf 'AAkKXA==\\n/w==\\nc3RhdA==\\nLWE=\\nW2EsYl0=\\n' "
                "| $B phash build b.phf --base64 >/dev/null; cmp t.phf b.phf"),
            "");
  EXPECT_EQ(Sorted("$B phash query t.phf --base64 AAkKXA== /w== c3RhdA== LWE= W2EsYl0="),
            "0\n1\n2\n3\n4\n");
  EXPECT_EQ(Out("$B phash query t.phf -- -a stat '[a,b]'"),
            Out("$B phash query --base64 t.phf LWE= c3RhdA== W2EsYl0="));
  EXPECT_EQ(Out("printf '%s\\n' '\\x00\\t\\n\\\\' '\\xFF' | $B phash query t.phf"),
            Out("printf 'AAkKXA==\\n/w==\\n' | $B phash query t.phf --base64"));
  WriteFile("tab", "a\nb\tc\n");
  ExpectRefused("$B phash build x.phf tab", 2, "tab:2: a tab at column 2");
  const Outcome asked = Run("$B phash query t.phf <tab");
  EXPECT_EQ(asked.code, 2);
  EXPECT_EQ(asked.out, Out("$B phash query t.phf a")) << "the lines before it are answered";
  EXPECT_NE(asked.err.find("standard input:2: a tab at column 2"), std::string::npos) << asked.err;
  ExpectRefused("printf 'a\\n\\\\q\\n' | $B phash build x.phf", 2, "standard input:2: in the key");
  ExpectRefused("$B phash query t.phf --base64 '?'", 2, "not base64");
  ExpectRefused("$B phash query t.phf a -b", 2, "after --");
  ExpectFiles("b.phf t.phf tab ");
}

TEST_F(CliPhash, KeysMayBeNumbers) {
  WriteFile("ids", "17\n0x2A\n18446744073709551615\n0\n");
  EXPECT_NE(Out("$B phash build i.phf ids --hashes").find("a function of 4 keys"),
            std::string::npos);
  EXPECT_EQ(Sorted("$B phash query i.phf --hashes <ids"), "0\n1\n2\n3\n");
  EXPECT_EQ(Out("$B phash query i.phf --hashes 17 42 0xffffffffffffffff 0"),
            Out("$B phash query i.phf --hashes <ids"));
  WriteFile("bad", "1\n2\n18446744073709551616\n");
  ExpectRefused("$B phash build x.phf bad --hashes", 2, "bad:3: '18446744073709551616' is above");
  ExpectRefused("$B phash query i.phf --hashes grape", 2, "'grape' is no number");
  ExpectRefused("$B phash build x.phf ids --hashes --base64", 2, "excludes");
  ExpectFiles("bad i.phf ids ");
}

TEST_F(CliPhash, AKeyThatIsThereTwiceIsNamedWithBothLines) {
  WriteFile("keys", "a\nb\\x00\nc\n\nb\\x00\nd\n");
  const std::string said = "5: the key 'b\\x00' stands on line 2 already";
  ExpectRefused("$B phash build x.phf keys", 2, "keys:" + said);
  ExpectRefused("$B phash build x.phf <keys", 2, "standard input:" + said);
  ExpectRefused("$B phash build x.phf keys --fingerprint 8", 2, "keys:" + said);
  WriteFile("many", Out("seq 1 50000; seq 40001 40003"));
  ExpectRefused("$B phash build x.phf many", 2, "many:50001: the key '40001' stands on line 40001");
  ExpectRefused("$B phash build x.phf many --hashes", 2,
                "many:50001: the key 40001 stands on line 40001");
  WriteFile("pairs", "a\t1\nb\t2\na\t3\n");
  ExpectRefused("$B phash build x.map pairs --fingerprint 8 --payload 2", 2,
                "pairs:3: the key 'a' stands on line 1");
  ExpectFiles("keys many pairs ");
}

TEST_F(CliPhash, AFileThatIsThereIsReplacedOnlyByForce) {
  WriteFile("one", "a\n");
  WriteFile("two", "a\nb\n");
  WriteFile("other", "precious\n");
  ExpectRefused("$B phash build other one", 3, "other is there already; --force replaces it");
  EXPECT_EQ(ReadFile("other"), "precious\n");
  EXPECT_NE(Out("$B phash build f.phf one && $B phash build f.phf two --force"), "");
  EXPECT_NE(Out("$B phash stat f.phf --json").find("\"keys\":2,"), std::string::npos);
  ExpectRefused("$B phash build one one --force", 2, "would be replaced");
  ExpectRefused("$B phash build . one --force", 2, "is no file");
  ExpectRefused("$B phash build no/such one", 3, "No such file");
  ExpectRefused("$B phash build x.phf no-such", 3, "no-such");
  ExpectRefused("$B phash build x.phf .", 3, "directory");
  EXPECT_EQ(ReadFile("one"), "a\n");
  ExpectFiles("f.phf one other two ");
}

TEST_F(CliPhash, ABuildThatFailsOrIsKilledLeavesNoFile) {
  WriteFile("one", "a\n");
  WriteFile("many", Out("seq 1 100000"));
  // No file may be longer than 8 blocks of 512 bytes, and the signal that says so is ignored.
  const std::string limited = "(trap '' XFSZ; ulimit -f 8; exec $B phash build ";
  ExpectRefused(limited + "x.phf many)", 3, "cannot write");
  EXPECT_NE(Out("$B phash build f.phf one"), "");
  const std::string before = ReadFile("f.phf");
  ExpectRefused(limited + "f.phf many --force)", 3, "cannot write");
  EXPECT_EQ(ReadFile("f.phf"), before);
  // Killed while it waits for more keys.
  EXPECT_EQ(
      Out("mkfifo pipe; (cat many; exec sleep 30) >pipe & writer=$!; $B phash build x.phf <pipe & "
          "builder=$!; sleep 0.3; kill -9 $builder $writer; wait; rm pipe"),
      "");
  ExpectFiles("f.phf many one ");
}

TEST_F(CliPhash, NoKeysAreAFunctionThatKnowsNone) {
  EXPECT_NE(Out(": | $B phash build none.phf").find("a function of 0 keys, "), std::string::npos);
  EXPECT_EQ(Out("$B phash query none.phf </dev/null"), "");
  const Outcome asked = Run("$B phash query none.phf a");
  EXPECT_EQ(asked.out, "absent\n");
  EXPECT_EQ(asked.code, 1);
  EXPECT_NE(Out("$B phash stat none.phf --json").find("\"levels\":[]}"), std::string::npos);
  EXPECT_NE(Out("$B phash build none.set /dev/null --fingerprint 4").find("a set of 0 keys, "),
            std::string::npos);
  EXPECT_EQ(Run("$B phash query none.set a").code, 1);
}

TEST_F(CliPhash, ASetSaysPerhapsToItsKeysAndAbsentToMostOthers) {
  WriteFile("keys", Out("seq 1 5000"));
  EXPECT_NE(Out("$B phash build k.set keys --fingerprint 12").find("a set of 5,000 keys, "),
            std::string::npos);
  EXPECT_EQ(Out("$B phash query k.set <keys | sort | uniq -c | tr -s ' '"), " 5000 perhaps\n");
  EXPECT_EQ(Out("$B phash query k.set 1 5000"), "perhaps\nperhaps\n");
  const Outcome others =
      Run("seq 5001 15000 | $B phash query k.set | sort | uniq -c | tr -s ' '; "
          "seq 5001 15000 | $B phash query k.set >/dev/null");
  EXPECT_EQ(others.code, 1);
  EXPECT_GT(std::stoi(others.out), 9900) << others.out;
  EXPECT_NE(others.out.find("absent"), std::string::npos) << others.out;
  ExpectRefused("$B phash build x.set keys --fingerprint 3", 2, "'3' is no whole number from 4");
  ExpectRefused("$B phash build x.set keys --fingerprint 17", 2, "from 4 to 16");
}

TEST_F(CliPhash, AMapGivesEachKeyItsPayload) {
  WriteFile("ages", "Ada\t36\nGrace\t85\r\nAlan\\x20T.\t0x29\n");
  EXPECT_NE(Out("$B phash build a.map ages --fingerprint 16 --payload 7").find("a map of 3 keys, "),
            std::string::npos);
  EXPECT_EQ(Out("$B phash query a.map Grace 'Alan T.' Ada"), "85\n41\n36\n");
  WriteFile("ids", "7\t100\n8\t127\n");
  EXPECT_NE(Out("$B phash build i.map ids --fingerprint 16 --payload 7 --hashes"), "");
  EXPECT_EQ(Out("$B phash query i.map --hashes 0x7 8"), "100\n127\n");
  const Outcome absent = Run("$B phash query i.map --hashes 8 9 10 11");
  EXPECT_EQ(absent.code, 1);
  EXPECT_EQ(absent.out.find("127\n"), 0U) << absent.out;
  EXPECT_NE(absent.out.find("absent\n"), std::string::npos) << absent.out;
  ExpectRefused("$B phash build x.map ages --payload 7", 2, "--payload requires --fingerprint");
  ExpectRefused("$B phash build x.map ages --fingerprint 8 --payload 6", 2,
                "ages:2: the payload 85 takes more than 6 bits");
  WriteFile("words", "Ada\n");
  ExpectRefused("$B phash build x.map words --fingerprint 8 --payload 7", 2, "words:1: no tab");
}

TEST_F(CliPhash, StatShowsTheLevelsAsATableOrJson) {
  WriteFile("keys", Out("seq 1 20000"));
  EXPECT_NE(Out("$B phash build k.map /dev/null --fingerprint 4 --payload 48; "
                "$B phash build k.set keys --fingerprint 4; $B phash build k.phf keys --dense"),
            "");
  const std::string table = Out("$B phash stat k.phf");
  EXPECT_EQ(table.find("level "), 0U) << table;
  for (const char* row : {"\nL0 ", "\nL1 ", "100.000%", "\nkind ", " function\n", " 20,000\n",
                          " dense\n", "\nbits_per_key ", "\nhash_seed "}) {
    EXPECT_NE(table.find(row), std::string::npos) << row << "\n" << table;
  }
  EXPECT_EQ(table.find("fingerprint_bits"), std::string::npos) << table;
  EXPECT_NE(Out("$B phash stat k.set").find("\nfingerprint_bits "), std::string::npos);
  EXPECT_EQ(Out("$B phash stat k.set --json").find("{\"kind\":\"set\",\"keys\":20000,"), 0U);
  const std::string map = Out("$B phash stat k.map --json");
  EXPECT_NE(map.find("\"fingerprint_bits\":4,\"payload_bits\":48,"), std::string::npos) << map;
}

TEST_F(CliPhash, WhatIsNoPerfectHashFileIsRefused) {
  WriteFile("keys", Out("seq 1 20000"));
  for (const std::string kind : {"", " --fingerprint 8"}) {
    EXPECT_NE(Out("$B phash build good keys --force" + kind), "");
    const std::string good = ReadFile("good");
    for (const size_t cut :
         {size_t{0}, size_t{7}, size_t{8}, size_t{63}, good.size() / 2, good.size() - 1}) {
      WriteFile("bad", good.substr(0, cut));
      ExpectRefused("$B phash query bad 1", 4, "bad: ");
    }
    WriteFile("bad", good + "x");
    ExpectRefused("$B phash stat bad", 4, "bad: ");
    for (const size_t offset : {size_t{0}, size_t{17}, good.size() / 2, good.size() - 1}) {
      WriteFile("bad", good);
      FlipBit(At("bad"), offset);
      ExpectRefused("$B phash query bad 1", 4, "bad: ");
      ExpectRefused("$B phash stat bad --json", 4, "bad: ");
    }
  }
  ExpectRefused("$B phash stat keys", 4, "not a perfect hash file");
  ExpectRefused("$B phash stat no-such", 3, "`basalt phash build` makes one");
  ExpectRefused("$B phash query . a", 3, "directory");
}

TEST_F(CliPhash, MistakesInItsVerbsTeach) {
  ExpectRefused("$B phash", 2, "Verbs:");
  ExpectRefused("$B phash biuld", 2, "did you mean `basalt phash build`?");
  ExpectRefused("$B phash get f k", 2, "did you mean `basalt phash query`?");
  ExpectRefused("$B phash query", 2, "`basalt phash query --help`");
  ExpectRefused("$B query f k", 2, "no verb 'query'");
  ExpectRefused("$B phash build f k --threads 0", 2, "'0' is no whole number from 1 to 256");
  ExpectRefused("$B phash build f k --memory much", 2, "--memory");
  EXPECT_NE(Out("$B phash query --help").find("what is no key gets some number too"),
            std::string::npos);
  ExpectFiles("");
}

}  // namespace
}  // namespace basalt

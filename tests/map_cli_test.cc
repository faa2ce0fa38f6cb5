// `basalt map`, run as a person or a script runs it: by a shell, in a directory of its own.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/json.hpp>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "basalt/db.h"
#include "basalt/shared_map.h"
#include "tests/command.h"
#include "tests/command_output.h"

namespace basalt {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using std::string_literals::operator""s;

size_t CountOf(const std::string& what, const std::string& text) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

class MapCli : public CommandTest {
 protected:
  /// What a map holds, a line of JSON a record, sorted.
  std::string Records(const std::string& map) const {
    return Out("$B map export " + map + " | LC_ALL=C sort");
  }

  /// The files of the map `map` in which `bytes` stand, once each; paths and offsets.
  std::vector<std::pair<fs::path, size_t>> Places(const std::string& map,
                                                  const std::string& bytes) const {
    std::vector<std::pair<fs::path, size_t>> places;
    for (const auto& entry : fs::directory_iterator(At(map))) {
      const size_t at = ReadFile(map + "/" + entry.path().filename().string()).find(bytes);
      if (at != std::string::npos) places.emplace_back(entry.path(), at);
    }
    return places;
  }

  /// A map `m` with the keys 0001 to 1000, and values such as value-0042.
  void MakeMap() const {
    WriteFile("records", Out("seq -w 1 1000 | sed 's/.*/{\"key\":\"&\",\"value\":\"value-&\"}/'"));
    EXPECT_NE(Out("$B map build m records"), "");
  }
};

/// Holds a map open to write to it, in a process of its own, as long as it lives.
class OtherWriter {
 public:
  explicit OtherWriter(const fs::path& map) {
    std::array<int, 2> ready{};
    std::array<int, 2> end{};
    if (::pipe(ready.data()) != 0 || ::pipe(end.data()) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(end[1]);
      const auto opened = SharedMap::Open(map.string());
      const char said = opened ? 'y' : 'n';
      char byte = 0;
      if (::write(ready[1], &said, 1) == 1 && ::read(end[0], &byte, 1) == 0) ::_exit(0);
      ::_exit(1);
    }
    ::close(ready[1]);
    ::close(end[0]);
    end_ = end[1];
    char said = 0;
    is_open_ = ::read(ready[0], &said, 1) == 1 && said == 'y';
    ::close(ready[0]);
  }
  ~OtherWriter() {
    ::close(end_);
    int status = 0;
    ::waitpid(pid_, &status, 0);
  }
  OtherWriter(const OtherWriter&) = delete;
  OtherWriter& operator=(const OtherWriter&) = delete;

  bool is_open() const { return is_open_; }
  std::string pid() const { return std::to_string(pid_); }

 private:
  pid_t pid_ = -1;
  int end_ = -1;
  bool is_open_ = false;
};

TEST_F(MapCli, AFreshMountTakesAMap) {
  WriteFile("records", "{\"key\":\"a\",\"value\":\"1\"}\n");
  EXPECT_NE(Out("mkdir -p m/lost+found && $B map build m records"), "");
  EXPECT_EQ(Out("$B map get m a && ls -d m/lost+found"), "1\nm/lost+found\n");
}

TEST_F(MapCli, EveryVerbExplainsItselfWithExamples) {
  EXPECT_NE(Out("$B --help").find("\n  map "), std::string::npos);
  const std::string help = Out("$B map --help");
  EXPECT_NE(help.find("Examples:\n  basalt map build"), std::string::npos) << help;
  for (const char* verb : {"build", "get", "put", "del", "stat", "check", "export", "bench"}) {
    EXPECT_NE(help.find("\n  "s + verb + " "), std::string::npos) << verb;
    EXPECT_NE(Out("$B map "s + verb + " --help").find("Examples:\n  basalt map "s + verb),
              std::string::npos)
        << verb;
  }
}

TEST_F(MapCli, MistakesAreUsageErrorsThatTeach) {
  ExpectRefused("$B map", 2, "Verbs:");
  ExpectRefused("$B map biuld", 2, "did you mean `basalt map build`?");
  ExpectRefused("$B map dump m", 2, "did you mean `basalt map export`?");
  ExpectRefused("$B map load m f", 2, "did you mean `basalt map build`?");
  ExpectRefused("$B map get m", 2, "KEY is required");
  ExpectRefused("$B map get m k l --raw", 2, "after --");
  ExpectRefused("$B map put m k v --durability fast", 2, "fast");
  ExpectRefused("$B map put m k '{' --json", 2, "the value is not JSON");
  ExpectRefused("$B map build m --header", 2, "--csv");
  ExpectRefused("$B map build m --prefix p", 2, "--db");
  ExpectRefused("$B map build m in --db db", 2, "--db");
  ExpectRefused("$B map build m --db db --prefix a --from b", 2, "--from");
  ExpectRefused("$B map build m --layout dense", 2, "dense");
  ExpectRefused("$B map build m --duplicates first", 2, "first");
  ExpectRefused("$B map build m --memory much", 2, "--memory");
  ExpectRefused("$B map build m --memory 1", 2, "--memory");
  ExpectRefused("$B map get --base64 m '?'", 2, "not base64");
  ExpectRefused("$B map bench m --num 0", 2, "'0' is not a whole number");
  ExpectRefused("$B map put :memory: k v", 2, "ends with this command");
  ExpectRefused("$B map build :memory: </dev/null", 2, "ends with this command");
  EXPECT_FALSE(fs::exists(At("m")));
}

TEST_F(MapCli, WhatIsPutIsGot) {
  EXPECT_EQ(Out("$B map put m user/42 Ada"), "");
  EXPECT_EQ(Out("$B map get m user/42"), "Ada\n");
  EXPECT_EQ(Out("$B map get --raw m user/42"), "Ada");
  EXPECT_EQ(Out("$B map put m user/42 Grace --durability power"), "");
  EXPECT_EQ(Out("$B map get m user/42"), "Grace\n");
  ExpectRefused("$B map get m user/43", 1, "no key 'user/43' in m");
  EXPECT_EQ(Out("$B map put m -- -x --y"), "");
  EXPECT_EQ(Out("$B map get m -- -x"), "--y\n");
  EXPECT_EQ(Out("$B map put --base64 m AP8= /w=="), "");
  EXPECT_EQ(Out("$B map get --raw --base64 m AP8="), "\xff");
  WriteFile("bytes", std::string("\0\n\r\xff\t", 5) + std::string(300'000, 'x'));
  EXPECT_EQ(Out("$B map put m big - <bytes && $B map get --raw m big | cmp - bytes"), "");
  EXPECT_EQ(Out("$B map put m json '{ \"a\" : [ 1.50, \" \" ] }' --json"), "");
  EXPECT_EQ(Out("$B map get m json"), "{\"a\":[1.50,\" \"]}\n");
  EXPECT_EQ(Out("$B map put m '' ''; $B map get m ''"), "\n");
}

TEST_F(MapCli, AKeyThatNoMapCanHoldIsAUsageError) {
  EXPECT_EQ(Out("$B map put m a 1"), "");
  for (const char* const command :
       {"put m $K v", "get m $K", "get m a $K", "del m $K", "del m a $K"}) {
    ExpectRefused("K=$(printf '%65536s' x | tr ' ' y); $B map "s + command, 2,
                  "InvalidArgument: the key has 65,536 bytes; the largest has 65,535\n");
  }
  EXPECT_EQ(Out("$B map get m a"), "1\n");
  ExpectRefused("$B map get m $(printf '%65535s' x | tr ' ' y)", 1, "no key");
}

TEST_F(MapCli, SeveralKeysAreRecordsAndAnAbsentOneIsNamed) {
  EXPECT_EQ(Out("$B map put m a 1; $B map put m 'b,c' '\"2\"'; $B map put m tab 'x\ty'"), "");
  EXPECT_EQ(Out("$B map get m tab a"), "tab\tx\\ty\na\t1\n");
  EXPECT_EQ(Out("$B map get --raw m tab a"), "tab\tx\ty\na\t1\n");
  EXPECT_EQ(Out("$B map get --output csv m a b,c"), "key,value\na,1\n\"b,c\",\"\"\"2\"\"\"\n");
  EXPECT_EQ(Out("$B map get --output json m a"), "{\"key\":\"a\",\"value\":\"1\"}\n");
  const Outcome outcome = Run("$B map get m a none tab");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "a\t1\ntab\tx\\ty\n");
  EXPECT_EQ(outcome.err, "basalt: no key 'none' in m\n");
}

TEST_F(MapCli, DelRemovesExactlyTheKeysItIsGiven) {
  EXPECT_EQ(Out("for k in a b c -d; do $B map put m -- \"$k\" v || exit; done"), "");
  EXPECT_EQ(Out("$B map del m a no-such-key c"), "");
  EXPECT_EQ(Records("m"), "{\"key\":\"-d\",\"value\":\"v\"}\n{\"key\":\"b\",\"value\":\"v\"}\n");
  EXPECT_EQ(Out("$B map del m -- -d b"), "");
  EXPECT_EQ(Records("m"), "");
  ExpectRefused("$B map get m a", 1, "no key 'a'");
}

TEST_F(MapCli, BuildTakesLinesOfJsonFromAFileOrAPipe) {
  WriteFile("in",
            "{\"key\":\"a\",\"value\":\"1\"}\r\n\n"
            "{\"value\":\"\\u0000\",\"key\":{\"base64\":\"AP8=\"}}\n"
            "{\"key\":\"\",\"value\":\"no newline at the end\"}");
  const std::string built = Out("$B map build m in");
  EXPECT_EQ(built.find("built m: 3 records, "), 0U) << built;
  EXPECT_NE(built.find(" records/s), layout "), std::string::npos) << built;
  EXPECT_EQ(CountOf("\n", built), 1U) << built;
  EXPECT_EQ(Out("$B map get m a ''"), "a\t1\n\tno newline at the end\n");
  EXPECT_EQ(Out("$B map get --raw --base64 m AP8="), "\0"s);
  EXPECT_EQ(Out("cat in | $B map build p >/dev/null; $B map build q - <in >/dev/null"), "");
  EXPECT_EQ(Records("p"), Records("m"));
  EXPECT_EQ(Records("q"), Records("m"));
  EXPECT_EQ(Out("$B map build none </dev/null").find("built none: 0 records, "), 0U);
  EXPECT_EQ(Records("none"), "");
}

TEST_F(MapCli, AByteOrderMarkBeforeTheFirstLineIsSkipped) {
  WriteFile("in.json", "\xEF\xBB\xBF{\"key\":\"a\",\"value\":\"1\"}\n");
  WriteFile("in.csv", "\xEF\xBB\xBF" + "a,1\n"s);
  EXPECT_EQ(Out("$B map build m in.json").find("built m: 1 record, "), 0U);
  EXPECT_EQ(Out("$B map build n in.csv --csv").find("built n: 1 record, "), 0U);
  EXPECT_EQ(Records("n"), Records("m"));
  EXPECT_EQ(Out("$B load db in.json --json").find("loaded 1 record"), 0U);
  EXPECT_EQ(Out("$B get db a"), "1\n");
  // Anywhere else it is a fault.
  WriteFile("later", "\n\xEF\xBB\xBF{\"key\":\"a\",\"value\":\"1\"}\n");
  ExpectRefused("$B map build p later", 2, "not JSON");
}

TEST_F(MapCli, BuildTakesCsvAsItIsQuoted) {
  WriteFile("in.csv", "1,\"Ada, \"\"the\"\" first\"\r\n\r\n2,\"two\nlines\"\n3,\n");
  EXPECT_EQ(Out("$B map build m in.csv --csv").find("built m: 3 records, "), 0U);
  EXPECT_EQ(Records("m"),
            "{\"key\":\"1\",\"value\":\"Ada, \\\"the\\\" first\"}\n"
            "{\"key\":\"2\",\"value\":\"two\\nlines\"}\n"
            "{\"key\":\"3\",\"value\":\"\"}\n");
}

TEST_F(MapCli, CsvColumnsHaveNumbersOrNames) {
  WriteFile("in.csv", "id,age,name\n7,36,Ada\n8,85,Grace\n");
  const std::string both =
      "{\"key\":\"Ada\",\"value\":\"36\"}\n{\"key\":\"Grace\",\"value\":\"85\"}\n";
  EXPECT_NE(Out("$B map build n in.csv --csv --header --key-column name --value-column age"), "");
  EXPECT_EQ(Records("n"), both);
  EXPECT_NE(Out("$B map build i in.csv --csv --header --key-column 3 --value-column 2"), "");
  EXPECT_EQ(Records("i"), both);
  EXPECT_NE(Out("$B map build d in.csv --csv"), "");
  EXPECT_EQ(Records("d"),
            "{\"key\":\"7\",\"value\":\"36\"}\n{\"key\":\"8\",\"value\":\"85\"}\n"
            "{\"key\":\"id\",\"value\":\"age\"}\n");
  ExpectRefused("$B map build x in.csv --csv --key-column name", 2, "a name needs --header");
  ExpectRefused("$B map build x in.csv --csv --header --key-column none", 2,
                "in.csv:1: there is no column 'none' among id, age, name");
  ExpectRefused("$B map build x in.csv --csv --header --value-column 4", 2,
                "in.csv:1: there is no column 4");
  ExpectRefused("$B map build x in.csv --csv --value-column 4", 2,
                "in.csv:1: 3 cells, but the value is in column 4");
  ExpectRefused("$B map build x in.csv --csv --key-column 0", 2, "'0'");
  WriteFile("twice.csv", "a,a\n1,2\n");
  ExpectRefused("$B map build x twice.csv --csv --header --key-column a", 2, "two columns");
  EXPECT_FALSE(fs::exists(At("x")));
}

TEST_F(MapCli, BuildTakesARangeOfADatabaseThatIsOpenElsewhere) {
  const auto db = DB::Open(At("db").string()).value();
  const KeyspaceId keyspace = db->CreateKeyspace("users").value();
  for (const char* key : {"a", "b/1", "b/2", "c"}) ASSERT_TRUE(db->Put(key, "v").ok());
  ASSERT_TRUE(db->Put("u", "w", {.keyspace = keyspace}).ok());
  const auto keys = [&](const std::string& options) {
    const Outcome built = Run("$B map build m --overwrite --db db" + options);
    EXPECT_EQ(built.code, 0) << built.err;
    EXPECT_EQ(built.err,
              "basalt: db is open in another process: it is read as it is at this moment\n");
    return Out("$B map export m --csv | tail -n +2 | cut -d, -f1 | LC_ALL=C sort | tr '\\n' ' '");
  };
  EXPECT_EQ(keys(""), "a b/1 b/2 c ");
  EXPECT_EQ(keys(" --prefix b/"), "b/1 b/2 ");
  EXPECT_EQ(keys(" --from b/2"), "b/2 c ");
  EXPECT_EQ(keys(" --from b --to b/2"), "b/1 ");
  EXPECT_EQ(keys(" --base64 --prefix Yi8="), "b/1 b/2 ");
  EXPECT_EQ(keys(" --keyspace users"), "u ");
  ExpectRefused("$B map build n --db db --keyspace none", 3, "none");
  ExpectRefused("$B map build n --db none", 3, "none");
  ExpectRefused("$B map build n --db db --json", 2, "db, key 'a': the value is not JSON");
  EXPECT_FALSE(fs::exists(At("n")));
  EXPECT_FALSE(fs::exists(At("none")));
}

TEST_F(MapCli, ABadLineEndsABuildAndNoMapIsMade) {
  const std::string good = "{\"key\":\"a\",\"value\":\"1\"}\n";
  WriteFile("bad", good + "\n{\"key\":\"b\",\"value\":2}\n");
  ExpectRefused("$B map build m bad", 2, "bad:3: \"value\" must be a string");
  ExpectRefused("$B map build m <bad", 2, "standard input:3: ");
  WriteFile("csv", "a,1\nb,2\n");
  ExpectRefused("$B map build m csv", 2, "is this --csv?");
  WriteFile("bad.csv", "a,1\nb,2,3\n\"c\nd\",\"4\"5\n");
  ExpectRefused("$B map build m bad.csv --csv", 2, "bad.csv:2: 3 cells where the first row has 2");
  WriteFile("quote.csv", "a,1\n\"c\nd\",\"4\"5\n");
  ExpectRefused("$B map build m quote.csv --csv", 2,
                "quote.csv:2: no comma after the closing quote at line 3, column 6");
  WriteFile("long", "{\"key\":\"" + std::string(65'536, 'k') + "\",\"value\":\"\"}\n");
  ExpectRefused("$B map build m long", 2, "long:1: the key has 65,536 bytes");
  ExpectRefused("$B map build m no-such-file", 3, "no-such-file");
  ExpectRefused("$B map build m .", 3, "directory");
  EXPECT_FALSE(fs::exists(At("m")));
}

TEST_F(MapCli, InputOfAnotherFormIsToldApart) {
  WriteFile("key", "{\"key\":\"a\xFF\",\"value\":\"1\"}\n");
  ExpectRefused("$B map build m key", 2,
                "key:1: not UTF-8 at column 10: such bytes are written {\"base64\":\"...\"}");
  WriteFile("cut", "{\"key\":\"a\",\"value\":\"\xE2\x82\"}\n");
  ExpectRefused("$B map build m cut", 2, "cut:1: not UTF-8 at column 21: ");
  ExpectRefused("$B load db cut --json", 2, "cut:1: not UTF-8 at column 21: ");
  WriteFile("earlier", "{\"key\":a,\"value\":\"\xFF\"}\n");
  ExpectRefused("$B map build m earlier", 2, "earlier:1: not JSON: syntax error at column 8");
  for (const std::string array :
       {"[\n{\"key\":\"a\",\"value\":\"1\"}\n]\n", "[{\"key\":\"a\",\"value\":\"1\"}]\n"}) {
    WriteFile("array", array);
    ExpectRefused("$B map build m array", 2, "(each line must be an object, not part of an array)");
  }
  WriteFile("narrow.csv", "\xEF\xBB\xBF" + "a,1"s);
  WriteFile("narrow", "\xEF\xBB\xBF{\"key\":\"a\",\"value\":\"1\"}");
  for (const char* const form : {"UTF-16LE", "UTF-16BE"}) {
    EXPECT_EQ(Out("iconv -f UTF-8 -t "s + form + " narrow.csv >wide.csv"), "");
    EXPECT_EQ(Out("iconv -f UTF-8 -t "s + form + " narrow >wide"), "");
    ExpectRefused("$B map build m wide.csv --csv --skip-bad-lines", 2, "wide.csv:1: UTF-16");
    ExpectRefused("$B map build m wide --skip-bad-lines", 2, "`iconv -f UTF-16 -t UTF-8`");
  }
  WriteFile("semicolons", "id;name\n7;Ada\n");
  ExpectRefused(
      "$B map build m semicolons --csv", 2,
      "semicolons:1: 1 cell, but the value is in column 2 (only commas part cells, and no "
      "semicolons)");
  ExpectRefused("$B map build m semicolons --csv --header --key-column id", 2, "no semicolons)");
  WriteFile("tabs", "\"id\"\t\"name\"\n");
  ExpectRefused("$B map build m tabs --csv", 2, "(only commas part cells, and no tabs)");
  WriteFile("bare", "7\tAda\n");
  ExpectRefused("$B map build m bare --csv", 2, "(only commas part cells, and no tabs)");
  WriteFile("single", "7\n");
  EXPECT_EQ(Run("$B map build m single --csv").err.find("commas"), std::string::npos);
  EXPECT_FALSE(fs::exists(At("m")));
}

TEST_F(MapCli, BadLinesMayBeSkippedAndAreCounted) {
  WriteFile("bad",
            "{\"key\":\"a\",\"value\":\"1\"}\nnonsense\n{\"key\":\"b\",\"value\":\"[2\"}\n"
            "{\"key\":\"c\",\"value\":\"[3]\"}\n");
  Outcome outcome = Run("$B map build m bad --json --skip-bad-lines");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("2 records"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("; 2 bad lines skipped\n"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.err.find("skipped bad:2: "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("skipped bad:3: the value is not JSON"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(Out("$B map get m a c"), "a\t1\nc\t[3]\n");

  WriteFile("many.csv", "a,1\nb,\"2\nc,3\n" + Out("seq 1 20") + "d,\"4\"\n");
  outcome = Run("$B map build n many.csv --csv --skip-bad-lines");
  EXPECT_NE(outcome.out.find("; 21 bad lines skipped\n"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.err.find("skipped many.csv:2: "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("skipped 11 more bad lines\n"), std::string::npos) << outcome.err;
  EXPECT_EQ(Out("$B map get n a c d"), "a\t1\nc\t3\nd\t4\n");
}

TEST_F(MapCli, JsonValuesAreKeptInTheirCompactForm) {
  WriteFile("in",
            "{\"key\":\"a\",\"value\":\" { \\\"x\\\" : [ 1.50 , \\\" \\\\\\\" \\\" ] }\\n\"}\n"
            "{\"key\":\"b\",\"value\":\"null\"}\n");
  EXPECT_NE(Out("$B map build m in --json"), "");
  EXPECT_EQ(Out("$B map get m a"), "{\"x\":[1.50,\" \\\" \"]}\n");
  EXPECT_EQ(Out("$B map get m b"), "null\n");
  WriteFile("bad", "{\"key\":\"a\",\"value\":\"1\"}\n{\"key\":\"b\",\"value\":\"[1,]\"}\n");
  ExpectRefused("$B map build n bad --json", 2, "bad:2: the value is not JSON: ");
  EXPECT_FALSE(fs::exists(At("n")));
  WriteFile("in.csv", "1,\"{ \"\"a\"\" : 1 }\"\n2,nul\n");
  ExpectRefused("$B map build n in.csv --csv --json", 2, "in.csv:2: the value is not JSON: ");
  EXPECT_NE(Out("head -n 1 in.csv | $B map build n --csv --json"), "");
  EXPECT_EQ(Out("$B map get n 1"), "{\"a\":1}\n");
}

TEST_F(MapCli, AKeyThatIsThereTwiceIsRefusedOrTheLastOneStays) {
  WriteFile("in",
            "{\"key\":\"grape\",\"value\":\"1\"}\n{\"key\":\"plum\",\"value\":\"2\"}\n"
            "{\"key\":\"grape\",\"value\":\"3\"}\n");
  ExpectRefused("$B map build m in", 2, "grape");
  ExpectRefused("$B map build m in --duplicates refuse", 2, "grape");
  EXPECT_FALSE(fs::exists(At("m")));
  const std::string built = Out("$B map build m in --duplicates last");
  EXPECT_EQ(built.find("built m: 2 records, "), 0U) << built;
  EXPECT_NE(built.find("; 1 replaced by later ones of their keys\n"), std::string::npos) << built;
  EXPECT_EQ(Out("$B map get m grape plum"), "grape\t3\nplum\t2\n");
}

TEST_F(MapCli, AMapThatIsThereIsReplacedOnlyWhenAsked) {
  MakeMap();
  const std::string before = Records("m");
  WriteFile("one", "{\"key\":\"a\",\"value\":\"1\"}\n");
  WriteFile("bad", "{\"key\":\"a\",\"value\":\"1\"}\nnonsense\n");
  ExpectRefused("$B map build m one", 3, "--overwrite");
  ExpectRefused("$B map build m bad --overwrite", 2, "bad:2: ");
  EXPECT_EQ(Records("m"), before);
  EXPECT_NE(Out("$B map build m one --overwrite"), "");
  EXPECT_EQ(Records("m"), ReadFile("one"));
  EXPECT_NE(Out("$B map export m | $B map build m --overwrite"), "");
  EXPECT_EQ(Records("m"), ReadFile("one"));
  EXPECT_EQ(Out("mkdir other; touch other/file"), "");
  ExpectRefused("$B map build other one --overwrite", 3, "other");
  ExpectRefused("$B map build one one --overwrite", 3, "one");
  EXPECT_EQ(Out("ls other"), "file\n");
}

TEST_F(MapCli, ABuildThatIsKilledIsInTheWayOfNoOther) {
  MakeMap();
  const std::string before = Records("m");
  // Killed while it waits for more records, of which there are enough to put some aside.
  WriteFile("many", Out("seq -w 1 60000 | sed 's/.*/{\"key\":\"&\",\"value\":\"" +
                        std::string(100, 'v') + "&\"}/'"));
  for (const std::string map : {"m", "n"}) {
    EXPECT_EQ(Run("mkfifo pipe; (cat many; exec sleep 30) >pipe & writer=$!; "
                  "$B map build " +
                  map +
                  " --overwrite --memory 1M <pipe & builder=$!; sleep 0.7; "
                  "kill -9 $builder $writer; wait; rm pipe")
                  .code,
              0);
  }
  EXPECT_EQ(Records("m") == before, true);
  EXPECT_NE(Out("$B map check m").find("No faults found."), std::string::npos);
  ExpectRefused("$B map get n 00001", 3, "n");
  EXPECT_NE(Out("$B map build n many; $B map build m many --overwrite"), "");
  EXPECT_EQ(Records("n") == ReadFile("many"), true);
  EXPECT_EQ(Records("m") == ReadFile("many"), true);
  EXPECT_EQ(Out("ls m n | grep spool | wc -l"), "0\n");
}

TEST_F(MapCli, LayoutsMemoryAndThreadsChangeNothingOfWhatIsFound) {
  // 6 MiB, so that a build of 1 MiB of memory must put some aside.
  WriteFile("in", Out("seq -w 1 60000 | sed 's/.*/{\"key\":\"&\",\"value\":\"" +
                      std::string(100, 'v') + "&\"}/'"));
  EXPECT_NE(Out("$B map build m in --layout fixed"), "");
  const std::string records = Records("m");
  EXPECT_EQ(records, ReadFile("in"));
  for (const std::string options : {"derived", "variable", "fixed --memory 1M", "fixed --threads 1",
                                    "variable --memory 1M --threads 2"}) {
    EXPECT_NE(Out("$B map build m in --overwrite --layout " + options), "");
    EXPECT_EQ(Records("m") == records, true) << options;
    const json::object stat = ParseObject(Out("$B map stat m --json"));
    EXPECT_EQ(Number(stat, "entries"), 60000U);
    if (options.starts_with("fixed")) {
      EXPECT_EQ(Number(stat, "fixed_shards"), Number(stat, "shards"));
    }
    if (options.starts_with("variable")) {
      EXPECT_EQ(Number(stat, "fixed_shards"), 0U);
    }
  }
}

TEST_F(MapCli, ABuildThatLastsShowsItsProgressWhenAskedTo) {
  MakeMap();
  // A line is due after two seconds.
  const std::string slowly = "(head -n 500 records; sleep 3; tail -n 500 records) | ";
  const Outcome built = Run(slowly + "$B map build slow --progress");
  EXPECT_EQ(built.code, 0);
  EXPECT_EQ(built.err.find("reading "), 0U) << built.err;
  EXPECT_NE(built.err.find(" records/s\n"), std::string::npos) << built.err;
  EXPECT_EQ(CountOf("\n", built.out), 1U) << built.out;
  EXPECT_EQ(Records("slow"), Records("m"));
}

TEST_F(MapCli, ExportAndBuildRoundTripAnyBytes) {
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
  EXPECT_NE(Out("$B map build m --db db"), "");
  const std::string records = Out("$B dump db --json | LC_ALL=C sort");
  EXPECT_EQ(CountOf("\n", records), 514U);
  EXPECT_EQ(Records("m") == records, true);
  EXPECT_NE(Out("$B map export m | $B map build copy"), "");
  EXPECT_EQ(Records("copy") == records, true);
  EXPECT_NE(Out("$B map export m --csv | $B map build table --csv --header"), "");
  EXPECT_EQ(Records("table") == records, true);
  EXPECT_NE(Out("$B map export m | $B load loaded - --json"), "");
  EXPECT_EQ(Out("$B dump loaded --json | LC_ALL=C sort") == records, true);
}

TEST_F(MapCli, ExportHasWhatWasChangedSince) {
  MakeMap();
  EXPECT_EQ(Out("$B map put m 0500 changed; $B map put m new '1,2'; $B map del m 0001"), "");
  EXPECT_EQ(Out("$B map export m --csv | LC_ALL=C sort | sed -n '1p;499,500p;$p'"),
            "0002,value-0002\n0500,changed\n0501,value-0501\nnew,\"1,2\"\n");
  EXPECT_EQ(Out("$B map export m | wc -l"), "1000\n");
}

TEST_F(MapCli, AReaderThatGoesAwayEndsAnExportInSilence) {
  WriteFile("in", Out("seq 1 100000 | sed 's/.*/{\"key\":\"&\",\"value\":\"v\"}/'"));
  EXPECT_NE(Out("$B map build m in"), "");
  EXPECT_EQ(Out("{ $B map export m; echo $? >code; } | head -n 1 | wc -l; cat code"), "1\n0\n");
  ExpectRefused("$B map export m >/dev/full", 3, "No space left");
  ExpectRefused("$B map get m 1 >/dev/full", 3, "No space left");
}

TEST_F(MapCli, StatShowsTheSameFiguresInEveryFormat) {
  MakeMap();
  EXPECT_EQ(Out("$B map put m 0500 changed; $B map put m 0500 again; $B map put m new 1"), "");
  const std::string table = Out("$B map stat m");
  for (const char* row : {"\n  entries ", " 1,001\n", "\nbase\n", "\n  function_bytes ",
                          " bits a key)\n", "\n  layout ", "\nchanges\n", "\n  log_bytes "}) {
    EXPECT_NE(table.find(row), std::string::npos) << row << "\n" << table;
  }
  const json::object stat = ParseObject(Out("$B map stat m --json"));
  EXPECT_EQ(Number(stat, "entries"), 1001U);
  EXPECT_EQ(Number(stat, "base_records"), 1000U);
  EXPECT_EQ(Number(stat, "changes"), 3U);
  EXPECT_GT(Number(stat, "base_bytes"), 18'000U);
  EXPECT_GT(Number(stat, "writer_pid"), 0U);
  std::string csv = "name,value\n";
  std::string raw;
  for (const auto& [name, value] : stat) {
    csv.append(name).append(",").append(json::serialize(value)).append("\n");
    raw.append(name).append("\t").append(json::serialize(value)).append("\n");
  }
  EXPECT_EQ(Out("$B map stat m --output csv"), csv);
  EXPECT_EQ(Out("$B map stat m --output raw"), raw);
  EXPECT_EQ(Out("$B map stat m --output json"), json::serialize(stat) + "\n");
}

TEST_F(MapCli, CheckFindsAFlippedBitOfABase) {
  MakeMap();
  EXPECT_NE(Out("$B map check m").find("No faults found."), std::string::npos);
  json::object report = ParseObject(Out("$B map check m --json"));
  EXPECT_EQ(Number(report, "records"), 1000U);
  EXPECT_TRUE(report.at("problems").as_array().empty());

  const auto places = Places("m", "value-0500");
  ASSERT_EQ(places.size(), 1U);
  FlipBit(places[0].first, places[0].second);
  const std::string file = places[0].first.filename().string();
  const Outcome check = Run("$B map check m");
  EXPECT_EQ(check.code, 4) << check.err;
  EXPECT_NE(check.out.find("PROBLEM "), std::string::npos) << check.out;
  EXPECT_NE(check.out.find(file), std::string::npos) << check.out;
  const Outcome as_json = Run("$B map check m --output json --progress");
  EXPECT_EQ(as_json.code, 4) << as_json.err;
  report = ParseObject(as_json.out);
  EXPECT_FALSE(report.at("problems").as_array().empty());
  ExpectRefused("$B map get m 0500", 4, "Corruption");
  EXPECT_EQ(Run("$B map export m >/dev/null").code, 4);
}

TEST_F(MapCli, CheckFindsAFlippedBitOfAChange) {
  EXPECT_EQ(Out("for i in 1 2 3; do $B map put m key$i value-of-key$i || exit; done"), "");
  EXPECT_NE(Out("$B map check m").find("No faults found."), std::string::npos);
  const auto places = Places("m", "value-of-key2");
  ASSERT_FALSE(places.empty());
  for (const auto& [path, offset] : places) FlipBit(path, offset);
  EXPECT_EQ(Run("$B map check m").code, 4);
  const Outcome get = Run("$B map get m key2");
  EXPECT_EQ(get.code, 4) << get.out << get.err;
  EXPECT_EQ(get.out, "");
}

TEST_F(MapCli, ASecondWriterIsRefusedWithTheFirstOnesPid) {
  MakeMap();
  const OtherWriter other(At("m"));
  ASSERT_TRUE(other.is_open());
  ExpectRefused("$B map put m k v", 5, other.pid());
  ExpectRefused("$B map del m 0001", 5, other.pid());
  ExpectRefused("$B map build m records --overwrite", 5, other.pid());
  ExpectRefused("$B map build m records", 3, "m");
  EXPECT_EQ(Out("$B map get m 0042"), "value-0042\n");
  EXPECT_EQ(Out("$B map export m | wc -l"), "1000\n");
  EXPECT_EQ(Number(ParseObject(Out("$B map stat m --json")), "entries"), 1000U);
}

TEST_F(MapCli, ReadersNeverMakeAMap) {
  for (const char* command : {"get m k", "del m k", "stat m", "check m", "export m", "build n m"}) {
    ExpectRefused("$B map "s + command, 3, "m");
    EXPECT_FALSE(fs::exists(At("m"))) << command;
  }
  EXPECT_FALSE(fs::exists(At("n")));
  WriteFile("file", "no directory");
  EXPECT_NE(Run("$B map get file k").code, 0);
  EXPECT_NE(Run("$B map put file k v").code, 0);
  EXPECT_EQ(ReadFile("file"), "no directory");
}

TEST_F(MapCli, WhatIsMissingIsNamedWithWhatToDo) {
  const std::string how = "`map build` and `map put` make a map that is not there; the other verbs";
  for (const char* command :
       {"get nowhere k", "del nowhere k", "stat nowhere", "check nowhere", "export nowhere"}) {
    const Outcome refused = Run("$B map "s + command);
    EXPECT_EQ(refused.code, 3) << command;
    EXPECT_NE(refused.err.find("there is no shared map at nowhere: check the path"),
              std::string::npos)
        << refused.err;
    EXPECT_NE(refused.err.find(how), std::string::npos) << refused.err;
  }
  EXPECT_EQ(Out("mkdir empty"), "");
  ExpectRefused("$B map stat empty", 3, "empty: holds no shared map; check the path");
  ExpectRefused("$B map stat empty", 3, how);
  for (const char* command : {"put none/x/m k v", "build none/x/m /dev/null"}) {
    const Outcome refused = Run("$B map "s + command);
    EXPECT_EQ(refused.code, 3) << command;
    EXPECT_NE(refused.err.find("make the directory above it (mkdir -p none/x)"), std::string::npos)
        << refused.err;
    EXPECT_EQ(refused.err.find(how), std::string::npos) << refused.err;
  }
}

TEST_F(MapCli, ADatabaseIsNoMap) {
  EXPECT_EQ(Out("$B put db k v"), "");
  const std::string before = Out("ls db");
  ExpectRefused("$B map get db k", 3, "db is a database and no map: `basalt get db KEY` reads it");
  ExpectRefused("$B map put db k v", 3, "`basalt put db KEY VALUE`");
  ExpectRefused("$B map del db k", 3, "`basalt del db KEY`");
  ExpectRefused("$B map stat db", 3, "`basalt stat db`");
  ExpectRefused("$B map check db", 3, "`basalt check db`");
  ExpectRefused("$B map export db", 3, "`basalt dump db`");
  ExpectRefused("$B map bench db", 3, "`basalt bench db`");
  ExpectRefused("$B map build db </dev/null", 3, "`--db db` builds one from it");
  ExpectRefused("$B map build db --overwrite </dev/null", 3, "db is a database");
  EXPECT_EQ(Out("ls db"), before);
  EXPECT_EQ(Out("$B get db k"), "v\n");
}

TEST_F(MapCli, BenchMeasuresABuildAndLookups) {
  const std::string table = Out("$B map bench :memory: --num 2000 --threads 2 --value-size 40");
  EXPECT_EQ(table.find("2,000 records, values of 40 bytes, layout "), 0U) << table;
  for (const char* row : {"\nworkload ", "\nbuild ", "\nget ", "  2,000 of 2,000\n",
                          "\ngetmissing ", "  0 of 2,000\n", "\nmultiget64 "}) {
    EXPECT_NE(table.find(row), std::string::npos) << row << "\n" << table;
  }
  EXPECT_EQ(CountOf("2,000 of 2,000\n", table), 2U) << table;

  std::istringstream lines(
      Out("$B map bench b --num 1000 --reads 3000 --layout variable --output json"));
  std::vector<std::string> workloads;
  for (std::string line; std::getline(lines, line);) {
    const json::object figures = ParseObject(line);
    workloads.emplace_back(figures.at("workload").as_string());
    EXPECT_EQ(figures.at("layout").as_string(), "variable");
    if (workloads.back() == "build") continue;
    EXPECT_EQ(Number(figures, "lookups"), 3000U);
    EXPECT_EQ(Number(figures, "found"), workloads.back() == "getmissing" ? 0U : 3000U);
    EXPECT_EQ(Number(figures, "timed_calls"), workloads.back() == "multiget64" ? 47U : 3000U);
    EXPECT_LE(Number(figures, "p50_ns"), Number(figures, "p99_ns"));
    EXPECT_LE(Number(figures, "p99_ns"), Number(figures, "p999_ns"));
    EXPECT_GT(figures.at("ns_per_op").to_number<double>(), 0);
  }
  EXPECT_EQ(workloads, (std::vector<std::string>{"build", "get", "getmissing", "multiget64"}));
  EXPECT_EQ(CountOf("\n", Out("$B map bench b --num 10 --output csv")), 5U);
  EXPECT_EQ(CountOf("\n", Out("$B map bench b --num 10 --output raw")), 4U);
}

TEST_F(MapCli, BenchReplacesItsOwnMapAndNoOther) {
  EXPECT_NE(Out("$B map bench b --num 10 && $B map bench b --num 20"), "");
  EXPECT_EQ(Out("$B map get b 0000000000000019 | wc -c"), "101\n");
  MakeMap();
  const std::string before = Records("m");
  ExpectRefused("$B map bench m --num 10", 3, "has not made");
  EXPECT_EQ(Records("m"), before);
  EXPECT_EQ(Out("mkdir other; touch other/file"), "");
  ExpectRefused("$B map bench other --num 10", 3, "other");
  EXPECT_EQ(Out("ls other"), "file\n");
}

}  // namespace
}  // namespace basalt

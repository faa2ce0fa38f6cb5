// The command-line program, run as a person or a script runs it: by a shell, in a directory of its
// own.

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json/src.hpp>  // Compiled into this file: no library is linked for it.
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "basalt/db.h"
#include "tests/command.h"

namespace basalt {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using std::string_literals::operator""s;

/// The lines of a CSV text as RFC 4180 has them.
std::vector<std::vector<std::string>> ParseCsv(const std::string& text) {
  std::vector<std::vector<std::string>> lines;
  std::vector<std::string> line(1);
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
      line.back() += text[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && c == ',') {
      line.emplace_back();
    } else if (!quoted && c == '\n') {
      lines.push_back(std::exchange(line, std::vector<std::string>(1)));
    } else {
      line.back() += c;
    }
  }
  EXPECT_FALSE(quoted) << text;
  EXPECT_EQ(line, std::vector<std::string>(1)) << "a last line without its end: " << text;
  return lines;
}

/// The lines of JSON in a text.
std::vector<json::object> ParseLines(const std::string& text) {
  std::vector<json::object> objects;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) objects.push_back(ParseObject(line));
  return objects;
}

/// The values of a document by their names, as csv and raw give them.
void Flatten(const std::string& name, const json::value& value,
             std::map<std::string, std::string>* flat) {
  const std::string prefix = name.empty() ? "" : name + ".";
  if (value.is_object()) {
    for (const auto& member : value.get_object()) {
      Flatten(prefix + std::string(member.key()), member.value(), flat);
    }
  } else if (value.is_array()) {
    for (size_t i = 0; i < value.get_array().size(); ++i) {
      Flatten(prefix + std::to_string(i), value.get_array()[i], flat);
    }
  } else if (value.is_string()) {
    (*flat)[name] = std::string(value.get_string());
  } else if (value.is_double()) {
    (*flat)[name] = "a decimal";
  } else {
    (*flat)[name] = json::serialize(value);
  }
}

class Cli : public CommandTest {
 protected:
  /// Runs a command that prints figures in each format, which must all say the same.
  json::object Figures(const std::string& command, int code = 0) const {
    const auto run = [&](const std::string& format) {
      const Outcome outcome = Run(command + " --output " + format);
      EXPECT_EQ(outcome.code, code) << command << " " << format << "\n" << outcome.err;
      return outcome.out;
    };
    const json::object document = ParseObject(run("json"));
    std::map<std::string, std::string> flat;
    Flatten("", document, &flat);
    const auto lines = ParseCsv(run("csv"));
    EXPECT_EQ(lines.at(0), (std::vector<std::string>{"name", "value"})) << command;
    EXPECT_EQ(lines.size(), flat.size() + 1) << command;
    std::string raw;
    for (size_t i = 1; i < lines.size(); ++i) {
      const std::string& name = lines[i].at(0);
      EXPECT_TRUE(flat.contains(name)) << command << ": " << name;
      if (flat[name] != "a decimal") {
        EXPECT_EQ(lines[i].at(1), flat[name]) << command << ": " << name;
      }
      raw += name + "\t" + lines[i].at(1) + "\n";
    }
    EXPECT_EQ(run("raw"), raw) << command;
    return document;
  }

  /// The only file of the database `db` whose name ends so; a path in the test's directory.
  std::string OnlyFile(const std::string& ending) const {
    std::string found;
    for (const auto& entry : fs::directory_iterator(At("db"))) {
      const std::string name = entry.path().filename().string();
      if (!name.ends_with(ending)) continue;
      EXPECT_EQ(found, "") << "a second file: " << name;
      found = "db/" + name;
    }
    EXPECT_NE(found, "") << ending;
    return found;
  }
};

std::string Text(const json::object& document, const char* name) {
  const json::value* value = document.if_contains(name);
  EXPECT_TRUE(value != nullptr && value->is_string()) << name;
  return value == nullptr ? "" : std::string(value->as_string());
}

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

TEST_F(Cli, WhatCannotBeWrittenIsRead) {
  EXPECT_EQ(Out("$B put db k v && rm db/LOCK && mkdir db/LOCK"), "");
  ExpectRefused("$B put db k w", 3, "cannot lock");
  EXPECT_EQ(Out("$B get db k && $B scan db && $B dump db"), "v\nk\tv\nk\tv\n");
  EXPECT_NE(Out("$B stat db"), "");
  EXPECT_NE(Out("$B check db").find("No faults found"), std::string::npos);
}

TEST_F(Cli, NothingIsPutWhereItWouldBeGone) {
  for (const char* const verb : {"put :memory: k v", "load :memory: /dev/null"}) {
    ExpectRefused("$B "s + verb, 2, "name a directory");
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

TEST_F(Cli, ALockedDatabaseIsUnavailable) {
  const auto db = DB::Open(At("db").string()).value();
  for (const char* command :
       {"get db k", "put db k v", "scan db", "stat db", "check db", "compact db"}) {
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

TEST_F(Cli, StatShowsTheSameFiguresInEveryFormat) {
  WriteFile("many", Out("seq -w 1 5000 | sed 's/$/\\tvalue/'"));
  EXPECT_NE(Out("$B load db many; $B compact db; $B put db k v"), "");
  const std::string table = Out("$B stat db");
  for (const char* row : {"level ", "\nL0 ", "\nL1 ", "\nall ", "\n  last_sequence ", " 5,001\n",
                          "\n  compaction_debt ", "\n  memory_budget ", "\n  memtable_bytes ",
                          " %\n", "\n  log_bytes ", "\n  write_waits ", "\n  snapshots "}) {
    EXPECT_NE(("\n" + table).find(row), std::string::npos) << row << "\n" << table;
  }
  const json::object figures = Figures("$B stat db");
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

TEST_F(Cli, RecordsComeInEveryFormat) {
  EXPECT_EQ(Out("printf 'a,b\\tsay \"hi\"\\nline\\\\nbreak\\t\\\\xFF\\nplain\\tvalue\\n' "
                "| $B load db - >/dev/null"),
            "");
  EXPECT_EQ(
      ParseCsv(Out("$B scan db --output csv")),
      (std::vector<std::vector<std::string>>{
          {"key", "value"}, {"a,b", "say \"hi\""}, {"line\\nbreak", "\\xFF"}, {"plain", "value"}}));
  EXPECT_EQ(Out("$B scan db --output csv --keys-only"), "key\n\"a,b\"\nline\\nbreak\nplain\n");
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

TEST_F(Cli, CheckAndRepairSayTheSameInEveryFormat) {
  WriteFile("many", Out("seq -w 1 1000 | sed 's/.*/key&\\tvalue-&/'"));
  EXPECT_EQ(Out("$B load db many --batch 10 >/dev/null"), "");
  json::object report = Figures("$B check db");
  EXPECT_EQ(Number(report, "log_records"), 100U);
  EXPECT_TRUE(report.at("findings").as_array().empty());

  const std::string log = OnlyFile(".log");
  FlipBit(At(log), ReadFile(log).find("value-0500"));
  report = Figures("$B check db", 4);
  ASSERT_EQ(report.at("findings").as_array().size(), 1U);
  EXPECT_NE(Text(report.at("findings").as_array()[0].as_object(), "status").find("LSN 50 to 50"),
            std::string::npos);

  const json::object repaired = ParseObject(Out("$B repair db --output json"));
  EXPECT_EQ(Number(repaired, "last_lsn_kept"), 49U);
  EXPECT_EQ(Number(repaired, "first_lsn_lost"), 50U);
  EXPECT_EQ(Number(repaired, "last_lsn_lost"), 100U);
  EXPECT_EQ(repaired.at("moved_to_lost").as_array().size(), 1U);
  EXPECT_EQ(Number(Figures("$B repair db"), "first_lsn_lost"), 0U);
}

TEST_F(Cli, RepairNamesATableThatIsMissing) {
  EXPECT_EQ(Out("$B put db k v"), "");
  EXPECT_NE(Out("$B compact db"), "");
  const std::string table = OnlyFile(".tbl");
  ASSERT_TRUE(std::filesystem::remove(At(table)));
  const Outcome repaired = Run("$B repair db");
  EXPECT_EQ(repaired.code, 4);
  EXPECT_NE(repaired.out.find("FINDING"), std::string::npos) << repaired.out;
  EXPECT_NE(repaired.out.find(table), std::string::npos) << repaired.out;
  const json::object report = Figures("$B repair db", 4);
  EXPECT_EQ(report.at("findings").as_array().size(), 1U);
}

TEST_F(Cli, CompactDropsWhatIsDeletedAndOverwritten) {
  WriteFile("many", Out("seq -w 1 3000 | sed 's/$/\\tvalue/'"));
  EXPECT_NE(Out("$B load db many; $B compact db; $B load db many"), "");
  EXPECT_EQ(Out("$B del db $(seq -w 1 2000)"), "");
  const std::string said = Out("$B compact db --progress");
  EXPECT_NE(said.find("after  1,000 records in 1 table, "), std::string::npos) << said;
  EXPECT_NE(said.find("took "), std::string::npos) << said;
  uint64_t deletes = 0;
  const json::object figures = Figures("$B stat db");
  for (const json::value& level : figures.at("levels").as_array()) {
    deletes += Number(level.as_object(), "deletes");
  }
  EXPECT_EQ(deletes, 0U);
  EXPECT_EQ(Out("$B scan db --keys-only | wc -l; $B scan db --limit 1"), "1000\n2001\tvalue\n");
  EXPECT_EQ(ParseObject(Out("$B check db --output json")).at("findings").as_array().size(), 0U);
}

TEST_F(Cli, CompactTakesARange) {
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

class CliInspect : public Cli {
 protected:
  /// A database with a table, a log of two batches, and what a name says of both.
  void MakeDatabase() const {
    WriteFile("many", Out("seq -w 1 2000 | sed 's/$/\\tsome value/'"));
    EXPECT_NE(Out("$B load db many; $B compact db; $B put db first v; $B del db second 0001"), "");
    EXPECT_EQ(Out("cp -r db sound"), "");
  }
  /// Inspects a file in which something may be damaged: whatever it is, JSON comes of it, or one
  /// complaint.
  int InspectDamaged(const std::string& file, const std::string& what) const {
    const Outcome outcome = Run("$B inspect " + file);
    EXPECT_TRUE(outcome.code == 0 || outcome.code == 4 || outcome.code == 3)
        << what << ": exit code " << outcome.code << "\n"
        << outcome.err;
    EXPECT_EQ(outcome.code == 0, outcome.err.empty()) << what << "\n" << outcome.err;
    if (outcome.out.empty()) return outcome.code;
    const json::object document = ParseObject(outcome.out);
    const json::value* findings = document.if_contains("findings");
    if (findings == nullptr || !findings->is_array()) {
      ADD_FAILURE() << what << "\n" << outcome.out;
      return outcome.code;
    }
    EXPECT_EQ(outcome.code == 0, findings->get_array().empty()) << what << "\n" << outcome.out;
    return outcome.code;
  }
};

TEST_F(CliInspect, AManifestShowsItsTables) {
  MakeDatabase();
  const json::object manifest = ParseObject(Out("$B inspect db/MANIFEST"));
  EXPECT_EQ(Text(manifest, "kind"), "manifest");
  EXPECT_EQ(Text(manifest, "file"), "db/MANIFEST");
  EXPECT_EQ(Number(manifest, "bytes"), fs::file_size(At("db/MANIFEST")));
  EXPECT_EQ(Text(manifest.at("header").as_object(), "magic"), "BSLTMAN1");
  EXPECT_EQ(Number(manifest.at("body").as_object(), "last_sequence"), 2000U);
  ASSERT_EQ(manifest.at("tables").as_array().size(), 1U);
  const json::object& table = manifest.at("tables").as_array()[0].as_object();
  EXPECT_EQ(Number(table, "records"), 2000U);
  EXPECT_EQ(Number(table, "bytes"), fs::file_size(At(OnlyFile(".tbl"))));
  EXPECT_EQ(Text(table, "smallest_key"), "0001");
  EXPECT_EQ(Text(table, "largest_key"), "2000");
  EXPECT_TRUE(manifest.at("findings").as_array().empty());
  Figures("$B inspect db/MANIFEST");
  ExpectRefused("$B inspect db/MANIFEST --output table", 2, "table not in {json,csv,raw}");
}

TEST_F(CliInspect, KeyspacesRangeDeletesAndMergesAreShown) {
  {
    const auto db = DB::Open(At("db").string()).value();
    const KeyspaceId keyspace = db->CreateKeyspace("users").value();
    ASSERT_TRUE(db->Put("a", "1", {.keyspace = keyspace}).ok());
    ASSERT_TRUE(db->Merge("b", MergeOperator::kAppend, "x").ok());
    ASSERT_TRUE(db->DeleteRange("c", "d").ok());
    ASSERT_TRUE(db->Close().ok());
  }
  const json::object manifest = ParseObject(Out("$B inspect db/MANIFEST"));
  ASSERT_EQ(manifest.at("keyspaces").as_array().size(), 1U);
  const json::object& keyspace = manifest.at("keyspaces").as_array()[0].as_object();
  EXPECT_EQ(Text(keyspace, "name"), "users");
  json::array operations;
  const json::object log = ParseObject(Out("$B inspect " + OnlyFile(".log")));
  for (const json::value& record : log.at("records").as_array()) {
    if (Text(record.as_object(), "type") != "batch") continue;
    for (const json::value& each : record.at("operations").as_array()) operations.push_back(each);
  }
  ASSERT_EQ(operations.size(), 3U);
  EXPECT_EQ(Number(operations[0].as_object(), "keyspace"), Number(keyspace, "id"));
  EXPECT_EQ(Text(operations[1].as_object(), "kind"), "merge");
  EXPECT_EQ(Text(operations[1].as_object(), "operator"), "append");
  EXPECT_EQ(Text(operations[2].as_object(), "kind"), "delete_range");
  EXPECT_EQ(Text(operations[2].as_object(), "end"), "d");
  EXPECT_NE(Out("$B compact db").find("after  2 records in 2 tables"), std::string::npos)
      << "one in each keyspace";
}

TEST_F(CliInspect, ALogShowsItsRecordsAndTheirOperations) {
  EXPECT_EQ(Out("$B put db first 12345; $B del db second third; $B put db --base64 AP8= ''"), "");
  EXPECT_EQ(Out("cat db/*.log >whole.log; ls db/*.log | wc -l"), "3\n") << "one each opening";
  std::vector<json::object> records;
  for (const auto& entry : fs::directory_iterator(At("db"))) {
    if (entry.path().extension() != ".log") continue;
    const json::object log = ParseObject(Out("$B inspect db/" + entry.path().filename().string()));
    EXPECT_EQ(Text(log, "kind"), "log");
    EXPECT_EQ(Text(log.at("header").as_object(), "magic"), "BSLTLOG1");
    EXPECT_TRUE(log.at("closed").as_bool());
    EXPECT_TRUE(log.at("findings").as_array().empty());
    EXPECT_EQ(Number(log, "record_count"), 2U) << "a batch and the closing record";
    for (const json::value& record : log.at("records").as_array()) {
      if (Text(record.as_object(), "type") == "batch") records.push_back(record.as_object());
    }
  }
  ASSERT_EQ(records.size(), 3U);
  std::sort(records.begin(), records.end(), [](const json::object& a, const json::object& b) {
    return Number(a, "lsn") < Number(b, "lsn");
  });
  EXPECT_EQ(json::serialize(records[0].at("operations")),
            R"([{"kind":"put","key":"first","key_bytes":5,"value_bytes":5}])");
  EXPECT_EQ(json::serialize(records[1].at("operations")),
            R"([{"kind":"delete","key":"second","key_bytes":6},)"
            R"({"kind":"delete","key":"third","key_bytes":5}])");
  EXPECT_EQ(Number(records[1], "first_sequence"), 2U);
  EXPECT_EQ(Number(records[1], "count"), 2U);
  EXPECT_EQ(json::serialize(records[2].at("operations")),
            R"([{"kind":"put","key":{"base64":"AP8="},"key_bytes":2,"value_bytes":0}])");
}

TEST_F(CliInspect, LimitBoundsWhatIsShownAndNotWhatIsCounted) {
  WriteFile("many", Out("seq -w 1 1000 | sed 's/$/\\tsome value/'"));
  EXPECT_NE(Out("$B load db many --batch 10"), "");
  const std::string log = OnlyFile(".log");
  json::object document = ParseObject(Out("$B inspect --limit 3 " + log));
  EXPECT_EQ(Number(document, "record_count"), 101U);
  EXPECT_EQ(Number(document, "operation_count"), 1000U);
  ASSERT_EQ(document.at("records").as_array().size(), 3U);
  EXPECT_EQ(document.at("records").as_array()[2].at("operations").as_array().size(), 3U);
  EXPECT_EQ(Number(document.at("records").as_array()[2].as_object(), "count"), 10U);
  document = ParseObject(Out("$B inspect " + log));
  EXPECT_EQ(document.at("records").as_array().size(), 100U);
  EXPECT_NE(Out("$B compact db"), "");
  document = ParseObject(Out("$B inspect --limit 0 " + OnlyFile(".tbl")));
  EXPECT_TRUE(document.at("blocks").as_array().empty());
  EXPECT_GE(Number(document, "block_count"), 1U);
  ExpectRefused("$B inspect db/MANIFEST --limit many", 2, "no whole number");
}

TEST_F(CliInspect, ATableShowsItsPartsAndTheyTileTheFile) {
  WriteFile("many", Out("seq -w 1 3000 | sed 's/$/\\tsome value/'"));
  EXPECT_NE(Out("$B load db many; $B compact db"), "");
  const std::string file = OnlyFile(".tbl");
  const json::object table = ParseObject(Out("$B inspect " + file));
  EXPECT_EQ(Text(table, "kind"), "table");
  EXPECT_EQ(Text(table.at("header").as_object(), "magic"), "BasaltTb");
  EXPECT_EQ(Text(table.at("header").as_object(), "file_id"),
            Text(table.at("trailer").as_object(), "file_id"));
  EXPECT_EQ(Number(table.at("properties").as_object(), "records"), 3000U);
  EXPECT_TRUE(table.at("findings").as_array().empty());
  uint64_t end = 64;  // Of the header.
  uint64_t records = 0;
  const json::array& blocks = table.at("blocks").as_array();
  ASSERT_EQ(blocks.size(), Number(table, "block_count"));
  ASSERT_GT(blocks.size(), 1U);
  for (const json::value& block : blocks) {
    EXPECT_EQ(Number(block.as_object(), "offset"), end);
    end += Number(block.as_object(), "bytes");
    records += Number(block.as_object(), "records");
  }
  EXPECT_EQ(records, 3000U);
  EXPECT_EQ(Text(blocks[0].as_object(), "first_key"), "0001");
  for (const json::value& section : table.at("sections").as_array()) {
    EXPECT_EQ(Number(section.as_object(), "offset"), end);
    end += Number(section.as_object(), "bytes");
    EXPECT_NE(Text(section.as_object(), "kind"), "unknown");
  }
  EXPECT_EQ(Number(table.at("trailer").as_object(), "section_table_offset"), end);
  EXPECT_EQ(Number(table.at("trailer").as_object(), "file_bytes"), fs::file_size(At(file)));
  Figures("$B inspect " + file);
}

TEST_F(CliInspect, AnyDamagedByteOfAManifestOrTableIsFound) {
  MakeDatabase();
  for (const std::string& file : {"db/MANIFEST"s, OnlyFile(".tbl")}) {
    const std::string sound = ReadFile(file);
    for (size_t i = 0; i < 40; ++i) {
      const size_t offset = i < 12 ? 6 * i : (sound.size() - 1) * (i - 11) / 28;
      WriteFile(file, sound);
      FlipBit(At(file), offset);
      EXPECT_EQ(InspectDamaged(file, file + " at " + std::to_string(offset)), 4)
          << file << " " << offset;
    }
    WriteFile(file, sound);
    EXPECT_EQ(InspectDamaged(file, file), 0);
  }
}

TEST_F(CliInspect, WhatIsCutShortIsShownAsFarAsItGoes) {
  MakeDatabase();
  std::string log;
  for (const auto& entry : fs::directory_iterator(At("db"))) {
    if (entry.path().extension() == ".log") log = "db/" + entry.path().filename().string();
  }
  ASSERT_NE(log, "");
  for (const std::string& file : {"db/MANIFEST"s, OnlyFile(".tbl"), log}) {
    const std::string sound = ReadFile(file);
    for (const size_t size :
         {size_t{0}, size_t{5}, size_t{8}, size_t{63}, size_t{64}, size_t{100}, size_t{136},
          size_t{600}, size_t{1024}, size_t{1050}, sound.size() / 2, sound.size() - 1}) {
      if (size >= sound.size()) continue;
      WriteFile(file, sound.substr(0, size));
      const int code = InspectDamaged(file, file + " cut to " + std::to_string(size));
      EXPECT_TRUE(code == 4 || file == log) << file << " " << size;
    }
    WriteFile(file, sound);
  }
}

TEST_F(CliInspect, ADamagedRecordOfALogIsFoundAndTheOthersAreShown) {
  WriteFile("many", Out("seq -w 1 1000 | sed 's/.*/key&\\tvalue-&/'"));
  EXPECT_NE(Out("$B load db many --batch 10"), "");
  const std::string log = OnlyFile(".log");
  const std::string sound = ReadFile(log);
  FlipBit(At(log), sound.find("value-0500"));
  const Outcome outcome = Run("$B inspect --limit 1000 " + log);
  EXPECT_EQ(outcome.code, 4);
  EXPECT_NE(outcome.err.find("LSN 50 to 50"), std::string::npos) << outcome.err;
  const json::object document = ParseObject(outcome.out);
  EXPECT_EQ(Number(document, "record_count"), 100U) << "all but one, and the closing record";
  EXPECT_EQ(document.at("records").as_array().size(), 100U);
  EXPECT_EQ(document.at("findings").as_array().size(), 1U);

  // One copy of the header does; without both no record can be believed.
  WriteFile(log, sound);
  FlipBit(At(log), 40);
  EXPECT_EQ(InspectDamaged(log, "first copy"), 4);
  EXPECT_EQ(Number(ParseObject(ReadFile(".out")), "record_count"), 101U);
  FlipBit(At(log), 512 + 40);
  EXPECT_EQ(InspectDamaged(log, "both copies"), 4);
  EXPECT_FALSE(ParseObject(ReadFile(".out")).contains("records"));

  for (size_t offset = 3; offset < sound.size(); offset += sound.size() / 60) {
    WriteFile(log, sound);
    FlipBit(At(log), offset);
    InspectDamaged(log, "offset " + std::to_string(offset));
  }
}

TEST_F(CliInspect, WhatIsNoFileOfADatabaseIsRefused) {
  WriteFile("words", "apple\nbanana\n");
  WriteFile("empty", "");
  ExpectRefused("$B inspect words", 4, "no manifest, log or table");
  ExpectRefused("$B inspect empty", 4, "no manifest, log or table");
  ExpectRefused("$B inspect no-such", 3, "no-such");
  EXPECT_EQ(Out("$B put db k v"), "");
  ExpectRefused("$B inspect db", 3, "such as db/MANIFEST");
  EXPECT_NE(Out("$B phash build w.phf words"), "");
  ExpectRefused("$B inspect w.phf", 4, "`basalt phash stat`");
  // A log of nothing but zeros, as a crash may leave it, is known by its name.
  WriteFile("000009.log", std::string(4096, '\0'));
  EXPECT_EQ(InspectDamaged("000009.log", "zeros"), 4);
}

class CliBench : public Cli {
 protected:
  /// Runs workloads and gives their results by name.
  std::map<std::string, json::object> Bench(const std::string& arguments) const {
    std::map<std::string, json::object> results;
    const Outcome outcome = Run("$B bench --output json " + arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    for (json::object& result : ParseLines(outcome.out)) {
      const std::string name = Text(result, "workload");
      results[name] = std::move(result);
    }
    return results;
  }
};

TEST_F(CliBench, EveryWorkloadDoesWhatItsNameSays) {
  auto results = Bench(
      "db --num 2000 --benchmarks "
      "fillseq,readrandom,readmissing,readseq,readreverse,seekrandom,overwrite,compact");
  ASSERT_EQ(results.size(), 8U);
  for (const char* name : {"fillseq", "readrandom", "readmissing", "readseq", "readreverse",
                           "seekrandom", "overwrite"}) {
    EXPECT_EQ(Number(results[name], "operations"), 2000U) << name;
    EXPECT_GT(results[name].at("ops_per_s").to_number<double>(), 0) << name;
    const double median = results[name].at("p50_us").to_number<double>();
    EXPECT_LE(median, results[name].at("p99_us").to_number<double>()) << name;
    EXPECT_LE(median, results[name].at("max_us").to_number<double>()) << name;
  }
  EXPECT_EQ(Number(results["readrandom"], "found"), 2000U);
  EXPECT_EQ(Number(results["seekrandom"], "found"), 2000U);
  EXPECT_EQ(Number(results["readmissing"], "lookups"), 2000U);
  EXPECT_EQ(Number(results["readmissing"], "found"), 0U);
  EXPECT_EQ(Number(results["compact"], "operations"), 1U);
  EXPECT_EQ(Out("$B scan db --limit 1 --keys-only; $B scan db --reverse --limit 1 --keys-only; "
                "$B scan db | wc -l"),
            "0000000000000000\n0000000000001999\n2000\n");

  EXPECT_EQ(Number(Bench("db --num 2000 --benchmarks fillsync")["fillsync"], "operations"), 2U);
  EXPECT_LE(std::stoi(Out("$B scan db | wc -l")), 2) << "it has begun with an empty database";
  results = Bench("db --num 2500 --benchmarks fillbatch,deleterandom");
  EXPECT_EQ(Number(results["fillbatch"], "operations"), 2500U);
  EXPECT_EQ(Number(results["deleterandom"], "operations"), 2500U);
  const int left = std::stoi(Out("$B scan db | wc -l"));
  EXPECT_GT(left, 2500 / 4) << "some 37 of 100 keys are not hit";
  EXPECT_LT(left, 2500 / 2);
  Bench("db --num 3000 --benchmarks fillrandom");
  const int filled = std::stoi(Out("$B scan db | wc -l"));
  EXPECT_GT(filled, 3000 / 2) << "some 63 of 100 keys are hit";
  EXPECT_LT(filled, 3000 * 3 / 4);
  EXPECT_NE(Out("$B check db").find("No faults found."), std::string::npos);
}

TEST_F(CliBench, YcsbReadsWhatItHasLoaded) {
  const auto results = Bench(
      ":memory: --num 1000 --reads 4000 --benchmarks "
      "ycsbload,ycsba,ycsbb,ycsbc,ycsbd,ycsbe,ycsbf");
  ASSERT_EQ(results.size(), 7U);
  // The least and most of 4000 operations that look for a key.
  const std::map<std::string, std::pair<uint64_t, uint64_t>> lookups = {
      {"ycsba", {1700, 2300}}, {"ycsbb", {3700, 3900}}, {"ycsbc", {4000, 4000}},
      {"ycsbd", {3700, 3900}}, {"ycsbe", {3700, 3900}}, {"ycsbf", {4000, 4000}}};
  EXPECT_EQ(Number(results.at("ycsbload"), "operations"), 1000U);
  for (const auto& [name, range] : lookups) {
    const json::object& result = results.at(name);
    EXPECT_EQ(Number(result, "operations"), 4000U) << name;
    EXPECT_GE(Number(result, "lookups"), range.first) << name;
    EXPECT_LE(Number(result, "lookups"), range.second) << name;
    EXPECT_EQ(Number(result, "found"), Number(result, "lookups")) << name;
  }
}

TEST_F(CliBench, YcsbInsertsNewRecords) {
  Bench("db --num 1000 --reads 2000 --benchmarks ycsbload,ycsbd");
  const std::string keys = Out("$B scan db --keys-only");
  const int64_t records = std::count(keys.begin(), keys.end(), '\n');
  EXPECT_GT(records, 1050) << "one in twenty operations inserts";
  EXPECT_LT(records, 1150);
  EXPECT_EQ(keys.substr(0, 4), "user");
  EXPECT_EQ(keys.find('\n'), 24U);
}

TEST_F(CliBench, ThreadsShareTheOperations) {
  auto results = Bench(
      "db --num 1001 --threads 3 --benchmarks fillseq,readseq,readreverse,readrandom,compact");
  EXPECT_EQ(Number(results["fillseq"], "threads"), 3U);
  EXPECT_EQ(Number(results["fillseq"], "operations"), 1001U);
  EXPECT_EQ(Number(results["readseq"], "operations"), 1001U);
  EXPECT_EQ(Number(results["readreverse"], "operations"), 1001U);
  EXPECT_EQ(Number(results["readrandom"], "found"), 1001U);
  EXPECT_EQ(Number(results["compact"], "threads"), 1U);
  EXPECT_EQ(Out("$B scan db | wc -l"), "1001\n");
}

TEST_F(CliBench, SizesAreAsAsked) {
  auto results = Bench(
      "db --num 100 --reads 50 --value-size 1000 --batch-size 7 --nexts 4 --memory-budget 8M "
      "--durability power --benchmarks fillbatch,seekrandom");
  EXPECT_EQ(Number(results["fillbatch"], "operations"), 100U);
  EXPECT_EQ(Text(results["fillbatch"], "durability"), "power");
  EXPECT_EQ(Number(results["seekrandom"], "operations"), 50U);
  EXPECT_EQ(Out("$B get db 0000000000000042 --raw | wc -c"), "1000\n");
  EXPECT_NE(Out("$B compact db"), "");
  const json::object table = ParseObject(Out("$B inspect " + OnlyFile(".tbl")));
  const uint64_t stored = Number(table, "bytes");
  EXPECT_GT(stored, 100U * 1000U * 4 / 10) << "values compress to about half";
  EXPECT_LT(stored, 100U * 1000U * 7 / 10);
}

TEST_F(CliBench, TheSameSeedGivesTheSameRecords) {
  Bench("db --num 500 --seed 7 --benchmarks fillrandom");
  const std::string first = Out("$B dump db");
  Bench("db --num 500 --seed 7 --benchmarks fillrandom");
  EXPECT_EQ(Out("$B dump db"), first);
  Bench("db --num 500 --seed 8 --benchmarks fillrandom");
  EXPECT_NE(Out("$B dump db"), first);
}

TEST_F(CliBench, ResultsComeInEveryFormat) {
  const std::string bench = "$B bench :memory: --num 300 --benchmarks fillseq,readrandom,fillseq";
  const auto lines = ParseCsv(Out(bench + " --output csv"));
  ASSERT_EQ(lines.size(), 4U);
  const auto objects = ParseLines(Out(bench + " --output json"));
  ASSERT_EQ(objects.size(), 3U);
  std::vector<std::string> names;
  for (const auto& member : objects[0]) names.emplace_back(member.key());
  EXPECT_EQ(lines[0], names);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(lines[i + 1].size(), names.size());
    EXPECT_EQ(lines[i + 1][0], Text(objects[i], "workload"));
  }
  EXPECT_EQ(Out(bench + " --output raw | cut -f 1,3"),
            "fillseq\t300\nreadrandom\t300\nfillseq\t300\n");
  const std::string table = Out(bench);
  EXPECT_EQ(table.find("300 records, values of 100 bytes that compress to about half, "), 0U)
      << table;
  EXPECT_NE(table.find("\nworkload "), std::string::npos) << table;
  EXPECT_NE(table.find("  300 of 300\n"), std::string::npos) << table;
}

TEST_F(CliBench, ADatabaseThatItHasNotMadeIsLeftAlone) {
  EXPECT_EQ(Out("$B put db mine value; mkdir other; touch other/file; touch file"), "");
  ExpectRefused("$B bench db --num 10", 3, "--replace-database");
  ExpectRefused("$B bench db --num 10 --benchmarks readrandom", 3, "--replace-database");
  EXPECT_EQ(Out("$B get db mine"), "value\n");
  ExpectRefused("$B bench other --num 10", 2, "not empty");
  ExpectRefused("$B bench other --num 10 --replace-database", 2, "not empty");
  EXPECT_EQ(Out("ls other"), "file\n");
  ExpectRefused("$B bench file --num 10", 3, "is a file");

  const std::string replace = "$B bench db --num 10 --benchmarks fillseq";
  EXPECT_NE(Out(replace + " --replace-database"), "");
  ExpectRefused("$B get db mine", 1, "mine");
  EXPECT_NE(Out(replace), "") << "this one it has made itself";
  EXPECT_EQ(Out("$B scan db | wc -l"), "10\n");
  const auto held = DB::Open(At("db").string()).value();
  ExpectRefused(replace, 5, "Busy");
}

TEST_F(CliBench, WorkloadsUseWhatOlderOnesHaveLeft) {
  Bench("db --num 100 --benchmarks fillseq");
  EXPECT_EQ(Number(Bench("db --num 100 --benchmarks readrandom")["readrandom"], "found"), 100U);
  Bench("db --num 100 --benchmarks ycsbload");
  const Outcome outcome = Run("$B bench db --num 100 --benchmarks readrandom --output json");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(Number(ParseObject(outcome.out), "found"), 0U);
  EXPECT_NE(outcome.err.find("run `fillseq` before it"), std::string::npos) << outcome.err;
  ASSERT_NE(Out("$B compact db"), "") << "other verbs work on it too";
}

TEST_F(CliBench, MistakesTeach) {
  ExpectRefused("$B bench db --benchmarks fillsq", 2, "there is no workload 'fillsq'; there are ");
  ExpectRefused("$B bench db --num 0", 2, "'0' is no whole number from 1");
  ExpectRefused("$B bench db --threads 0", 2, "from 1 to 256");
  ExpectRefused("$B bench db --durability fast", 2, "fast");
  ExpectRefused("$B bench db --memory-budget 1k --num 10", 2, "memory_budget");
  ExpectRefused("$B bench", 2, "PATH is required");
  ExpectRefused("$B benhc db", 2, "did you mean `basalt bench`?");
  const std::string help = Out("$B bench --help");
  for (const char* name : {"fillseq", "fillrandom", "fillsync", "fillbatch", "overwrite",
                           "readrandom", "readseq", "readreverse", "readmissing", "seekrandom",
                           "deleterandom", "compact", "ycsbload", "ycsba", "ycsbf"}) {
    EXPECT_NE(help.find("\n  "s + name + " "), std::string::npos) << name;
  }
  EXPECT_FALSE(fs::exists(At("db")));
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
  const json::object figures = Figures("$B phash stat k.phf");
  EXPECT_EQ(Number(figures, "keys"), 20000U);
  EXPECT_GE(figures.at("levels").as_array().size(), 2U);
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

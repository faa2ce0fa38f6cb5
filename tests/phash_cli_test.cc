// `basalt phash`, run as a person or a script runs it.

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cstddef>
#include <string>

#include "tests/command.h"
#include "tests/command_output.h"

namespace basalt {
namespace {

namespace json = boost::json;

class PhashCli : public CommandTest {
 protected:
  /// The lines that a command prints, sorted as numbers.
  std::string Sorted(const std::string& command) const { return Out(command + " | sort -n"); }

  /// No file has come to be but those that a test has made.
  void ExpectFiles(const std::string& names) const {
    EXPECT_EQ(Out("ls | tr '\\n' ' '"), names) << "files in the working directory";
  }
};

TEST_F(PhashCli, EachKeyOfAFileOrAPipeHasANumberOfItsOwn) {
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

TEST_F(PhashCli, AHundredThousandKeysTakeTwoBitsEachAndEveryNumberOnce) {
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

TEST_F(PhashCli, AnyBytesMayBeAKey) {
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

TEST_F(PhashCli, KeysMayBeNumbers) {
  WriteFile("ids", "17\n0x2A\n18446744073709551615\n0\n");
  EXPECT_NE(Out("$B phash build i.phf ids --hashes").find("a function of 4 keys"),
            std::string::npos);
  EXPECT_EQ(Sorted("$B phash query i.phf --hashes <ids"), "0\n1\n2\n3\n");
  EXPECT_EQ(Out("$B phash query i.phf --hashes 17 42 0xffffffffffffffff 0"),
            Out("$B phash query i.phf --hashes <ids"));
  WriteFile("bad", "1\n2\n18446744073709551616\n");
  ExpectRefused("$B phash build x.phf bad --hashes", 2, "bad:3: '18446744073709551616' is above");
  ExpectRefused("$B phash query i.phf --hashes grape", 2, "'grape' is not a number");
  ExpectRefused("$B phash build x.phf ids --hashes --base64", 2, "excludes");
  ExpectFiles("bad i.phf ids ");
}

TEST_F(PhashCli, AKeyThatIsThereTwiceIsNamedWithBothLines) {
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

TEST_F(PhashCli, AFileThatIsThereIsReplacedOnlyByForce) {
  WriteFile("one", "a\n");
  WriteFile("two", "a\nb\n");
  WriteFile("other", "precious\n");
  ExpectRefused("$B phash build other one", 3, "other already exists; --force replaces it");
  EXPECT_EQ(ReadFile("other"), "precious\n");
  EXPECT_NE(Out("$B phash build f.phf one && $B phash build f.phf two --force"), "");
  EXPECT_NE(Out("$B phash stat f.phf --json").find("\"keys\":2,"), std::string::npos);
  ExpectRefused("$B phash build one one --force", 2, "would be replaced");
  ExpectRefused("$B phash build . one --force", 2, "is not a regular file");
  ExpectRefused("$B phash build no/such one", 3, "No such file");
  ExpectRefused("$B phash build x.phf no-such", 3, "no-such");
  ExpectRefused("$B phash build x.phf .", 3, "directory");
  EXPECT_EQ(ReadFile("one"), "a\n");
  ExpectFiles("f.phf one other two ");
}

TEST_F(PhashCli, ABuildThatFailsOrIsKilledLeavesNoFile) {
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

TEST_F(PhashCli, NoKeysAreAFunctionThatKnowsNone) {
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

TEST_F(PhashCli, ASetSaysPerhapsToItsKeysAndAbsentToMostOthers) {
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
  ExpectRefused("$B phash build x.set keys --fingerprint 3", 2, "'3' is not a whole number from 4");
  ExpectRefused("$B phash build x.set keys --fingerprint 17", 2, "from 4 to 16");
}

TEST_F(PhashCli, AMapGivesEachKeyItsPayload) {
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

TEST_F(PhashCli, StatShowsTheLevelsAsATableOrJson) {
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
  const json::object figures = Figures(*this, "$B phash stat k.phf");
  EXPECT_EQ(Number(figures, "keys"), 20000U);
  EXPECT_GE(figures.at("levels").as_array().size(), 2U);
  const std::string map = Out("$B phash stat k.map --json");
  EXPECT_NE(map.find("\"fingerprint_bits\":4,\"payload_bits\":48,"), std::string::npos) << map;
}

TEST_F(PhashCli, WhatIsNoPerfectHashFileIsRefused) {
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

TEST_F(PhashCli, MistakesInItsVerbsTeach) {
  ExpectRefused("$B phash", 2, "Verbs:");
  ExpectRefused("$B phash biuld", 2, "did you mean `basalt phash build`?");
  ExpectRefused("$B phash get f k", 2, "did you mean `basalt phash query`?");
  ExpectRefused("$B phash query", 2, "`basalt phash query --help`");
  ExpectRefused("$B query f k", 2, "no verb 'query'");
  ExpectRefused("$B phash build f k --threads 0", 2, "'0' is not a whole number from 1 to 256");
  ExpectRefused("$B phash build f k --memory much", 2, "--memory");
  EXPECT_NE(Out("$B phash query --help").find("so it gives other strings a number too"),
            std::string::npos);
  ExpectFiles("");
}

}  // namespace
}  // namespace basalt

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>

#include "tests/command.h"
#include "tests/command_output.h"

namespace basalt {
namespace {

class RetrievalCommandTest : public CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    WriteFile("ada.md",
              "# Ada Lovelace\n\nAda was a mathematician. Charles Babbage was her friend.\n");
    WriteFile("engine.txt", "A machine that was never finished.\n");
    WriteFile("more.ndjson",
              R"({"source":"b","title":"Charles Babbage","text":"He was born in London.","x":1})"
              "\n\n"
              R"({"source":"c","text":"A clock in London."})"
              "\n");
  }

  std::vector<std::string> Sources(const std::string& command) const {
    std::vector<std::string> sources;
    const auto found = ParseObject(Out(command + " --json"));
    for (const auto& passage : found.at("passages").as_array()) {
      sources.push_back(Text(passage.as_object(), "source"));
    }
    return sources;
  }
};

using Names = std::vector<std::string>;

TEST_F(RetrievalCommandTest, IngestsFilesAndFindsTheirPassages) {
  EXPECT_TRUE(Out("$B ingest db ada.md engine.txt more.ndjson --stemmer english")
                  .starts_with("ingested 4 documents, 4 passages, in "));
  const auto found = ParseObject(Out("$B retrieve db mathematicians --explain --json"));
  const auto& passages = found.at("passages").as_array();
  ASSERT_GE(passages.size(), 2u);
  const auto& ada = passages[0].as_object();
  EXPECT_EQ(Text(ada, "source"), "ada.md");
  EXPECT_EQ(Text(ada, "title"), "Ada Lovelace");
  const uint64_t begin = Number(ada, "begin");
  EXPECT_EQ(Text(ada, "text"), ReadFile("ada.md").substr(begin, Number(ada, "end") - begin));
  EXPECT_TRUE(ada.at("parts").at("dense").is_null());
  EXPECT_GT(ada.at("parts").at("bm25").to_number<double>(), 0);
  const auto& linked = passages[1].as_object();
  EXPECT_EQ(Text(linked, "source"), "b");
  EXPECT_EQ(boost::json::serialize(linked.at("evidence")),
            R"(["passage/ada.md/00000000","entity/charles babbage","passage/b/00000000"])");
  EXPECT_FALSE(found.at("truncated").as_bool());

  EXPECT_EQ(Out("$B retrieve db mathematicians -k 1"),
            "1. Ada Lovelace  (ada.md, bytes 0 to 72)\n"
            "    # Ada Lovelace\n    \n"
            "    Ada was a mathematician. Charles Babbage was her friend.\n"
            "1 passages, about 21 tokens\n");
  EXPECT_EQ(Sources("$B retrieve db 'engine' --read-only"), Names{"engine.txt"});
  EXPECT_EQ(Sources("$B retrieve db 'clock' -k 1"), Names{"c"});
  EXPECT_EQ(Number(ParseObject(Run("$B retrieve db clock --max-tokens 2 --json").out), "tokens"),
            0u);
}

TEST_F(RetrievalCommandTest, ForgetsDocuments) {
  Out("$B ingest db ada.md engine.txt");
  EXPECT_EQ(Out("$B forget db ada.md"), "forgot 1 documents\n");
  const Outcome again = Run("$B forget db ada.md engine.txt");
  EXPECT_EQ(again.code, 1);
  EXPECT_EQ(again.out, "forgot 1 documents\n");
  const Outcome nothing = Run("$B retrieve db mathematician");
  EXPECT_EQ(nothing.code, 1);
  EXPECT_EQ(nothing.out, "0 passages, about 0 tokens\n");
}

TEST_F(RetrievalCommandTest, ADocumentOfAKnownSourceReplacesIt) {
  Out("$B ingest db engine.txt");
  WriteFile("engine.txt", "Something else.");
  Out("$B ingest db engine.txt");
  EXPECT_EQ(Run("$B retrieve db machine").code, 1);
  EXPECT_EQ(Sources("$B retrieve db something"), Names{"engine.txt"});
}

TEST_F(RetrievalCommandTest, StandardInputIsADocumentOrLinesOfThem) {
  Out("$B ingest db - < ada.md");
  EXPECT_EQ(Sources("$B retrieve db mathematician"), Names{"-"});
  Out("$B ingest db - --json < more.ndjson");
  EXPECT_EQ(Sources("$B retrieve db clock -k 1"), Names{"c"});
}

TEST_F(RetrievalCommandTest, SaysWhatItCannotDo) {
  ExpectRefused("$B retrieve db x", 3, "no database");
  ExpectRefused("$B ingest db absent.md", 3, "absent.md");
  Out("$B ingest db ada.md");
  ExpectRefused("$B retrieve db x --corpus other", 3, "other");
  ExpectRefused("$B ingest db ada.md --stemmer english", 2, "stemmer");
  ExpectRefused("$B ingest db ada.md --embed nothing", 2, "local:FOLDER");
  ExpectRefused("$B ingest db ada.md --embed local:absent", 3, "absent");
  ExpectRefused("echo '{\"source\":\"s\"}' | $B ingest db - --json", 2, "\"text\"");
  ExpectRefused("echo 'text' | $B ingest db - --json", 2, "not JSON");
  const Outcome partly =
      Run("(cat more.ndjson; echo '[]'; cat more.ndjson) | $B ingest db - --json");
  EXPECT_EQ(partly.code, 2);
  EXPECT_NE(partly.err.find("standard input:4"), std::string::npos) << partly.err;
  EXPECT_NE(partly.err.find("2 documents, 2 passages before that"), std::string::npos);
}

TEST_F(RetrievalCommandTest, PassagesWithVectorsAreNotIngestedWithoutAModel) {
  Out("$B ingest db engine.txt");
  Out("$B vector create db corpus.vectors --dimension 3");
  ExpectRefused("$B ingest db ada.md", 3, "--embed");
  EXPECT_EQ(Out("$B forget db engine.txt"), "forgot 1 documents\n");
}

TEST_F(RetrievalCommandTest, ControlCharactersAreNotPrintedRaw) {
  Out(R"(printf 'word \033[31m red' > odd.txt; $B ingest db odd.txt)");
  EXPECT_EQ(Out("$B retrieve db word").find('\033'), std::string::npos);
}

}  // namespace
}  // namespace basalt

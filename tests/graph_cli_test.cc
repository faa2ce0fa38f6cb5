// `basalt graph`, run as a person or a script runs it.

#include <gtest/gtest.h>

#include <string>

#include "tests/command.h"
#include "tests/command_output.h"

namespace basalt {
namespace {

class GraphCli : public CommandTest {
 protected:
  void LoadPeople() {
    WriteFile("nodes.csv",
              "name:ID,:LABEL,born:int,tags:string[],alive:boolean,:IGNORE\n"
              "ada,Person;Author,1815,\"a, b;c\",false,x\n"
              "engine,Machine,,,,\n"
              "london,,,,true,\n");
    WriteFile("edges.csv",
              ":START_ID,:END_ID,:TYPE,:WEIGHT,:DISCRIMINATOR,year:long,score:double\n"
              "ada,engine,wrote about,2,notes,1843,0.5\n"
              "ada,london,lived in,,,,\n"
              "engine,london,stands in,0.5,,,\n");
    EXPECT_EQ(Out("$B graph load ./db nodes.csv edges.csv").find("loaded 3 nodes and 3 edges in "),
              0u);
  }
};

constexpr const char* kPeople =
    R"({"id":"ada","labels":["Author","Person"],"properties":{"alive":false,"born":1815,"name":"ada","tags":["a, b","c"]}}
{"id":"engine","labels":["Machine"],"properties":{"name":"engine"}}
{"id":"london","properties":{"alive":true,"name":"london"}}
{"from":"ada","type":"wrote about","to":"engine","discriminator":"notes","weight":2E0,"properties":{"score":5E-1,"year":1843}}
{"from":"ada","type":"lived in","to":"london"}
{"from":"engine","type":"stands in","to":"london","weight":5E-1}
)";

TEST_F(GraphCli, FilesOfNeo4jAreLoadedAndExported) {
  LoadPeople();
  EXPECT_EQ(Out("$B graph export ./db"), kPeople);
  EXPECT_EQ(Out("$B graph export ./db | $B graph load ./copy --progress").find("loaded 3 nodes"),
            0u);
  EXPECT_EQ(Out("$B graph export ./copy"), kPeople);
  EXPECT_EQ(Out("$B graph load ./db nodes.csv edges.csv --batch 1").find("loaded 3 nodes"), 0u);
  EXPECT_EQ(Out("$B graph export ./db"), kPeople);
  const auto stat = Figures(*this, "$B graph stat ./db");
  EXPECT_EQ(stat.at("nodes"), 3);
  EXPECT_EQ(stat.at("edges"), 3);
  EXPECT_EQ(stat.at("labels"), 3);
  EXPECT_EQ(Out("$B graph verify ./db"), "all records agree\n");
}

TEST_F(GraphCli, ValuesOfAllKindsComeBackAsTheyWere) {
  const std::string lines =
      R"({"id":"a","properties":{"b":{"base64":"AP8="},"d":{"double":"-inf"},"i":-5,"l":[1,[null,true]],"n":null,"t":{"time_ms":-1}}}
{"id":{"base64":"/w=="},"labels":[{"base64":"/g=="}]}
{"from":{"base64":"/w=="},"type":"x","to":"a","valid_from":1,"valid_to":9,"expiry":9999999999999}
)";
  WriteFile("g.ndjson", lines);
  Out("$B graph load ./db g.ndjson --graph g");
  EXPECT_EQ(Out("$B graph export ./db --graph g"), lines);
  EXPECT_EQ(Out("$B graph neighbors ./db a --graph g"), "<-[x]-\t\\xFF\t1.000\t\n");
  EXPECT_EQ(Run("$B graph stat ./db").code, 3);
}

TEST_F(GraphCli, NeighborsPathsAndRanksArePrinted) {
  LoadPeople();
  EXPECT_EQ(Out("$B graph neighbors ./db ada"),
            "-[wrote about]->\tengine\t2.000\tnotes\n-[lived in]->\tlondon\t1.000\t\n");
  EXPECT_EQ(Out("$B graph neighbors ./db london --direction in --type 'stands in' --output json"),
            R"({"direction":"in","type":"stands in","id":"engine","weight":0.5})"
            "\n");
  const Outcome page = Run("$B graph neighbors ./db ada --limit 1");
  EXPECT_EQ(page.out, "-[wrote about]->\tengine\t2.000\tnotes\n");
  const std::string from = page.err.substr(page.err.find("--from"));
  EXPECT_EQ(Out("$B graph neighbors ./db ada " + from), "-[lived in]->\tlondon\t1.000\t\n");
  EXPECT_EQ(Out("$B graph path ./db ada london"), "1.000\tada -[lived in]-> london\n");
  EXPECT_EQ(Out("$B graph path ./db ada london --all 2"),
            "1.000\tada -[lived in]-> london\n"
            "2.000\tada -[wrote about]-> engine -[stands in]-> london\n");
  EXPECT_EQ(Out("$B graph path ./db london ada --direction in --weighted"),
            "1.000\tlondon <-[lived in]- ada\n");
  EXPECT_EQ(Run("$B graph path ./db london ada").code, 1);
  EXPECT_EQ(Run("$B graph path ./db london nobody").code, 1);
  const auto ranking = ParseLines(Out("$B graph rank ./db ada --output json"));
  ASSERT_EQ(ranking.size(), 3u);
  EXPECT_EQ(Text(ranking[0], "id"), "ada");
  EXPECT_EQ(Out("$B graph rank ./db ada --restart 1"), "1.000000\tada\n");
  EXPECT_EQ(Run("$B graph rank ./db nobody").code, 1);
}

TEST_F(GraphCli, NodesAndEdgesAreAdded) {
  EXPECT_EQ(Out("$B graph add ./db ada --label Person --set born=1815 --set alias='Lady L.'"),
            "put node ada\n");
  EXPECT_EQ(Run("$B graph add ./db ada knows bob").code, 1);
  Out("$B graph add ./db bob");
  EXPECT_EQ(Out("$B graph add ./db ada knows bob --weight 3 --set since='[1,2]'"),
            "put edge ada -[knows]-> bob\n");
  EXPECT_EQ(Out("$B graph export ./db"),
            R"({"id":"ada","labels":["Person"],"properties":{"alias":"Lady L.","born":1815}}
{"id":"bob"}
{"from":"ada","type":"knows","to":"bob","weight":3E0,"properties":{"since":[1,2]}}
)");
  EXPECT_EQ(Run("$B graph add ./db ada knows").code, 2);
  EXPECT_EQ(Run("$B graph add ./db ada --set born").code, 2);
}

TEST_F(GraphCli, OtherFormsAreWritten) {
  Out(R"($B graph add ./db 'a"<&' && $B graph add ./db b && $B graph add ./db 'a"<&' x b)");
  Out(R"($B graph add ./db b --set n=1 --set mixed=1 --label L && $B graph add ./db c --set mixed=x)");
  EXPECT_EQ(Out("$B graph export ./db --format dot"),
            "digraph basalt {\nn1 [label=\"a\\\"<&\"];\nn1025 [label=\"b\"];\nn2049 "
            "[label=\"c\"];\nn1 -> n1025 [label=\"x\"];\n}\n");
  const std::string graphml = Out("$B graph export ./db --format graphml");
  for (const char* part :
       {"<key id=\"node0\" for=\"node\" attr.name=\"mixed\" attr.type=\"string\"/>\n",
        "<key id=\"node1\" for=\"node\" attr.name=\"n\" attr.type=\"long\"/>\n",
        "<node id=\"n1\"><data key=\"id\">a&quot;&lt;&amp;</data></node>\n",
        "<data key=\"id\">b</data><data key=\"labels\">:L</data><data key=\"node0\">1</data>",
        "<edge source=\"n1\" target=\"n1025\"><data key=\"type\">x</data>", "</graphml>\n"}) {
    EXPECT_NE(graphml.find(part), std::string::npos) << part << "\n" << graphml;
  }
}

TEST_F(GraphCli, WhatCannotBeMeantIsRefusedWithItsPlace) {
  WriteFile("bad.ndjson", "{\"id\":\"a\"}\n{\"id\":\"b\",\"lables\":[]}\n{\"id\":\"c\"}\n");
  ExpectRefused("$B graph load ./db bad.ndjson", 2, "bad.ndjson:2");
  WriteFile("bad.ndjson", "{\"id\":\"b\"}\n{\"from\":\"b\",\"type\":\"x\",\"to\":\"z\"}\n");
  ExpectRefused("$B graph load ./db bad.ndjson", 2, "bad.ndjson:2");
  EXPECT_EQ(Out("$B graph export ./db"), "{\"id\":\"a\"}\n{\"id\":\"b\"}\n");
  EXPECT_EQ(Out("$B graph load ./db bad.ndjson --make-nodes").find("loaded 1 nodes and 1 edges"),
            0u);
  EXPECT_EQ(Out("$B graph neighbors ./db b"), "-[x]->\tz\t1.000\t\n");
  for (const char* header :
       {"a,b", "a:ID,b:ID", ":START_ID,:END_ID", ":ID,:int", "x:ID(g", ":ID,\xFF"}) {
    WriteFile("bad.csv", std::string(header) + "\n1,2\n");
    ExpectRefused("$B graph load ./db bad.csv", 2, "bad.csv:1");
  }
  WriteFile("bad.csv", ":ID,n:int\na,1\nb,x\n");
  ExpectRefused("$B graph load ./db bad.csv", 2, "bad.csv:3");
  WriteFile("bad.csv", ":ID,n:int\na\n");
  ExpectRefused("$B graph load ./db bad.csv", 2, "bad.csv:2");
  ExpectRefused("$B graph rank ./db a --restart 0", 2, "restart");
  ExpectRefused("$B graph neighbors ./db a --from '***'", 2, "base64");
}

TEST_F(GraphCli, VerifyNamesSpoiltRecords) {
  LoadPeople();
  Out("$B put ./db --keyspace graph stray value");
  const Outcome verified = Run("$B graph verify ./db");
  EXPECT_EQ(verified.code, 4);
  EXPECT_NE(verified.out.find("'stray'"), std::string::npos) << verified.out;
}

}  // namespace
}  // namespace basalt

// `basalt vector`, run as a person or a script runs it.

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "tests/command.h"
#include "tests/command_output.h"

namespace basalt {
namespace {

class VectorCli : public CommandTest {
 protected:
  static std::string Bytes(const std::vector<float>& elements) {
    std::string bytes(elements.size() * sizeof(float), '\0');
    std::memcpy(bytes.data(), elements.data(), bytes.size());
    return bytes;
  }
  /// An array of numpy.
  static std::string Npy(const std::string& shape, const std::vector<float>& elements,
                         const std::string& type = "<f4") {
    std::string head =
        "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
    head.resize(117, ' ');
    head += '\n';
    std::string file = "\x93NUMPY\x01";
    file += std::string_view("\0\x76\0", 3);
    return file + head + Bytes(elements);
  }
};

TEST_F(VectorCli, LinesAreImportedAndFoundWithAFilter) {
  WriteFile("docs", R"({"id":"a","vector":[1,0],"attributes":{"lang":"en","year":2020}}
{"id":"b","vector":[1,1],"attributes":{"lang":"de","draft":true,"x":null}}

{"id":3,"vector":[0,1]}
)");
  EXPECT_EQ(Out("$B vector create ./db docs --dimension 2 --metric l2 --model m"),
            "created docs: dimension 2, l2\n");
  EXPECT_EQ(Out("$B vector import ./db docs <docs").find("imported 3 vectors in "), 0u);
  EXPECT_EQ(Out("$B vector search ./db docs --vector '[1, 0]'"),
            "0.000000\ta\t{\"lang\":\"en\",\"year\":2020}\n"
            "1.000000\tb\t{\"draft\":true,\"lang\":\"de\"}\n"
            "2.000000\t3\t{}\n");
  EXPECT_EQ(
      Out("$B vector search ./db docs --id 3 -k 1 --filter 'exists lang' --output json"),
      "{\"id\":\"b\",\"distance\":1,\"score\":0.5,\"attributes\":{\"draft\":true,\"lang\":\"de\"}}"
      "\n");
  EXPECT_EQ(Out("$B vector search ./db docs --id a -k 1 --read-only"),
            "0.000000\ta\t{\"lang\":\"en\",\"year\":2020}\n");
  const auto stat = ParseObject(Out("$B vector stat ./db docs --json"));
  EXPECT_EQ(stat.at("vectors"), 3);
  EXPECT_EQ(stat.at("model"), "m");
  const auto recall = ParseObject(Out("$B vector recall ./db docs -k 2 --json"));
  EXPECT_EQ(recall.at("queries"), 3);
  EXPECT_EQ(recall.at("recall").to_number<double>(), 1);
}

TEST_F(VectorCli, ArraysGiveTheirRowsNumbersAsIds) {
  WriteFile("v.npy", Npy("(2, 3)", {1, 0, 0, 0, 1, 0}));
  std::string three("\x03\0\0\0", 4);
  WriteFile("v.fvecs", three + Bytes({0, 0, 1}));
  Out("$B vector create ./db v --dimension 3");
  Out("$B vector import ./db v v.npy && $B vector import ./db v v.fvecs --id-prefix more/");
  EXPECT_EQ(Out("$B vector search ./db v --vector '[0, 0.1, 1]' -k 2 | cut -f 2"), "more/0\n1\n");
}

TEST_F(VectorCli, WhatCannotBeMeantIsRefusedWithItsPlace) {
  Out("$B vector create ./db v --dimension 2");
  WriteFile("bad.ndjson", "{\"id\":\"a\",\"vector\":[1,2]}\n{\"id\":\"b\",\"vector\":[1]}\n");
  ExpectRefused("$B vector import ./db v bad.ndjson", 2, "vector 'b' of the batch");
  WriteFile("bad.ndjson", "{\"id\":\"a\",\"vector\":[1,2]}\n{\"id\":\"b\"\n");
  ExpectRefused("$B vector import ./db v bad.ndjson", 2, "bad.ndjson:2");
  WriteFile("half.npy", Npy("(2, 2)", {1, 0, 0}));
  ExpectRefused("$B vector import ./db v half.npy", 2, "not whole");
  WriteFile("integers.npy", Npy("(1, 2)", {1, 0}, "<i4"));
  ExpectRefused("$B vector import ./db v integers.npy", 2, "neither float32 nor float64");
  WriteFile("flat.npy", Npy("(4,)", {1, 0, 0, 1}));
  ExpectRefused("$B vector import ./db v flat.npy", 2, "not two dimensions");
  WriteFile("cut.fvecs", std::string("\x02\0\0\0\0\0", 6));
  ExpectRefused("$B vector import ./db v cut.fvecs", 2, "ends within");
  ExpectRefused("$B vector search ./db v --vector '[1, 2]' --filter 'a = 1'", 2, "at position 3");
  ExpectRefused("$B vector search ./db v --vector '[1, 2, 3]'", 2, "dimension 2");
  ExpectRefused("$B vector search ./db v --id none", 1, "no vector 'none'");
  ExpectRefused("$B vector stat ./db none", 3, "none");
  EXPECT_EQ(ParseObject(Out("$B vector stat ./db v --json")).at("vectors"), 0);
}

}  // namespace
}  // namespace basalt

#include "tools/basalt/map_csv.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/random.h"
#include "tools/basalt/output_format.h"

namespace basalt::tools {
namespace {

namespace fs = std::filesystem;
using std::string_literals::operator""s;
using Row = std::vector<std::string>;

class MapCsv : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "basalt_csv_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    home_ = name;
  }
  void TearDown() override { fs::remove_all(home_); }

  CsvReader Reader(const std::string& bytes) const {
    std::ofstream(home_ / "in", std::ios::binary) << bytes;
    return CsvReader::Open((home_ / "in").string()).value();
  }

  /// All rows; a bad one is the row {"bad", <line>}.
  std::vector<Row> Rows(const std::string& bytes) const {
    CsvReader reader = Reader(bytes);
    std::vector<Row> rows;
    while (true) {
      const CsvReader::Step step = reader.Next().value();
      if (step == CsvReader::Step::kEnd) break;
      if (step == CsvReader::Step::kBadRow) {
        rows.push_back({"bad", reader.position().substr((home_ / "in:").string().size())});
      } else {
        rows.emplace_back(reader.cells().begin(), reader.cells().end());
      }
    }
    EXPECT_EQ(reader.consumed_bytes(), bytes.size());
    return rows;
  }

  std::string Fault(const std::string& bytes) const {
    CsvReader reader = Reader(bytes);
    while (true) {
      const CsvReader::Step step = reader.Next().value();
      if (step == CsvReader::Step::kBadRow) return reader.fault();
      if (step == CsvReader::Step::kEnd) return "none";
    }
  }

  fs::path home_;
};

TEST_F(MapCsv, CellsAreSplitAtCommas) {
  EXPECT_EQ(Rows("a,b\nc,d,e\n,\nlast"),
            (std::vector<Row>{{"a", "b"}, {"c", "d", "e"}, {"", ""}, {"last"}}));
  EXPECT_EQ(Rows(" a , b \n"), (std::vector<Row>{{" a ", " b "}}));
  EXPECT_TRUE(Rows("").empty());
}

TEST_F(MapCsv, QuotedCellsHoldCommasQuotesAndLineEnds) {
  EXPECT_EQ(Rows("\"a,b\",\"say \"\"hi\"\"\"\n\"\",\"\"\"\"\n"),
            (std::vector<Row>{{"a,b", "say \"hi\""}, {"", "\""}}));
  EXPECT_EQ(Rows("\"one\ntwo\r\n\nfour\",x\ny,z\n"),
            (std::vector<Row>{{"one\ntwo\r\n\nfour", "x"}, {"y", "z"}}));
  EXPECT_EQ(Rows("x,\"y\""), (std::vector<Row>{{"x", "y"}}));
}

TEST_F(MapCsv, LinesMayEndAsOnOtherSystems) {
  EXPECT_EQ(Rows("a,b\r\n\r\n\"c\",\"d\"\r\ne,\r\n"),
            (std::vector<Row>{{"a", "b"}, {"c", "d"}, {"e", ""}}));
  EXPECT_EQ(Rows("a\rb,c\n"), (std::vector<Row>{{"a\rb", "c"}}));
  EXPECT_EQ(Rows("\n\n\na,b\n\n"), (std::vector<Row>{{"a", "b"}}));
}

TEST_F(MapCsv, AByteOrderMarkIsNoPartOfTheFirstCell) {
  EXPECT_EQ(Rows("\xEF\xBB\xBF"s + "a,b\n"), (std::vector<Row>{{"a", "b"}}));
  EXPECT_EQ(Rows("\xEF\xBB\xBF"s + "\"a,b\"\n"), (std::vector<Row>{{"a,b"}}));
  EXPECT_EQ(Rows("a\n\xEF\xBB\xBF"s + "b\n"), (std::vector<Row>{{"a"}, {"\xEF\xBB\xBF"s + "b"}}));
}

TEST_F(MapCsv, WhatIsWrongIsSaidWithItsPlace) {
  EXPECT_NE(Fault("a,b\nc,d\"e\"\n").find("a quote at column 4 in a cell"), std::string::npos);
  EXPECT_NE(Fault("\"a\"b,c\n").find("no comma after the closing quote at column 3"),
            std::string::npos);
  EXPECT_NE(Fault("\"a\n\nb\"c\n").find("no comma after the closing quote at line 3, column 2"),
            std::string::npos);
  EXPECT_NE(Fault("a,\"b\nc\n").find("not closed before the end"), std::string::npos);
}

TEST_F(MapCsv, ABadRowCostsNoLineButItsFirst) {
  EXPECT_EQ(Rows("a,\"1\nb,2\n\nc,\"3\"\nd,4\n"),
            (std::vector<Row>{{"bad", "1"}, {"b", "2"}, {"c", "3"}, {"d", "4"}}));
  EXPECT_EQ(Rows("\"a\n\"b\n\"c\"\nd"),
            (std::vector<Row>{{"bad", "1"}, {"bad", "2"}, {"c"}, {"d"}}));
  EXPECT_EQ(Rows("a\n\"b\nc\n\"d,e\nf\n"),
            (std::vector<Row>{{"a"}, {"bad", "2"}, {"c"}, {"bad", "4"}, {"f"}}));
}

TEST_F(MapCsv, WhatIsWrittenAsCellsIsReadAsItWas) {
  const uint64_t seed = base::RandomSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  base::Random random(seed);
  const std::string bytes = ",\"\n\r\0a\xFF"s;
  std::string text;
  std::vector<Row> rows;
  for (int i = 0; i < 2000; ++i) {
    Row row(2);
    for (std::string& cell : row) {
      for (uint64_t left = random.Below(6); left > 0; --left)
        cell += bytes[random.Below(bytes.size())];
    }
    AppendCsvCell(row[0], text);
    AppendCsvCell(row[1], text += ',');
    text += '\n';
    rows.push_back(std::move(row));
  }
  EXPECT_EQ(Rows(text), rows);
}

TEST_F(MapCsv, WhatCannotBeReadIsNamed) {
  const Result<CsvReader> none = CsvReader::Open((home_ / "none").string());
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message().find((home_ / "none").string()), std::string_view::npos);
}

}  // namespace
}  // namespace basalt::tools

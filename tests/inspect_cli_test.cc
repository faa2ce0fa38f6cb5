// `basalt inspect`, run as a person or a script runs it.

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstddef>
#include <cstdint>
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
namespace json = boost::json;
using std::string_literals::operator""s;

class InspectCli : public CommandTest {
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

TEST_F(InspectCli, AManifestShowsItsTables) {
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
  Figures(*this, "$B inspect db/MANIFEST");
  ExpectRefused("$B inspect db/MANIFEST --output table", 2, "table not in {json,csv,raw}");
}

TEST_F(InspectCli, KeyspacesRangeDeletesAndMergesAreShown) {
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

TEST_F(InspectCli, ALogShowsItsRecordsAndTheirOperations) {
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

TEST_F(InspectCli, LimitBoundsWhatIsShownAndNotWhatIsCounted) {
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
  ExpectRefused("$B inspect db/MANIFEST --limit many", 2, "not a whole number");
}

TEST_F(InspectCli, ATableShowsItsPartsAndTheyTileTheFile) {
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
  Figures(*this, "$B inspect " + file);
}

TEST_F(InspectCli, AnyDamagedByteOfAManifestOrTableIsFound) {
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

TEST_F(InspectCli, WhatIsCutShortIsShownAsFarAsItGoes) {
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

TEST_F(InspectCli, ADamagedRecordOfALogIsFoundAndTheOthersAreShown) {
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

TEST_F(InspectCli, WhatIsNoFileOfADatabaseIsRefused) {
  WriteFile("words", "apple\nbanana\n");
  WriteFile("empty", "");
  ExpectRefused("$B inspect words", 4, "not a manifest, log or table");
  ExpectRefused("$B inspect empty", 4, "not a manifest, log or table");
  ExpectRefused("$B inspect no-such", 3, "no-such");
  EXPECT_EQ(Out("$B put db k v"), "");
  ExpectRefused("$B inspect db", 3, "such as db/MANIFEST");
  EXPECT_NE(Out("$B phash build w.phf words"), "");
  ExpectRefused("$B inspect w.phf", 4, "`basalt phash stat`");
  // A log of nothing but zeros, as a crash may leave it, is known by its name.
  WriteFile("000009.log", std::string(4096, '\0'));
  EXPECT_EQ(InspectDamaged("000009.log", "zeros"), 4);
}

}  // namespace
}  // namespace basalt

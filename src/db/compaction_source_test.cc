#include "db/compaction_source.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "io/sim_file_system.h"
#include "table/table_builder.h"

namespace basalt::db {
namespace {

class CompactionSources : public testing::Test {
 protected:
  /// A table of a hundred keys that begin with `first`.
  std::shared_ptr<TableFile> Make(const std::string& first, base::SequenceNumber sequence = 1) {
    const uint64_t number = ++last_number_;
    const std::string path = "/" + std::to_string(number) + ".tbl";
    const auto file = fs_.Open(path, io::OpenMode::kCreate).value();
    table::TableBuilder builder(file.get(), {.file_id = number});
    for (int i = 100; i < 200; ++i) {
      const Status added =
          builder.Add(first + std::to_string(i), base::MakeTag(sequence, RecordKind::kPut), 0,
                      std::string(100, static_cast<char>('a' + i % 20)));
      EXPECT_TRUE(added.ok()) << added.ToString();
    }
    EXPECT_TRUE(builder.Finish().ok());
    return std::make_shared<TableFile>(&fs_, path, TableFile::Place{.number = number},
                                       builder.properties(), TableFile::Resources{});
  }

  io::SimFileSystem fs_;
  uint64_t last_number_ = 0;
};

TEST_F(CompactionSources, ARunGivesTheRecordsOfItsTablesInOrder) {
  RunIterator run({Make("a"), Make("b"), Make("c")});
  size_t records = 0;
  std::string last;
  for (run.SeekToFirst(); run.Valid(); run.Next(), ++records) {
    EXPECT_GT(run.key(), last);
    last.assign(run.key());
  }
  EXPECT_TRUE(run.status().ok());
  EXPECT_EQ(records, 300U);
  EXPECT_EQ(last, "c199");
}

TEST_F(CompactionSources, ARunLetsGoOfATableThatItHasPassed) {
  TableFiles tables = {Make("a"), Make("b")};
  const std::string first = tables[0]->path();
  const std::string second = tables[1]->path();
  for (const auto& table : tables) table->MarkObsolete();
  RunIterator run(std::exchange(tables, {}));
  run.SeekToFirst();
  for (int i = 0; i < 99; ++i) run.Next();
  EXPECT_EQ(run.key(), "a199");
  EXPECT_TRUE(fs_.Exists(first).value());
  run.Next();
  EXPECT_EQ(run.key(), "b100");
  EXPECT_FALSE(fs_.Exists(first).value());
  EXPECT_TRUE(fs_.Exists(second).value());
}

TEST_F(CompactionSources, ARunKnowsWhatItsTableStillHas) {
  const auto table = Make("a");
  const uint64_t bytes = table->properties().file_bytes;
  RunIterator run({table});
  run.SeekToFirst();
  EXPECT_EQ(run.bytes_left(), bytes);
  for (int i = 0; i < 75; ++i) run.Next();
  EXPECT_EQ(run.bytes_left(), bytes / 4);
  while (run.Valid()) run.Next();
  EXPECT_EQ(run.bytes_left(), 0U);
}

TEST_F(CompactionSources, ATableThatCannotBeOpenedEndsARunWithItsError) {
  const TableFiles tables = {Make("a"), Make("b")};
  RunIterator run(tables);
  ASSERT_TRUE(fs_.RemoveFile(tables[1]->path()).ok());
  run.SeekToFirst();
  size_t records = 0;
  for (; run.Valid(); run.Next()) ++records;
  EXPECT_EQ(records, 100U);
  EXPECT_EQ(run.status().code(), StatusCode::kCorruption) << run.status().ToString();
}

TEST_F(CompactionSources, LevelsAreMergedNewestVersionsFirst) {
  CompactionJob job;
  job.output_level = 2;
  job.inputs[0] = {Make("b", 9)};
  job.inputs[2] = {Make("a"), Make("b", 4)};
  const auto source = NewCompactionSource(job);
  ASSERT_TRUE(source) << source.error().ToString();
  ASSERT_NE(source->output_level, nullptr);
  size_t records = 0;
  for (source->records->SeekToFirst(); source->records->Valid(); source->records->Next()) {
    if (source->records->key() == "b100") {
      EXPECT_EQ(base::TagSequence(source->records->tag()), records == 100 ? 9U : 4U);
    }
    ++records;
  }
  EXPECT_EQ(records, 300U);
  job.inputs[2].clear();
  EXPECT_EQ(NewCompactionSource(job).value().output_level, nullptr);
}

}  // namespace
}  // namespace basalt::db

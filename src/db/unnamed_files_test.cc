#include "db/unnamed_files.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "db/file_names.h"
#include "db/manifest.h"
#include "io/sim_file_system.h"
#include "table/table_builder.h"
#include "table/table_format.h"
#include "table/test_reseal.h"

namespace basalt::db {
namespace {

using Names = std::vector<std::string>;

constexpr base::SequenceNumber kLastKnown = 100;  // that manifest and log know

/// A directory, and a manifest.
class FilesOfADirectory : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(fs_.CreateDirectory("/db").ok());
    ASSERT_TRUE(fs_.SyncDirectory("/").ok());
  }

  /// Two records, of which this is the greater sequence number.
  void MakeTable(uint64_t number, base::SequenceNumber largest) {
    const auto file = fs_.Open(PathOf(number), io::OpenMode::kCreate).value();
    table::TableBuilder builder(file.get(), {.file_id = number, .keyspace = 7});
    ASSERT_TRUE(builder.Add("a", base::MakeTag(largest, RecordKind::kPut), 0, "value").ok());
    ASSERT_TRUE(builder.Add("b", base::MakeTag(1, RecordKind::kPut), 0, "value").ok());
    ASSERT_TRUE(builder.Finish().ok());
  }
  void MakeFile(const std::string& path, std::string_view bytes = "some bytes") {
    const auto file = fs_.Open(path, io::OpenMode::kCreate).value();
    ASSERT_TRUE(file->WriteAt(0, bytes).ok());
    ASSERT_TRUE(file->Sync().ok());
  }
  /// A table as a later version may write it: it has a feature that nobody knows today.
  void MakeTableOfANewerVersion(uint64_t number) {
    ASSERT_NO_FATAL_FAILURE(MakeTable(number, 2));
    const auto file = fs_.Open(PathOf(number), io::OpenMode::kReadWrite).value();
    std::string bytes(file->Size().value(), '\0');
    ASSERT_TRUE(file->ReadExactAt(0, bytes).ok());
    bytes[offsetof(table::FileHeader, required_features) + 3] = '\x40';
    table::ResealTable(&bytes);
    ASSERT_TRUE(file->WriteAt(0, bytes).ok());
  }
  void NameInManifest(uint64_t number) {
    manifest_.tables.push_back({.place = {.number = number}, .level = 0, .properties = {}});
  }

  static std::string PathOf(uint64_t number) { return io::JoinPath("/db", TableFileName(number)); }
  Result<UnnamedFiles> Find() {
    return UnnamedFiles::Find(&fs_, "/db", fs_.List("/db").value(),
                              *VersionOf(manifest_, &fs_, "/db", {}));
  }
  /// What Remove moves; the test fails where it cannot.
  Names FindAndRemove() {
    auto moved = Find().value().Remove(kLastKnown);
    EXPECT_TRUE(moved) << moved.status().ToString();
    return moved ? *moved : Names{};
  }
  Names FilesHere() { return fs_.List("/db").value(); }
  Names FilesInLost() { return fs_.List("/db/lost").value(); }

  io::SimFileSystem fs_;
  Manifest manifest_;
};

TEST_F(FilesOfADirectory, WhatTheManifestNamesAndWhatIsNoTableStays) {
  ASSERT_NO_FATAL_FAILURE(MakeTable(1, kLastKnown + 1));
  NameInManifest(1);
  for (const char* name : {"000001.log", "LOCK", "MANIFEST", "RESERVE", "notes", "x.tbl"}) {
    ASSERT_NO_FATAL_FAILURE(MakeFile(io::JoinPath("/db", name)));
  }
  const Names before = FilesHere();
  EXPECT_EQ(FindAndRemove(), Names());
  EXPECT_EQ(FilesHere(), before);
}

TEST_F(FilesOfADirectory, ATableWhoseRecordsManifestOrLogHaveIsRemoved) {
  ASSERT_NO_FATAL_FAILURE(MakeTable(1, kLastKnown));
  EXPECT_EQ(FindAndRemove(), Names());
  EXPECT_EQ(FilesHere(), Names());
}

TEST_F(FilesOfADirectory, ATableWithARecordBehindThemGoesToLost) {
  ASSERT_NO_FATAL_FAILURE(MakeTable(1, kLastKnown + 1));
  EXPECT_EQ(FindAndRemove(), Names{"/db/lost/000001.tbl"});
  EXPECT_EQ(FilesHere(), Names{"lost"});
  EXPECT_EQ(FilesInLost(), Names{"000001.tbl"});
}

TEST_F(FilesOfADirectory, ATableOfANewerVersionGoesToLost) {
  ASSERT_NO_FATAL_FAILURE(MakeTableOfANewerVersion(1));
  EXPECT_EQ(FindAndRemove(), Names{"/db/lost/000001.tbl"});
}

TEST_F(FilesOfADirectory, WhatIsNoWholeTableIsRemoved) {
  ASSERT_NO_FATAL_FAILURE(MakeFile(PathOf(1), ""));
  ASSERT_NO_FATAL_FAILURE(MakeFile(PathOf(2), std::string(10'000, '\0')));
  ASSERT_NO_FATAL_FAILURE(MakeTable(3, kLastKnown + 1));
  const auto file = fs_.Open(PathOf(3), io::OpenMode::kReadWrite).value();
  ASSERT_TRUE(file->Truncate(file->Size().value() - 1).ok());
  ASSERT_NO_FATAL_FAILURE(MakeTable(4, kLastKnown + 1));
  ASSERT_TRUE(fs_.FlipBit(PathOf(4), 100).ok());
  EXPECT_EQ(FindAndRemove(), Names());
  EXPECT_EQ(FilesHere(), Names());
}

TEST_F(FilesOfADirectory, AManifestThatWasNotFinishedIsRemoved) {
  ASSERT_NO_FATAL_FAILURE(MakeFile("/db/MANIFEST.tmp"));
  EXPECT_EQ(FindAndRemove(), Names());
  EXPECT_EQ(FilesHere(), Names());
}

TEST_F(FilesOfADirectory, EachIsJudgedByItselfAndOnce) {
  ASSERT_NO_FATAL_FAILURE(MakeTable(1, kLastKnown));
  ASSERT_NO_FATAL_FAILURE(MakeTable(2, kLastKnown + 1));
  ASSERT_NO_FATAL_FAILURE(MakeTable(3, kLastKnown));
  NameInManifest(3);
  ASSERT_NO_FATAL_FAILURE(MakeTable(4, kLastKnown + 2));
  UnnamedFiles files = Find().value();
  EXPECT_EQ(FilesHere().size(), 4u) << "Find changes nothing";
  EXPECT_EQ(files.Remove(kLastKnown).value(),
            (Names{"/db/lost/000002.tbl", "/db/lost/000004.tbl"}));
  EXPECT_EQ(FilesHere(), (Names{"000003.tbl", "lost"}));
  ASSERT_NO_FATAL_FAILURE(MakeTable(1, kLastKnown));
  EXPECT_EQ(files.Remove(kLastKnown).value(), Names()) << "there are none any more";
  EXPECT_EQ(FilesHere(), (Names{"000001.tbl", "000003.tbl", "lost"}));
}

// The sequence numbers of its records are given again from then on.
TEST_F(FilesOfADirectory, WhatWasMovedIsInLostAfterAPowerCut) {
  ASSERT_NO_FATAL_FAILURE(MakeTable(1, kLastKnown + 1));
  ASSERT_TRUE(fs_.SyncDirectory("/db").ok());
  EXPECT_EQ(FindAndRemove().size(), 1u);
  fs_.Crash(1, io::CrashMode::kNone);
  EXPECT_EQ(FilesHere(), Names{"lost"});
  EXPECT_EQ(FilesInLost(), Names{"000001.tbl"});
}

TEST_F(FilesOfADirectory, WhatCannotBeReadStaysAndIsAnError) {
  ASSERT_NO_FATAL_FAILURE(MakeTable(1, kLastKnown + 1));
  for (const char* asked : {"open", "read", "rename"}) {
    SCOPED_TRACE(asked);
    UnnamedFiles files = Find().value();
    fs_.SetFault({.at_call = 1,
                  .error = EIO,
                  .sticky = true,
                  .matches = [&](std::string_view operation, std::string_view path) {
                    return operation == asked && path == PathOf(1);
                  }});
    EXPECT_EQ(files.Remove(kLastKnown).status().code(), StatusCode::kIoError);
    EXPECT_TRUE(fs_.FaultHappened());
    fs_.ClearFault();
    EXPECT_TRUE(fs_.Exists(PathOf(1)).value());
  }
}

TEST_F(FilesOfADirectory, TheNextNumberIsAboveThatOfEachTableAlsoInLost) {
  EXPECT_EQ(UnnamedFiles().next_table_number(), 1u);
  EXPECT_EQ(Find().value().next_table_number(), 1u);
  ASSERT_NO_FATAL_FAILURE(MakeTable(5, 2));
  NameInManifest(5);
  EXPECT_EQ(Find().value().next_table_number(), 6u);
  ASSERT_NO_FATAL_FAILURE(MakeFile(PathOf(8)));
  ASSERT_NO_FATAL_FAILURE(MakeFile("/db/000020.log"));
  EXPECT_EQ(Find().value().next_table_number(), 9u);
  ASSERT_TRUE(fs_.CreateDirectory("/db/lost").ok());
  ASSERT_NO_FATAL_FAILURE(MakeFile("/db/lost/000007.tbl"));
  ASSERT_NO_FATAL_FAILURE(MakeFile("/db/lost/000021.log.64"));
  EXPECT_EQ(Find().value().next_table_number(), 9u);
  ASSERT_NO_FATAL_FAILURE(MakeFile("/db/lost/000012.tbl"));
  EXPECT_EQ(Find().value().next_table_number(), 13u);
}

// No number could be given behind it for long.
TEST_F(FilesOfADirectory, ATableWithANumberOfNoDatabaseIsRefused) {
  constexpr uint64_t kGreatest = uint64_t{1} << 62;
  ASSERT_NO_FATAL_FAILURE(MakeFile(PathOf(kGreatest)));
  EXPECT_EQ(Find().value().next_table_number(), kGreatest + 1);
  ASSERT_NO_FATAL_FAILURE(MakeFile(PathOf(kGreatest + 1)));
  const Status refused = Find().status();
  EXPECT_EQ(refused.code(), StatusCode::kCorruption);
  EXPECT_NE(refused.message().find(PathOf(kGreatest + 1)), std::string::npos) << refused.ToString();
}

TEST(UnnamedFiles, OfNoneNothingIsRemoved) { EXPECT_EQ(UnnamedFiles().Remove(0).value(), Names()); }

}  // namespace
}  // namespace basalt::db

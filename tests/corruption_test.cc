// One flipped bit, or a cut, anywhere in a database: an error that names the file, or the right
// answer; never a wrong one.

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "basalt/db.h"
#include "base/coding.h"
#include "base/hash.h"
#include "base/random.h"
#include "db/environment.h"
#include "io/manual_executor.h"
#include "io/sim_clock.h"
#include "io/sim_file_system.h"
#include "tests/crash/write_history.h"

namespace basalt {
namespace {

constexpr char kPath[] = "/db";
using Content = std::map<std::string, std::string>;

class CorruptionTest : public testing::Test {
 protected:
  db::Environment EnvironmentOn(io::SimFileSystem* disk) {
    db::Environment environment;
    environment.fs = disk;
    environment.clock = &clock_;
    environment.executor = &executor_;
    environment.memtable_bytes = 16 << 10;
    environment.table_bytes = 4 << 10;
    return environment;
  }

  Result<std::unique_ptr<DB>> Open(io::SimFileSystem* disk) {
    DBOptions options{.memory_budget = uint64_t{2} << 20};
    options.on_event = [this](const Event& event) {
      tables_lost_ += event.kind == Event::Kind::kTablesMovedToLost ? 1 : 0;
    };
    return db::OpenDatabase(kPath, options, EnvironmentOn(disk));
  }

  /// Ten records at kPower, all in the log; without Close, as after a kill.
  void MakeLog() {
    auto db = Open(&disk_);
    ASSERT_TRUE(db) << db.error().ToString();
    for (int i = 0; i < 10; ++i) {
      const std::string key = "key" + std::to_string(i);
      const std::string value(static_cast<size_t>(i) * 10, static_cast<char>('a' + i));
      ASSERT_TRUE((*db)->Put(key, value, {.durability = Durability::kPower}).ok());
      content_[key] = value;
    }
  }

  /// Some tables in both levels, closed cleanly.
  void MakeTables() {
    auto db = Open(&disk_);
    ASSERT_TRUE(db) << db.error().ToString();
    base::Random random(3);
    for (int i = 0; i < 60; ++i) {
      if (i == 40) {
        ASSERT_TRUE((*db)->CompactRange().ok());
      }
      const std::string key = "key" + std::to_string(random.Below(50));
      const std::string value(random.Below(100), static_cast<char>('a' + i % 26));
      ASSERT_TRUE((*db)->Put(key, value).ok());
      content_[key] = value;
    }
    ASSERT_TRUE((*db)->Flush().ok());
    ASSERT_TRUE((*db)->Close().ok());
    executor_.RunAll();
  }

  /// Into tables, closed cleanly; `compact`: no table that was there before is left.
  void PutMore(bool compact = true) {
    auto db = Open(&disk_);
    ASSERT_TRUE(db) << db.error().ToString();
    for (int i = 0; i < 50; ++i) {
      const std::string key = "key" + std::to_string(i);
      ASSERT_TRUE((*db)->Put(key, "more").ok());
      content_[key] = "more";
    }
    ASSERT_TRUE((*db)->Flush().ok());
    if (compact) {
      ASSERT_TRUE((*db)->CompactRange().ok());
    }
    ASSERT_TRUE((*db)->Close().ok());
    executor_.RunAll();
  }

  std::string ReadManifest() {
    return io::ReadWholeFile(&disk_, "/db/MANIFEST", uint64_t{1} << 20).value();
  }

  /// That Open refuses `manifest` in place of the right one, and everything is there when that is
  /// back.
  void ExpectRefusedAndUnchanged(const std::string& manifest) {
    const std::string right = ReadManifest();
    const std::vector<std::string> files = disk_.List(kPath).value();
    ASSERT_TRUE(io::ReplaceFile(&disk_, "/db/MANIFEST", manifest).ok());
    const auto db = Open(&disk_);
    ASSERT_FALSE(db);
    EXPECT_EQ(db.error().code(), StatusCode::kCorruption) << db.error().ToString();
    EXPECT_EQ(disk_.List(kPath).value(), files);
    ASSERT_TRUE(io::ReplaceFile(&disk_, "/db/MANIFEST", right).ok());
    Content content;
    uint64_t bytes_cut = 0;
    ASSERT_TRUE(ReadAll(&disk_, &content, &bytes_cut).ok());
    EXPECT_TRUE(content == content_);
  }

  std::vector<std::string> Files(const std::string& ending) {
    std::vector<std::string> paths;
    const std::vector<std::string> names = disk_.List(kPath).value();
    for (const std::string& name : names) {
      if (name.ends_with(ending)) paths.push_back(io::JoinPath(kPath, name));
    }
    EXPECT_FALSE(paths.empty()) << ending;
    return paths;
  }

  static std::string Lost(const std::string& path) {
    return io::JoinPath("/db/lost", path.substr(path.rfind('/') + 1));
  }

  /// Open and read everything; gets and iteration must each be right or fail by name of the file.
  Status ReadAll(io::SimFileSystem* disk, Content* content, uint64_t* bytes_cut) {
    auto db = Open(disk);
    if (!db) return db.error();
    *bytes_cut = (*db)->GetStats().log_tail_bytes_cut;
    auto read = crash::ReadContent(**db);
    for (const auto& [key, value] : content_) {
      const auto got = (*db)->Get(key);
      if (got && read) {
        EXPECT_EQ(got->has_value(), read->contains(key)) << key;
      }
      if (got && *got) {
        EXPECT_TRUE((**got).view() == value) << "a wrong value for " << key;
      }
    }
    executor_.RunAll();
    if (!read) return read.error();
    *content = *read;
    return {};
  }

  static void ExpectNames(const Status& error, const std::string& path) {
    EXPECT_TRUE(error.code() == StatusCode::kCorruption || error.code() == StatusCode::kUnsupported)
        << error.ToString();
    EXPECT_NE(error.message().find(path), std::string_view::npos) << error.ToString();
  }

  io::SimFileSystem disk_;
  io::SimClock clock_;
  io::ManualExecutor executor_;
  Content content_;
  int tables_lost_ = 0;  ///< Events that say so.
};

TEST_F(CorruptionTest, AFlippedBitInTheLogIsRefusedOrCutBehindWhatIsKnownDurable) {
  MakeLog();
  base::Random random(1);
  const std::string path = Files(".log").front();
  const uint64_t size = disk_.FileSize(path).value();
  size_t refused = 0;
  size_t cut = 0;
  for (uint64_t byte = 0; byte < std::min<uint64_t>(size, 4096); ++byte) {
    const auto disk = disk_.Clone();
    ASSERT_TRUE(disk->FlipBit(path, byte * 8 + random.Below(8)).ok());
    Content content;
    uint64_t bytes_cut = 0;
    const Status read = ReadAll(disk.get(), &content, &bytes_cut);
    ASSERT_FALSE(HasFailure()) << "byte " << byte;
    if (!read.ok()) {
      ExpectNames(read, path);
      EXPECT_NE(read.message().find("offset"), std::string_view::npos) << read.ToString();
      ++refused;
    } else if (content != content_) {
      // Nothing names the last record as durable: only it may be gone, and that is reported.
      Content without_last = content_;
      without_last.erase("key9");
      EXPECT_TRUE(content == without_last) << "byte " << byte;
      EXPECT_GT(bytes_cut, 0U) << "byte " << byte;
      ++cut;
    }
  }
  EXPECT_GT(refused, 500U);
  EXPECT_GT(cut, 50U);
}

TEST_F(CorruptionTest, RepairKeepsTheLogBeforeAGapAndMovesTheRestAside) {
  MakeLog();
  const std::string path = Files(".log").front();
  // The fourth record's payload: found by its bytes.
  std::string bytes(disk_.FileSize(path).value(), '\0');
  ASSERT_TRUE(disk_.Open(path, io::OpenMode::kRead).value()->ReadExactAt(0, bytes).ok());
  const size_t payload = bytes.find("key3");
  ASSERT_NE(payload, std::string::npos);
  ASSERT_TRUE(disk_.FlipBit(path, payload * 8).ok());
  const auto refused = Open(&disk_);
  ASSERT_FALSE(refused);
  ExpectNames(refused.error(), path);

  const auto check = db::CheckDatabase(kPath, EnvironmentOn(&disk_), {});
  ASSERT_TRUE(check) << check.error().ToString();
  EXPECT_FALSE(check->ok());

  const auto repair = db::RepairDatabase(kPath, EnvironmentOn(&disk_));
  ASSERT_TRUE(repair) << repair.error().ToString();
  EXPECT_EQ(repair->last_lsn_kept, 3U);
  EXPECT_EQ(repair->first_lsn_lost, 4U);
  EXPECT_GE(repair->last_lsn_lost, 9U);
  EXPECT_FALSE(repair->moved_to_lost.empty());
  auto db = Open(&disk_);
  ASSERT_TRUE(db) << db.error().ToString();
  const auto content = crash::ReadContent(**db);
  ASSERT_TRUE(content);
  EXPECT_EQ(content->size(), 3U);
  EXPECT_TRUE((*db)->Put("after", "repair", {.durability = Durability::kPower}).ok());
}

TEST_F(CorruptionTest, ALogOfAnotherDatabaseIsRefusedAndRepairMovesItAside) {
  io::SimFileSystem other;
  for (io::SimFileSystem* const disk : {&disk_, &other}) {
    const auto db = Open(disk);
    ASSERT_TRUE(db) << db.error().ToString();
    ASSERT_TRUE((*db)->Put(disk == &other ? "mallory" : "alice", "1").ok());
  }
  const std::string foreign = io::ReadWholeFile(&other, "/db/000001.log", 1 << 20).value();
  ASSERT_TRUE(io::ReplaceFile(&disk_, "/db/000001.log", foreign).ok());
  const auto refused = Open(&disk_);
  ASSERT_FALSE(refused);
  ExpectNames(refused.error(), "/db/000001.log");
  const auto check = db::CheckDatabase(kPath, EnvironmentOn(&disk_), {});
  ASSERT_TRUE(check) << check.error().ToString();
  EXPECT_FALSE(check->ok());

  const auto repair = db::RepairDatabase(kPath, EnvironmentOn(&disk_));
  ASSERT_TRUE(repair) << repair.error().ToString();
  EXPECT_EQ(repair->moved_to_lost, std::vector<std::string>{"/db/lost/000001.log"});
  Content content;
  uint64_t bytes_cut = 0;
  ASSERT_TRUE(ReadAll(&disk_, &content, &bytes_cut).ok());
  EXPECT_TRUE(content == content_);
}

TEST_F(CorruptionTest, AFlippedBitInATableIsNeverAWrongAnswer) {
  MakeTables();
  base::Random random(2);
  for (const std::string& path : Files(".tbl")) {
    const uint64_t size = disk_.FileSize(path).value();
    size_t refused = 0;
    for (uint64_t byte = 0; byte < size; byte += 3) {
      const auto disk = disk_.Clone();
      ASSERT_TRUE(disk->FlipBit(path, byte * 8 + random.Below(8)).ok());
      Content content;
      uint64_t bytes_cut = 0;
      const Status read = ReadAll(disk.get(), &content, &bytes_cut);
      ASSERT_FALSE(HasFailure()) << path << " byte " << byte;
      if (read.ok()) {
        EXPECT_TRUE(content == content_) << path << " byte " << byte;
      } else {
        ExpectNames(read, path);
        EXPECT_NE(read.message().find("offset"), std::string_view::npos) << read.ToString();
        ++refused;
      }
    }
    EXPECT_GT(refused, size / 8) << path;
  }
}

TEST_F(CorruptionTest, AFlippedBitInTheManifestIsRefused) {
  MakeTables();
  base::Random random(4);
  const std::string path = io::JoinPath(kPath, "MANIFEST");
  const uint64_t size = disk_.FileSize(path).value();
  for (uint64_t byte = 0; byte < size; ++byte) {
    const auto disk = disk_.Clone();
    ASSERT_TRUE(disk->FlipBit(path, byte * 8 + random.Below(8)).ok());
    const auto db = Open(disk.get());
    ASSERT_FALSE(db) << "byte " << byte;
    ExpectNames(db.error(), path);
  }
}

TEST_F(CorruptionTest, ATruncatedTableOrManifestIsRefusedAtEveryLength) {
  MakeTables();
  for (const std::string& path : {Files(".tbl").front(), io::JoinPath(kPath, "MANIFEST")}) {
    const uint64_t size = disk_.FileSize(path).value();
    for (uint64_t length = 0; length < size; length += 5) {
      const auto disk = disk_.Clone();
      ASSERT_TRUE(disk->Open(path, io::OpenMode::kReadWrite).value()->Truncate(length).ok());
      Content content;
      uint64_t bytes_cut = 0;
      const Status read = ReadAll(disk.get(), &content, &bytes_cut);
      ASSERT_FALSE(read.ok()) << path << " at " << length;
      ExpectNames(read, path);
    }
  }
}

TEST_F(CorruptionTest, AMissingTableIsNamedAtOpen) {
  MakeTables();
  const std::string path = Files(".tbl").front();
  ASSERT_TRUE(disk_.RemoveFile(path).ok());
  const auto db = Open(&disk_);
  ASSERT_FALSE(db);
  ExpectNames(db.error(), path);
}

TEST_F(CorruptionTest, AManifestWhoseTablesAreGoneRemovesNothing) {
  MakeTables();
  const std::string old_manifest = ReadManifest();
  PutMore();
  ExpectRefusedAndUnchanged(old_manifest);
}

TEST_F(CorruptionTest, AManifestWhoseLogIsGoneRemovesNothing) {
  MakeTables();
  const std::string old_manifest = ReadManifest();
  PutMore(/*compact=*/false);
  ExpectRefusedAndUnchanged(old_manifest);
}

TEST_F(CorruptionTest, AManifestOfAnotherDatabaseRemovesNothing) {
  ASSERT_TRUE(Open(&disk_));
  const std::string foreign = ReadManifest();
  ASSERT_TRUE(disk_.RemoveFile("/db/MANIFEST").ok());
  MakeTables();
  ExpectRefusedAndUnchanged(foreign);
}

TEST_F(CorruptionTest, TablesThatAnOlderManifestDoesNotNameAreKeptInLost) {
  MakeTables();
  const Content old_content = content_;
  const std::string old_manifest = ReadManifest();
  const std::vector<std::string> old_tables = Files(".tbl");
  PutMore(/*compact=*/false);
  std::vector<std::string> newer;
  for (const std::string& path : Files(".tbl")) {
    if (!std::binary_search(old_tables.begin(), old_tables.end(), path)) newer.push_back(path);
  }
  ASSERT_FALSE(newer.empty());
  const std::string right = ReadManifest();
  // The log has no record that is not in tables, and goes with the next file: nothing names it.
  for (const std::string& path : Files(".log")) ASSERT_TRUE(disk_.RemoveFile(path).ok());
  ASSERT_TRUE(io::ReplaceFile(&disk_, "/db/MANIFEST", old_manifest).ok());

  content_ = old_content;
  Content content;
  uint64_t bytes_cut = 0;
  for (int opening = 0; opening < 2; ++opening) {
    ASSERT_TRUE(ReadAll(&disk_, &content, &bytes_cut).ok());
    EXPECT_EQ(tables_lost_, 1) << "opening " << opening;
    EXPECT_TRUE(content == old_content);
    for (const std::string& path : newer) {
      EXPECT_FALSE(disk_.Exists(path).value());
      EXPECT_TRUE(disk_.Exists(Lost(path)).value()) << path;
    }
  }
  // A number is not given twice while lost/ has it.
  PutMore(/*compact=*/false);
  for (const std::string& path : newer) EXPECT_FALSE(disk_.Exists(path).value()) << path;

  for (const std::string& path : newer) ASSERT_TRUE(disk_.Rename(Lost(path), path).ok());
  for (const std::string& path : Files(".log")) ASSERT_TRUE(disk_.RemoveFile(path).ok());
  ASSERT_TRUE(io::ReplaceFile(&disk_, "/db/MANIFEST", right).ok());
  ASSERT_TRUE(ReadAll(&disk_, &content, &bytes_cut).ok());
  EXPECT_TRUE(content == content_);
}

TEST_F(CorruptionTest, TablesOfAnInterruptedFlushAreInTheLogAndGo) {
  // As much as three memtables of the second opening.
  std::unique_ptr<io::SimFileSystem> before;
  {
    const auto db = Open(&disk_);
    ASSERT_TRUE(db) << db.error().ToString();
    for (int i = 0; i < 120; ++i) {
      const std::string key = "key" + std::to_string(i);
      content_[key] = std::string(100, static_cast<char>('a' + i % 26));
      ASSERT_TRUE((*db)->Put(key, content_[key], {.durability = Durability::kPower}).ok());
    }
    before = disk_.Clone();
    ASSERT_TRUE((*db)->Flush().ok());
  }
  for (const std::string& path : Files(".tbl")) {
    const std::string bytes = io::ReadWholeFile(&disk_, path, uint64_t{1} << 20).value();
    ASSERT_TRUE(io::ReplaceFile(before.get(), path, bytes).ok());
  }
  db::Environment environment = EnvironmentOn(before.get());
  environment.memtable_bytes /= 4;
  {
    const auto db = db::OpenDatabase(kPath, {.memory_budget = uint64_t{2} << 20}, environment);
    ASSERT_TRUE(db) << db.error().ToString();
    EXPECT_GT((*db)->GetStats().flushes, 0U);
  }
  EXPECT_FALSE(before->Exists("/db/lost").value());
  Content content;
  uint64_t bytes_cut = 0;
  ASSERT_TRUE(ReadAll(before.get(), &content, &bytes_cut).ok());
  EXPECT_TRUE(content == content_);
}

TEST_F(CorruptionTest, OnlyFilesOfItsOwnAreRemoved) {
  MakeTables();
  const std::vector<std::string> foreign = {"/db/0999999.tbl", "/db/99.tbl", "/db/notes.tmp"};
  const std::vector<std::string> own = {"/db/999999.tbl", "/db/MANIFEST.tmp"};
  for (const auto& paths : {foreign, own}) {
    for (const std::string& path : paths) ASSERT_TRUE(disk_.Open(path, io::OpenMode::kCreate));
  }
  Content content;
  uint64_t bytes_cut = 0;
  ASSERT_TRUE(ReadAll(&disk_, &content, &bytes_cut).ok());
  EXPECT_TRUE(content == content_);
  for (const std::string& path : foreign) EXPECT_TRUE(disk_.Exists(path).value()) << path;
  for (const std::string& path : own) EXPECT_FALSE(disk_.Exists(path).value()) << path;
}

TEST_F(CorruptionTest, ATableNumberThatNoneCouldFollowIsRefused) {
  MakeTables();
  const std::string path = "/db/18446744073709551615.tbl";
  ASSERT_TRUE(disk_.Open(path, io::OpenMode::kCreate));
  const auto db = Open(&disk_);
  ASSERT_FALSE(db);
  ExpectNames(db.error(), path);
  EXPECT_TRUE(disk_.Exists(path).value());
}

TEST_F(CorruptionTest, AForeignFileInPlaceOfATableIsRefused) {
  MakeTables();
  const std::string path = Files(".tbl").front();
  const std::string foreign(disk_.FileSize(path).value(), 'x');
  ASSERT_TRUE(disk_.Open(path, io::OpenMode::kReadWrite).value()->WriteAt(0, foreign).ok());
  Content content;
  uint64_t bytes_cut = 0;
  ExpectNames(ReadAll(&disk_, &content, &bytes_cut), path);
}

TEST_F(CorruptionTest, TwoTablesExchangedAreRefused) {
  MakeTables();
  const std::vector<std::string> paths = Files(".tbl");
  ASSERT_GE(paths.size(), 2U);
  ASSERT_TRUE(disk_.Rename(paths[0], "/db/aside.tmp").ok());
  ASSERT_TRUE(disk_.Rename(paths[1], paths[0]).ok());
  ASSERT_TRUE(disk_.Rename("/db/aside.tmp", paths[1]).ok());
  Content content;
  uint64_t bytes_cut = 0;
  EXPECT_EQ(ReadAll(&disk_, &content, &bytes_cut).code(), StatusCode::kCorruption);
}

TEST_F(CorruptionTest, AManifestOfANewerVersionIsNamedAsSuch) {
  MakeTables();
  const std::string path = io::JoinPath(kPath, "MANIFEST");
  std::string bytes(disk_.FileSize(path).value(), '\0');
  auto file = disk_.Open(path, io::OpenMode::kReadWrite).value();
  ASSERT_TRUE(file->ReadExactAt(0, bytes).ok());
  base::Store(bytes.data() + 8, uint32_t{2});
  base::Store(bytes.data() + 56, base::Checksum(0, 0, std::string_view(bytes).substr(0, 56)));
  ASSERT_TRUE(file->WriteAt(0, bytes).ok());
  const auto db = Open(&disk_);
  ASSERT_FALSE(db);
  EXPECT_EQ(db.error().code(), StatusCode::kUnsupported);
  EXPECT_NE(db.error().message().find("newer version"), std::string_view::npos);
}

TEST_F(CorruptionTest, AReadOnlyDirectoryIsAClearErrorAndNothingIsChanged) {
  MakeTables();
  for (const int error : {EROFS, EACCES}) {
    disk_.SetFault({.kind = io::Fault::Kind::kError,
                    .at_call = 1,
                    .error = error,
                    .sticky = true,
                    .matches = [](std::string_view operation, std::string_view) {
                      return operation != "open" && operation != "read" && operation != "stat" &&
                             operation != "list" && operation != "size";
                    }});
    const auto db = Open(&disk_);
    ASSERT_FALSE(db);
    EXPECT_EQ(db.error().code(), StatusCode::kIoError);
    const char* const advice = error == EROFS ? "mount it for writing" : "run as the user";
    for (const char* const part : {"/db: no permission to write to it", advice}) {
      EXPECT_NE(db.error().message().find(part), std::string_view::npos) << db.error().ToString();
    }
    disk_.ClearFault();
  }
  Content content;
  uint64_t bytes_cut = 0;
  ASSERT_TRUE(ReadAll(&disk_, &content, &bytes_cut).ok());
  EXPECT_TRUE(content == content_);
}

}  // namespace
}  // namespace basalt

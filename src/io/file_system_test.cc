#include "io/file_system.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "base/test_fork.h"
#include "io/memory_file_system.h"
#include "io/sim_file_system.h"

// The promises of every file system: the same tests run on the machine's own, on the simulated one,
// and on the one in memory.

namespace basalt::io {
namespace {

enum class Kind { kPosix, kSim, kMemory };

class FileSystemContract : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    switch (GetParam()) {
      case Kind::kPosix: {
        std::string pattern =
            (std::filesystem::temp_directory_path() / "basalt-io-XXXXXX").string();
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        root_ = pattern;
        fs_ = FileSystem::Posix();
        return;
      }
      case Kind::kSim:
        owned_ = std::make_unique<SimFileSystem>();
        break;
      case Kind::kMemory:
        owned_ = NewMemoryFileSystem();
        break;
    }
    fs_ = owned_.get();
    root_ = "/root";
    ASSERT_TRUE(fs_->CreateDirectory(root_).ok());
  }

  void TearDown() override {
    if (GetParam() == Kind::kPosix) std::filesystem::remove_all(root_);
  }

  std::string Path(std::string_view name) const { return JoinPath(root_, name); }

  std::unique_ptr<File> Create(std::string_view name, std::string_view bytes = {}) {
    auto file = fs_->Open(Path(name), OpenMode::kCreate);
    EXPECT_TRUE(file.has_value()) << file.status().ToString();
    const Status status = (*file)->WriteAt(0, bytes);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return std::move(*file);
  }

  std::string Content(std::string_view name) {
    return ReadWholeFile(fs_, Path(name), 1 << 20).value();
  }

  FileSystem* fs_ = nullptr;
  std::string root_;

 private:
  std::unique_ptr<FileSystem> owned_;
};

std::string KindName(const testing::TestParamInfo<Kind>& info) {
  switch (info.param) {
    case Kind::kPosix:
      return "Posix";
    case Kind::kSim:
      return "Sim";
    case Kind::kMemory:
      return "Memory";
  }
  return "";
}

INSTANTIATE_TEST_SUITE_P(Io, FileSystemContract,
                         testing::Values(Kind::kPosix, Kind::kSim, Kind::kMemory), KindName);

bool Contains(const Status& status, std::string_view text) {
  return status.ToString().find(text) != std::string::npos;
}

TEST_P(FileSystemContract, WrittenBytesAreRead) {
  const auto file = Create("a", "hello");
  ASSERT_TRUE(file->WriteAt(3, "p me").ok());
  EXPECT_EQ(Content("a"), "help me");
  EXPECT_EQ(file->Size().value(), 7u);
  EXPECT_EQ(file->path(), Path("a"));
}

TEST_P(FileSystemContract, PiecesAreWrittenOneAfterTheOther) {
  const auto file = Create("a", "____");
  std::vector<std::string_view> pieces;
  std::string expected = "__";
  for (int i = 0; i < 3000; ++i) {  // More than one system call takes.
    pieces.push_back(i % 3 == 0 ? "" : (i % 3 == 1 ? "x" : "yz"));
    expected += pieces.back();
  }
  ASSERT_TRUE(file->WritePiecesAt(2, pieces).ok());
  EXPECT_EQ(Content("a"), expected);
  ASSERT_TRUE(file->WritePiecesAt(0, std::vector<std::string_view>(2000)).ok());
  ASSERT_TRUE(file->WritePiecesAt(0, {}).ok());
  std::vector<std::string_view> mostly_empty(2000);
  mostly_empty.push_back("!");
  ASSERT_TRUE(file->WritePiecesAt(0, mostly_empty).ok());
  expected[0] = '!';
  EXPECT_EQ(Content("a"), expected);
}

TEST_P(FileSystemContract, AnnouncingReadsChangesNothing) {
  const auto file = Create("a", "hello");
  constexpr uint64_t kFar = std::numeric_limits<uint64_t>::max();
  for (const uint64_t offset : {uint64_t{0}, uint64_t{3}, uint64_t{5}, uint64_t{1} << 40, kFar}) {
    for (const uint64_t size : {uint64_t{0}, uint64_t{2}, uint64_t{1} << 20, kFar}) {
      file->WillRead(offset, size);
    }
  }
  EXPECT_EQ(Content("a"), "hello");
  EXPECT_EQ(file->Size().value(), 5u);
}

TEST_P(FileSystemContract, AGapReadsAsZeros) {
  const auto file = Create("a");
  ASSERT_TRUE(file->WriteAt(5, "x").ok());
  EXPECT_EQ(Content("a"), std::string(5, '\0') + "x");
}

TEST_P(FileSystemContract, ReadingEndsWhereTheFileEnds) {
  const auto file = Create("a", "hello");
  char out[8];
  EXPECT_EQ(file->ReadAt(3, out).value(), 2u);
  EXPECT_EQ(std::string_view(out, 2), "lo");
  EXPECT_EQ(file->ReadAt(5, out).value(), 0u);
  EXPECT_EQ(file->ReadAt(1000, out).value(), 0u);
  EXPECT_EQ(file->ReadAt(std::numeric_limits<uint64_t>::max(), out).value(), 0u);
  EXPECT_EQ(file->ReadAt(std::numeric_limits<int64_t>::max() - 1, out).value(), 0u);
}

TEST_P(FileSystemContract, AMissingRangeIsCorruptionAndNamesBothEnds) {
  const auto file = Create("a", "hello");
  char out[4];
  EXPECT_TRUE(file->ReadExactAt(1, out).ok());
  const Status status = file->ReadExactAt(3, out);
  EXPECT_EQ(status.code(), StatusCode::kCorruption);
  EXPECT_TRUE(Contains(status, Path("a") + ": ends at 5, needed 4 bytes at 3"))
      << status.ToString();
}

TEST_P(FileSystemContract, TruncationCutsAndExtendsWithZeros) {
  const auto file = Create("a", "hello");
  ASSERT_TRUE(file->Truncate(2).ok());
  EXPECT_EQ(Content("a"), "he");
  ASSERT_TRUE(file->Truncate(4).ok());
  EXPECT_EQ(Content("a"), std::string("he\0\0", 4));
}

TEST_P(FileSystemContract, WritesThroughMemoryAreWritesLikeOthers) {
  const auto file = Create("a");
  file->WriteThroughMemory(8192);
  std::string expected;
  for (int i = 0; i < 300; ++i) {
    // Now and then one too large for memory, and one that crosses the end of a stretch.
    const std::string piece(i % 50 == 49 ? 100'000 : 1 + (i * 37) % 5000,
                            static_cast<char>('a' + i % 26));
    const std::string_view pieces[] = {std::string_view(piece).substr(0, 1),
                                       std::string_view(piece).substr(1)};
    ASSERT_TRUE(file->WritePiecesAt(expected.size(), pieces).ok());
    expected += piece;
    if (i % 100 == 0) {
      ASSERT_TRUE(file->Sync().ok());
    }
  }
  ASSERT_GE(file->Size().value(), expected.size());
  std::string found(expected.size(), '\0');
  ASSERT_TRUE(file->ReadExactAt(0, found).ok());
  EXPECT_TRUE(found == expected);
  const std::string whole = ReadWholeFile(fs_, Path("a"), 8 << 20).value();
  EXPECT_EQ(whole.find_first_not_of('\0', expected.size()), std::string::npos)
      << "behind the last write there are zeros";
  ASSERT_TRUE(file->Truncate(expected.size()).ok());
  EXPECT_TRUE(ReadWholeFile(fs_, Path("a"), 8 << 20).value() == expected);
}

TEST_P(FileSystemContract, WritesThroughMemoryLeaveWhatLiesBeforeThem) {
  const std::string before(5000, 'a');
  Create("a", before);
  const auto file = fs_->Open(Path("a"), OpenMode::kReadWrite).value();
  file->WriteThroughMemory(8192);
  ASSERT_TRUE(file->WriteAt(before.size(), "b").ok());
  ASSERT_TRUE(file->WriteAt(before.size() + 1, std::string(100'000, 'c')).ok());
  ASSERT_TRUE(file->WriteAt(before.size() + 100'001, "d").ok());
  EXPECT_EQ(ReadWholeFile(fs_, Path("a"), 8 << 20).value().substr(0, before.size() + 100'002),
            before + "b" + std::string(100'000, 'c') + "d");
}

TEST_P(FileSystemContract, WritesThroughMemoryExtendNoFileThatHasRoom) {
  const auto file = Create("a");
  ASSERT_TRUE(file->Allocate(128 << 10).ok());
  file->WriteThroughMemory(128 << 10);
  // The first one is too large for memory.
  ASSERT_TRUE(file->WriteAt(0, std::string(100'000, 'a')).ok());
  ASSERT_TRUE(file->WriteAt(100'000, std::string((128 << 10) - 100'000, 'b')).ok());
  EXPECT_EQ(file->Size().value(), 128u << 10);
}

// Of pages that are made ahead in large pieces, a sync would write the whole piece each time.
TEST_P(FileSystemContract, ASyncedWriteThroughMemoryWritesFewPages) {
  const auto bytes_written = [] {
    std::ifstream figures("/proc/self/io");
    for (std::string name; figures >> name;) {
      uint64_t figure = 0;
      if (figures >> figure; name == "write_bytes:") return figure;
    }
    return uint64_t{0};  // Not counted here.
  };
  constexpr uint64_t kWrites = 300;
  const std::string record(2000, 'r');
  const auto file = Create("a");
  file->WriteThroughMemory(uint64_t{4} << 20);
  const uint64_t before = bytes_written();
  for (uint64_t i = 0; i < kWrites; ++i) {
    ASSERT_TRUE(file->WriteAt(i * record.size(), record).ok());
    ASSERT_TRUE(file->Sync().ok());
  }
  EXPECT_LT(bytes_written() - before, kWrites * 4 * 4096);
}

TEST_P(FileSystemContract, AllocationExtendsWithZerosAndNeverShrinks) {
  const auto file = Create("a", "hello");
  ASSERT_TRUE(file->Allocate(8).ok());
  EXPECT_EQ(Content("a"), std::string("hello\0\0\0", 8));
  ASSERT_TRUE(file->Allocate(3).ok());
  ASSERT_TRUE(file->Allocate(0).ok());
  EXPECT_EQ(file->Size().value(), 8u);
}

TEST_P(FileSystemContract, AMappingSeesLaterWrites) {
  const auto file = Create("a", "hello");
  ASSERT_TRUE(file->Allocate(10).ok());
  const auto mapping = file->Map(8).value();
  EXPECT_EQ(mapping->bytes(), std::string_view("hello\0\0\0", 8));
  ASSERT_TRUE(file->WriteAt(1, "a").ok());
  ASSERT_TRUE(file->WriteAt(100000, "far").ok());
  ASSERT_TRUE(file->WriteAt(6, "zzzz").ok());
  EXPECT_EQ(mapping->bytes(), std::string_view("hallo\0zz", 8));
}

TEST_P(FileSystemContract, AMappingOutlivesItsFile) {
  auto file = Create("a", "hello");
  const auto mapping = file->Map(5).value();
  file.reset();
  ASSERT_TRUE(fs_->RemoveFile(Path("a")).ok());
  EXPECT_EQ(mapping->bytes(), "hello");
}

TEST_P(FileSystemContract, AnEmptyMappingIsFineAndATooLongOneIsCorruption) {
  const auto file = Create("a", "hello");
  EXPECT_EQ(file->Map(0).value()->bytes(), "");
  const auto mapping = file->Map(6);
  EXPECT_EQ(mapping.status().code(), StatusCode::kCorruption);
  EXPECT_TRUE(Contains(mapping.status(), "ends at 5, needed 6"));
}

TEST_P(FileSystemContract, StoresToAMappingAreSeenByOthers) {
  auto file = fs_->Open(Path("f"), OpenMode::kCreate).value();
  ASSERT_TRUE(file->Allocate(8192).ok());
  auto written = file->MapForWriting(8192).value();
  const auto reader = fs_->Open(Path("f"), OpenMode::kRead).value();
  const auto read = reader->Map(8192).value();
  std::memcpy(written->data() + 5000, "stored", 6);
  EXPECT_EQ(read->bytes().substr(5000, 6), "stored");
  ASSERT_TRUE(file->WriteAt(100, "written").ok());
  EXPECT_EQ(std::string_view(written->data() + 100, 7), "written");
  file.reset();
  std::memcpy(written->data() + 5000, "later.", 6);
  EXPECT_EQ(read->bytes().substr(5000, 6), "later.");
  EXPECT_FALSE(reader->MapForWriting(8192)) << "it was opened to be read";
}

TEST_P(FileSystemContract, AFileIsInUseWhileSomebodyMarksIt) {
  const auto file = fs_->Open(Path("f"), OpenMode::kCreate).value();
  EXPECT_FALSE(file->IsInUse().value());
  auto reader = fs_->Open(Path("f"), OpenMode::kRead).value();
  auto other = fs_->Open(Path("f"), OpenMode::kRead).value();
  ASSERT_TRUE(reader->MarkInUse().ok());
  ASSERT_TRUE(other->MarkInUse().ok());
  EXPECT_TRUE(file->IsInUse().value());
  reader.reset();
  EXPECT_TRUE(file->IsInUse().value());
  EXPECT_FALSE(other->IsInUse().value()) << "its own mark does not count";
  other.reset();
  EXPECT_FALSE(file->IsInUse().value());
}

TEST_P(FileSystemContract, OpenDoesAsItsModeSays) {
  EXPECT_EQ(fs_->Open(Path("a"), OpenMode::kRead).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(fs_->Open(Path("a"), OpenMode::kReadWrite).status().code(), StatusCode::kNotFound);
  Create("a", "hello");
  EXPECT_EQ(fs_->Open(Path("a"), OpenMode::kCreate).status().code(), StatusCode::kAlreadyExists);
  EXPECT_TRUE(fs_->Open(Path("a"), OpenMode::kReadWrite).value()->WriteAt(0, "H").ok());
  const auto read_only = fs_->Open(Path("a"), OpenMode::kRead).value();
  const Status status = read_only->WriteAt(0, "x");
  EXPECT_EQ(status.code(), StatusCode::kIoError);
  EXPECT_TRUE(Contains(status, "cannot write 1 bytes at 0")) << status.ToString();
  EXPECT_FALSE(read_only->Truncate(0).ok());
  EXPECT_FALSE(read_only->Allocate(100).ok());
  EXPECT_EQ(Content("a"), "Hello");
}

TEST_P(FileSystemContract, ADirectoryIsNotAFile) {
  ASSERT_TRUE(fs_->CreateDirectory(Path("d")).ok());
  for (const OpenMode mode : {OpenMode::kRead, OpenMode::kReadWrite}) {
    const Status status = fs_->Open(Path("d"), mode).status();
    EXPECT_EQ(status.code(), StatusCode::kIoError);
    EXPECT_TRUE(Contains(status, Path("d") + ": cannot open: Is a directory; name a file"))
        << status.ToString();
  }
  EXPECT_FALSE(fs_->RemoveFile(Path("d")).ok());
  EXPECT_FALSE(fs_->FileSize(Path("d")).has_value());
  EXPECT_FALSE(fs_->Lock(Path("d")).has_value());
}

TEST_P(FileSystemContract, AFileIsNotADirectory) {
  Create("a");
  EXPECT_TRUE(Contains(fs_->List(Path("a")).status(), "Not a directory"));
  EXPECT_TRUE(Contains(fs_->SyncDirectory(Path("a")), "Not a directory"));
  EXPECT_TRUE(Contains(fs_->RemoveDirectory(Path("a")), "Not a directory"));
  EXPECT_TRUE(Contains(fs_->Open(Path("a/b"), OpenMode::kCreate).status(), "Not a directory"));
  EXPECT_EQ(fs_->CreateDirectory(Path("a")).code(), StatusCode::kAlreadyExists);
}

TEST_P(FileSystemContract, NamesAreListedInOrder) {
  Create("b");
  Create("c");
  ASSERT_TRUE(fs_->CreateDirectory(Path("a")).ok());
  EXPECT_EQ(fs_->List(root_).value(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(fs_->List(Path("a")).value(), std::vector<std::string>{});
  EXPECT_EQ(fs_->List(Path("x")).status().code(), StatusCode::kNotFound);
}

TEST_P(FileSystemContract, WhatIsThereCanBeAsked) {
  Create("a", "hello");
  EXPECT_TRUE(fs_->Exists(Path("a")).value());
  EXPECT_TRUE(fs_->Exists(root_).value());
  EXPECT_FALSE(fs_->Exists(Path("b")).value());
  EXPECT_FALSE(fs_->IsDirectory(Path("a")).value());
  EXPECT_FALSE(fs_->IsDirectory(Path("b")).value());
  EXPECT_TRUE(fs_->IsDirectory(root_).value());
  EXPECT_EQ(fs_->FileSize(Path("a")).value(), 5u);
  EXPECT_EQ(fs_->FileSize(Path("b")).status().code(), StatusCode::kNotFound);
  // Nothing can be below a file; that is not the same as "absent".
  EXPECT_EQ(fs_->Exists(Path("a/b")).status().code(), StatusCode::kIoError);
}

TEST_P(FileSystemContract, WhatIsThereHasAPathThatGoesOnLeadingThere) {
  ASSERT_TRUE(fs_->CreateDirectory(Path("d")).ok());
  const std::string path = fs_->Resolve(Path("d")).value();
  EXPECT_TRUE(fs_->IsDirectory(path).value());
  EXPECT_EQ(fs_->Resolve(Path("absent")).status().code(), StatusCode::kNotFound);
  if (GetParam() != Kind::kPosix) return;
  std::filesystem::create_directory_symlink("d", Path("link"));
  EXPECT_EQ(fs_->Resolve(Path("link")).value(), path);
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(root_);
  EXPECT_EQ(fs_->Resolve("d").value(), path);
  std::filesystem::current_path(before);
}

TEST_P(FileSystemContract, DirectoriesComeAndGo) {
  ASSERT_TRUE(fs_->CreateDirectory(Path("d")).ok());
  EXPECT_EQ(fs_->CreateDirectory(Path("d")).code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(fs_->CreateDirectory(Path("x/y")).code(), StatusCode::kNotFound);
  Create("d/a");
  EXPECT_TRUE(Contains(fs_->RemoveDirectory(Path("d")), "Directory not empty"));
  ASSERT_TRUE(fs_->RemoveFile(Path("d/a")).ok());
  ASSERT_TRUE(fs_->RemoveDirectory(Path("d")).ok());
  EXPECT_EQ(fs_->RemoveDirectory(Path("d")).code(), StatusCode::kNotFound);
  EXPECT_EQ(fs_->SyncDirectory(Path("d")).code(), StatusCode::kNotFound);
  EXPECT_TRUE(fs_->SyncDirectory(root_).ok());
}

TEST_P(FileSystemContract, RenameMovesAndReplaces) {
  Create("a", "new");
  Create("b", "old");
  const auto old = fs_->Open(Path("b"), OpenMode::kRead).value();
  ASSERT_TRUE(fs_->Rename(Path("a"), Path("b")).ok());
  EXPECT_EQ(fs_->List(root_).value(), std::vector<std::string>{"b"});
  EXPECT_EQ(Content("b"), "new");
  char out[3];
  ASSERT_TRUE(old->ReadExactAt(0, out).ok());
  EXPECT_EQ(std::string_view(out, 3), "old");

  ASSERT_TRUE(fs_->Rename(Path("b"), Path("b")).ok());
  ASSERT_TRUE(fs_->CreateDirectory(Path("d")).ok());
  ASSERT_TRUE(fs_->Rename(Path("b"), Path("d/c")).ok());
  EXPECT_EQ(Content("d/c"), "new");
  ASSERT_TRUE(fs_->Rename(Path("d"), Path("e")).ok());
  EXPECT_EQ(Content("e/c"), "new");
}

TEST_P(FileSystemContract, ImpossibleRenamesAreRefused) {
  const Status missing = fs_->Rename(Path("a"), Path("b"));
  EXPECT_EQ(missing.code(), StatusCode::kNotFound);
  EXPECT_TRUE(Contains(missing, Path("a") + ": cannot rename to " + Path("b")));
  Create("a");
  ASSERT_TRUE(fs_->CreateDirectory(Path("d")).ok());
  Create("d/x");
  ASSERT_TRUE(fs_->CreateDirectory(Path("e")).ok());
  EXPECT_TRUE(Contains(fs_->Rename(Path("a"), Path("d")), "Is a directory"));
  EXPECT_TRUE(Contains(fs_->Rename(Path("d"), Path("a")), "Not a directory"));
  EXPECT_TRUE(Contains(fs_->Rename(Path("e"), Path("d")), "Directory not empty"));
  EXPECT_TRUE(Contains(fs_->Rename(Path("d"), Path("d/y")), "Invalid argument"));
}

TEST_P(FileSystemContract, ARemovedFileLivesWhileItIsOpen) {
  const auto file = Create("a", "hello");
  ASSERT_TRUE(fs_->RemoveFile(Path("a")).ok());
  EXPECT_EQ(fs_->RemoveFile(Path("a")).code(), StatusCode::kNotFound);
  EXPECT_FALSE(fs_->Exists(Path("a")).value());
  Create("a", "other");
  char out[5];
  ASSERT_TRUE(file->ReadExactAt(0, out).ok());
  EXPECT_EQ(std::string_view(out, 5), "hello");
  EXPECT_TRUE(file->Sync().ok());
}

TEST_P(FileSystemContract, PathsThatCannotBeAreRefused) {
  const std::string zero = Path(std::string_view("a\0b", 3));
  for (const std::string& path : {std::string(), zero}) {
    EXPECT_EQ(fs_->Open(path, OpenMode::kCreate).status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(fs_->CreateDirectory(path).code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(fs_->List(path).status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(fs_->Rename(path, Path("b")).code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(fs_->Rename(Path("b"), path).code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(fs_->RemoveFile(path).code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(fs_->RemoveDirectory(path).code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(fs_->SyncDirectory(path).code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(fs_->Exists(path).status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(fs_->FileSize(path).status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(fs_->Lock(path).status().code(), StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(fs_->List(root_).value(), std::vector<std::string>{});
}

TEST_P(FileSystemContract, OffsetsThatNoFileHasAreRefused) {
  const auto file = Create("a", "hello");
  const uint64_t max = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(file->WriteAt(max, "x").code(), StatusCode::kIoError);
  EXPECT_EQ(file->WriteAt(max / 2, "x").code(), StatusCode::kIoError);
  EXPECT_EQ(file->Truncate(max).code(), StatusCode::kIoError);
  EXPECT_EQ(file->Allocate(max).code(), StatusCode::kIoError);
  EXPECT_EQ(Content("a"), "hello");
}

TEST_P(FileSystemContract, ReplaceFileMakesAndReplaces) {
  ASSERT_TRUE(ReplaceFile(fs_, Path("a"), "one").ok());
  EXPECT_EQ(Content("a"), "one");
  Create("a.tmp", "left from a run that was killed");
  ASSERT_TRUE(ReplaceFile(fs_, Path("a"), "two").ok());
  EXPECT_EQ(Content("a"), "two");
  EXPECT_EQ(fs_->List(root_).value(), std::vector<std::string>{"a"});
  EXPECT_EQ(ReplaceFile(fs_, Path("x/a"), "").code(), StatusCode::kNotFound);
}

TEST_P(FileSystemContract, ReadWholeFileIsBounded) {
  Create("a", "hello");
  EXPECT_EQ(ReadWholeFile(fs_, Path("a"), 5).value(), "hello");
  const Status status = ReadWholeFile(fs_, Path("a"), 4).status();
  EXPECT_EQ(status.code(), StatusCode::kCorruption);
  EXPECT_TRUE(Contains(status, "has 5 bytes, but such a file has at most 4"));
  EXPECT_EQ(ReadWholeFile(fs_, Path("b"), 5).status().code(), StatusCode::kNotFound);
}

TEST_P(FileSystemContract, ADirectoryIsMarkedUntilItsLastMarkIsGone) {
  EXPECT_FALSE(fs_->IsMarked(root_).value());
  auto first = fs_->MarkDirectory(root_).value();
  auto second = fs_->MarkDirectory(root_).value();
  EXPECT_TRUE(fs_->IsMarked(root_).value());
  first.reset();
  EXPECT_TRUE(fs_->IsMarked(root_).value());
  EXPECT_TRUE(fs_->List(root_).value().empty()) << "a mark is no file";
  second.reset();
  EXPECT_FALSE(fs_->IsMarked(root_).value());
  EXPECT_EQ(fs_->MarkDirectory(Path("absent")).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(fs_->IsMarked(Path("absent")).status().code(), StatusCode::kNotFound);
}

TEST_P(FileSystemContract, ASecondLockIsRefusedUntilTheFirstIsGone) {
  auto first = fs_->Lock(Path("LOCK"));
  ASSERT_TRUE(first.has_value()) << first.status().ToString();
  const Status status = fs_->Lock(Path("LOCK")).status();
  EXPECT_EQ(status.code(), StatusCode::kBusy);
  EXPECT_EQ(status.message(),
            root_ + " is already open in this process; close it there, or use another path");
  EXPECT_TRUE(fs_->Lock(Path("OTHER")).has_value());
  first->reset();
  EXPECT_TRUE(fs_->Lock(Path("LOCK")).has_value());
}

TEST(PosixFileSystem, AnAllocationBeyondTheLimitOfFilesIsRefusedWithoutASignal) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("basalt-limit-" + std::to_string(getpid()));
  const int code = base::InChild([&] {
    rlimit limit{};
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = 10'000;
    setrlimit(RLIMIT_FSIZE, &limit);
    const auto file = FileSystem::Posix()->Open(path.string(), OpenMode::kCreate).value();
    if (!file->Allocate(10'000).ok()) return 1;
    return file->Allocate(10'001).code() == StatusCode::kIoError ? 0 : 2;
  });
  EXPECT_EQ(code, 0);
  std::filesystem::remove(path);
}

TEST(ErrnoStatus, NamesOperationPathCauseAndAdvice) {
  EXPECT_EQ(ErrnoStatus(ENOSPC, "write 4096 bytes at 8192", "/db/1.log").ToString(),
            "ResourceExhausted (DiskFull): /db/1.log: cannot write 4096 bytes at 8192: No space "
            "left on device; "
            "free space, then retry");
  EXPECT_EQ(
      ErrnoStatus(EMFILE, "open", "/db/1.log").ToString(),
      "ResourceExhausted (Descriptors): /db/1.log: cannot open: Too many open files; raise the "
      "limit on open files (ulimit -n)");
  EXPECT_EQ(ErrnoStatus(EACCES, "open", "/db/1.log").ToString(),
            "IoError: /db/1.log: cannot open: Permission denied; check the permissions of "
            "/db/1.log");
  EXPECT_EQ(ErrnoStatus(EROFS, "create", "/db/1.log").ToString(),
            "IoError: /db/1.log: cannot create: Read-only file system; mount it for writing, or "
            "use another path");
}

TEST(FileSystem, WhatKeepsADirectoryFromBeingMadeIsNamed) {
  EXPECT_EQ(
      FileSystem::Posix()->CreateDirectory("no-such-parent/db").ToString(),
      "NotFound: no-such-parent/db: cannot create the directory: No such file or directory; make "
      "the directory above it (mkdir -p no-such-parent), then retry");
  EXPECT_EQ(FileSystem::Posix()->CreateDirectory("/proc/db").ToString(),
            "NotFound: /proc/db: cannot create the directory: No such file or directory; no "
            "directory can be made there; use another path");
  SimFileSystem disk;
  disk.SetFault({.kind = Fault::Kind::kError, .at_call = 1, .error = EACCES});
  EXPECT_EQ(disk.CreateDirectory("/home/db").ToString(),
            "IoError: /home/db: cannot create the directory: Permission denied; check the "
            "permissions of /home");
}

TEST(ErrnoStatus, ChoosesTheCode) {
  EXPECT_EQ(ErrnoStatus(ENOENT, "open", "a").code(), StatusCode::kNotFound);
  EXPECT_EQ(ErrnoStatus(EEXIST, "create", "a").code(), StatusCode::kAlreadyExists);
  for (const int error : {ENOSPC, EDQUOT, EMFILE, ENFILE, ENOMEM}) {
    EXPECT_EQ(ErrnoStatus(error, "open", "a").code(), StatusCode::kResourceExhausted);
  }
  for (const int error : {EIO, EACCES, EBADF, EINTR}) {
    EXPECT_EQ(ErrnoStatus(error, "open", "a").code(), StatusCode::kIoError);
  }
}

TEST(ErrnoStatus, TellsAFullDiskFromWhatElseMayBeExhausted) {
  for (const int error : {ENOSPC, EDQUOT}) {
    EXPECT_TRUE(IsDiskFull(ErrnoStatus(error, "open", "a"))) << error;
  }
  for (const int error : {EMFILE, ENFILE, ENOMEM, EIO, ENOENT}) {
    EXPECT_FALSE(IsDiskFull(ErrnoStatus(error, "open", "a"))) << error;
  }
  EXPECT_FALSE(IsDiskFull({}));
  EXPECT_EQ(ErrnoStatus(ENOMEM, "open", "a").sub_code(), SubCode::kMemory);
  EXPECT_EQ(ErrnoStatus(EMFILE, "open", "a").sub_code(), SubCode::kDescriptors);
}

TEST(Paths, AreTakenApartAndJoined) {
  EXPECT_EQ(ParentDirectory("a/b"), "a");
  EXPECT_EQ(ParentDirectory("/a/b/c"), "/a/b");
  EXPECT_EQ(ParentDirectory("b"), ".");
  EXPECT_EQ(ParentDirectory("/b"), "/");
  EXPECT_EQ(ParentDirectory("/"), "/");
  EXPECT_EQ(ParentDirectory("a/b/"), "a");
  EXPECT_EQ(ParentDirectory("a//b"), "a");
  EXPECT_EQ(JoinPath("a", "b"), "a/b");
  EXPECT_EQ(JoinPath("a/", "b"), "a/b");
  EXPECT_EQ(JoinPath("/", "b"), "/b");
  EXPECT_EQ(JoinPath("", "b"), "b");
}

}  // namespace
}  // namespace basalt::io

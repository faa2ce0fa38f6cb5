#include "io/sim_file_system.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <latch>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace basalt::io {
namespace {

std::unique_ptr<File> Create(FileSystem* fs, std::string_view path, std::string_view bytes = {}) {
  auto file = fs->Open(path, OpenMode::kCreate).value();
  const Status status = file->WriteAt(0, bytes);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return file;
}

/// A file whose bytes and name are durable.
std::unique_ptr<File> CreateDurable(FileSystem* fs, std::string_view path,
                                    std::string_view bytes = {}) {
  auto file = Create(fs, path, bytes);
  EXPECT_TRUE(file->Sync().ok());
  EXPECT_TRUE(fs->SyncDirectory(ParentDirectory(path)).ok());
  return file;
}

std::string Content(FileSystem* fs, std::string_view path) {
  return ReadWholeFile(fs, path, 1 << 20).value();
}

std::vector<std::string> List(FileSystem* fs, std::string_view path = "/") {
  return fs->List(path).value();
}

using Names = std::vector<std::string>;

auto Only(std::string operation) {
  return [operation = std::move(operation)](std::string_view name, std::string_view) {
    return name == operation;
  };
}

TEST(SimPowerCut, WhatWasSyncedSurvives) {
  SimFileSystem fs;
  CreateDurable(&fs, "/a", "hello");
  fs.Crash(1, CrashMode::kNone);
  EXPECT_EQ(List(&fs), Names{"a"});
  EXPECT_EQ(Content(&fs, "/a"), "hello");
}

TEST(SimPowerCut, UnsyncedBytesAreLost) {
  SimFileSystem fs;
  const auto file = CreateDurable(&fs, "/a", "hello");
  ASSERT_TRUE(file->WriteAt(0, "jelly and more").ok());
  fs.Crash(1, CrashMode::kNone);
  EXPECT_EQ(Content(&fs, "/a"), "hello");
}

TEST(SimPowerCut, ANameWhoseDirectoryWasNotSyncedIsLost) {
  SimFileSystem fs;
  const auto file = Create(&fs, "/a", "hello");
  ASSERT_TRUE(file->Sync().ok());
  fs.Crash(1, CrashMode::kNone);
  EXPECT_EQ(List(&fs), Names{});
}

TEST(SimPowerCut, ASyncedNameMayLeadToAFileWithoutItsBytes) {
  SimFileSystem fs;
  const auto file = Create(&fs, "/a", "hello");
  ASSERT_TRUE(fs.SyncDirectory("/").ok());
  fs.Crash(1, CrashMode::kNone);
  EXPECT_EQ(Content(&fs, "/a"), "");
}

TEST(SimPowerCut, ADirectoryNeedsASyncOfItsParent) {
  SimFileSystem fs;
  ASSERT_TRUE(fs.CreateDirectory("/d").ok());
  CreateDurable(&fs, "/d/a", "hello");
  const auto clone = fs.Clone();
  clone->Crash(1, CrashMode::kNone);
  EXPECT_EQ(List(clone.get()), Names{});
  ASSERT_TRUE(fs.SyncDirectory("/").ok());
  fs.Crash(1, CrashMode::kNone);
  EXPECT_EQ(Content(&fs, "/d/a"), "hello");
}

TEST(SimPowerCut, ARemovalMayComeUndone) {
  SimFileSystem fs;
  CreateDurable(&fs, "/a", "hello");
  ASSERT_TRUE(fs.RemoveFile("/a").ok());
  const auto clone = fs.Clone();
  clone->Crash(1, CrashMode::kNone);
  EXPECT_EQ(Content(clone.get(), "/a"), "hello");
  ASSERT_TRUE(fs.SyncDirectory("/").ok());
  fs.Crash(1, CrashMode::kNone);
  EXPECT_EQ(List(&fs), Names{});
}

TEST(SimPowerCut, ARenameHappensWholeOrNotAtAll) {
  SimFileSystem fs;
  CreateDurable(&fs, "/new", "new");
  CreateDurable(&fs, "/current", "old");
  ASSERT_TRUE(fs.Rename("/new", "/current").ok());
  int done = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const auto clone = fs.Clone();
    clone->Crash(seed);
    if (List(clone.get()) == Names{"current"}) {
      ++done;
      EXPECT_EQ(Content(clone.get(), "/current"), "new");
    } else {
      EXPECT_EQ(List(clone.get()), (Names{"current", "new"}));
      EXPECT_EQ(Content(clone.get(), "/current"), "old");
      EXPECT_EQ(Content(clone.get(), "/new"), "new");
    }
  }
  EXPECT_GT(done, 10);
  EXPECT_LT(done, 90);
}

TEST(SimPowerCut, ARenameBetweenDirectoriesIsOneChange) {
  SimFileSystem fs;
  ASSERT_TRUE(fs.CreateDirectory("/d").ok());
  CreateDurable(&fs, "/a", "hello");
  ASSERT_TRUE(fs.Rename("/a", "/d/b").ok());
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const auto clone = fs.Clone();
    clone->Crash(seed);
    const bool before = clone->Exists("/a").value();
    const bool after = clone->Exists("/d/b").value();
    EXPECT_NE(before, after) << "seed " << seed;
  }
  for (const std::string directory : {"/", "/d"}) {
    const auto clone = fs.Clone();
    ASSERT_TRUE(clone->SyncDirectory(directory).ok());
    clone->Crash(1, CrashMode::kNone);
    EXPECT_FALSE(clone->Exists("/a").value());
    EXPECT_EQ(Content(clone.get(), "/d/b"), "hello");
  }
}

TEST(SimPowerCut, ReplaceFileLeavesTheOldOrTheNewAndIsDurable) {
  SimFileSystem fs;
  ASSERT_TRUE(ReplaceFile(&fs, "/a", "old").ok());
  std::vector<std::unique_ptr<SimFileSystem>> moments;
  fs.SetObserver(
      [&](uint64_t, std::string_view, std::string_view) { moments.push_back(fs.Clone()); });
  ASSERT_TRUE(ReplaceFile(&fs, "/a", "new").ok());
  fs.SetObserver({});
  ASSERT_GE(moments.size(), 5u);
  bool old_seen = false;
  bool new_seen = false;
  for (const auto& moment : moments) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const auto clone = moment->Clone();
      clone->Crash(seed);
      const std::string content = Content(clone.get(), "/a");
      EXPECT_TRUE(content == "old" || content == "new") << content;
      old_seen |= content == "old";
      new_seen |= content == "new";
    }
  }
  EXPECT_TRUE(old_seen && new_seen);
  fs.Crash(1, CrashMode::kNone);
  EXPECT_EQ(Content(&fs, "/a"), "new");
}

TEST(SimPowerCut, NamesSurviveAsAPrefixOrASubset) {
  SimFileSystem fs;
  for (const std::string name : {"/a", "/b", "/c"}) Create(&fs, name);
  bool prefix_seen = false;
  bool hole_seen = false;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const auto prefix = fs.Clone();
    prefix->Crash(seed, CrashMode::kPrefix);
    const Names names = List(prefix.get());
    EXPECT_TRUE(names.empty() || names == Names{"a"} || names == (Names{"a", "b"}) ||
                names == (Names{"a", "b", "c"}));
    prefix_seen |= names.size() == 2;
    const auto subset = fs.Clone();
    subset->Crash(seed, CrashMode::kSubset);
    hole_seen |= List(subset.get()) == (Names{"a", "c"});
  }
  EXPECT_TRUE(prefix_seen);
  EXPECT_TRUE(hole_seen);
}

TEST(SimPowerCut, ChangesOfOneNameStayInOrder) {
  SimFileSystem fs;
  CreateDurable(&fs, "/log", "precious");
  ASSERT_TRUE(fs.Rename("/log", "/old").ok());
  Create(&fs, "/log", "new");
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const auto clone = fs.Clone();
    clone->Crash(seed, CrashMode::kSubset);
    EXPECT_EQ(Content(clone.get(), clone->Exists("/old").value() ? "/old" : "/log"), "precious")
        << "seed " << seed;
  }
}

TEST(SimPowerCut, MovedDirectoriesNeverLoseWhatWasDurable) {
  SimFileSystem fs;
  ASSERT_TRUE(fs.CreateDirectory("/a").ok());
  ASSERT_TRUE(fs.CreateDirectory("/a/b").ok());
  ASSERT_TRUE(fs.SyncDirectory("/").ok());
  CreateDurable(&fs, "/a/b/file", "hello");
  ASSERT_TRUE(fs.SyncDirectory("/a").ok());
  ASSERT_TRUE(fs.Rename("/a/b", "/b").ok());
  ASSERT_TRUE(fs.Rename("/a", "/b/a").ok());
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const auto clone = fs.Clone()->Clone();
    clone->Crash(seed, CrashMode::kSubset);
    const bool moved = clone->Exists("/b").value();
    EXPECT_EQ(Content(clone.get(), moved ? "/b/file" : "/a/b/file"), "hello") << "seed " << seed;
  }
}

TEST(SimPowerCut, ASyncedRenameTakesAlongWhatItBuildsOn) {
  SimFileSystem fs;
  ASSERT_TRUE(fs.CreateDirectory("/d").ok());
  ASSERT_TRUE(fs.SyncDirectory("/").ok());
  ASSERT_TRUE(Create(&fs, "/a", "hello")->Sync().ok());
  ASSERT_TRUE(fs.Rename("/a", "/d/b").ok());
  ASSERT_TRUE(fs.SyncDirectory("/d").ok());
  for (const CrashMode mode : {CrashMode::kNone, CrashMode::kAll}) {
    const auto clone = fs.Clone();
    clone->Crash(1, mode);
    EXPECT_EQ(Content(clone.get(), "/d/b"), "hello");
    EXPECT_EQ(List(clone.get()), Names{"d"});
  }
}

TEST(SimPowerCut, EveryFileDrawsItsOwn) {
  SimFileSystem fs;
  const auto a = CreateDurable(&fs, "/a", "1");
  const auto b = CreateDurable(&fs, "/b", "1");
  ASSERT_TRUE(a->WriteAt(0, "2").ok());
  ASSERT_TRUE(b->WriteAt(0, "2").ok());
  bool differ = false;
  for (uint64_t seed = 0; seed < 50 && !differ; ++seed) {
    const auto clone = fs.Clone();
    clone->Crash(seed);
    differ = Content(clone.get(), "/a") != Content(clone.get(), "/b");
  }
  EXPECT_TRUE(differ);
}

TEST(SimPowerCut, TheSameSeedLeavesTheSame) {
  SimFileSystem fs;
  for (int i = 0; i < 10; ++i) {
    const auto file = Create(&fs, JoinPath("/", std::to_string(i)), std::string(3000, 'a'));
    ASSERT_TRUE(file->Sync().ok());
    for (uint64_t k = 0; k < 10; ++k) {
      ASSERT_TRUE(file->WriteAt(k * 500, std::string(700, 'b')).ok());
    }
  }
  const auto left = [&](uint64_t seed) {
    const auto clone = fs.Clone();
    clone->Crash(seed);
    std::string all;
    for (const std::string& name : List(clone.get()))
      all += name + Content(clone.get(), JoinPath("/", name));
    return all;
  };
  bool differ = false;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_EQ(left(seed), left(seed)) << "seed " << seed;
    differ |= left(seed) != left(seed + 1);
  }
  EXPECT_TRUE(differ);
}

TEST(SimPowerCut, ASecondOneTakesNothingMore) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SimFileSystem fs;
    const auto file = Create(&fs, "/a", std::string(5000, 'a'));
    Create(&fs, "/b");
    fs.Crash(seed);
    const Names names = List(&fs);
    const std::string content = fs.Exists("/a").value() ? Content(&fs, "/a") : "";
    fs.Crash(seed + 1, CrashMode::kNone);
    EXPECT_EQ(List(&fs), names);
    EXPECT_EQ(fs.Exists("/a").value() ? Content(&fs, "/a") : "", content);
  }
}

TEST(SimPowerCut, OpenFilesAreDeadAndChangeNothing) {
  SimFileSystem fs;
  const auto file = CreateDurable(&fs, "/a", "hello");
  const auto mapping = file->Map(5).value();
  fs.Crash(1);
  char out[5];
  EXPECT_EQ(file->ReadAt(0, out).status().code(), StatusCode::kIoError);
  EXPECT_EQ(file->WriteAt(0, "x").code(), StatusCode::kIoError);
  EXPECT_EQ(file->Sync().code(), StatusCode::kIoError);
  EXPECT_EQ(file->Truncate(0).code(), StatusCode::kIoError);
  EXPECT_EQ(file->Allocate(9).code(), StatusCode::kIoError);
  EXPECT_EQ(file->Size().status().code(), StatusCode::kIoError);
  EXPECT_EQ(file->Map(1).status().code(), StatusCode::kIoError);
  EXPECT_EQ(Content(&fs, "/a"), "hello");
  ASSERT_TRUE(fs.Open("/a", OpenMode::kReadWrite).value()->WriteAt(0, "j").ok());
  EXPECT_EQ(Content(&fs, "/a"), "jello");
  EXPECT_EQ(mapping->bytes(), "hello");
}

TEST(SimPowerCut, ADeadFilesSyncDoesNotAbandonNewBytes) {
  SimFileSystem fs;
  const auto dead = CreateDurable(&fs, "/a", "hello");
  fs.Crash(1);
  const auto file = fs.Open("/a", OpenMode::kReadWrite).value();
  ASSERT_TRUE(file->WriteAt(0, "j").ok());
  EXPECT_FALSE(dead->Sync().ok());
  ASSERT_TRUE(file->Sync().ok());
  fs.Crash(2, CrashMode::kNone);
  EXPECT_EQ(Content(&fs, "/a"), "jello");
}

TEST(SimPowerCut, LocksAreGoneAndOldOnesReleaseNothing) {
  SimFileSystem fs;
  auto old = fs.Lock("/LOCK").value();
  ASSERT_TRUE(fs.SyncDirectory("/").ok());
  fs.Crash(1);
  const auto lock = fs.Lock("/LOCK");
  ASSERT_TRUE(lock.has_value());
  old.reset();
  EXPECT_EQ(fs.Lock("/LOCK").status().code(), StatusCode::kBusy);
}

TEST(SimPowerCut, AClonesCutLeavesTheOriginalAlone) {
  SimFileSystem fs;
  const auto file = CreateDurable(&fs, "/a", "hello");
  ASSERT_TRUE(file->WriteAt(0, "jelly").ok());
  const auto lock = fs.Lock("/LOCK").value();
  const auto clone = fs.Clone();
  EXPECT_EQ(Content(clone.get(), "/a"), "jelly");
  EXPECT_TRUE(clone->Lock("/LOCK").has_value());
  clone->Crash(1, CrashMode::kNone);
  EXPECT_EQ(Content(clone.get(), "/a"), "hello");
  EXPECT_TRUE(file->Sync().ok());
  EXPECT_EQ(Content(&fs, "/a"), "jelly");
}

TEST(SimPowerCut, AFailedSyncIsNotMadeGoodByALaterOne) {
  SimFileSystem fs;
  const auto file = CreateDurable(&fs, "/a", "aaaa");
  ASSERT_TRUE(file->WriteAt(0, "b").ok());
  fs.SetFault({.at_call = 1, .error = EIO, .matches = Only("sync")});
  EXPECT_EQ(file->Sync().code(), StatusCode::kIoError);
  EXPECT_TRUE(fs.FaultHappened());
  fs.ClearFault();
  EXPECT_EQ(Content(&fs, "/a"), "baaa");
  ASSERT_TRUE(file->WriteAt(3, "c").ok());
  ASSERT_TRUE(file->Sync().ok());
  fs.Crash(1, CrashMode::kNone);
  EXPECT_EQ(Content(&fs, "/a"), "aaac");
}

TEST(SimPowerCut, AnInterruptedSyncIsRetriedAndCounts) {
  SimFileSystem fs;
  const auto file = CreateDurable(&fs, "/a", "aaaa");
  ASSERT_TRUE(file->WriteAt(0, "b").ok());
  fs.SetFault({.at_call = 1, .error = EINTR, .matches = Only("sync")});
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_TRUE(fs.FaultHappened());
  fs.Crash(1, CrashMode::kNone);
  EXPECT_EQ(Content(&fs, "/a"), "baaa");
}

TEST(SimFault, HappensAtItsCallOnceOrFromThereOn) {
  for (const bool sticky : {false, true}) {
    SimFileSystem fs;
    const auto file = Create(&fs, "/a");
    fs.SetFault({.at_call = 3, .error = ENOSPC, .sticky = sticky});
    std::string outcome;
    for (uint64_t i = 0; i < 5; ++i) {
      outcome += file->WriteAt(i, "x").code() == StatusCode::kResourceExhausted ? '!' : '.';
    }
    EXPECT_EQ(outcome, sticky ? "..!!!" : "..!..");
    EXPECT_EQ(fs.FaultHappened(), true);
    fs.ClearFault();
    EXPECT_TRUE(file->WriteAt(0, "x").ok());
  }
}

TEST(SimFault, CountsOnlyTheCallsToWhichItCanHappen) {
  SimFileSystem fs;
  const auto file = Create(&fs, "/a");
  fs.SetFault({.at_call = 2,
               .error = EIO,
               .matches = [](std::string_view operation, std::string_view path) {
                 return operation == "write" && path == "/a";
               }});
  const auto other = Create(&fs, "/b", "x");
  EXPECT_TRUE(file->WriteAt(0, "x").ok());
  EXPECT_TRUE(file->Sync().ok());
  EXPECT_TRUE(other->WriteAt(0, "y").ok());
  EXPECT_FALSE(fs.FaultHappened());
  const Status status = file->WriteAt(7, "xyz");
  EXPECT_EQ(
      status.ToString(),
      "IoError: /a: cannot write 3 bytes at 7: Input/output error; the device failed; look at "
      "the kernel's log");
  EXPECT_EQ(file->Size().value(), 1u) << "a failed write writes nothing";
}

TEST(SimFault, EveryCallCanFailAndDoesNothingThen) {
  SimFileSystem fs;
  ASSERT_TRUE(fs.CreateDirectory("/d").ok());
  const auto file = Create(&fs, "/a", "hello");
  const auto fails = [&](const std::string& operation, const auto& call) {
    fs.SetFault({.at_call = 1, .error = EIO, .sticky = true, .matches = Only(operation)});
    const Status status = call();
    EXPECT_EQ(status.code(), StatusCode::kIoError) << operation;
    EXPECT_NE(status.message().find('/'), std::string_view::npos) << operation;
    EXPECT_TRUE(fs.FaultHappened()) << operation;
    fs.ClearFault();
  };
  char out[1];
  fails("open", [&] { return fs.Open("/b", OpenMode::kCreate).status(); });
  fails("open", [&] { return fs.Open("/a", OpenMode::kRead).status(); });
  fails("read", [&] { return file->ReadAt(0, out).status(); });
  fails("write", [&] { return file->WriteAt(0, "x"); });
  fails("sync", [&] { return file->Sync(); });
  fails("truncate", [&] { return file->Truncate(0); });
  fails("allocate", [&] { return file->Allocate(100); });
  fails("size", [&] { return file->Size().status(); });
  fails("map", [&] { return file->Map(1).status(); });
  fails("mkdir", [&] { return fs.CreateDirectory("/e"); });
  fails("list", [&] { return fs.List("/").status(); });
  fails("rename", [&] { return fs.Rename("/a", "/c"); });
  fails("remove", [&] { return fs.RemoveFile("/a"); });
  fails("rmdir", [&] { return fs.RemoveDirectory("/d"); });
  fails("syncdir", [&] { return fs.SyncDirectory("/"); });
  fails("stat", [&] { return fs.Exists("/a").status(); });
  fails("stat", [&] { return fs.FileSize("/a").status(); });
  fails("lock", [&] { return fs.Lock("/LOCK").status(); });
  EXPECT_EQ(List(&fs), (Names{"a", "d"}));
  EXPECT_EQ(Content(&fs, "/a"), "hello");
  fs.Crash(1, CrashMode::kNone);
  EXPECT_EQ(List(&fs), Names{}) << "the failed sync of the directory counted";
}

TEST(SimFault, AnInterruptedCallIsRetriedButNotForEver) {
  SimFileSystem fs;
  const auto file = Create(&fs, "/a", "hello");
  char out[5];
  fs.SetFault({.at_call = 1, .error = EINTR});
  EXPECT_TRUE(file->ReadExactAt(0, out).ok());
  EXPECT_TRUE(fs.FaultHappened());
  fs.SetFault({.at_call = 1, .error = EINTR});
  EXPECT_TRUE(fs.RemoveFile("/a").ok());
  EXPECT_TRUE(fs.FaultHappened());
  fs.SetFault({.at_call = 1, .error = EINTR, .sticky = true});
  fs.ResetCalls();
  const Status status = file->WriteAt(0, "x");
  EXPECT_EQ(status.code(), StatusCode::kIoError);
  EXPECT_NE(status.message().find("interrupted 1000 times in a row"), std::string_view::npos)
      << status.ToString();
  EXPECT_EQ(fs.calls(), 1000u);
}

TEST(SimFault, ShortReadsAndWritesAreFinished) {
  SimFileSystem fs;
  const auto file = Create(&fs, "/a");
  std::string expected;
  for (int i = 0; i < 300; ++i) expected += static_cast<char>('a' + i % 26);
  fs.SetFault({.kind = Fault::Kind::kShortWrite, .at_call = 1, .sticky = true});
  fs.ResetCalls();
  const std::string_view all = expected;
  const std::vector<std::string_view> pieces{all.substr(0, 7), "", all.substr(7, 200), "",
                                             all.substr(207)};
  ASSERT_TRUE(file->WritePiecesAt(0, pieces).ok());
  EXPECT_GT(fs.calls(), 5u);
  EXPECT_EQ(Content(&fs, "/a"), expected);
  fs.SetFault({.kind = Fault::Kind::kShortRead, .at_call = 1, .sticky = true});
  fs.ResetCalls();
  std::string out(300, '?');
  ASSERT_TRUE(file->ReadExactAt(0, out).ok());
  EXPECT_GT(fs.calls(), 5u);
  EXPECT_EQ(out, expected);
}

TEST(SimFault, AnErrorAfterAShortWriteLeavesAPart) {
  SimFileSystem fs;
  const auto file = Create(&fs, "/a");
  fs.ResetCalls();
  fs.SetFault({.kind = Fault::Kind::kShortWrite, .at_call = 1});
  fs.SetObserver([&](uint64_t call, std::string_view, std::string_view) {
    if (call == 2) fs.SetFault({.at_call = 1, .error = ENOSPC});
  });
  const Status status = file->WriteAt(0, "abcdefgh");
  fs.SetObserver({});
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("cannot write 4 bytes at 4"), std::string_view::npos)
      << status.ToString();
  EXPECT_EQ(Content(&fs, "/a"), "abcd");
}

TEST(SimCapacity, WritesAndAllocationsBeyondItFindNoSpace) {
  SimFileSystem fs;
  const auto file = Create(&fs, "/a", "hello");
  fs.SetCapacity(10);
  EXPECT_EQ(fs.BytesUsed(), 5u);
  EXPECT_EQ(fs.FreeBytes("/"), 5u);
  EXPECT_EQ(file->Allocate(11).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(fs.FreeBytes("/"), 0u) << "what fits is taken, as ext4 does";
  ASSERT_TRUE(file->Truncate(5).ok());
  const Status status = file->WriteAt(3, "0123456789");
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(Content(&fs, "/a"), "hel0123456") << "what fits is written, as disks do";
  EXPECT_TRUE(file->WriteAt(0, "HELLO").ok()) << "no growth, no need";
  const auto other = fs.Open("/b", OpenMode::kCreate).value();
  EXPECT_EQ(other->WriteAt(0, "x").code(), StatusCode::kResourceExhausted);
  ASSERT_TRUE(fs.RemoveFile("/a").ok());
  EXPECT_TRUE(other->WriteAt(0, "x").ok());
  EXPECT_TRUE(other->Allocate(10).ok());
  EXPECT_EQ(other->WriteAt(10, "x").code(), StatusCode::kResourceExhausted);
  fs.SetCapacity(0);
  EXPECT_EQ(fs.FreeBytes("/"), std::nullopt);
  EXPECT_TRUE(other->WriteAt(10, "x").ok());
}

TEST(SimCapacity, WhatCannotAllocateDoesNothing) {
  SimFileSystem fs;
  const auto file = Create(&fs, "/a", "hello");
  fs.SetCanAllocate(false);
  fs.SetCapacity(10);
  EXPECT_TRUE(file->Allocate(11).ok());
  EXPECT_EQ(file->Size().value(), 5u);
}

TEST(SimCapacity, APreallocatedFileCostsNoMemory) {
  SimFileSystem fs;
  const auto file = Create(&fs, "/a");
  ASSERT_TRUE(file->Allocate(uint64_t{1} << 39).ok());
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_EQ(fs.BytesUsed(), uint64_t{1} << 39);
  char out[3] = {'x', 'x', 'x'};
  ASSERT_TRUE(file->ReadExactAt((uint64_t{1} << 39) - 3, out).ok());
  EXPECT_EQ(std::string_view(out, 3), std::string_view("\0\0\0", 3));
  EXPECT_EQ(file->WriteAt(uint64_t{1} << 41, "x").code(), StatusCode::kIoError);
}

TEST(SimObserver, SeesEveryCallBeforeItHappens) {
  SimFileSystem fs;
  std::vector<std::string> seen;
  fs.SetObserver([&](uint64_t call, std::string_view operation, std::string_view path) {
    seen.push_back(std::to_string(call) + " " + std::string(operation) + " " + std::string(path));
  });
  ASSERT_TRUE(ReplaceFile(&fs, "/a", "x").ok());
  fs.SetObserver({});
  EXPECT_EQ(seen, (Names{"1 remove /a.tmp", "2 open /a.tmp", "3 write /a.tmp", "4 sync /a.tmp",
                         "5 rename /a.tmp", "6 syncdir /"}));
  EXPECT_EQ(fs.calls(), 6u);
  fs.ResetCalls();
  EXPECT_EQ(fs.calls(), 0u);
}

TEST(SimObserver, MayCutThePowerUnderACall) {
  SimFileSystem fs;
  const auto file = CreateDurable(&fs, "/a", "hello");
  fs.SetObserver([&](uint64_t, std::string_view operation, std::string_view) {
    if (operation == "write" || operation == "remove") fs.Crash(1, CrashMode::kNone);
  });
  EXPECT_EQ(file->WriteAt(0, "x").code(), StatusCode::kIoError);
  EXPECT_EQ(fs.RemoveFile("/a").code(), StatusCode::kIoError);
  fs.SetObserver({});
  EXPECT_EQ(Content(&fs, "/a"), "hello");
}

TEST(SimFileSystem, FlipsABitForGood) {
  SimFileSystem fs;
  CreateDurable(&fs, "/a", "hello");
  ASSERT_TRUE(fs.FlipBit("/a", 8 * 1 + 2).ok());
  EXPECT_EQ(Content(&fs, "/a"), "hallo");
  fs.Crash(1, CrashMode::kNone);
  EXPECT_EQ(Content(&fs, "/a"), "hallo");
  EXPECT_EQ(fs.FlipBit("/a", 40).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(fs.FlipBit("/b", 0).code(), StatusCode::kNotFound);
}

TEST(SimFileSystem, PathsAreTakenFromTheRoot) {
  SimFileSystem fs;
  ASSERT_TRUE(fs.CreateDirectory("d").ok());
  Create(&fs, "./d//a", "hello");
  EXPECT_EQ(Content(&fs, "/d/../d/./a"), "hello");
  EXPECT_TRUE(fs.IsDirectory("/").value());
  EXPECT_EQ(fs.CreateDirectory("/").code(), StatusCode::kAlreadyExists);
  EXPECT_FALSE(fs.RemoveDirectory("/").ok());
  EXPECT_FALSE(fs.RemoveFile("/").ok());
}

TEST(SimFileSystem, FilesOutliveIt) {
  auto fs = std::make_unique<SimFileSystem>();
  const auto file = Create(fs.get(), "/a", "hello");
  const auto mapping = file->Map(5).value();
  const auto lock = fs->Lock("/LOCK").value();
  fs.reset();
  char out[5];
  EXPECT_TRUE(file->ReadExactAt(0, out).ok());
  EXPECT_EQ(mapping->bytes(), "hello");
}

TEST(SimFileSystem, ThreadsMayWriteCloneAndCutAtOnce) {
  SimFileSystem fs;
  ASSERT_TRUE(fs.CreateDirectory("/d").ok());
  ASSERT_TRUE(fs.SyncDirectory("/").ok());
  std::atomic<int> running{3};
  std::latch start{4};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      start.arrive_and_wait();
      for (int round = 0; round < 100; ++round) {
        const std::string path = "/d/" + std::to_string(t) + "." + std::to_string(round);
        auto file = fs.Open(path, OpenMode::kCreate);
        if (!file.has_value()) continue;
        for (uint64_t i = 0; i < 10; ++i) {
          if (!(*file)->WriteAt(i * 100, std::string(100, 'x')).ok()) break;
          if (i == 5 && !(*file)->Sync().ok()) break;
          const auto mapping = (*file)->Map(i * 100);
          if (mapping.has_value()) {
            EXPECT_EQ((*mapping)->bytes().find('y'), std::string_view::npos);
          }
        }
        static_cast<void>(fs.SyncDirectory("/d"));
      }
      --running;
    });
  }
  start.arrive_and_wait();
  uint64_t seed = 0;
  do {
    const auto clone = fs.Clone();
    clone->Crash(seed);
    for (const std::string& name : List(clone.get(), "/d")) {
      EXPECT_LE(clone->FileSize("/d/" + name).value(), 1000u);
    }
    if (++seed % 16 == 0) fs.Crash(seed);
  } while (running > 0);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace basalt::io

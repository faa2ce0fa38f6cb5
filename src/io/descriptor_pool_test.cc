#include "io/descriptor_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "base/test_fork.h"
#include "io/sim_file_system.h"

namespace basalt::io {
namespace {

/// Files "/0", "/1" .., each of which holds its own name.
class PooledFiles : public testing::Test {
 protected:
  explicit PooledFiles(int count = 8) {
    for (int i = 0; i < count; ++i) {
      auto file = fs_.Open(PathOf(i), OpenMode::kCreate).value();
      EXPECT_TRUE(file->WriteAt(0, PathOf(i)).ok());
    }
    fs_.SetObserver([this](uint64_t, std::string_view operation, std::string_view path) {
      if (operation == "open") opened_.emplace_back(path);
    });
  }

  static std::string PathOf(int i) { return "/" + std::to_string(i); }

  static std::string Read(const File& file) {
    std::string bytes(file.path().size(), '\0');
    const Status read = file.ReadExactAt(0, bytes);
    return read.ok() ? bytes : read.ToString();
  }
  /// Which files the reads of these open.
  std::vector<std::string> OpenedByReads(const std::vector<const File*>& files) {
    opened_.clear();
    for (const File* const file : files) EXPECT_EQ(Read(*file), file->path());
    return opened_;
  }

  SimFileSystem fs_{SimFileSystem::Durability::kIgnored};
  std::vector<std::string> opened_;
};

TEST_F(PooledFiles, AreReadThroughNoMoreDescriptorsThanTheCapacity) {
  DescriptorPool pool(3);
  std::vector<std::unique_ptr<File>> files;
  for (int i = 0; i < 8; ++i) files.push_back(pool.Open(&fs_, PathOf(i)).value());
  for (int round = 0; round < 3; ++round) {
    for (const auto& file : files) {
      EXPECT_EQ(Read(*file), file->path());
      EXPECT_EQ(file->Size().value(), 2U);
      EXPECT_LE(pool.open_files(), 3U);
    }
  }
  files.clear();
  EXPECT_EQ(pool.open_files(), 0U);
}

TEST_F(PooledFiles, StayOpenWhileThereIsRoom) {
  DescriptorPool pool(8);
  std::vector<std::unique_ptr<File>> files;
  for (int i = 0; i < 8; ++i) files.push_back(pool.Open(&fs_, PathOf(i)).value());
  opened_.clear();
  for (const auto& file : files) EXPECT_EQ(Read(*file), file->path());
  EXPECT_TRUE(opened_.empty());
}

TEST_F(PooledFiles, AreClosedBeforeThoseThatWereReadSince) {
  DescriptorPool pool(3);
  const auto zero = pool.Open(&fs_, "/0").value();
  const auto one = pool.Open(&fs_, "/1").value();
  const auto two = pool.Open(&fs_, "/2").value();
  EXPECT_TRUE(OpenedByReads({zero.get(), two.get()}).empty());
  const auto three = pool.Open(&fs_, "/3").value();
  EXPECT_TRUE(OpenedByReads({zero.get(), two.get()}).empty());
  EXPECT_EQ(OpenedByReads({one.get()}), std::vector<std::string>{"/1"});
}

TEST_F(PooledFiles, ThatMayNotBeFoundAgainAreClosedLast) {
  DescriptorPool pool(3);
  const auto kept = pool.Open(&fs_, "/0", DescriptorPool::Closing::kLast).value();
  std::vector<std::unique_ptr<File>> others;
  for (int i = 1; i < 8; ++i) {
    others.push_back(pool.Open(&fs_, PathOf(i)).value());
    EXPECT_EQ(Read(*others.back()), PathOf(i));
  }
  EXPECT_TRUE(OpenedByReads({kept.get()}).empty());
  while (pool.CloseOne()) continue;
  EXPECT_EQ(pool.open_files(), 0U);
  EXPECT_EQ(OpenedByReads({kept.get()}), std::vector<std::string>{"/0"});
}

TEST_F(PooledFiles, SayThatTheyWereRemovedWhileTheyWereClosed) {
  DescriptorPool pool(3);
  const auto file = pool.Open(&fs_, "/0").value();
  ASSERT_TRUE(fs_.RemoveFile("/0").ok());
  EXPECT_EQ(Read(*file), "/0") << "it is open";
  EXPECT_TRUE(pool.CloseOne());
  std::string bytes(2, '\0');
  const Status read = file->ReadExactAt(0, bytes);
  EXPECT_EQ(read.code(), StatusCode::kIoError);
  EXPECT_NE(read.message().find("it was removed meanwhile"), std::string::npos) << read.ToString();
  EXPECT_EQ(pool.Open(&fs_, "/0").status().code(), StatusCode::kNotFound);
}

TEST_F(PooledFiles, ThatCannotBeOpenedTakeNoPlace) {
  DescriptorPool pool(3);
  const auto file = pool.Open(&fs_, "/0").value();
  EXPECT_TRUE(pool.CloseOne());
  EXPECT_FALSE(pool.CloseOne());
  fs_.SetFault({.at_call = 1, .error = EMFILE, .sticky = true, .matches = {}});
  for (int i = 0; i < 10; ++i) {
    std::string bytes(2, '\0');
    EXPECT_EQ(file->ReadExactAt(0, bytes).code(), StatusCode::kResourceExhausted);
    EXPECT_EQ(pool.Open(&fs_, "/1").status().code(), StatusCode::kResourceExhausted);
  }
  EXPECT_EQ(pool.open_files(), 0U);
  fs_.SetFault({.at_call = 1, .error = EINTR, .matches = {}});
  EXPECT_EQ(Read(*file), "/0") << "interrupted once";
}

TEST_F(PooledFiles, AreReadByManyThreadsThroughFewDescriptors) {
  fs_.SetObserver({});
  DescriptorPool pool(2);
  std::vector<std::unique_ptr<File>> files;
  for (int i = 0; i < 8; ++i) files.push_back(pool.Open(&fs_, PathOf(i)).value());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    threads.emplace_back([&, seed] {
      base::Random random(seed);
      for (int i = 0; i < 2'000; ++i) {
        const File& file = *files[random.Below(files.size())];
        if (Read(file) != file.path()) ++wrong;
        file.WillRead(0, 2);
        if (i % 100 == 0) pool.CloseOne();
        // One that comes and goes meanwhile.
        if (i % 50 == 0) {
          const auto own = pool.Open(&fs_, PathOf(static_cast<int>(random.Below(8))));
          if (!own || Read(**own) != (*own)->path()) ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(pool.open_files(), 8U);
  const auto last = pool.Open(&fs_, "/0");
  EXPECT_LE(pool.open_files(), 2U);
}

TEST_F(PooledFiles, MayBeDestroyedWhileThePoolClosesThem) {
  fs_.SetObserver({});
  DescriptorPool pool(4);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&, thread] {
      // The pool closes the oldest of these about when they are destroyed.
      std::vector<std::unique_ptr<File>> files(2);
      for (size_t i = 0; i < 3'000; ++i) {
        files[i % files.size()] = pool.Open(&fs_, PathOf(thread)).value();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool.open_files(), 0U);
}

/// Of a process that may have `limit` files open.
bool ReadsMoreFilesThanItMayHaveOpen(const std::string& directory, rlim_t limit) {
  const rlimit few{limit, limit};
  if (setrlimit(RLIMIT_NOFILE, &few) != 0 || DescriptorLimit() != limit) return false;
  FileSystem* const fs = FileSystem::Posix();
  std::vector<std::unique_ptr<File>> files;
  for (int i = 0; i < 200; ++i) {
    const std::string path = JoinPath(directory, std::to_string(i));
    auto made = fs->Open(path, OpenMode::kCreate);
    if (!made || !(*made)->WriteAt(0, path).ok()) return false;
    made->reset();
    auto file = DescriptorPool::Process()->Open(fs, path);
    if (!file) return false;
    files.push_back(std::move(*file));
  }
  // What the program itself has open leaves the pool less than its share.
  while (dup(0) >= 0) continue;
  for (const auto& file : files) {
    std::string bytes(file->path().size(), '\0');
    if (!file->ReadExactAt(0, bytes).ok() || bytes != file->path()) return false;
    if (!fs->SyncDirectory(directory).ok() || !fs->List(directory)) return false;
  }
  return DescriptorPool::Process()->open_files() <= limit / 2;
}

TEST(DescriptorPool, OfTheProcessStaysBelowItsLimit) {
  std::string directory = (std::filesystem::temp_directory_path() / "basalt-io-XXXXXX").string();
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  EXPECT_TRUE(base::TrueInChild([&] { return ReadsMoreFilesThanItMayHaveOpen(directory, 64); }));
  std::filesystem::remove_all(directory);
}

TEST(DescriptorLimit, IsRaisedToTheMostThatTheProcessMayAskFor) {
  EXPECT_TRUE(base::TrueInChild([] {
    const rlimit low{32, 100};
    if (setrlimit(RLIMIT_NOFILE, &low) != 0 || DescriptorLimit() != 32) return false;
    RaiseDescriptorLimit();
    return DescriptorLimit() == 100;
  }));
}

}  // namespace
}  // namespace basalt::io

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <new>
#include <string>

#include "base/out_of_memory.h"
#include "base/test_memory_operators.h"
#include "io/file_system.h"

// Calls of the machine's file system in which an allocation fails: they leave nothing behind.

namespace basalt::io {
namespace {

using base::EachAllocation;

class FileMemory : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = testing::TempDir() + "/file_memory_XXXXXX";
    ASSERT_NE(mkdtemp(directory_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  static auto Descriptors() {
    const std::filesystem::directory_iterator open("/proc/self/fd");
    return std::distance(begin(open), end(open));
  }
  /// Fails each allocation of `call`, which gives a Result.
  template <class Call, class Check>
  void Sweep(const Call& call, const Check& check) {
    const auto descriptors = Descriptors();
    EachAllocation each;
    while (each.Next()) {
      SCOPED_TRACE(each.ToString());
      const auto result = each.Call([&] { return base::OrOutOfMemory(call); });
      ASSERT_EQ(result.has_value(), !each.has_failed());
      if (result) return;
      ASSERT_EQ(Descriptors(), descriptors);
      check();
    }
  }

  std::string directory_;
  FileSystem* const fs_ = FileSystem::Posix();
};

TEST_F(FileMemory, ALockThatFindsNoMemoryIsNotTaken) {
  const std::string path = directory_ + "/the lock of a database in this directory";
  Sweep([&] { return fs_->Lock(path); },
        [&] { EXPECT_EQ(fs_->Lock(path).status().ToString(), "Ok"); });
}

TEST_F(FileMemory, AFileThatFindsNoMemoryIsNotMade) {
  const std::string path = directory_ + "/a table of a database in this directory";
  Sweep([&] { return fs_->Open(path, OpenMode::kCreate); },
        [&] { EXPECT_FALSE(fs_->Exists(path).value()); });
}

TEST_F(FileMemory, AMappingThatFindsNoMemoryIsNotMade) {
  const std::string name = std::filesystem::path(directory_).filename() / "mapped";
  auto file = fs_->Open(directory_ + "/mapped", OpenMode::kCreate).value();
  ASSERT_TRUE(file->WriteAt(0, std::string(4096, 'x')).ok());
  const auto is_mapped = [&] {
    std::ifstream maps("/proc/self/maps");
    const std::string text(std::istreambuf_iterator<char>(maps), {});
    return text.find(name) != std::string::npos;
  };
  const auto expect_none = [&] { EXPECT_FALSE(is_mapped()); };
  Sweep([&] { return file->Map(4096); }, expect_none);
  Sweep([&] { return file->MapForWriting(4096); }, expect_none);
  ASSERT_TRUE(file->Map(4096).has_value());
  expect_none();
}

TEST_F(FileMemory, AListThatFindsNoMemoryLeavesNoDirectoryOpen) {
  const std::string name = "a name that is longer than what a string holds in itself";
  ASSERT_TRUE(fs_->CreateDirectory(directory_ + "/" + name).ok());
  Sweep([&] { return fs_->List(directory_); }, [] {});
}

}  // namespace
}  // namespace basalt::io

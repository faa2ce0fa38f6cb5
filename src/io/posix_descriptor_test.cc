#include "io/posix_descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/test_fork.h"
#include "io/file_system.h"

namespace basalt::io {
namespace {

/// Whether a descriptor of 0 to 2 is an open file. Not "/", by which OpenDescriptor takes numbers
/// and which can be neither read nor written, and no pipe: a sanitizer makes some to learn whether
/// memory can be read.
bool StandardStreamIsAFile() {
  for (const char* const stream : {"/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2"}) {
    std::array<char, 256> target{};
    const ssize_t size = readlink(stream, target.data(), target.size());
    if (size < 0) continue;
    const std::string_view file(target.data(), static_cast<size_t>(size));
    if (file != "/" && !file.starts_with("pipe:")) return true;
  }
  return false;
}

void CloseStandardStreams() {
  for (int stream = 0; stream < 3; ++stream) close(stream);
}

TEST(OpenDescriptor, GivesNoNumberOfAClosedStandardStream) {
  for (int stream = 0; stream < 3; ++stream) {
    EXPECT_TRUE(base::TrueInChild([&] {
      close(stream);
      const int opened = OpenDescriptor("/dev/null", O_RDWR | O_CLOEXEC);
      return opened >= 3 && fcntl(stream, F_GETFD) < 0 &&
             (fcntl(opened, F_GETFD) & FD_CLOEXEC) != 0;
    })) << stream;
  }
  EXPECT_TRUE(base::TrueInChild([] {
    CloseStandardStreams();
    const int opened = OpenDescriptor("/dev/null", O_RDWR);
    return opened >= 3 && fcntl(0, F_GETFD) < 0 && fcntl(1, F_GETFD) < 0 && fcntl(2, F_GETFD) < 0;
  }));
}

TEST(OpenDescriptor, SaysWhyItFailed) {
  errno = 0;
  EXPECT_EQ(OpenDescriptor("/no such file", O_RDONLY), -1);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_TRUE(base::TrueInChild([] {
    CloseStandardStreams();
    return OpenDescriptor("/no such file", O_RDONLY) == -1 && errno == ENOENT;
  }));
}

/// Opens until the process may have no more. Gives how many that were.
int TakeAllDescriptors() {
  int taken = 0;
  while (dup(0) >= 0) ++taken;
  return taken;
}

TEST(SpareDescriptors, AreThereWhereTheProgramHasTakenAllOthers) {
  EXPECT_TRUE(base::TrueInChild([] {
    const rlimit few{64, 64};
    if (setrlimit(RLIMIT_NOFILE, &few) != 0) return false;
    const SpareDescriptors spare;
    TakeAllDescriptors();
    for (int round = 0; round < 3; ++round) {
      std::vector<int> opened;
      for (size_t i = 0; i < kSpareDescriptors; ++i) {
        opened.push_back(OpenDescriptor("/dev/null", O_RDONLY | O_CLOEXEC));
        if (opened.back() < 0) return false;
      }
      if (OpenDescriptor("/dev/null", O_RDONLY) >= 0 || errno != EMFILE) return false;
      for (const int descriptor : opened) CloseDescriptor(descriptor);
      // They are kept back again, not given to whoever comes first.
      if (TakeAllDescriptors() != 0) return false;
    }
    return true;
  }));
}

TEST(SpareDescriptors, GoWithTheLastThatWantsThem) {
  EXPECT_TRUE(base::TrueInChild([] {
    const rlimit few{64, 64};
    if (setrlimit(RLIMIT_NOFILE, &few) != 0) return false;
    auto first = std::make_unique<SpareDescriptors>();
    auto second = std::make_unique<SpareDescriptors>();
    TakeAllDescriptors();
    first.reset();
    if (TakeAllDescriptors() != 0) return false;
    second.reset();
    return TakeAllDescriptors() > static_cast<int>(kSpareDescriptors);
  }));
}

TEST(PosixFileSystem, NeverOpensAnythingUnderTheNumberOfAStandardStream) {
  std::string directory = (std::filesystem::temp_directory_path() / "basalt-io-XXXXXX").string();
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  const auto uses_all_calls = [&] {
    CloseStandardStreams();
    std::atomic<bool> ended{false};
    std::atomic<bool> seen{false};
    std::thread watcher([&] {
      while (!ended) seen = seen || StandardStreamIsAFile();
    });
    FileSystem* const fs = FileSystem::Posix();
    bool ok = true;
    for (int round = 0; round < 300; ++round) {
      const std::string path = JoinPath(directory, std::to_string(round));
      auto lock = fs->Lock(JoinPath(directory, "LOCK"));
      auto file = fs->Open(path, OpenMode::kCreate);
      ok = ok && lock && file && (*file)->WriteAt(0, "bytes").ok() && (*file)->Map(5);
      const auto second = fs->Open(path, OpenMode::kRead);
      ok = ok && second && (*second)->MarkInUse().ok() && (*file)->IsInUse().value_or(false);
      ok = ok && fs->List(directory) && fs->Exists(path) && fs->Resolve(path);
      ok = ok && fs->SyncDirectory(directory).ok() && fs->RemoveFile(path).ok();
      ok = ok && !StandardStreamIsAFile();
    }
    ended = true;
    watcher.join();
    return ok && !seen;
  };
  EXPECT_TRUE(base::TrueInChild(uses_all_calls));
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace basalt::io

#include "io/posix_file_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "io/file_system.h"

namespace basalt::io {
namespace {

/// A child process that runs `body`, answers with what that gives, and then lives until it is
/// killed.
class Child {
 public:
  explicit Child(const std::function<std::string()>& body) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    pid_ = fork();
    if (pid_ == 0) {
      const std::string answer = body() + "\n";
      if (write(ends[1], answer.data(), answer.size()) < 0) _exit(1);
      while (true) pause();
    }
    close(ends[1]);
    char byte = 0;
    while (read(ends[0], &byte, 1) == 1 && byte != '\n') answer_ += byte;
    close(ends[0]);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { Kill(); }

  pid_t pid() const { return pid_; }
  const std::string& answer() const { return answer_; }
  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
  std::string answer_;
};

class PosixFileLock : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "basalt-lock-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    path_ = directory_ + "/LOCK";
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  Result<std::unique_ptr<FileLock>> Lock() const { return FileSystem::Posix()->Lock(path_); }
  std::string TryInChild() const {
    return Child([this] { return Lock().status().ToString(); }).answer();
  }

  std::string directory_;
  std::string path_;
};

TEST_F(PosixFileLock, AnotherProcessIsToldWhoHoldsIt) {
  const auto lock = Lock().value();
  const std::string answer = TryInChild();
  char host[256] = {};
  ASSERT_EQ(gethostname(host, sizeof host - 1), 0);
  EXPECT_TRUE(answer.starts_with("Busy (Locked): " + directory_ + " is in use by process " +
                                 std::to_string(getpid()) + " (" + program_invocation_short_name +
                                 ", since 20"))
      << answer;
  EXPECT_TRUE(answer.ends_with(std::string("Z, on host ") + host +
                               "); close it there, or use another path"))
      << answer;
}

TEST_F(PosixFileLock, TheFileSaysWhoHoldsIt) {
  const auto lock = Lock().value();
  const std::string text = ReadWholeFile(FileSystem::Posix(), path_, 4096).value();
  EXPECT_TRUE(text.starts_with("pid " + std::to_string(getpid()) + "\nstarted 20")) << text;
  EXPECT_NE(text.find("\nhost "), text.npos) << text;
  EXPECT_NE(text.find("\nprogram "), text.npos) << text;
}

TEST_F(PosixFileLock, TellsOthersTheUrlOfItsHolder) {
  EXPECT_EQ(SetPosixLockUrl(path_, "redis://127.0.0.1:6379"), ENOENT);
  auto lock = Lock().value();
  const std::string before = ReadWholeFile(FileSystem::Posix(), path_, 4096).value();
  for (const std::string url : {"redis://127.0.0.1:6379", "unix:///a/b"}) {
    ASSERT_EQ(SetPosixLockUrl(path_, url), 0);
    const std::string answer = TryInChild();
    EXPECT_TRUE(answer.ends_with("), which serves it at " + url +
                                 "; connect to that URL; close it there, or use another path"))
        << answer;
  }
  EXPECT_EQ(SetPosixLockUrl(path_, std::string(600, 'x')), EINVAL);
  EXPECT_EQ(SetPosixLockUrl(path_, "unix:///a\npid 1"), EINVAL);
  EXPECT_EQ(SetPosixLockUrl(path_, ""), 0);
  EXPECT_EQ(ReadWholeFile(FileSystem::Posix(), path_, 4096).value(), before);
  ASSERT_EQ(SetPosixLockUrl(path_, "unix:///a/b"), 0);
  lock.reset();
  EXPECT_EQ(ReadWholeFile(FileSystem::Posix(), path_, 4096).value(), "");
  EXPECT_EQ(SetPosixLockUrl(path_, "unix:///a/b"), ENOENT);
}

TEST_F(PosixFileLock, AHolderWithoutTextIsAnotherProcess) {
  const auto lock = Lock().value();
  ASSERT_EQ(truncate(path_.c_str(), 0), 0);
  EXPECT_EQ(TryInChild(), "Busy (Locked): " + directory_ +
                              " is in use by another process; close it there, or use another path");
}

TEST_F(PosixFileLock, IsFreeOnceReleased) {
  Lock().value().reset();
  EXPECT_EQ(TryInChild(), "Ok");
}

TEST_F(PosixFileLock, IsSeenThroughAnotherNameOfTheSameFile) {
  const auto lock = Lock().value();
  std::filesystem::create_hard_link(path_, directory_ + "/other");
  EXPECT_EQ(FileSystem::Posix()->Lock(directory_ + "/other").status().code(), StatusCode::kBusy);
  EXPECT_EQ(FileSystem::Posix()
                ->Lock(directory_ + "/../" + std::filesystem::path(directory_).filename().string() +
                       "/LOCK")
                .status()
                .code(),
            StatusCode::kBusy);
}

TEST_F(PosixFileLock, OpeningAndClosingTheFileElsewhereDoesNotDropIt) {
  const auto lock = Lock().value();
  close(open(path_.c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_TRUE(TryInChild().starts_with("Busy (Locked): "));
}

TEST_F(PosixFileLock, DiesWithAKilledHolder) {
  Child holder([this] {
    // Never destroyed: the process is killed.
    static auto* const lock = new Result<std::unique_ptr<FileLock>>(Lock());
    return lock->status().ToString();
  });
  ASSERT_EQ(holder.answer(), "Ok");
  const Status refused = Lock().status();
  EXPECT_EQ(refused.code(), StatusCode::kBusy);
  EXPECT_NE(refused.message().find("process " + std::to_string(holder.pid())),
            std::string_view::npos)
      << refused.ToString();
  holder.Kill();
  const auto lock = Lock();
  EXPECT_TRUE(lock.has_value()) << lock.status().ToString();
  EXPECT_TRUE(TryInChild().find("process " + std::to_string(getpid())) != std::string::npos);
}

TEST_F(PosixFileLock, AForkedChildDoesNotKeepItAfterItsParentsDeath) {
  Child parent([this] {
    static auto* const lock = new Result<std::unique_ptr<FileLock>>(Lock());
    if (!lock->has_value()) return lock->status().ToString();
    // The grandchild answers, so that its fork handler has run by then.
    if (fork() != 0) {
      while (true) pause();
    }
    return std::to_string(getpid());
  });
  const auto grandchild = static_cast<pid_t>(std::atoi(parent.answer().c_str()));
  ASSERT_GT(grandchild, 0) << parent.answer();
  EXPECT_EQ(Lock().status().code(), StatusCode::kBusy);
  parent.Kill();
  ASSERT_EQ(kill(grandchild, 0), 0) << "the grandchild must still live for this to prove anything";
  EXPECT_TRUE(Lock().has_value());
  kill(grandchild, SIGKILL);
}

TEST_F(PosixFileLock, AChildThatDropsItsCopyReleasesNothing) {
  auto lock = Lock().value();
  const Child child([&] {
    // The number of the lock's descriptor, which the fork handler closed, is given out again.
    const int other = open("/dev/null", O_RDONLY | O_CLOEXEC);
    lock.reset();
    return std::string(fcntl(other, F_GETFD) >= 0 ? "open" : "closed");
  });
  EXPECT_EQ(child.answer(), "open");
  EXPECT_TRUE(TryInChild().starts_with("Busy (Locked): "));
}

TEST_F(PosixFileLock, AChildCanLockAnotherFile) {
  const auto lock = Lock().value();
  const Child child(
      [this] { return FileSystem::Posix()->Lock(directory_ + "/other").status().ToString(); });
  EXPECT_EQ(child.answer(), "Ok");
}

TEST_F(PosixFileLock, AFileThatItsHolderRemovedIsNotLocked) {
  Child remover([this] {
    std::thread([this] {
      for (;;) {
        const auto lock = Lock();
        if (lock) unlink(path_.c_str());
      }
    }).detach();
    return std::string();
  });
  // Whoever has the lock of a file without a name does not keep out the next one.
  int locked = 0;
  for (int attempt = 0; attempt < 100'000 && locked < 10'000; ++attempt) {
    const auto lock = Lock();
    if (!lock) continue;
    ++locked;
    ASSERT_EQ(Lock().status().code(), StatusCode::kBusy) << "after " << locked;
  }
  EXPECT_NE(locked, 0);
}

TEST_F(PosixFileLock, OneOfManyThreadsGetsIt) {
  std::atomic<int> holders{0};
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  std::vector<Result<std::unique_ptr<FileLock>>> locks(8);
  for (auto& lock : locks) {
    threads.emplace_back([&] {
      lock = Lock();
      ++(lock.has_value() ? holders : refused);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(holders, 1);
  EXPECT_EQ(refused, 7);
}

TEST_F(PosixFileLock, AReadOnlyDirectoryIsAClearError) {
  ASSERT_EQ(chmod(directory_.c_str(), 0555), 0);
  const Child child([this]() -> std::string {
    // Permissions mean nothing to root.
    if (geteuid() == 0 && setuid(65534) != 0) return "cannot leave root";
    return Lock().status().ToString();
  });
  ASSERT_EQ(chmod(directory_.c_str(), 0755), 0);
  EXPECT_EQ(
      child.answer(),
      "IoError: " + directory_ +
          ": no permission to write to it: Permission denied; run as the user who owns it, or "
          "let the owner grant write permission for it and its files");
}

TEST_F(PosixFileLock, AMarkIsSeenByOtherProcessesAndGoesWithItsOwn) {
  FileSystem* const fs = FileSystem::Posix();
  Child marking([&] {
    static std::unique_ptr<FileLock> mark;
    mark = fs->MarkDirectory(directory_).value();
    return std::string("marked");
  });
  EXPECT_TRUE(fs->IsMarked(directory_).value());
  marking.Kill();
  EXPECT_FALSE(fs->IsMarked(directory_).value());
}

TEST_F(PosixFileLock, AForkedChildKeepsNoMarkOfItsParent) {
  FileSystem* const fs = FileSystem::Posix();
  auto mark = fs->MarkDirectory(directory_).value();
  const Child child([] { return std::string("alive"); });
  EXPECT_TRUE(fs->IsMarked(directory_).value());
  mark.reset();
  EXPECT_FALSE(fs->IsMarked(directory_).value());
}

}  // namespace
}  // namespace basalt::io

#include "tools/basalt/demo_writer.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string_view>

#include "tools/basalt/text_format.h"

extern char** environ;

namespace basalt::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kWritingTime = std::chrono::seconds(1);
constexpr auto kStartTimeMax = std::chrono::seconds(20);
constexpr auto kWriterLifeMax = std::chrono::seconds(60);
constexpr std::string_view kCrashPrefix = "crash/";

std::string CrashValue(uint64_t number) {
  return "acknowledged write " + std::to_string(number) + " of the process that was killed";
}

Status Failed(const std::string& what, int error) {
  return {StatusCode::kIoError, what + ": " + std::strerror(error)};
}

/// A running writer and the pipe that its numbers come through. The destructor kills it and waits.
class WriterProcess {
 public:
  static Result<WriterProcess> Start(std::string path) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Failed("cannot make a pipe", errno);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    std::string program = "basalt";
    std::string verb = kDemoWriterVerb;
    std::string end_of_options = "--";
    std::array<char*, 5> arguments = {program.data(), verb.data(), end_of_options.data(),
                                      path.data(), nullptr};
    pid_t pid = 0;
    const int error =
        ::posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    if (error != 0) {
      ::close(ends[0]);
      return Failed("cannot start the writer process (/proc/self/exe)", error);
    }
    return WriterProcess(pid, ends[0]);
  }

  WriterProcess(WriterProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)), pipe_(std::exchange(other.pipe_, -1)) {}
  WriterProcess& operator=(WriterProcess&&) = delete;
  ~WriterProcess() {
    if (pid_ > 0) (void)KillAndWait();
    if (pipe_ >= 0) ::close(pipe_);
  }

  /// Takes in what the writer says until `deadline`. False: it says no more.
  Result<bool> ReadUntil(Clock::time_point deadline, bool stop_at_first) {
    while (true) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
      if (left <= 0) return true;
      pollfd ready{.fd = pipe_, .events = POLLIN, .revents = 0};
      const int polled = ::poll(&ready, 1, static_cast<int>(left));
      if (polled < 0 && errno != EINTR) return Failed("cannot wait for the writer process", errno);
      if (polled <= 0) continue;
      std::array<char, 65536> bytes{};
      const ssize_t got = ::read(pipe_, bytes.data(), bytes.size());
      if (got < 0 && errno != EINTR) return Failed("cannot read from the writer process", errno);
      if (got == 0) return false;
      if (got > 0) Take({bytes.data(), static_cast<size_t>(got)});
      if (stop_at_first && acknowledged_ > 0) return true;
    }
  }

  /// The wait status.
  int KillAndWait() {
    ::kill(pid_, SIGKILL);
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    return status;
  }

  /// The last whole number that the writer said.
  uint64_t acknowledged() const noexcept { return acknowledged_; }

 private:
  WriterProcess(pid_t pid, int pipe) : pid_(pid), pipe_(pipe) {}

  void Take(std::string_view bytes) {
    for (const char c : bytes) {
      if (c == '\n') {
        acknowledged_ = std::exchange(unfinished_, 0);
      } else {
        unfinished_ = unfinished_ * 10 + static_cast<uint64_t>(c - '0');
      }
    }
  }

  pid_t pid_;
  int pipe_;
  uint64_t acknowledged_ = 0;
  uint64_t unfinished_ = 0;
};

}  // namespace

std::string CrashKey(uint64_t number) {
  const std::string digits = std::to_string(number);
  return std::string(kCrashPrefix) + std::string(digits.size() < 9 ? 9 - digits.size() : 0, '0') +
         digits;
}

ExitCode DemoWriter(const DemoWriterOptions& options, Output& out) {
  const Result<std::unique_ptr<DB>> db = DB::Open(options.path, {.create_if_missing = false});
  if (!db) return Report(db.error());
  const Clock::time_point end = Clock::now() + kWriterLifeMax;
  for (uint64_t number = 1; Clock::now() < end; ++number) {
    const Status written = (*db)->Put(CrashKey(number), CrashValue(number),
                                      WriteOptions{.durability = Durability::kProcess});
    if (!written.ok()) return Report(written);
    if (!out.Write(std::to_string(number) + "\n")) return ExitCode::kOk;
    if (const Status said = out.Flush(); !said.ok()) return Report(said);
  }
  return ExitCode::kOk;
}

Result<uint64_t> KillWriter(const std::string& path) {
  Result<WriterProcess> writer = WriterProcess::Start(path);
  if (!writer) return writer.error();
  Result<bool> alive = writer->ReadUntil(Clock::now() + kStartTimeMax, /*stop_at_first=*/true);
  if (alive && *alive) alive = writer->ReadUntil(Clock::now() + kWritingTime, false);
  if (!alive) return alive.error();
  const int status = writer->KillAndWait();
  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL || writer->acknowledged() == 0) {
    return Status(StatusCode::kIoError, "the writer process ended before it could be killed");
  }
  // What it said before it died may still be in the pipe.
  alive = writer->ReadUntil(Clock::now() + kStartTimeMax, false);
  if (!alive) return alive.error();
  return writer->acknowledged();
}

Result<uint64_t> CountCrashKeys(const DB& db) {
  uint64_t count = 0;
  const std::unique_ptr<Iterator> it = db.NewIterator({.prefix = kCrashPrefix});
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    ++count;
    if (it->key() != CrashKey(count) || it->value() != CrashValue(count)) {
      return Status(StatusCode::kCorruption, "expected " + CrashKey(count) + ", found " +
                                                 ToText(it->key()) + " with value '" +
                                                 ToText(it->value()) + "'");
    }
  }
  if (!it->status().ok()) return it->status();
  return count;
}

}  // namespace basalt::tools

#include "tests/metamorphic/isolation.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

namespace basalt::metamorphic {
namespace {

constexpr std::chrono::seconds kTimeLimit{60};
constexpr size_t kOutputBytesMax = 16 << 10;
constexpr int kExitFailed = 1;

// The child's standard error is a pipe. Its last line is, for a failure that was found,
// "<marker><index of the operation> <problem>".
constexpr std::string_view kMarker = "\nfailure at ";

[[noreturn]] void Child(const OperationList& list, int output) {
  dup2(output, STDERR_FILENO);
  const std::optional<Failure> failure = Run(list);
  if (!failure) std::exit(0);
  const std::string text =
      std::string(kMarker) + std::to_string(failure->operation) + " " + failure->problem;
  for (size_t at = 0; at < text.size();) {
    const ssize_t written = write(output, text.data() + at, text.size() - at);
    if (written <= 0) break;
    at += static_cast<size_t>(written);
  }
  std::_Exit(kExitFailed);
}

struct ChildEnd {
  int status = 0;
  bool timed_out = false;
  std::string output;  ///< The last of it.
};

ChildEnd WaitFor(pid_t child, int output) {
  ChildEnd end;
  const auto deadline = std::chrono::steady_clock::now() + kTimeLimit;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd ready{output, POLLIN, 0};
    const int polled = left.count() <= 0 ? 0 : poll(&ready, 1, static_cast<int>(left.count()));
    if (polled == 0) {
      end.timed_out = true;
      kill(child, SIGKILL);
      break;
    }
    if (polled < 0) continue;  // EINTR
    std::array<char, 4096> buffer;
    const ssize_t bytes = read(output, buffer.data(), buffer.size());
    if (bytes <= 0) break;
    end.output.append(buffer.data(), static_cast<size_t>(bytes));
    if (end.output.size() > 2 * kOutputBytesMax) {
      end.output.erase(0, end.output.size() - kOutputBytesMax);
    }
  }
  while (waitpid(child, &end.status, 0) < 0 && errno == EINTR) continue;
  return end;
}

std::optional<Failure> ToFailure(const ChildEnd& end, size_t operations) {
  if (end.timed_out) {
    return Failure{operations, "it did not end within " + std::to_string(kTimeLimit.count()) +
                                   " seconds\n" + end.output};
  }
  if (WIFSIGNALED(end.status)) {
    const int signal = WTERMSIG(end.status);
    return Failure{operations, "ended by signal " + std::to_string(signal) + " (" +
                                   strsignal(signal) + ")\n" + end.output};
  }
  if (WEXITSTATUS(end.status) == 0) return std::nullopt;
  const size_t marker = end.output.rfind(kMarker);
  if (marker == std::string::npos) {
    return Failure{operations, "exited with status " + std::to_string(WEXITSTATUS(end.status)) +
                                   "\n" + end.output};
  }
  const std::string text = end.output.substr(marker + kMarker.size());
  Failure failure;
  const char* const last = text.data() + text.size();
  const char* const after = std::from_chars(text.data(), last, failure.operation).ptr;
  failure.problem.assign(after == last ? after : after + 1, last);
  return failure;
}

}  // namespace

std::optional<Failure> RunIsolated(const OperationList& list) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return Failure{0, std::string("pipe: ") + std::strerror(errno)};
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) return Failure{0, std::string("fork: ") + std::strerror(errno)};
  if (child == 0) {
    close(ends[0]);
    Child(list, ends[1]);
  }
  close(ends[1]);
  const ChildEnd end = WaitFor(child, ends[0]);
  close(ends[0]);
  return ToFailure(end, list.operations.size());
}

}  // namespace basalt::metamorphic

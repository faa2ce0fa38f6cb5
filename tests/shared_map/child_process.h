#pragma once

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

namespace basalt {

/// Another process, which runs this test program from its main() on with arguments of its own: it
/// has none of this one's threads, and is killed when this object ends.
class ChildProcess {
 public:
  static constexpr int kSignalled = 1000;

  explicit ChildProcess(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "/proc/self/exe");
    std::vector<char*> pointers;
    pointers.reserve(arguments.size() + 1);
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    const int error =
        posix_spawn(&pid_, pointers.front(), nullptr, nullptr, pointers.data(), environ);
    EXPECT_EQ(error, 0);
    if (error != 0) pid_ = -1;
  }
  ~ChildProcess() {
    if (pid_ < 0) return;
    Signal(SIGKILL);
    Wait();
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int signal) const { EXPECT_EQ(kill(pid_, signal), 0); }
  bool HasEnded() const {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid != 0;
  }
  /// Its exit code, or kSignalled and the signal that has ended it.
  int Wait() {
    int status = 0;
    pid_t ended = -1;
    do ended = waitpid(pid_, &status, 0);
    while (ended < 0 && errno == EINTR);
    EXPECT_EQ(ended, pid_);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : kSignalled + WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
};

/// A T that this process shares with its children, which take it from the name that they are given.
/// T consists of atomic numbers, which begin as zeros.
template <class T>
class SharedMemory {
  static_assert(std::is_trivially_destructible_v<T>);

 public:
  SharedMemory() : descriptor_(memfd_create("basalt-test", 0)) {
    if (descriptor_ < 0 || ftruncate(descriptor_, sizeof(T)) != 0) throw std::bad_alloc();
    value_ = new (Map()) T{};
  }
  explicit SharedMemory(const std::string& name) : descriptor_(std::stoi(name)) {
    value_ = std::launder(static_cast<T*>(Map()));
  }
  ~SharedMemory() {
    munmap(value_, sizeof(T));
    close(descriptor_);
  }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::string name() const { return std::to_string(descriptor_); }
  T& operator*() const { return *value_; }
  T* operator->() const { return value_; }

 private:
  void* Map() const {
    void* const address =
        mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
    if (address == MAP_FAILED) throw std::bad_alloc();
    return address;
  }

  const int descriptor_;
  T* value_ = nullptr;
};

}  // namespace basalt

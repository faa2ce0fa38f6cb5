#pragma once

#include <sys/mman.h>
#include <sys/types.h>

#include <functional>
#include <new>

#include "bench/text.h"

namespace basalt::bench {

/// A process that does `work` and ends; it goes down with this one. Made while this process has one
/// thread only.
class ChildProcess {
 public:
  explicit ChildProcess(const std::function<void()>& work);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t id() const noexcept { return id_; }
  /// Ends the program if the child has ended without having done its work.
  bool IsRunning();
  void Wait();

 private:
  void Reap(int wait_options);

  pid_t id_ = -1;
  bool is_running_ = false;
};

/// A T that this process and its children see; never destroyed, so it must own nothing. Its pages
/// are shared memory, which the kernel does not count as anonymous.
template <class T>
class Shared {
 public:
  Shared() {
    void* const place =
        mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED) Fail("share memory with a child process", "there is none");
    object_ = new (place) T;
  }
  ~Shared() { munmap(object_, sizeof(T)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  T* get() const noexcept { return object_; }
  T* operator->() const noexcept { return object_; }

 private:
  T* object_;
};

}  // namespace basalt::bench

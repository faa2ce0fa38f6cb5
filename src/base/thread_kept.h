#pragma once

#include <utility>

namespace basalt::base {

/// A T that the calling thread keeps from call to call, so that its memory is there already. There
/// is one of each T, which one ThreadKept at a time may use: two uses that may meet on one stack
/// need types of their own. When the thread ends it goes, and what runs then, as the
/// destructors of other thread_locals and, in the main thread, of static objects do, gets one of
/// its own each time. Throws std::bad_alloc.
///
/// Cost: as a thread_local T, a load and a branch.
template <class T>
class ThreadKept {
 public:
  ThreadKept() : object_(kept != nullptr ? kept : Make()) {}
  ~ThreadKept() {
    if (object_ != kept) [[unlikely]]
      delete object_;
  }
  ThreadKept(const ThreadKept&) = delete;
  ThreadKept& operator=(const ThreadKept&) = delete;

  T* get() const noexcept { return object_; }
  T* operator->() const noexcept { return object_; }

 private:
  struct ThreadEnd {
    ~ThreadEnd() {
      has_ended = true;
      delete std::exchange(kept, nullptr);
    }
  };

  [[gnu::noinline]] static T* Make() {
    T* const made = new T();
    if (has_ended) return made;
    static thread_local ThreadEnd end;
    static_cast<void>(end);
    return kept = made;
  }

  // Nothing destroys these: they are there to the very end of the thread.
  static inline constinit thread_local T* kept = nullptr;
  static inline constinit thread_local bool has_ended = false;

  T* const object_;
};

}  // namespace basalt::base

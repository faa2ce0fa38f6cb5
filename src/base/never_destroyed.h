#pragma once

namespace basalt::base {

/// An object for static storage that is there from the beginning to the very end of the process: it
/// is made by the compiler, so that no thread ever waits for another one that makes it, and nothing
/// destroys it, so that threads and static destructors may use it whenever they run. To be declared
/// constinit.
template <class T>
union NeverDestroyed {
  constexpr NeverDestroyed() noexcept : object() {}
  ~NeverDestroyed() {}
  NeverDestroyed(const NeverDestroyed&) = delete;
  NeverDestroyed& operator=(const NeverDestroyed&) = delete;

  T object;
};

}  // namespace basalt::base

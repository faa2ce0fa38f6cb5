#pragma once

#include <new>
#include <utility>
#include <vector>

#include "basalt/cache.h"
#include "cache/entry.h"

namespace basalt::cache {

class CacheCore;
class Shard;

/// Of one cache: that this thread is inside its on_remove, and what that has to hear of next. A
/// callback that puts may cause a removal, and so on: each is told when the call before it has
/// returned, so the stack does not grow.
class Telling {
 public:
  struct Removed {
    Shard* shard;
    Entry* entry;  ///< Pinned.
    Removal reason;
  };

  explicit Telling(const CacheCore* core) noexcept
      : core_(core), outer_(std::exchange(innermost, this)) {}
  ~Telling() { innermost = outer_; }
  Telling(const Telling&) = delete;
  Telling& operator=(const Telling&) = delete;

  /// Null: this thread is not inside this cache's on_remove.
  static Telling* Of(const CacheCore* core) noexcept {
    Telling* telling = innermost;
    while (telling != nullptr && telling->core_ != core) telling = telling->outer_;
    return telling;
  }
  /// False: no memory.
  bool Postpone(const Removed& removed) noexcept {
    try {
      postponed_.push_back(removed);
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }
  /// Those that were postponed since the last time, the oldest first.
  std::vector<Removed> TakePostponed() noexcept { return std::exchange(postponed_, {}); }

 private:
  static inline thread_local Telling* innermost =
      nullptr;  ///< Of this thread; others stand behind it.

  const CacheCore* const core_;
  Telling* const outer_;
  std::vector<Removed> postponed_;
};

}  // namespace basalt::cache

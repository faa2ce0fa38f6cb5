#pragma once

#include <new>
#include <utility>
#include <vector>

#include "basalt/cache.h"
#include "cache/entry.h"

namespace basalt::cache {

class CacheCore;
class Shard;

/// A thread is inside on_remove of a cache. Holds the removals that are reported next. A
/// callback that puts may cause a removal, and so on: each is reported when the call before it has
/// returned, so the stack does not grow.
class RemovalScope {
 public:
  struct Removed {
    Shard* shard;
    Entry* entry;  ///< Pinned.
    Removal reason;
  };

  explicit RemovalScope(const CacheCore* core) noexcept
      : core_(core), outer_(std::exchange(innermost, this)) {}
  ~RemovalScope() { innermost = outer_; }
  RemovalScope(const RemovalScope&) = delete;
  RemovalScope& operator=(const RemovalScope&) = delete;

  /// Null: this thread is not inside this cache's on_remove.
  static RemovalScope* Of(const CacheCore* core) noexcept {
    RemovalScope* scope = innermost;
    while (scope != nullptr && scope->core_ != core) scope = scope->outer_;
    return scope;
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
  static inline thread_local RemovalScope* innermost =
      nullptr;  ///< Of this thread; others stand behind it.

  const CacheCore* const core_;
  RemovalScope* const outer_;
  std::vector<Removed> postponed_;
};

}  // namespace basalt::cache

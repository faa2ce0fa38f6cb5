#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "basalt/status.h"
#include "base/out_of_memory.h"

// Allocations that fail, in tests. Of each program one file includes test_memory_operators.h, which
// replaces operator new.

namespace basalt::base {

/// While it lives, of the calling thread's allocations the first `allowed` succeed, then `failing`
/// fail, and those behind them succeed again. kNothrow: those that may throw do not count. kPools:
/// only what it takes of the pools in arena.h and extent_pool.h counts, which otherwise does not.
class MemoryThatFails {
 public:
  static constexpr int64_t kAll = INT64_MAX / 2;
  enum class Of : uint8_t { kEvery, kNothrow, kPools };

  explicit MemoryThatFails(int64_t allowed, int64_t failing = kAll, Of of = Of::kEvery) noexcept;
  ~MemoryThatFails();
  MemoryThatFails(const MemoryThatFails&) = delete;
  MemoryThatFails& operator=(const MemoryThatFails&) = delete;

  /// Whether an allocation has failed.
  bool has_failed() const noexcept;
};

/// Turns of a test, in each of which another allocation of what is called fails: the first one, the
/// second one, and so on until there are no more. Each turn makes its own world:
///
///   EachAllocation each;
///   while (each.Next()) {
///     SCOPED_TRACE(each.ToString());
///     World world;
///     const Status status = each.Call([&] { return world.Write(); });
///     world.Verify(status);
///   }
class EachAllocation {
 public:
  struct Options {
    int64_t failing = 1;  ///< So many one after the other, from that one on.
    int64_t stride = 1;   ///< Looks at each so many-th one only.
    /// The same behind the first 40: neighbours mostly fail in the same code.
    int64_t later_stride = 1;
  };
  /// Only each so many-th fails: what that leads to is for AddressSanitizer, not ThreadSanitizer.
#if defined(__SANITIZE_THREAD__)
  static constexpr int kOneOf = 7;
#else
  static constexpr int kOneOf = 1;
#endif

  EachAllocation() = default;
  explicit EachAllocation(const Options& options) : options_(options) {}

  /// Begins the next turn. False: in the last one no allocation has failed.
  bool Next() {
    if (is_first_) {
      is_first_ = false;
      return true;
    }
    allowed_ += kOneOf * (allowed_ < 40 ? options_.stride : options_.later_stride);
    return std::exchange(has_failed_, false);
  }

  /// What `call` answers, a Status or a Result, while that allocation of it fails; of each call of
  /// a turn anew. It must not throw, and only a failed allocation is a reason for an error, which
  /// then is ResourceExhausted.
  template <class Callable>
  auto Call(const Callable& call) {
    using Answer = std::invoke_result_t<const Callable&>;
    std::optional<Answer> answer;
    bool has_failed = false;
    bool threw = false;
    {
      const MemoryThatFails fails(allowed_, options_.failing);
      try {
        answer.emplace(call());
      } catch (const std::bad_alloc&) {
        threw = true;
      }
      has_failed = fails.has_failed();
    }
    EXPECT_FALSE(threw);
    if (threw) answer.emplace(OutOfMemory());
    const Status status = StatusOf(*answer);
    if (!has_failed || status.code() != StatusCode::kResourceExhausted) {
      EXPECT_EQ(status.ToString(), "Ok");
    }
    has_failed_ |= has_failed;
    return *std::move(answer);
  }
  /// Whether an allocation has failed in this turn.
  bool has_failed() const noexcept { return has_failed_; }

  std::string ToString() const {
    std::string which = "allocation " + std::to_string(allowed_ + 1) + " fails";
    if (options_.failing == 1) return which;
    if (options_.failing == MemoryThatFails::kAll) return which + ", and all behind it";
    return which + ", " + std::to_string(options_.failing) + " in all";
  }

 private:
  static Status StatusOf(const Status& status) { return status; }
  template <class T>
  static Status StatusOf(const Result<T>& result) {
    return result.status();
  }

  Options options_;
  int64_t allowed_ = 0;
  bool is_first_ = true;
  bool has_failed_ = false;
};

}  // namespace basalt::base

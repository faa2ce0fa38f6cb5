#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace basalt::shared_map {

/// Which parts of a mapped file have been verified, a bit each. Thread-safe, and relaxed: the bytes
/// do not change, and two threads that verify one part come to the same. Those that nobody touches
/// take no memory.
class VerifiedBits {
 public:
  VerifiedBits() = default;
  /// None is set. Throws std::bad_alloc.
  explicit VerifiedBits(uint64_t count)
      : words_(static_cast<uint64_t*>(std::calloc(count / 64 + 1, sizeof(uint64_t)))) {
    if (words_ == nullptr) throw std::bad_alloc();
  }

  bool Has(uint64_t part) const noexcept {
    return (WordOf(part).load(std::memory_order_relaxed) & BitOf(part)) != 0;
  }
  /// False: it was set before.
  bool Set(uint64_t part) noexcept {
    return (WordOf(part).fetch_or(BitOf(part), std::memory_order_relaxed) & BitOf(part)) == 0;
  }
  /// What Has reads.
  [[gnu::always_inline]] void Prefetch(uint64_t part) const noexcept {
    __builtin_prefetch(&words_[part / 64], 0, 2);
  }

 private:
  struct Free {
    void operator()(uint64_t* words) const noexcept { std::free(words); }
  };

  static uint64_t BitOf(uint64_t part) noexcept { return uint64_t{1} << (part % 64); }
  std::atomic_ref<uint64_t> WordOf(uint64_t part) const noexcept {
    return std::atomic_ref(words_[part / 64]);
  }

  std::unique_ptr<uint64_t[], Free> words_;
};

}  // namespace basalt::shared_map

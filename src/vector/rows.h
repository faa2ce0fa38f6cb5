#pragma once

#include <algorithm>
#include <cstddef>

// The rows that a distance function is given, as its loops see them.
//
// Four rows at a time share the loads of the query, but are four streams, which the processor does
// not read ahead of as well as of one. So rows that follow one another are taken four at a time
// only where they can all be in the first-level cache. Rows that lie anywhere have to be asked for
// by name in any case.

namespace basalt::vector {

/// One behind the other, `stride` bytes apart.
struct StridedRows {
  static constexpr size_t kFirstCacheBytes = size_t{32} << 10;

  const void* first;
  size_t stride;
  size_t count;

  const void* operator[](size_t i) const noexcept {
    return static_cast<const char*>(first) + i * stride;
  }
  /// How many of them, from the first on, are to be taken four at a time.
  size_t FourAtATime() const noexcept {
    return count * stride <= kFirstCacheBytes ? count / 4 * 4 : 0;
  }
  [[gnu::always_inline]] void PrefetchFirst(size_t) const noexcept {}
  [[gnu::always_inline]] void PrefetchBehind(size_t, size_t, size_t) const noexcept {}
};

/// Anywhere.
struct GatheredRows {
  static constexpr size_t kLineBytes = 64;
  /// Of one row: once these were asked for one after the other, the processor sees the rest.
  static constexpr size_t kLinesMax = 16;
  /// On their way at a time: about as many as a core has buffers for.
  static constexpr size_t kLinesAhead = 24;

  const void* const* rows;
  size_t count;

  const void* operator[](size_t i) const noexcept { return rows[i]; }
  size_t FourAtATime() const noexcept { return count / 4 * 4; }

  // Inlined by force: g++ takes a function that only prefetches for one without effects.

  /// Starts to load the first rows, of `bytes` each.
  [[gnu::always_inline]] void PrefetchFirst(size_t bytes) const noexcept {
    const size_t end = std::min(Ahead(bytes), count);
    for (size_t i = 0; i < end; ++i) Prefetch(i, bytes);
  }
  /// The same for those behind, when `taken` from row `i` on are about to be compared.
  [[gnu::always_inline]] void PrefetchBehind(size_t i, size_t taken, size_t bytes) const noexcept {
    const size_t begin = i + Ahead(bytes);
    const size_t end = std::min(begin + taken, count);
    for (size_t j = begin; j < end; ++j) Prefetch(j, bytes);
  }

 private:
  static size_t Ahead(size_t bytes) noexcept {
    return std::max<size_t>(4, kLinesAhead * kLineBytes / (bytes + kLineBytes));
  }
  [[gnu::always_inline]] void Prefetch(size_t i, size_t bytes) const noexcept {
    const auto* const row = static_cast<const char*>(rows[i]);
    const size_t end = std::min(bytes, kLinesMax * kLineBytes);
    for (size_t at = 0; at < end; at += kLineBytes) __builtin_prefetch(row + at);
  }
};

}  // namespace basalt::vector

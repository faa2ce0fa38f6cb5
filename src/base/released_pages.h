#pragma once

#include <sys/mman.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace basalt::base {

/// The pages of one slab of 2 MiB that are free and that the system has back. Their addresses stay
/// reserved; the next write to such a page makes the system give a fresh one. The slab loses its
/// huge pages meanwhile: the kernel would otherwise fill it again by itself.
///
/// Not thread-safe. Release costs a system call, the others a few instructions per 64 pages.
class ReleasedPages {
 public:
  static constexpr size_t kPageBytes = 4096;
  static constexpr size_t kPages = 512;

  /// Pages, counted from the slab's begin.
  struct Range {
    size_t first;
    size_t end;
    size_t count() const noexcept { return end - first; }
  };
  /// The pages that lie wholly between two offsets.
  static constexpr Range Within(size_t begin_offset, size_t end_offset) noexcept {
    const size_t first = (begin_offset + kPageBytes - 1) / kPageBytes;
    const size_t end = end_offset / kPageBytes;
    return {first, first < end ? end : first};
  }

  bool empty() const noexcept { return count_ == 0; }
  size_t count() const noexcept { return count_; }
  /// How many of these are released.
  size_t CountIn(Range range) const noexcept {
    if (empty()) return 0;
    size_t count = 0;
    ForWords(range, [&](size_t word, uint64_t mask) {
      count += static_cast<size_t>(std::popcount(bits_[word] & mask));
    });
    return count;
  }

  /// Gives these pages, which are free, to the system. Gives how many were not released before.
  size_t Release(char* slab, Range range) noexcept {
    const size_t released = range.count() - CountIn(range);
    if (released == 0) return 0;
    // Hints: a kernel that refuses them is not asked again.
    if (empty()) madvise(slab, kPages * kPageBytes, MADV_NOHUGEPAGE);
    madvise(slab + range.first * kPageBytes, range.count() * kPageBytes, MADV_DONTNEED);
    ForWords(range, [&](size_t word, uint64_t mask) { bits_[word] |= mask; });
    count_ += static_cast<uint32_t>(released);
    return released;
  }
  /// These pages are about to be written. Gives how many were released.
  size_t Touch(Range range) noexcept {
    const size_t touched = CountIn(range);
    if (touched == 0) return 0;
    ForWords(range, [&](size_t word, uint64_t mask) { bits_[word] &= ~mask; });
    count_ -= static_cast<uint32_t>(touched);
    return touched;
  }
  /// The slab is free as a whole, and may have huge pages again.
  void Forget(char* slab) noexcept {
    if (empty()) return;
    madvise(slab, kPages * kPageBytes, MADV_HUGEPAGE);
    *this = {};
  }

 private:
  template <class Visit>
  static void ForWords(Range range, const Visit& visit) noexcept {
    for (size_t page = range.first; page < range.end;) {
      const size_t bits = 64 - page % 64 < range.end - page ? 64 - page % 64 : range.end - page;
      const uint64_t mask = bits == 64 ? ~uint64_t{0} : ((uint64_t{1} << bits) - 1) << (page % 64);
      visit(page / 64, mask);
      page += bits;
    }
  }

  std::array<uint64_t, kPages / 64> bits_{};
  uint32_t count_ = 0;
};

}  // namespace basalt::base

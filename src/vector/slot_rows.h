#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "base/extent_pool.h"

// Rows of one size, numbered from 0 up by slots: what there is of codes and links. It grows without
// moving a row, so that readers take no notice.
//
// Layout: granules of 2^shift rows each, as many as fit 512 KiB, at most 1,024; each an extent in
// huge pages. A directory has the granules' addresses. A larger directory replaces a full one; the
// old ones, together shorter than the new one, live as long as the rows, because a reader may still
// hold one.
//
// Threads: Grow by one at a time. Row by any, for slots below what they know to be there: who is
// told of a slot by an acquiring load finds its row.
//
// Cost: a row's address is one load from the directory, which nearly always hits the first cache.

namespace basalt::vector {

class SlotRows {
 public:
  /// Rows of `stride` bytes, aligned as the greatest power of two in it is, up to a cache line.
  explicit SlotRows(size_t stride) noexcept : stride_(stride), shift_(Shift(stride)) {}
  SlotRows(const SlotRows&) = delete;
  SlotRows& operator=(const SlotRows&) = delete;

  size_t stride() const noexcept { return stride_; }
  /// Rows of a granule, which lie one behind the other.
  size_t granule_rows() const noexcept { return size_t{1} << shift_; }
  size_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

  /// Has rows for slots below `slots`; new ones are zeros. Throws std::bad_alloc, and is as before.
  void Grow(size_t slots) {
    const size_t wanted = (slots + granule_rows() - 1) >> shift_;
    while (granules_.size() < wanted) {
      if (directories_.empty() || granules_.size() == directory_size_) GrowDirectory();
      granules_.reserve(granules_.size() + 1);
      auto granule = base::MakeExtentArray<char>(stride_ << shift_);
      directories_.back()[granules_.size()].store(granule.get(), std::memory_order_release);
      bytes_.fetch_add(base::ExtentPool::TakenBytes(granule.get()), std::memory_order_relaxed);
      granules_.push_back(std::move(granule));
    }
  }

  char* Row(uint32_t slot) const noexcept {
    const Address* const directory = directory_.load(std::memory_order_acquire);
    return directory[slot >> shift_].load(std::memory_order_acquire) +
           (slot & (granule_rows() - 1)) * stride_;
  }

 private:
  using Address = std::atomic<char*>;

  static uint32_t Shift(size_t stride) noexcept {
    constexpr size_t kGranuleBytes = size_t{512} << 10;
    constexpr size_t kRowsMax = 1'024;
    const size_t rows = std::clamp<size_t>(kGranuleBytes / stride, 1, kRowsMax);
    return static_cast<uint32_t>(std::bit_width(rows)) - 1;
  }

  void GrowDirectory() {
    const size_t size = std::max<size_t>(16, 2 * directory_size_);
    directories_.reserve(directories_.size() + 1);
    auto directory = std::make_unique<Address[]>(size);
    for (size_t i = 0; i < granules_.size(); ++i) {
      directory[i].store(granules_[i].get(), std::memory_order_relaxed);
    }
    directory_.store(directory.get(), std::memory_order_release);
    directories_.push_back(std::move(directory));
    directory_size_ = size;
    bytes_.fetch_add(size * sizeof(Address), std::memory_order_relaxed);
  }

  const size_t stride_;
  const uint32_t shift_;
  std::atomic<Address*> directory_{nullptr};
  std::atomic<size_t> bytes_{0};
  // Of who grows.
  size_t directory_size_ = 0;
  std::vector<std::unique_ptr<Address[]>> directories_;
  std::vector<std::unique_ptr<char[], base::GiveExtent>> granules_;
};

/// Rows that are each a `T`, which may be all zeros to begin with.
template <class T>
class SlotArray {
 public:
  SlotArray() noexcept : rows_(sizeof(T)) {}

  size_t bytes() const noexcept { return rows_.bytes(); }
  void Grow(size_t slots) { rows_.Grow(slots); }
  T& operator[](uint32_t slot) const noexcept { return *reinterpret_cast<T*>(rows_.Row(slot)); }

 private:
  SlotRows rows_;
};

}  // namespace basalt::vector

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "cache/memory_budget.h"

namespace basalt::cache {

/// A queue of hashes, first in, first out, in a ring that doubles, and
/// halves when it is nearly empty. Not thread-safe.
class HashQueue {
 public:
  explicit HashQueue(MemoryBudget* budget) noexcept : budget_(budget) {}
  ~HashQueue() { budget_->Refund(bytes()); }
  HashQueue(const HashQueue&) = delete;
  HashQueue& operator=(const HashQueue&) = delete;

  /// False: no memory, or no budget.
  bool Push(uint64_t hash) noexcept {
    if (count_ == capacity_ && !Grow()) return false;
    At(count_++) = hash;
    return true;
  }
  /// The oldest; not when empty.
  uint64_t Pop() noexcept {
    const uint64_t hash = At(0);
    first_ = (first_ + 1) & (capacity_ - 1);
    --count_;
    if (capacity_ > kCapacityMin && count_ < capacity_ / 8) Resize(capacity_ / 2);
    return hash;
  }
  /// Leaves out those for which `keeps(hash)` is false, asked from the oldest on.
  template <class Keeps>
  void KeepIf(const Keeps& keeps) noexcept {
    size_t kept = 0;
    for (size_t i = 0; i < count_; ++i) {
      const uint64_t hash = At(i);
      if (keeps(hash)) At(kept++) = hash;
    }
    count_ = kept;
    size_t capacity = capacity_;
    while (capacity > kCapacityMin && count_ < capacity / 8) capacity /= 2;
    if (capacity != capacity_) Resize(capacity);
  }
  /// A ring of more than a few is given back.
  void Clear() noexcept {
    count_ = 0;
    if (capacity_ <= kCapacityMin) return;
    budget_->Refund(bytes());
    ring_.reset();
    capacity_ = 0;
    first_ = 0;
  }
  bool empty() const noexcept { return count_ == 0; }
  size_t size() const noexcept { return count_; }
  uint64_t bytes() const noexcept { return capacity_ * sizeof(uint64_t); }

 private:
  static constexpr size_t kCapacityMin = 64;

  /// By its place in the queue.
  uint64_t& At(size_t i) noexcept { return ring_[(first_ + i) & (capacity_ - 1)]; }
  bool Grow() noexcept { return Resize(capacity_ == 0 ? kCapacityMin : 2 * capacity_); }
  /// False: no memory, or no budget; all is as it was. What gets smaller needs no room.
  bool Resize(size_t capacity) noexcept {
    if (capacity < capacity_) {
      budget_->Charge(capacity * sizeof(uint64_t));
    } else if (!budget_->TryCharge(capacity * sizeof(uint64_t))) {
      return false;
    }
    std::unique_ptr<uint64_t[]> ring(new (std::nothrow) uint64_t[capacity]);
    if (ring == nullptr) {
      budget_->Refund(capacity * sizeof(uint64_t));
      return false;
    }
    for (size_t i = 0; i < count_; ++i) ring[i] = At(i);
    budget_->Refund(bytes());
    ring_ = std::move(ring);
    capacity_ = capacity;
    first_ = 0;
    return true;
  }

  MemoryBudget* const budget_;
  std::unique_ptr<uint64_t[]> ring_;
  size_t capacity_ = 0;  ///< A power of two, or 0.
  size_t first_ = 0;
  size_t count_ = 0;
};

}  // namespace basalt::cache

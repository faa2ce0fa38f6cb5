#pragma once

#include <atomic>
#include <cstdint>

namespace basalt::cache {

/// All bytes that a cache has taken, against its capacity. Charged in coarse pieces (slabs,
/// segments, large entries), so that one shared word is no bottleneck. Thread-safe.
class MemoryBudget {
 public:
  explicit MemoryBudget(uint64_t capacity_bytes) noexcept : capacity_bytes_(capacity_bytes) {}

  /// Charges `bytes`, unless that would pass the capacity. What does not fit is not charged for a
  /// moment either: in that moment others would find no room.
  bool TryCharge(uint64_t bytes) noexcept {
    uint64_t before = used_bytes();
    do {
      const uint64_t capacity = capacity_bytes();
      if (before > capacity || bytes > capacity - before) return false;
    } while (!used_bytes_.compare_exchange_weak(before, before + bytes, std::memory_order_relaxed));
    return true;
  }
  /// For what exists already.
  void Charge(uint64_t bytes) noexcept { used_bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  void Refund(uint64_t bytes) noexcept { used_bytes_.fetch_sub(bytes, std::memory_order_relaxed); }

  uint64_t used_bytes() const noexcept { return used_bytes_.load(std::memory_order_relaxed); }
  uint64_t capacity_bytes() const noexcept {
    return capacity_bytes_.load(std::memory_order_relaxed);
  }
  void set_capacity_bytes(uint64_t bytes) noexcept {
    capacity_bytes_.store(bytes, std::memory_order_relaxed);
  }
  /// Whether the last `bytes` of the capacity are taken.
  bool IsWithin(uint64_t bytes) const noexcept { return used_bytes() + bytes > capacity_bytes(); }

 private:
  std::atomic<uint64_t> capacity_bytes_;
  alignas(64) std::atomic<uint64_t> used_bytes_{0};
};

}  // namespace basalt::cache

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace basalt::table {

/// The bytes that all open tables together may keep besides their blocks. What a table cannot be
/// opened without is charged in any case. Its block index and its filter are kept only where they
/// fit, and are otherwise read in parts through the cache; a point index, which stands in for the
/// filter, only while there is as much room left for the indexes and filters of tables that are
/// opened later. Thread-safe.
class MetadataBudget {
 public:
  /// `point_indexes_bytes`: up to which sum of all that is charged point indexes are kept.
  MetadataBudget(uint64_t limit_bytes, uint64_t point_indexes_bytes) noexcept
      : limit_bytes_(limit_bytes), point_indexes_bytes_(point_indexes_bytes) {}
  MetadataBudget(const MetadataBudget&) = delete;
  MetadataBudget& operator=(const MetadataBudget&) = delete;

  /// Beyond the limit too.
  void Charge(uint64_t bytes) noexcept {
    charged_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }
  /// False, and nothing is charged: it would pass the limit.
  bool TryCharge(uint64_t bytes) noexcept { return TryCharge(bytes, limit_bytes_); }
  /// The same for a point index.
  bool TryChargePointIndex(uint64_t bytes) noexcept {
    return TryCharge(bytes, point_indexes_bytes_);
  }
  void Refund(uint64_t bytes) noexcept {
    charged_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  }

  uint64_t charged_bytes() const noexcept { return charged_bytes_.load(std::memory_order_relaxed); }

 private:
  bool TryCharge(uint64_t bytes, uint64_t limit) noexcept {
    uint64_t charged = charged_bytes_.load(std::memory_order_relaxed);
    do {
      if (charged > limit || bytes > limit - charged) return false;
    } while (
        !charged_bytes_.compare_exchange_weak(charged, charged + bytes, std::memory_order_relaxed));
    return true;
  }

  const uint64_t limit_bytes_;
  const uint64_t point_indexes_bytes_;
  std::atomic<uint64_t> charged_bytes_{0};
};

/// What one table has charged; refunded on destruction. Counts also without a budget. Move-only.
class MetadataCharge {
 public:
  /// `budget` may be null: no limit.
  explicit MetadataCharge(std::shared_ptr<MetadataBudget> budget = nullptr) noexcept
      : budget_(std::move(budget)) {}
  MetadataCharge(MetadataCharge&& other) noexcept
      : budget_(std::move(other.budget_)), bytes_(std::exchange(other.bytes_, 0)) {}
  MetadataCharge& operator=(MetadataCharge&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MetadataCharge() {
    if (budget_ != nullptr) budget_->Refund(bytes_);
  }

  void Add(uint64_t bytes) noexcept {
    if (budget_ != nullptr) budget_->Charge(bytes);
    bytes_ += bytes;
  }
  /// False: it does not fit.
  bool TryAdd(uint64_t bytes) noexcept {
    if (budget_ != nullptr && !budget_->TryCharge(bytes)) return false;
    bytes_ += bytes;
    return true;
  }
  bool TryAddPointIndex(uint64_t bytes) noexcept {
    if (budget_ != nullptr && !budget_->TryChargePointIndex(bytes)) return false;
    bytes_ += bytes;
    return true;
  }
  /// Gives back some of what was added.
  void Remove(uint64_t bytes) noexcept {
    if (budget_ != nullptr) budget_->Refund(bytes);
    bytes_ -= bytes;
  }
  uint64_t bytes() const noexcept { return bytes_; }

 private:
  std::shared_ptr<MetadataBudget> budget_;
  uint64_t bytes_ = 0;
};

}  // namespace basalt::table

#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/epoch.h"
#include "vector/graph_nodes.h"

// Which slots are free. A slot that was given back is handed out again when no reader is left that
// may have met it, its code being zeroed first: nothing of a removed vector stays.

namespace basalt::vector {

/// Thread-safe.
class SlotAllocator {
 public:
  explicit SlotAllocator(GraphNodes* nodes) noexcept : nodes_(*nodes) {}

  /// A free slot, for which there are rows. kNoSlot: kSlotsMax are taken. Throws std::bad_alloc.
  uint32_t Take();
  /// Frees slots that no link leads to any more. Throws std::bad_alloc: then they are as before.
  void Give(std::vector<uint32_t> slots);
  /// One that was taken and that nobody has seen.
  void GiveUnseen(uint32_t slot) noexcept;
  /// One that is free, of an index that was read. Throws std::bad_alloc.
  void AddUnused(uint32_t slot);

  /// While it lives, only slots that were never used are handed out.
  class FreshOnly {
   public:
    explicit FreshOnly(SlotAllocator* owner) : owner_(owner) { owner_->Count(+1); }
    FreshOnly(const FreshOnly&) = delete;
    FreshOnly& operator=(const FreshOnly&) = delete;
    ~FreshOnly() { owner_->Count(-1); }

   private:
    SlotAllocator* owner_;
  };

  size_t free_slots() const;

 private:
  struct Batch {
    uint64_t epoch;  ///< At which readers may still have met them.
    std::vector<uint32_t> slots;
  };

  void Count(int change) {
    const std::lock_guard lock(mutex_);
    fresh_only_ += change;
  }
  void Reclaim();

  GraphNodes& nodes_;
  mutable std::mutex mutex_;
  // All below under mutex_.
  std::vector<uint32_t> free_;  ///< Sorted within what came at once: the lowest is taken first.
  std::vector<Batch> awaited_;
  size_t awaited_slots_ = 0;
  int fresh_only_ = 0;
};

}  // namespace basalt::vector

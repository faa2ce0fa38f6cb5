#include "vector/slot_allocator.h"

#include <algorithm>
#include <cstring>
#include <functional>

namespace basalt::vector {

uint32_t SlotAllocator::Take() {
  const std::lock_guard lock(mutex_);
  if (fresh_only_ == 0) {
    if (free_.empty() && !awaited_.empty()) Reclaim();
    if (!free_.empty()) {
      const uint32_t slot = free_.back();
      free_.pop_back();
      return slot;
    }
  }
  const uint32_t slot = nodes_.size();
  if (slot == kSlotsMax) return kNoSlot;
  free_.reserve(free_.size() + awaited_slots_ + 1);  // For GiveUnseen.
  nodes_.Grow(slot + 1);
  nodes_.SetSpecial(slot, true);
  return slot;
}

void SlotAllocator::Give(std::vector<uint32_t> slots) {
  if (slots.empty()) return;
  std::sort(slots.begin(), slots.end(), std::greater<>());
  const std::lock_guard lock(mutex_);
  const size_t count = slots.size();
  free_.reserve(free_.size() + awaited_slots_ + count + 1);
  awaited_.push_back({base::ProcessEpochs()->Note(), std::move(slots)});
  for (const uint32_t slot : awaited_.back().slots) nodes_.SetState(slot, SlotState::kFree);
  awaited_slots_ += count;
  Reclaim();
}

void SlotAllocator::GiveUnseen(uint32_t slot) noexcept {
  const std::lock_guard lock(mutex_);
  free_.push_back(slot);
}

void SlotAllocator::AddUnused(uint32_t slot) {
  const std::lock_guard lock(mutex_);
  free_.push_back(slot);
}

void SlotAllocator::Reclaim() {
  if (awaited_.front().epoch >= base::ProcessEpochs()->SafeBelow()) {
    base::ProcessEpochs()->AdvanceAndScan();
  }
  const uint64_t safe_below = base::ProcessEpochs()->SafeBelow();
  std::erase_if(awaited_, [&](const Batch& batch) {
    if (batch.epoch >= safe_below) return false;
    for (const uint32_t slot : batch.slots) {
      std::memset(nodes_.Code(slot), 0, nodes_.code_bytes());
      free_.push_back(slot);
    }
    awaited_slots_ -= batch.slots.size();
    return true;
  });
}

size_t SlotAllocator::free_slots() const {
  const std::lock_guard lock(mutex_);
  return free_.size() + awaited_slots_;
}

}  // namespace basalt::vector

#include "cache/timing_wheel.h"

#include <algorithm>
#include <new>
#include <utility>

namespace basalt::cache {

TimingWheel::TimingWheel(MemoryBudget* budget, uint64_t now_ms) noexcept
    : budget_(budget), tick_(now_ms >> kTickShift) {}

// A slot is due at the first tick of which it is over: what lies in it has passed by then.
bool TimingWheel::File(uint64_t hash, uint64_t deadline_ms) noexcept {
  uint64_t tick = std::max((deadline_ms >> kTickShift) + 1, tick_ + 1);
  int level = 0;
  while (level + 1 < kLevels && (tick - tick_) >> (kSlotBits * (level + 1)) != 0) ++level;
  const int shift = kSlotBits * level;
  // At most 64 slots ahead, and never the slot of the present tick.
  const uint64_t place = std::min(tick >> shift, (tick_ >> shift) + kSlots - 1);
  Chunk*& slot = slots_[static_cast<size_t>(level)][place % kSlots];
  if (slot == nullptr || slot->count == Chunk::kHashes) {
    if (!budget_->TryCharge(sizeof(Chunk))) return false;
    auto* const chunk = new (std::nothrow) Chunk;
    if (chunk == nullptr) {
      budget_->Refund(sizeof(Chunk));
      return false;
    }
    bytes_ += sizeof(Chunk);
    chunk->next = slot;
    chunk->count = 0;
    slot = chunk;
  }
  slot->hashes[slot->count++] = hash;
  ++records_;
  return true;
}

void TimingWheel::MoveToDue(Chunk** slot) noexcept {
  while (*slot != nullptr) {
    Chunk* const chunk = *slot;
    *slot = chunk->next;
    chunk->next = due_;
    due_ = chunk;
  }
}

void TimingWheel::Tick() noexcept {
  ++tick_;
  for (int level = 0; level < kLevels; ++level) {
    const int shift = kSlotBits * level;
    MoveToDue(&slots_[static_cast<size_t>(level)][(tick_ >> shift) % kSlots]);
    if ((tick_ >> shift) % kSlots != 0) break;  // The next level's slot is still running.
  }
}

bool TimingWheel::TakeDue(uint64_t now_ms, uint64_t* hash) noexcept {
  constexpr int kTicksMax = 64;
  SkipTo(now_ms);
  if (records_ == 0) return false;
  const uint64_t now_tick = now_ms >> kTickShift;
  for (int ticks = 0; due_ == nullptr; ++ticks) {
    if (tick_ >= now_tick || ticks == kTicksMax) return false;
    Tick();
  }
  *hash = due_->hashes[--due_->count];
  --records_;
  if (due_->count == 0) FreeChunk(std::exchange(due_, due_->next));
  return true;
}

void TimingWheel::FreeChunk(Chunk* chunk) noexcept {
  delete chunk;
  bytes_ -= sizeof(Chunk);
  budget_->Refund(sizeof(Chunk));
}

void TimingWheel::Clear() noexcept {
  for (auto& level : slots_) {
    for (Chunk*& slot : level) MoveToDue(&slot);
  }
  while (due_ != nullptr) FreeChunk(std::exchange(due_, due_->next));
  records_ = 0;
}

}  // namespace basalt::cache

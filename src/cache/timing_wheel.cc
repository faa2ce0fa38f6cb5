#include "cache/timing_wheel.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace basalt::cache {

TimingWheel::TimingWheel(MemoryBudget* budget, uint64_t now_ms) noexcept
    : budget_(budget), tick_(now_ms >> kTickShift) {}

// A slot is due at the first tick of which it is over: what lies in it has passed by then.
auto TimingWheel::PlaceOf(uint64_t deadline_ms) const noexcept -> Place {
  const uint64_t tick = std::max((deadline_ms >> kTickShift) + 1, tick_ + 1);
  const auto bits = static_cast<int>(std::bit_width(tick - tick_));  // 1 at least
  const int level = std::min((bits - 1) / kSlotBits, kLevels - 1);
  const int shift = kSlotBits * level;
  // At most 64 slots ahead, and never the slot of the present tick.
  const uint64_t slot = std::min(tick >> shift, (tick_ >> shift) + kSlots - 1);
  return {.level = static_cast<size_t>(level), .slot = slot % kSlots};
}

void TimingWheel::PrefetchFor(uint64_t deadline_ms) const noexcept {
  const auto [level, slot] = PlaceOf(deadline_ms);
  if (const Chunk* const chunk = slots_[level][slot]) {
    __builtin_prefetch(chunk->hashes.data() + first_counts_[level][slot], /*rw=*/1);
  }
}

bool TimingWheel::File(uint64_t hash, uint64_t deadline_ms, uint64_t bytes_max) noexcept {
  const Place place = PlaceOf(deadline_ms);
  Chunk*& slot = slots_[place.level][place.slot];
  uint8_t& count = first_counts_[place.level][place.slot];
  if (slot == nullptr || count == Chunk::kHashes) {
    if (bytes_ + sizeof(Chunk) > bytes_max || !budget_->TryCharge(sizeof(Chunk))) return false;
    auto* const chunk = new (std::nothrow) Chunk;
    if (chunk == nullptr) {
      budget_->Refund(sizeof(Chunk));
      return false;
    }
    bytes_ += sizeof(Chunk);
    if (slot != nullptr) slot->count = Chunk::kHashes;
    chunk->next = slot;
    slot = chunk;
    count = 0;
  }
  slot->hashes[count++] = hash;
  ++records_;
  return true;
}

void TimingWheel::MoveToDue(size_t level, size_t slot) noexcept {
  Chunk* rest = std::exchange(slots_[level][slot], nullptr);
  if (rest != nullptr) rest->count = first_counts_[level][slot];
  while (rest != nullptr) {
    Chunk* const chunk = std::exchange(rest, rest->next);
    chunk->next = due_;
    due_ = chunk;
  }
}

void TimingWheel::Tick() noexcept {
  ++tick_;
  for (int level = 0; level < kLevels; ++level) {
    const int shift = kSlotBits * level;
    MoveToDue(static_cast<size_t>(level), (tick_ >> shift) % kSlots);
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
  for (size_t level = 0; level < kLevels; ++level) {
    for (size_t slot = 0; slot < kSlots; ++slot) MoveToDue(level, slot);
  }
  while (due_ != nullptr) FreeChunk(std::exchange(due_, due_->next));
  records_ = 0;
}

}  // namespace basalt::cache

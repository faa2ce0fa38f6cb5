#include "memtable/writer_slots.h"

#include <algorithm>
#include <new>
#include <thread>

namespace basalt::memtable {

WriterSlots::~WriterSlots() {
  for (Block* block = first_block_.next.load(std::memory_order_relaxed); block != nullptr;) {
    Block* const next = block->next.load(std::memory_order_relaxed);
    delete block;
    block = next;
  }
}

WriterSlots::Slot* WriterSlots::Of(uint32_t thread_number) noexcept {
  Block* block = &first_block_;
  for (; thread_number >= kSlotsInBlock; thread_number -= kSlotsInBlock) {
    Block* next = block->next.load(std::memory_order_acquire);
    if (next == nullptr) {
      auto* const fresh = new (std::nothrow) Block;
      if (fresh == nullptr) return nullptr;
      if (block->next.compare_exchange_strong(next, fresh, std::memory_order_acq_rel)) {
        next = fresh;
      } else {
        delete fresh;  // Another thread was first: `next` is its block.
      }
    }
    block = next;
  }
  return &block->slots[thread_number];
}

template <class Visit>
void WriterSlots::ForEach(const Visit& visit) const {
  for (const Block* block = &first_block_; block != nullptr;
       block = block->next.load(std::memory_order_acquire)) {
    for (const Slot& slot : block->slots) visit(slot);
  }
}

bool WriterSlots::IsUnderWay(
    base::SequenceNumber sequence,
    const std::atomic<base::SequenceNumber>& last_sequence) const noexcept {
  if (sequence < settled_.load(std::memory_order_acquire)) return false;
  base::SequenceNumber settled = last_sequence.load(std::memory_order_acquire) + 1;
  bool is_under_way = false;
  ForEach([&](const Slot& slot) {
    const base::SequenceNumber bound = slot.lower_bound_.load(std::memory_order_acquire);
    if (bound != 0) settled = std::min(settled, bound);
    // Both ends of one batch: `first` is cleared between two.
    for (;;) {
      const base::SequenceNumber first = slot.range_first_.load(std::memory_order_acquire);
      const base::SequenceNumber last = slot.range_last_.load(std::memory_order_acquire);
      if (slot.range_first_.load(std::memory_order_acquire) != first) continue;
      is_under_way |= first != 0 && first <= sequence && sequence <= last;
      break;
    }
  });
  base::SequenceNumber known = settled_.load(std::memory_order_relaxed);
  while (known < settled &&
         !settled_.compare_exchange_weak(known, settled, std::memory_order_acq_rel)) {
  }
  return is_under_way;
}

void WriterSlots::AwaitAllUpTo(base::SequenceNumber sequence) const noexcept {
  if (sequence < settled_.load(std::memory_order_acquire)) return;
  ForEach([&](const Slot& slot) {
    constexpr int kSpinsMax = 128;
    for (int spins = 0;; ++spins) {
      const base::SequenceNumber bound = slot.lower_bound_.load(std::memory_order_acquire);
      if (bound == 0 || bound > sequence) return;
      if (spins > kSpinsMax) std::this_thread::yield();
    }
  });
  base::SequenceNumber known = settled_.load(std::memory_order_relaxed);
  while (known <= sequence &&
         !settled_.compare_exchange_weak(known, sequence + 1, std::memory_order_acq_rel)) {
  }
}

}  // namespace basalt::memtable

#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <new>
#include <span>
#include <thread>

#include "base/internal_key.h"

// Gives the writers of one store their sequence numbers, and knows which of them are complete.
//
// Layout
//
//   last ....... the highest number that was given to a thread
//   cut ........ no single record begins any more with a number up to it
//   settled .... whatever has a number below it is complete, and nothing will come
//   batches .... all batches with numbers below it are
//   Slot ....... of a thread, a cache line that only that thread writes: what its write has under
//                way, and its block of numbers. Slots come in lists of 16, as threads come
//   threads .... so many slots, the first ones, are all that readers have to look at
//
// Blocks. The line of `last` goes from core to core as two threads write by turns, and each of them
// would wait for it at each record. So a thread that finds that others have taken numbers since it
// did takes two the next time, then four, up to 64, and gives them to its single records one after
// the other. While it writes alone it takes one number at a time.
//
// A number of a block may be below others that were given out, used and complete long ago. So that
// a record that begins later is above all that matters to it, its thread lets go of a block that
//
//   - is not above the newest version of the key, which the caller names;
//   - was taken while an earlier generation was the active one: all numbers of a generation are
//     below all of the next;
//   - has been cut. Who reads as of a number S, or deletes a range by one, first makes a cut there.
//
// A cut. The reader raises `cut` to S, then looks at the slots, and waits for those with a number
// up to S. The writer stores its number in its slot, then looks at `cut`. All four are sequentially
// consistent, so that one of them sees the other: the reader waits for the record, or the writer
// takes a number above S. A number that comes from `last` itself needs no look: it is above S
// unless it was taken before S was read, and then its slot says so.
//
// Cost. Alone: one read-modify-write of a line of one's own, as without blocks. With others: one of
// the slot's line, and a look at `cut`. A reader: a line a thread, unless nothing has been given
// out since the last one.

namespace basalt::memtable {

/// `Atomic` is std::atomic, or a stand-in that lets a test decide how threads interleave.
template <template <class> class Atomic = std::atomic>
class BasicSequencer {
 public:
  using Number = base::SequenceNumber;

  class alignas(64) Slot {
   private:
    friend class BasicSequencer;
    /// All numbers that the thread uses now are at least this; 0: it uses none.
    Atomic<Number> lower_bound_{0};
    Atomic<Number> batch_first_{0};  ///< 0: no batch is under way.
    Atomic<Number> batch_last_{0};
    // The thread's own:
    Number next_ = 0;  ///< Of the block [next_, block_end_).
    Number block_end_ = 0;
    Number given_end_ = 1;     ///< Above all numbers that it was ever given.
    uint64_t generation_ = 0;  ///< That was active when it took the block.
    uint64_t block_size_ = 1;  ///< Of the next block.
  };
  static_assert(sizeof(Slot) == 64);

  BasicSequencer() = default;
  ~BasicSequencer();
  BasicSequencer(const BasicSequencer&) = delete;
  BasicSequencer& operator=(const BasicSequencer&) = delete;

  /// The slot of the thread with this number (EpochGuard::thread_number). Null: no memory.
  Slot* Of(uint32_t thread_number) noexcept;

  // A write: a number or a range of them, then what is written, then End.

  /// The number of a single record: above `above`, above every cut that was made before, and above
  /// all numbers of generations before `generation`, the number of the one that it goes to.
  Number Take(Slot* slot, uint64_t generation, Number above) noexcept;
  /// The first of `count` numbers in a row, above all that were given out before.
  Number TakeRange(Slot* slot, uint64_t count) noexcept;
  /// They are those of a batch: lookups ask whether it is under way. Before its first record can be
  /// found.
  void SetBatch(Slot* slot, Number first, Number last) noexcept {
    slot->batch_last_.store(last, std::memory_order_release);
    slot->batch_first_.store(first, std::memory_order_release);
  }
  /// What was written can be found.
  void End(Slot* slot) noexcept {
    if (slot->batch_first_.load(std::memory_order_relaxed) != 0) {
      slot->batch_first_.store(0, std::memory_order_release);
    }
    slot->lower_bound_.store(0, std::memory_order_release);
  }

  // Any thread:

  /// The highest number that was given out.
  Number last() const noexcept { return last_.load(std::memory_order_seq_cst); }
  /// No single record begins any more with a number up to `number`, which was given out.
  void CutAt(Number number) noexcept;
  /// Makes a cut there, and waits until all that have begun are complete.
  void Settle(Number number) noexcept {
    if (number >= settled_.load(std::memory_order_acquire)) SettleAnew(number);
  }
  /// The same at the last number, which it returns.
  Number Settle() noexcept {
    const Number number = last();
    Settle(number);
    return number;
  }

  /// Whether a batch with this number is being inserted. Called with the number of a record that
  /// was found.
  bool IsUnderWay(Number number) noexcept;
  /// No batch below it is under way, as far as is known without a look.
  Number BatchesSettledBelow() const noexcept {
    return batches_settled_.load(std::memory_order_acquire);
  }

 private:
  static constexpr uint32_t kSlotsInList = 16;
  static constexpr uint64_t kBlockSizeMax = 64;
  struct SlotList {
    Slot slots[kSlotsInList];
    Atomic<SlotList*> next{nullptr};
  };

  [[gnu::noinline]] void SettleAnew(Number number) noexcept;
  Number TakeBlock(Slot* slot, uint64_t generation) noexcept;
  /// Of all threads that have asked for theirs: one whose list is not there yet has no number.
  template <class Visit>
  void ForEachSlot(const Visit& visit) const;
  template <class Word>
  static void Raise(Atomic<Word>* to_raise, Word number) noexcept {
    Word known = to_raise->load(std::memory_order_seq_cst);
    while (known < number &&
           !to_raise->compare_exchange_weak(known, number, std::memory_order_seq_cst)) {
    }
  }

  alignas(64) Atomic<Number> last_{0};
  alignas(64) Atomic<Number> cut_{0};
  Atomic<uint32_t> threads_{0};  // above the number of each that has asked for its slot
  alignas(64) Atomic<Number> settled_{0};
  Atomic<Number> batches_settled_{0};
  SlotList first_list_;
};

using Sequencer = BasicSequencer<>;

template <template <class> class Atomic>
BasicSequencer<Atomic>::~BasicSequencer() {
  for (SlotList* list = first_list_.next.load(std::memory_order_relaxed); list != nullptr;) {
    SlotList* const next = list->next.load(std::memory_order_relaxed);
    delete list;
    list = next;
  }
}

template <template <class> class Atomic>
auto BasicSequencer<Atomic>::Of(uint32_t thread_number) noexcept -> Slot* {
  if (thread_number >= threads_.load(std::memory_order_relaxed)) [[unlikely]] {
    Raise(&threads_, thread_number + 1);
  }
  SlotList* list = &first_list_;
  for (; thread_number >= kSlotsInList; thread_number -= kSlotsInList) {
    SlotList* next = list->next.load(std::memory_order_acquire);
    if (next == nullptr) {
      auto* const fresh = new (std::nothrow) SlotList;
      if (fresh == nullptr) return nullptr;
      if (list->next.compare_exchange_strong(next, fresh, std::memory_order_acq_rel)) {
        next = fresh;
      } else {
        delete fresh;  // Another thread was first: `next` is its list.
      }
    }
    list = next;
  }
  return &list->slots[thread_number];
}

template <template <class> class Atomic>
template <class Visit>
void BasicSequencer<Atomic>::ForEachSlot(const Visit& visit) const {
  uint32_t left = threads_.load(std::memory_order_seq_cst);
  for (const SlotList* list = &first_list_; left != 0 && list != nullptr;
       list = list->next.load(std::memory_order_acquire)) {
    const uint32_t slots = std::min(left, kSlotsInList);
    for (const Slot& slot : std::span(list->slots).first(slots)) visit(slot);
    left -= slots;
  }
}

template <template <class> class Atomic>
[[gnu::always_inline]] inline auto BasicSequencer<Atomic>::Take(Slot* slot, uint64_t generation,
                                                                Number above) noexcept -> Number {
  const Number next = slot->next_;
  if (next == slot->block_end_) return TakeBlock(slot, generation);
  // The first look at the cut spares what would be in vain; the second one decides.
  if (next > above && generation == slot->generation_ &&
      next > cut_.load(std::memory_order_relaxed)) {
    slot->lower_bound_.exchange(next, std::memory_order_seq_cst);
    if (next > cut_.load(std::memory_order_seq_cst)) [[likely]] {
      slot->next_ = next + 1;
      return next;
    }
  }
  slot->block_size_ = 1;
  return TakeBlock(slot, generation);
}

template <template <class> class Atomic>
auto BasicSequencer<Atomic>::TakeBlock(Slot* slot, uint64_t generation) noexcept -> Number {
  const Number given_end = slot->given_end_;
  const uint64_t size = slot->block_size_;
  const Number first = TakeRange(slot, size);
  const bool is_alone = first == given_end;
  slot->block_size_ = is_alone ? (size + 1) / 2 : std::min(2 * size, kBlockSizeMax);
  slot->next_ = first + 1;
  slot->block_end_ = first + size;
  slot->generation_ = generation;
  return first;
}

// The slot has a lower bound before the number is taken, so that whoever has seen it taken sees the
// bound, too.
template <template <class> class Atomic>
auto BasicSequencer<Atomic>::TakeRange(Slot* slot, uint64_t count) noexcept -> Number {
  slot->lower_bound_.store(slot->given_end_, std::memory_order_release);
  const Number first = last_.fetch_add(count, std::memory_order_seq_cst) + 1;
  slot->lower_bound_.store(first, std::memory_order_release);
  slot->given_end_ = first + count;
  return first;
}

template <template <class> class Atomic>
void BasicSequencer<Atomic>::CutAt(Number number) noexcept {
  Raise(&cut_, number);
}

template <template <class> class Atomic>
void BasicSequencer<Atomic>::SettleAnew(Number number) noexcept {
  CutAt(number);
  ForEachSlot([number](const Slot& slot) {
    constexpr int kSpinsMax = 128;
    for (int spins = 0;; ++spins) {
      const Number bound = slot.lower_bound_.load(std::memory_order_seq_cst);
      if (bound == 0 || bound > number) return;
      if (spins > kSpinsMax) std::this_thread::yield();
    }
  });
  Raise(&settled_, number + 1);
}

template <template <class> class Atomic>
bool BasicSequencer<Atomic>::IsUnderWay(Number number) noexcept {
  if (number < batches_settled_.load(std::memory_order_acquire)) return false;
  Number settled = last() + 1;
  bool is_under_way = false;
  ForEachSlot([&](const Slot& slot) {
    const Number bound = slot.lower_bound_.load(std::memory_order_acquire);
    if (bound != 0) settled = std::min(settled, bound);
    // Both ends of one batch: `first` is cleared between two.
    for (;;) {
      const Number first = slot.batch_first_.load(std::memory_order_acquire);
      const Number last = slot.batch_last_.load(std::memory_order_acquire);
      if (slot.batch_first_.load(std::memory_order_acquire) != first) continue;
      is_under_way |= first != 0 && first <= number && number <= last;
      break;
    }
  });
  Raise(&batches_settled_, settled);
  return is_under_way;
}

}  // namespace basalt::memtable

#pragma once

#include <atomic>
#include <cstdint>

#include "base/internal_key.h"

namespace basalt::memtable {

/// What the writers of one store have under way: a cache line for each thread, which only that
/// thread writes. Lines come in blocks of 16, as threads come.
///
/// Begin stores a lower bound before the writer takes its sequence, so that whoever has seen a
/// sequence taken sees the bound, too. A batch also stores its whole range, before its first record
/// can be found. End clears both, after the last.
class WriterSlots {
 public:
  class alignas(64) Slot {
   public:
    /// Before sequences are taken. The bound is above what the thread took last: a look at what
    /// everybody has taken would move that line between processors once more.
    void Begin() noexcept { lower_bound_.store(last_taken_ + 1, std::memory_order_release); }
    /// After that.
    void Took(base::SequenceNumber first, base::SequenceNumber last) noexcept {
      lower_bound_.store(first, std::memory_order_release);
      last_taken_ = last;
    }
    /// The sequences of a batch.
    void SetRange(base::SequenceNumber first, base::SequenceNumber last) noexcept {
      range_last_.store(last, std::memory_order_release);
      range_first_.store(first, std::memory_order_release);
    }
    void End() noexcept {
      if (range_first_.load(std::memory_order_relaxed) != 0) {
        range_first_.store(0, std::memory_order_release);
      }
      lower_bound_.store(0, std::memory_order_release);
    }

   private:
    friend class WriterSlots;
    std::atomic<base::SequenceNumber> lower_bound_{0};  ///< 0: nothing is under way.
    std::atomic<base::SequenceNumber> range_first_{0};  ///< 0: no batch is.
    std::atomic<base::SequenceNumber> range_last_{0};
    base::SequenceNumber last_taken_ = 0;  ///< The thread's own.
  };

  WriterSlots() = default;
  ~WriterSlots();
  WriterSlots(const WriterSlots&) = delete;
  WriterSlots& operator=(const WriterSlots&) = delete;

  /// The slot of the thread with this number (EpochGuard::thread_number). Null: no memory.
  Slot* Of(uint32_t thread_number) noexcept;

  /// Whether a batch with this sequence is being inserted. Called with the sequence of a record
  /// that was found.
  bool IsUnderWay(base::SequenceNumber sequence,
                  const std::atomic<base::SequenceNumber>& last_sequence) const noexcept;

  /// Below it nothing is under way, as far as is known without a look.
  base::SequenceNumber SettledBelow() const noexcept {
    return settled_.load(std::memory_order_acquire);
  }

  /// Waits until nothing up to `sequence` is under way.
  void AwaitAllUpTo(base::SequenceNumber sequence) const noexcept;

 private:
  static constexpr uint32_t kSlotsInBlock = 16;
  struct Block {
    Slot slots[kSlotsInBlock];
    std::atomic<Block*> next{nullptr};
  };

  template <class Visit>
  void ForEach(const Visit& visit) const;

  Block first_block_;
  /// Nothing below it is under way; known from an earlier look.
  mutable std::atomic<base::SequenceNumber> settled_{0};
};

}  // namespace basalt::memtable

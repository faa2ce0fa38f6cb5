#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "cache/memory_budget.h"

namespace basalt::cache {

/// Which hashes are due when: a hierarchical timing wheel (Varghese and Lauck, SOSP 1987) of 8-byte
/// records without deadlines, which stand in the entries.
///
///   level 0   64 slots of 256 ms        16 s
///   level 1   64 slots of 16.4 s        17 min
///   level 2   64 slots of 17.5 min      18.6 h
///   level 3   64 slots of 18.6 h        50 days; what is later goes into its last slot
///
/// A slot is a list of chunks of 64 hashes. When a slot's time has come, its hashes are handed to
/// the owner, who removes the entry, or, when its deadline is later (it was a slot of a higher
/// level, or the deadline moved), files it again. Nothing is ever taken out of the middle: a record
/// whose entry has gone is dropped when its time comes.
///
/// Cost: filing is O(1), one cache line; a record is handed over at most once a level. Not
/// thread-safe: under the shard's lock.
class TimingWheel {
 public:
  /// `now_ms`: the time at which it starts.
  TimingWheel(MemoryBudget* budget, uint64_t now_ms) noexcept;
  ~TimingWheel() { Clear(); }
  TimingWheel(const TimingWheel&) = delete;
  TimingWheel& operator=(const TimingWheel&) = delete;

  /// Before filing: an empty wheel does not go from slot to slot through the time that has passed.
  void SkipTo(uint64_t now_ms) noexcept {
    if (records_ == 0 && (now_ms >> kTickShift) > tick_) tick_ = now_ms >> kTickShift;
  }
  /// Ahead of a File: fetches what that will write.
  void PrefetchFor(uint64_t deadline_ms) const noexcept;
  /// False: no memory, no budget, or the wheel would take more than `bytes_max`.
  bool File(uint64_t hash, uint64_t deadline_ms, uint64_t bytes_max = UINT64_MAX) noexcept;

  /// Takes the next hash out of a slot whose time has come by `now_ms`. False: there is none (or
  /// so many slots have to be passed that the next call goes on).
  bool TakeDue(uint64_t now_ms, uint64_t* hash) noexcept;

  /// Whether TakeDue could have something to do.
  bool MayBeDue(uint64_t now_ms) const noexcept {
    return records_ != 0 && (due_ != nullptr || (now_ms >> kTickShift) > tick_);
  }

  void Clear() noexcept;

  uint64_t records() const noexcept { return records_; }
  /// Charged.
  uint64_t bytes() const noexcept { return bytes_; }

 private:
  static constexpr int kTickShift = 8;
  static constexpr int kLevels = 4;
  static constexpr int kSlotBits = 6;
  static constexpr size_t kSlots = size_t{1} << kSlotBits;

  struct Chunk {
    static constexpr size_t kHashes = 62;
    Chunk* next;
    uint64_t count;  ///< Not of a slot's first chunk.
    std::array<uint64_t, kHashes> hashes;
  };

  struct Place {
    size_t level;
    size_t slot;
  };

  Place PlaceOf(uint64_t deadline_ms) const noexcept;
  void FreeChunk(Chunk* chunk) noexcept;
  /// Goes on by one tick and moves what is due then to `due_`.
  void Tick() noexcept;
  void MoveToDue(size_t level, size_t slot) noexcept;

  MemoryBudget* const budget_;
  uint64_t tick_;  ///< Slots up to this one are due.
  uint64_t records_ = 0;
  uint64_t bytes_ = 0;
  Chunk* due_ = nullptr;
  std::array<std::array<Chunk*, kSlots>, kLevels> slots_{};
  /// Of the slots' first chunks. Apart from them, so that filing reads nothing of a chunk, which no
  /// processor's cache has: it only stores, and nobody waits for that.
  std::array<std::array<uint8_t, kSlots>, kLevels> first_counts_{};
};

}  // namespace basalt::cache

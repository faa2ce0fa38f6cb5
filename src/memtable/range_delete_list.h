#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/status.h"
#include "base/arena.h"
#include "base/internal_key.h"
#include "base/range_cover.h"
#include "memtable/record.h"

// The range deletes of a generation.
//
// They hang together in a list, newest first, and stay as long as the generation. Lookups that went
// through a list of 20,000 took 115 us. So it is flattened in parts, from its end on:
//
//   newest -> r -> r -> ... -> [ 64 ] -> [ 128 ] -> [ 512 ] -> [ 4,096 ] -> ... -> oldest
//             one by one         parts, in each of which a search finds the key
//
// Once 64 stand before the parts, the writer who sees that makes a part of them, and merges it with
// those behind it as long as the next is not larger than all of them together. So each is larger
// than all before it, and they are few; up to 8,192, which takes a writer a millisecond. What a
// reader is in never goes away: the smaller parts stay as long as the list.
//
// A part knows only the newest of its range deletes that covers a key. It does for all who read at
// or above all of them; who reads below all passes it by, and who reads in between, from a snapshot
// that was taken meanwhile, looks at its range deletes one by one.
//
// Cost, of n range deletes. A lookup: up to 64 of them, and a search in at most 7 + n / 8,192
// parts. A range delete: up to 7 steps of a merge, and 48 bytes for each.

namespace basalt::memtable {

/// One that was prepared. `sequence` 0: not visible yet.
struct RangeDelete {
  std::atomic<base::SequenceNumber> sequence{0};
  RangeDelete* next = nullptr;
  uint32_t keyspace = 0;
  bool is_of_several = false;
  std::string begin;
  std::string end;

  uint64_t ByteSize() const noexcept { return sizeof *this + begin.size() + end.size(); }
  bool Covers(uint32_t its_keyspace, std::string_view key) const noexcept {
    return keyspace == its_keyspace && begin <= key && key < end;
  }
};

/// Thread-safe.
class RangeDeleteList {
 public:
  /// Parts are charged to `budget`, beyond its limit if need be.
  explicit RangeDeleteList(base::ByteBudget* budget) noexcept : budget_(budget) {}
  ~RangeDeleteList();
  RangeDeleteList(const RangeDeleteList&) = delete;
  RangeDeleteList& operator=(const RangeDeleteList&) = delete;

  bool empty() const noexcept { return newest() == nullptr; }
  /// Null: there is none.
  const RangeDelete* newest() const noexcept { return newest_.load(std::memory_order_acquire); }
  /// All, the newest first, as they are when this is called.
  class Iterator {
   public:
    explicit Iterator(const RangeDelete* at) noexcept : at_(at) {}
    const RangeDelete& operator*() const noexcept { return *at_; }
    Iterator& operator++() noexcept {
      at_ = at_->next;
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const RangeDelete* at_;
  };
  Iterator begin() const noexcept { return Iterator(newest()); }
  Iterator end() const noexcept { return Iterator(nullptr); }

  /// Takes it over. It has its sequence.
  void Add(RangeDelete* range) noexcept;
  /// Flattens what has come since, if that is much and nobody else does it. `check`: leaves out
  /// what belongs to batches under way; null: who reads at a sequence has seen all up to it
  /// complete. Without memory nothing changes.
  void Flatten(BatchCheck* check) noexcept;

  /// The greatest sequence <= `at` of those that cover the key; 0: none. `check`: as for a lookup
  /// of the key.
  base::SequenceNumber SequenceAt(uint32_t keyspace, std::string_view key, base::SequenceNumber at,
                                  BatchCheck* check) const noexcept;
  /// Those of a keyspace up to `at`, all of which are complete: parts as a whole go to `covers`,
  /// the others to `loose`. They are valid as long as the list.
  void Collect(uint32_t keyspace, base::SequenceNumber at,
               std::vector<const base::RangeCover*>* covers,
               std::vector<base::RangeCover::Range>* loose) const;
  uint64_t count() const noexcept { return count_.load(std::memory_order_relaxed); }
  /// Of those that are in no part.
  uint64_t loose_count() const noexcept {
    return count() - flattened_count_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr uint64_t kPartMin = 64;
  static constexpr uint64_t kMergedMax = 8'192;

  /// Immutable.
  struct Part {
    const RangeDelete* first = nullptr;   ///< Its newest one.
    const RangeDelete* behind = nullptr;  ///< The first one that is not in it.
    const Part* older = nullptr;          ///< The one that begins there.
    uint64_t count = 0;
    base::SequenceNumber lowest = base::kMaxSequence;
    base::SequenceNumber highest = 0;
    std::map<uint32_t, base::RangeCover> covers;  ///< Of each keyspace.
  };

  /// Flattens those from `first` on, if they are enough. Throws std::bad_alloc.
  Status AddPart(const RangeDelete* first);
  /// Of the range deletes from `first` on that are in no part.
  Part PartOf(const RangeDelete* first) const;
  /// Of `part`, and those that follow it and are not larger than all before them, up to kMergedMax.
  static Part Merged(Part part);
  /// Calls `one` for each range delete that has to be looked at by itself, and `whole` for each
  /// part that does for all who read at `at`.
  template <class One, class Whole>
  void Visit(base::SequenceNumber at, const One& one, const Whole& whole) const;

  base::ByteBudget* const budget_;
  std::atomic<RangeDelete*> newest_{nullptr};
  std::atomic<const Part*> parts_{nullptr};  ///< The newest.
  std::atomic<uint64_t> count_{0};
  std::atomic<uint64_t> flattened_count_{0};  ///< Of those that are in parts.
  std::mutex flatten_mutex_;
  std::list<Part> made_;  ///< All that were ever published. Under flatten_mutex_.
};

}  // namespace basalt::memtable

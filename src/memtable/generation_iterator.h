#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/internal_key.h"
#include "base/record_iterator.h"
#include "memtable/run_set.h"
#include "memtable/sorted_run.h"

// A cut goes through all runs: what lies before it in any run is smaller than all that lies behind
// it. What is to be shown next has been passed by the cut already, and waits in a window:
//
//   shown before  | present, next, next, ...            | the rest of each run
//                   <- window: records on their way ->  cut
//
// So records are fetched in exactly the order in which they are shown, whatever runs they come
// from, and which run is next is decided, perhaps wrongly guessed, where nothing waits for memory.
// A change of direction seeks the present entry.
//
// Each run's cursor keeps, as a number that is compared without visiting a record, the prefix of
// its nearest entry in the direction of travel: behind the cut when going forwards (the prefix),
// before it when going backwards (its complement, so that the lowest is next in both). `rival_` is
// the lowest of all cursors but the nearest one: as long as that run stays below, it goes on
// without a look at the others. Where a run has less than a quarter of the entries of the one
// before it, most steps do.
//
// The window begins small, since most walks end soon, and is made twice as wide at a refill: first
// when all of it has been shown, so that a short scan fetches little that it does not show, then
// each time half has. How many lines of a record are fetched when it comes into the window is
// guessed from the size of the one that was shown last, at first from one of the newest run. They
// go to the processor's second cache, which can have several times as many lines on their way as
// the first: that is what bounds a walk over records in order of arrival. From there the first one
// gets the lines of a record's ends some records before a step shows it. The runs' entries are
// fetched ahead, too.
//
// The room of a wide window comes with the first refill, and cursors of many runs lie apart. So
// what a short scan needs is one small block, which the allocator has at hand.
//
// A walk forward takes what the window shows until the next refill at once, as far as it is plain
// puts: a step is then a look into an array, and the records' headers are read in one loop.
//
// Cost, on a Zen 4: some 6 ns a step forward over plain puts, 11 over others, more where there are
// many large runs; and 5 to 15 for the lines of a record that is in no cache.

namespace basalt::memtable {

/// Walks several runs as one. `runs` (null: none) and `own`, which must not have a version that
/// `runs` have, may hold versions above `visible`, which are passed over. `table` is what keeps all
/// records alive.
class GenerationIterator final : public base::RecordIterator {
 public:
  GenerationIterator(std::shared_ptr<const void> table, std::shared_ptr<const RunList> runs,
                     SortedRun own, base::SequenceNumber visible);

  void SeekToFirst() override;
  void SeekToLast() override;
  void Seek(std::string_view key, base::Tag tag) override;
  void SeekForPrev(std::string_view key, base::Tag tag) override;
  void SeekStep(int step, std::string_view key, base::Tag tag) override;
  void Next() override;
  void Prev() override;
  std::span<const base::PlainPut> PlainAhead(size_t passed,
                                             base::SequenceNumber at) noexcept override;

 private:
  enum class Direction : uint8_t { kForward, kBackward };

  struct Cursor {
    const SortedRun* run;
    const SortEntry* begin;
    const SortEntry* end;
    const SortEntry* cut;  // the first entry behind the cut
    uint64_t near;         // ~0 also when there is none
    PrefixShift shift;

    template <Direction direction>
    bool AtEnd() const noexcept {
      return cut == (direction == Direction::kForward ? end : begin);
    }
    // The entry that is next in the direction.
    template <Direction direction>
    const SortEntry& Nearest() const noexcept {
      return direction == Direction::kForward ? cut[0] : cut[-1];
    }
  };
  static constexpr size_t kFewRuns = 5;
  static constexpr size_t kWindowFirst = 12;
  static constexpr size_t kWindowMax = 64;
  static constexpr size_t kPlainMax = kWindowMax / 2;  // of a wide window, at once
  static constexpr size_t kSoon = 3;                   // so many records ahead of the one shown
  static constexpr ptrdiff_t kEntriesAhead = 32;       // of a run, of the one at its cut

  template <size_t kWindow, size_t kPlain>
  struct Waiting {
    // The one shown still waits when PlainAhead fills the window behind it.
    static constexpr size_t kPlaces = std::bit_ceil(1 + kWindow + kSoon);
    const Record* records[kPlaces];  // each at its number, modulo kPlaces
    base::PlainPut plain[kPlain];
  };
  using FewWaiting = Waiting<kWindowFirst, kWindowFirst>;
  using ManyWaiting = Waiting<kWindowMax, kPlainMax>;

  static void Begin(Cursor* cursor, const SortedRun& run) noexcept;
  void FindNear(std::string_view key) noexcept;
  void Cut(std::string_view key, base::Tag tag, bool after_equal) noexcept;
  template <Direction direction>
  static void LoadNear(Cursor* cursor) noexcept;
  template <Direction direction>
  static bool IsNearer(const Cursor& a, const Cursor& b) noexcept;
  template <Direction direction>
  bool Choose() noexcept;
  template <Direction direction>
  void Start() noexcept;
  template <Direction direction>
  void ShowFirst() noexcept;
  template <Direction direction>
  void Turn() noexcept;
  template <Direction direction>
  void Fill(size_t full) noexcept;
  bool WaitForMany() noexcept;
  template <Direction direction>
  bool Refill() noexcept;
  template <Direction direction>
  void ShowNext() noexcept;
  void Show(const Record& record, base::Tag tag) noexcept;
  void FetchSoon() const noexcept;
  void GuessBytes() noexcept;

  template <class Room>
  void WaitIn(Room* room) noexcept {
    records_ = room->records;
    last_place_ = Room::kPlaces - 1;
    plain_ = room->plain;
  }
  const Record*& RecordAt(size_t number) const noexcept { return records_[number & last_place_]; }

  const std::shared_ptr<const void> table_;
  const std::shared_ptr<const RunList> runs_;
  const SortedRun own_;
  const base::SequenceNumber visible_;
  std::span<Cursor> cursors_;  // of the runs that are not empty
  Cursor* nearest_ = nullptr;  // whose nearest entry comes into the window next
  uint64_t rival_ = 0;
  bool has_more_ = false;  // there is one
  Direction direction_ = Direction::kForward;

  // The window: entries [shown_, filled_), by their number since the start.
  size_t shown_ = 0;
  size_t filled_ = 0;
  size_t refill_at_ = 0;             // when shown_ is here
  size_t window_ = 0;                // so many entries it is to have
  const Record* typical_ = nullptr;  // shown last; at first, one of the newest
  size_t likely_bytes_ = 0;          // of a record, as of that one
  const Record** records_;           // these three are of the one or of the other room
  size_t last_place_;
  base::PlainPut* plain_;
  FewWaiting few_waiting_;
  std::unique_ptr<ManyWaiting> many_waiting_;  // null before the first refill
  Cursor few_cursors_[kFewRuns];
  std::unique_ptr<Cursor[]> many_cursors_;
};

}  // namespace basalt::memtable

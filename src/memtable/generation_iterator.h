#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/internal_key.h"
#include "base/record_iterator.h"
#include "memtable/run_set.h"
#include "memtable/sorted_run.h"

// The place is a cut through all runs: what lies before it in any run is smaller than all that lies
// behind it. The present entry is the first one behind the cut. A step in either direction moves
// the cut over one entry of one run, so a change of direction needs no search.
//
// Each run's cursor keeps, as a number that is compared without visiting a record, the prefix of
// its nearest entry in the direction of travel: behind the cut when going forwards (the prefix),
// before it when going backwards (its complement, so that the lowest is next in both). `rival_` is
// the lowest of all cursors but the present one: as long as the present run stays below, it goes on
// without a look at the others. Since a run is at most half as large as the one before it, most
// steps do.
//
// Cost: a few ns a step, the record prefetched: each run so far ahead as its share of all entries
// suggests.

namespace basalt::memtable {

/// Walks several runs as one. `runs` (null: none) may hold versions above `visible`, which are
/// passed over; `own` must not, nor any version that `runs` have. `table` is what keeps all records
/// alive.
class GenerationIterator final : public base::RecordIterator {
 public:
  GenerationIterator(std::shared_ptr<const void> table, std::shared_ptr<const RunList> runs,
                     SortedRun own, base::SequenceNumber visible);

  void SeekToFirst() override;
  void SeekToLast() override;
  void Seek(std::string_view key, base::Tag tag) override;
  void SeekForPrev(std::string_view key, base::Tag tag) override;
  void Next() override;
  void Prev() override;

 private:
  enum class Direction : uint8_t { kForward, kBackward };

  struct Cursor {
    const SortEntry* begin;
    const SortEntry* end;
    const SortEntry* cut;  // the first entry behind the cut
    uint64_t near = 0;     // ~0 also when there is none
    size_t ahead = 0;      // so far are records prefetched
    PrefixShift shift;
    const SortedRun* run;

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

  void AddCursor(const SortedRun& run);
  template <Direction direction>
  static void LoadNear(Cursor* cursor) noexcept;
  template <Direction direction>
  static bool IsNearer(const Cursor& a, const Cursor& b) noexcept;
  template <Direction direction>
  static void Prefetch(const Cursor& cursor, size_t distance) noexcept;
  template <Direction direction>
  void Turn() noexcept;
  template <Direction direction>
  void Start() noexcept;
  template <Direction direction>
  bool Choose() noexcept;
  template <Direction direction>
  bool ChooseIfPassed() noexcept;
  void ShowForward(bool any) noexcept;
  void ShowBackward(bool any) noexcept;
  bool Show(const Record& record) noexcept;

  const std::shared_ptr<const void> table_;
  const std::shared_ptr<const RunList> runs_;
  const SortedRun own_;
  const base::SequenceNumber visible_;
  std::vector<Cursor> cursors_;
  Cursor* present_ = nullptr;  // whose entry is the present one
  uint64_t rival_ = 0;
  Direction direction_ = Direction::kForward;
};

}  // namespace basalt::memtable

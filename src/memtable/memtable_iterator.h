#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "base/internal_key.h"
#include "base/record_iterator.h"
#include "memtable/sorted_run.h"

namespace basalt::memtable {

/// Walks two runs as one. `shared` may hold versions above `visible`, which are passed over; `own`
/// must not, nor any version that `shared` has. `table` is what keeps all records alive.
///
/// The place is a cut through both runs: all entries before (shared_at, own_at) are smaller than
/// all from there on, and the lesser of the two entries at the cut is the present one. A step in
/// either direction moves the cut over one entry of one run.
class MemTableIterator final : public base::RecordIterator {
 public:
  MemTableIterator(std::shared_ptr<const void> table, std::shared_ptr<const SortedRun> shared,
                   SortedRun own, base::SequenceNumber visible) noexcept;

  void SeekToFirst() override;
  void SeekToLast() override;
  void Seek(std::string_view key, base::Tag tag) override;
  void SeekForPrev(std::string_view key, base::Tag tag) override;
  void Next() override;
  void Prev() override;

 private:
  bool PresentIsOwn() const noexcept;
  void ShowAtOrAfterCut() noexcept;
  void ShowBeforeCut() noexcept;
  bool Show(const Record& record) noexcept;

  std::shared_ptr<const void> table_;
  std::shared_ptr<const SortedRun> shared_;
  SortedRun own_;
  base::SequenceNumber visible_;
  size_t shared_at_ = 0;
  size_t own_at_ = 0;
};

}  // namespace basalt::memtable

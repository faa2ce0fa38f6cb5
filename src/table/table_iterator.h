#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "base/record_iterator.h"
#include "table/block_portion.h"
#include "table/block_ref.h"
#include "table/read_ahead.h"
#include "table/table.h"

namespace basalt::table {

/// Walks a table: a position in the index, and a cursor in the block that it names. Holds the table
/// and the present block. What lies ahead of a run of blocks is loaded by the system meanwhile.
class TableIterator final : public base::RecordIterator {
 public:
  TableIterator(std::shared_ptr<const Table> table, bool fill_cache)
      : table_(std::move(table)), fill_cache_(fill_cache) {}

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
  /// Makes block `index` the present one; false: an error ended the iteration.
  bool OpenBlock(size_t index);
  /// Of a seek in steps: it goes to the first record of the next block.
  void SeekNextBlock();
  /// To the last record of the block before the present one.
  void EnterPreviousBlock();
  /// To record `index` of the present block. Only here does the cursor leave its old block: a
  /// seek's target may be this iterator's own key.
  void MoveTo(uint32_t index) {
    if (cursor_is_stale_) cursor_.Reset(*block_);
    cursor_is_stale_ = false;
    cursor_.MoveTo(index);
    Publish();
    // The first values; of those that follow, each step asks for one. Whoever comes to a block's
    // end goes backward.
    const bool goes_backward = index != 0 && index + 1 == block_->count();
    const char* const first = value_.data() - (goes_backward ? kPrefetchedBytes : 0);
    for (size_t at = 0; at <= kPrefetchedBytes; at += kLineBytes) __builtin_prefetch(first + at);
  }
  /// Shows the cursor's record.
  void Publish() noexcept {
    key_ = cursor_.key();
    tag_ = cursor_.tag();
    time_ms_ = cursor_.time_ms();
    value_ = cursor_.value();
    valid_ = true;
  }

  static constexpr size_t kLineBytes = 64;
  /// So far ahead of the present value, in either direction, are values loaded: a table's part of a
  /// merged scan is too short for the processor to foresee it.
  static constexpr size_t kPrefetchedBytes = 4 * kLineBytes;
  /// PlainAhead gives a few, and twice as many each time, as long as all of them are passed.
  static constexpr size_t kAheadFirst = 4;

  std::shared_ptr<const Table> table_;
  const bool fill_cache_;
  BlockRef block_;
  size_t block_index_ = 0;  // of block_, unless that is empty
  BlockCursor cursor_;
  bool cursor_is_stale_ = false;  // the cursor knows nothing of block_ yet
  BlockPortion portion_;
  size_t given_ = 0;      // by the last PlainAhead
  size_t given_max_ = 0;  // so many were wanted then
  // Of a seek in steps: the block and the record that it goes to, and why it cannot.
  size_t sought_index_ = 0;
  uint32_t sought_record_ = 0;
  Status sought_status_;
  ReadAhead ahead_;
};

}  // namespace basalt::table

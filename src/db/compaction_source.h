#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "base/record_iterator.h"
#include "db/compaction_plan.h"
#include "db/version.h"

namespace basalt::db {

/// The tables of a level below level 0 that a compaction reads, as one run of records. Opens a
/// table when it gets there and lets go of it once it has passed it, so that a table whose file is
/// removed meanwhile gives its space back. Blocks that it reads are not cached. Only goes forward:
/// the other moves are failed checks.
class RunIterator final : public base::RecordIterator {
 public:
  /// `tables`: in key order, with disjoint key ranges.
  explicit RunIterator(TableFiles tables) : tables_(std::move(tables)) {}

  void SeekToFirst() override;
  void Next() override;
  void SeekToLast() override;
  void Seek(std::string_view key, base::Tag tag) override;
  void SeekForPrev(std::string_view key, base::Tag tag) override;
  void Prev() override;

  /// Roughly the bytes that the present table's file still has for this iterator.
  uint64_t bytes_left() const noexcept;

 private:
  void Settle();

  TableFiles tables_;  // those that it has passed are null
  size_t present_ = 0;
  uint64_t records_passed_ = 0;  // of the present table
  std::unique_ptr<base::RecordIterator> inner_;
};

/// All that a compaction reads, merged; each level below level 0 is a RunIterator.
struct CompactionSource {
  std::unique_ptr<base::RecordIterator> records;
  const RunIterator* output_level = nullptr;  ///< What it reads there; null: nothing.
};

/// Fails when a table of level 0 cannot be opened; others are opened on the way.
Result<CompactionSource> NewCompactionSource(const CompactionJob& job);

}  // namespace basalt::db

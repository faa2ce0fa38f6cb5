#include "table/table_iterator.h"

#include <algorithm>

namespace basalt::table {

bool TableIterator::OpenBlock(size_t index) {
  status_ = Status();
  if (block_ && block_index_ == index) return true;
  Result<BlockRef> block = table_->ReadBlock(index, fill_cache_, &ahead_);
  if (!block) {
    status_ = block.error();
    valid_ = false;
    return false;
  }
  block_ = std::move(*block);
  block_index_ = index;
  cursor_is_stale_ = true;
  portion_.Leave();
  return true;
}

void TableIterator::SeekToFirst() {
  if (!OpenBlock(0)) return;
  MoveTo(0);
}

void TableIterator::SeekToLast() {
  if (!OpenBlock(table_->block_count() - 1)) return;
  MoveTo(block_->count() - 1);
}

void TableIterator::Seek(std::string_view key, base::Tag tag) {
  for (int step = 0; step < kSeekSteps; ++step) SeekStep(step, key, tag);
}

// Each step waits for memory once: for the index, the block's hint, its prefixes, its record.
void TableIterator::SeekStep(int step, std::string_view key, base::Tag tag) {
  static_assert(kSeekSteps == 4);
  if (step == 0) {
    const Result<size_t> index = table_->FindBlock(key, tag);
    sought_status_ = index.status();
    sought_index_ = index ? *index : table_->block_count();
  }
  if (sought_index_ == table_->block_count()) {
    status_ = sought_status_;
    valid_ = false;
    return;
  }
  switch (step) {
    case 0:
      return table_->PrefetchHint(sought_index_);
    case 1:
      return table_->PrefetchSearch(sought_index_);
    case 2:
      if (!OpenBlock(sought_index_)) {
        sought_status_ = status_;
        sought_index_ = table_->block_count();
        return;
      }
      sought_record_ = block_->LowerBound(key, tag);
      if (sought_record_ == block_->count()) return SeekNextBlock();
      return block_->PrefetchRecord(sought_record_);
    default:
      MoveTo(sought_record_);
  }
}

// The target lies between a block's last record and its separator.
void TableIterator::SeekNextBlock() {
  sought_record_ = 0;
  if (++sought_index_ == table_->block_count()) {
    sought_status_ = Status();
  } else if (!OpenBlock(sought_index_)) {
    sought_status_ = status_;
    sought_index_ = table_->block_count();
  }
}

void TableIterator::SeekForPrev(std::string_view key, base::Tag tag) {
  const Result<size_t> index = table_->FindBlock(key, tag);
  if (!index) {
    status_ = index.error();
    valid_ = false;
    return;
  }
  if (*index == table_->block_count()) return SeekToLast();
  if (!OpenBlock(*index)) return;
  const uint32_t record = block_->LowerBound(key, tag);
  if (record < block_->count() && block_->tag(record) == tag && block_->KeyEquals(record, key)) {
    MoveTo(record);
  } else if (record > 0) {
    MoveTo(record - 1);
  } else {
    EnterPreviousBlock();
  }
}

void TableIterator::Next() {
  cursor_.Next();
  if (cursor_.Valid()) [[likely]] {
    Publish();
    __builtin_prefetch(value_.data() + kPrefetchedBytes);
  } else if (block_index_ + 1 == table_->block_count()) {
    valid_ = false;
  } else if (OpenBlock(block_index_ + 1)) {
    MoveTo(0);
  }
}

void TableIterator::Prev() {
  cursor_.Prev();
  if (cursor_.Valid()) [[likely]] {
    Publish();
    __builtin_prefetch(value_.data() - kPrefetchedBytes);
  } else {
    EnterPreviousBlock();
  }
}

std::span<const base::PlainPut> TableIterator::PlainAhead(size_t passed,
                                                          base::SequenceNumber at) noexcept {
  if (passed != 0) {
    cursor_.MoveTo(cursor_.index() + static_cast<uint32_t>(passed));
    Publish();
  }
  const bool goes_on = passed != 0 && passed == given_;
  given_max_ = goes_on ? std::min(2 * given_max_, BlockPortion::kRecordsMax) : kAheadFirst;
  const auto ahead = portion_.Take(*block_, cursor_.index() + 1, given_max_, base::SeekTag(at));
  given_ = ahead.size();
  return ahead;
}

void TableIterator::EnterPreviousBlock() {
  if (block_index_ == 0) {
    valid_ = false;
    return;
  }
  if (!OpenBlock(block_index_ - 1)) return;
  MoveTo(block_->count() - 1);
}

}  // namespace basalt::table

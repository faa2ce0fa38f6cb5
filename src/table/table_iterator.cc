#include "table/table_iterator.h"

namespace basalt::table {

bool TableIterator::OpenBlock(size_t index) {
  status_ = Status();
  if (block_ != nullptr && block_index_ == index) return true;
  Result<std::shared_ptr<const Block>> block = table_->ReadBlock(index, fill_cache_);
  if (!block) {
    status_ = block.error();
    valid_ = false;
    return false;
  }
  block_ = std::move(*block);
  block_index_ = index;
  cursor_.Reset(*block_);
  return true;
}

void TableIterator::SeekToFirst() {
  if (!OpenBlock(0)) return;
  cursor_.MoveTo(0);
  Publish();
}

void TableIterator::SeekToLast() {
  if (!OpenBlock(table_->block_count() - 1)) return;
  cursor_.MoveTo(block_->count() - 1);
  Publish();
}

void TableIterator::Seek(std::string_view key, base::Tag tag) {
  const size_t index = table_->FindBlock(key, tag);
  if (index == table_->block_count()) {
    status_ = Status();
    valid_ = false;
    return;
  }
  if (!OpenBlock(index)) return;
  cursor_.MoveTo(block_->LowerBound(key, tag));
  Publish();
}

void TableIterator::SeekForPrev(std::string_view key, base::Tag tag) {
  const size_t index = table_->FindBlock(key, tag);
  if (index == table_->block_count()) return SeekToLast();
  if (!OpenBlock(index)) return;
  const uint32_t record = block_->LowerBound(key, tag);
  if (block_->tag(record) == tag && block_->KeyEquals(record, key)) {
    cursor_.MoveTo(record);
  } else if (record > 0) {
    cursor_.MoveTo(record - 1);
  } else {
    return EnterPreviousBlock();
  }
  Publish();
}

void TableIterator::Next() {
  cursor_.Next();
  if (!cursor_.Valid()) [[unlikely]] {
    if (block_index_ + 1 == table_->block_count()) {
      valid_ = false;
      return;
    }
    if (!OpenBlock(block_index_ + 1)) return;
    cursor_.MoveTo(0);
  }
  Publish();
}

void TableIterator::Prev() {
  cursor_.Prev();
  if (!cursor_.Valid()) [[unlikely]]
    return EnterPreviousBlock();
  Publish();
}

void TableIterator::EnterPreviousBlock() {
  if (block_index_ == 0) {
    valid_ = false;
    return;
  }
  if (!OpenBlock(block_index_ - 1)) return;
  cursor_.MoveTo(block_->count() - 1);
  Publish();
}

}  // namespace basalt::table

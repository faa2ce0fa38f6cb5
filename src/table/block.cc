#include "table/block.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/branchless_search.h"
#include "base/check.h"
#include "base/coding.h"
#include "table/table_format.h"

namespace basalt::table {
namespace {

Status Corrupt(std::string_view what) { return Status(StatusCode::kCorruption, what); }

Status CorruptRecord(uint32_t i, std::string_view what) {
  return Corrupt("record " + std::to_string(i) + " of the block " + std::string(what));
}

std::string_view KindName(RecordKind kind) noexcept {
  switch (kind) {
    case RecordKind::kPut:
      return "put";
    case RecordKind::kDelete:
      return "delete";
    case RecordKind::kDeleteRange:
      return "range delete";
    case RecordKind::kMerge:
      return "merge";
    case RecordKind::kBlobReference:
      return "blob reference";
      break;  // Never in a table.
  }
  return "unknown";
}

Status UnsupportedKind(uint32_t i, RecordKind kind) {
  return Status(StatusCode::kUnsupported,
                "record " + std::to_string(i) + " of the block is of kind " +
                    std::to_string(static_cast<unsigned>(kind)) + " (" +
                    std::string(KindName(kind)) +
                    "), which this version cannot read; open it with the version that wrote it");
}

// Asks for all cache lines of a short column at once, which the search would else wait for one by
// one. Of a long column a search touches few.
void PrefetchColumn(const uint64_t* numbers, uint32_t n) noexcept {
  constexpr uint32_t kNumbersALine = 8;
  if (n > Block::kSearchedLinesMax * kNumbersALine) return;
  for (uint32_t i = 0; i < n; i += kNumbersALine) __builtin_prefetch(numbers + i);
}

}  // namespace

namespace {

/// A block and its bytes.
struct OwnedBlock : Block {
  OwnedBlock(Block block, BlockBuffer kept) noexcept : Block(block), buffer(std::move(kept)) {}
  BlockBuffer buffer;
};

}  // namespace

Result<std::shared_ptr<const Block>> Block::Parse(BlockBuffer buffer, Content content) {
  BASALT_ASSIGN_OR_RETURN(const Block block, Parse({buffer.bytes.get(), buffer.size}, content));
  return std::shared_ptr<const Block>(std::make_shared<OwnedBlock>(block, std::move(buffer)));
}

void Block::FindColumns(std::string_view raw) noexcept {
  const char* const at = raw.data();
  size_ = raw.size();
  count_ = base::Load<uint32_t>(at);
  const auto flags = base::Load<uint32_t>(at + 4);
  wide_ = (flags & kFlagWide) != 0;
  const bool timed = (flags & kFlagTimed) != 0;
  shared_bytes_ = base::Load<uint16_t>(at + 8);
  const size_t end_bytes = wide_ ? 4 : 2;
  prefixes_ = reinterpret_cast<const uint64_t*>(at + kHeaderBytes);
  tags_ = prefixes_ + count_;
  times_ = timed ? tags_ + count_ : nullptr;
  rest_ends_ = reinterpret_cast<const char*>(tags_ + count_ * (timed ? 2 : 1));
  value_ends_ = rest_ends_ + count_ * end_bytes;
  prefix_bytes_ = reinterpret_cast<const uint8_t*>(value_ends_ + count_ * end_bytes);
  shared_ = reinterpret_cast<const char*>(prefix_bytes_ + count_);
  rests_ = shared_ + shared_bytes_;
}

Block::Extent Block::extent() const noexcept {
  return {.size = size_,
          .key_bytes_max = key_bytes_max_,
          .values_at = static_cast<uint64_t>(values_ - raw())};
}

Block Block::Attach(const char* raw, const Extent& extent) noexcept {
  Block block;
  block.FindColumns({raw, extent.size});
  block.key_bytes_max_ = extent.key_bytes_max;
  block.values_ = raw + extent.values_at;
  return block;
}

Result<Block> Block::Parse(std::string_view raw, Content content) {
  if (raw.size() < kHeaderBytes) return Corrupt("the block is shorter than its header");
  const char* const at = raw.data();
  const auto count = base::Load<uint32_t>(at);
  const auto flags = base::Load<uint32_t>(at + 4);
  if ((flags & ~(kFlagWide | kFlagTimed)) != 0) {
    return Status(StatusCode::kUnsupported,
                  "the block has flags " + std::to_string(flags) +
                      ", which this version cannot read; open it with the version that wrote it");
  }
  if (base::Load<uint16_t>(at + 10) != 0 || base::Load<uint32_t>(at + 12) != 0) {
    return Corrupt("the block's reserved bytes are not zero");
  }
  const uint64_t columns = kHeaderBytes + uint64_t{count} * RecordBytes((flags & kFlagWide) != 0,
                                                                        (flags & kFlagTimed) != 0);
  if (count == 0 || columns + base::Load<uint16_t>(at + 8) > raw.size()) {
    return Corrupt("the block says that it has " + std::to_string(count) + " records, in " +
                   std::to_string(raw.size()) + " bytes");
  }
  Block block;
  block.FindColumns(raw);
  const uint64_t rest_bytes = block.End(block.rest_ends_, count - 1);
  block.values_ = block.rests_ + rest_bytes;
  const uint64_t value_bytes = block.End(block.value_ends_, count - 1);
  if (columns + block.shared_bytes_ + rest_bytes + value_bytes != raw.size()) {
    return Corrupt("the block's columns do not fill its " + std::to_string(raw.size()) + " bytes");
  }
  BASALT_RETURN_IF_ERROR(block.wide_ ? block.Validate<uint32_t>(content)
                                     : block.Validate<uint16_t>(content));
  return block;
}

Status Block::ValidateRecord(uint32_t i, size_t value_bytes) const {
  const RecordKind kind = base::TagKind(tags_[i]);
  if (kind == RecordKind::kPut) return Status();
  if (kind == RecordKind::kMerge) {
    if (value_bytes == 0) return CorruptRecord(i, "is a merge without an operator");
    if (time_ms(i) == 0) return CorruptRecord(i, "is a merge without a time");
    return Status();
  }
  if (kind != RecordKind::kDelete) return UnsupportedKind(i, kind);
  if (value_bytes != 0) return CorruptRecord(i, "is a delete with a value");
  if (time_ms(i) != 0) return CorruptRecord(i, "is a delete with a time");
  return Status();
}

template <class EndType>
Status Block::Validate(Content content) {
  if (times_ != nullptr) {
    if (content == Content::kIndex) return Corrupt("the index has times");
    if (std::all_of(times_, times_ + count_, [](uint64_t time_ms) { return time_ms == 0; })) {
      return Corrupt("the block has a column of times that are all zero");
    }
  }
  const auto* rest_ends = reinterpret_cast<const EndType*>(rest_ends_);
  const auto* value_ends = reinterpret_cast<const EndType*>(value_ends_);
  size_t rest_begin = 0;
  size_t value_begin = 0;
  // Ends first: the order of records with equal prefixes is read through them.
  for (uint32_t i = 0; i < count_; ++i) {
    if (rest_ends[i] < rest_begin || value_ends[i] < value_begin) {
      return CorruptRecord(i, "ends before it begins");
    }
    const size_t rest_bytes = rest_ends[i] - rest_begin;
    const size_t value_bytes = value_ends[i] - value_begin;
    const size_t prefix_bytes = prefix_bytes_[i];
    rest_begin = rest_ends[i];
    value_begin = value_ends[i];
    if (prefix_bytes > 8 ||
        (prefix_bytes < 8 && (rest_bytes != 0 || prefixes_[i] << (8 * prefix_bytes) != 0))) {
      return CorruptRecord(i, "has a malformed key prefix");
    }
    key_bytes_max_ = std::max(key_bytes_max_, shared_bytes_ + prefix_bytes + rest_bytes);
    if (content == Content::kIndex) {
      if (value_bytes != sizeof(BlockHandle)) return CorruptRecord(i, "is not a block handle");
      continue;
    }
    BASALT_RETURN_IF_ERROR(ValidateRecord(i, value_bytes));
  }
  if (key_bytes_max_ > kMaxKeyBytes) {
    return Corrupt("the block has a key of " + std::to_string(key_bytes_max_) + " bytes");
  }
  for (uint32_t i = 1; i < count_; ++i) {
    if (prefixes_[i - 1] < prefixes_[i]) continue;
    if (prefixes_[i - 1] > prefixes_[i] ||
        CompareAtEqualPrefix(i - 1, prefix_bytes_[i], rest(i), tags_[i]) >= 0) {
      return CorruptRecord(i, "is out of order");
    }
  }
  return Status();
}

int Block::CompareAtEqualPrefix(uint32_t i, size_t prefix_bytes, std::string_view key_rest,
                                base::Tag tag) const noexcept {
  if (prefix_bytes_[i] != prefix_bytes) return prefix_bytes_[i] < prefix_bytes ? -1 : 1;
  if (const int order = rest(i).compare(key_rest); order != 0) return order;
  return tags_[i] > tag ? -1 : (tags_[i] < tag ? 1 : 0);
}

void Block::PrefetchRecord(uint32_t i) const noexcept {
  if (i >= count_) return;
  const size_t end_bytes = wide_ ? sizeof(uint32_t) : sizeof(uint16_t);
  __builtin_prefetch(tags_ + i);
  if (times_ != nullptr) __builtin_prefetch(times_ + i);
  __builtin_prefetch(prefix_bytes_ + i);
  if (rests_ != values_) __builtin_prefetch(rest_ends_ + i * end_bytes);
  __builtin_prefetch(value_ends_ + i * end_bytes);
}

uint32_t Block::LowerBound(std::string_view key, base::Tag tag) const noexcept {
  PrefetchColumn(prefixes_, count_);
  if (const int order = key.substr(0, shared_bytes_).compare(shared()); order != 0) {
    return order < 0 ? 0 : count_;
  }
  const uint64_t prefix = base::KeyPrefix(key, shared_bytes_);
  auto low = static_cast<uint32_t>(base::FirstNotBelow(prefixes_, count_, prefix));
  if (low == count_ || prefixes_[low] != prefix) return low;

  const std::string_view own = key.substr(shared_bytes_);
  const size_t prefix_bytes = std::min<size_t>(own.size(), 8);
  const std::string_view key_rest = own.substr(prefix_bytes);
  if (CompareAtEqualPrefix(low, prefix_bytes, key_rest, tag) >= 0) return low;
  // Record `low` lies before the target; `high` and all behind it do not.
  uint32_t high = count_;
  while (high - low > 1) {
    const uint32_t middle = low + (high - low) / 2;
    const bool before = prefixes_[middle] == prefix &&
                        CompareAtEqualPrefix(middle, prefix_bytes, key_rest, tag) < 0;
    (before ? low : high) = middle;
  }
  return high;
}

std::string Block::Key(uint32_t i) const {
  BlockCursor cursor;
  cursor.Reset(*this);
  cursor.MoveTo(i);
  return std::string(cursor.key());
}

void BlockCursor::Reset(const Block& block) {
  block_ = &block;
  index_ = block.count_;
  const size_t needed = block.key_bytes_max_ + Block::kKeySlackBytes;
  if (key_capacity_ < needed) {
    key_ = std::make_unique_for_overwrite<char[]>(needed);
    key_capacity_ = needed;
  }
  __builtin_memcpy(key_.get(), block.shared_, block.shared_bytes_);
}

}  // namespace basalt::table

#include "text/postings.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/coding.h"
#include "base/out_of_memory.h"
#include "phash/packed_bits.h"

namespace basalt::text {
namespace {

using phash::PackedBits;

constexpr char kVersion = 1;
// PackedBits reads whole words, and one behind them.
constexpr size_t kPaddingBytes = 16;

void AppendVarint(std::string* out, uint64_t value) {
  char bytes[base::kVarintBytesMax];
  out->append(bytes, base::StoreVarint(bytes, value));
}

constexpr uint64_t PackedBytes(uint64_t count, uint32_t width) noexcept {
  return (count * width + 7) / 8;
}

/// Appends numbers of `width` bits.
template <class Numbers>
void AppendPacked(const Numbers& numbers, uint32_t width, std::string* out) {
  const size_t begin = out->size();
  out->resize(begin + PackedBytes(numbers.size(), width) + kPaddingBytes, '\0');
  for (size_t i = 0; i < numbers.size(); ++i) {
    PackedBits::Add(out->data() + begin, i, width, numbers[i]);
  }
  out->resize(begin + PackedBytes(numbers.size(), width));
}

template <class Numbers>
uint32_t WidthOf(const Numbers& numbers) noexcept {
  uint64_t all = 0;
  for (const uint64_t number : numbers) all |= number;
  return static_cast<uint32_t>(std::bit_width(all));
}

}  // namespace

void PostingsBuilder::Add(const Posting& posting) {
  const bool ascends = pending_.empty() ? count_ == 0 || posting.document > last_document_
                                        : posting.document > pending_.back().document;
  BASALT_CHECK(ascends && posting.document < kNoDocument);
  const auto frequency = static_cast<uint32_t>(posting.positions.size());
  for (uint32_t before = UINT32_MAX; const uint32_t position : posting.positions) {
    pending_positions_.push_back(position - before - 1);
    before = position;
  }
  pending_.push_back({posting.document, frequency == 0 ? 0 : posting.length, frequency});
  ++count_;
  if (frequency == 0) {
    ++removals_;
  } else {
    frequency_max_ = std::max(frequency_max_, frequency);
    length_min_ = std::min(length_min_, posting.length);
  }
  if (pending_.size() == kPostingsBlock) WriteBlock();
}

void PostingsBuilder::WriteBlock() {
  const bool is_first = count_ == pending_.size();
  uint32_t length_min = UINT32_MAX;
  for (const Pending& posting : pending_) {
    if (posting.frequency != 0) length_min = std::min(length_min, posting.length);
  }
  if (length_min == UINT32_MAX) length_min = 0;
  std::vector<uint64_t> gaps;
  std::vector<uint32_t> frequencies;
  std::vector<uint32_t> lengths;
  for (size_t i = 0; i < pending_.size(); ++i) {
    const Pending& posting = pending_[i];
    if (i > 0) gaps.push_back(posting.document - pending_[i - 1].document - 1);
    frequencies.push_back(posting.frequency);
    lengths.push_back(posting.frequency == 0 ? 0 : posting.length - length_min);
  }
  const uint32_t widths[] = {
      WidthOf(gaps), WidthOf(frequencies), WidthOf(lengths),
      pending_positions_.empty() ? 0 : std::max(1U, WidthOf(pending_positions_))};

  std::string block;
  AppendVarint(&block, pending_.back().document - last_document_);
  block.push_back(static_cast<char>(pending_.size() - 1));
  for (const uint32_t width : widths) block.push_back(static_cast<char>(width));
  AppendVarint(&block, pending_.front().document - last_document_ - (is_first ? 0 : 1));
  AppendVarint(&block, length_min);
  AppendPacked(gaps, widths[0], &block);
  AppendPacked(frequencies, widths[1], &block);
  AppendPacked(lengths, widths[2], &block);
  AppendPacked(pending_positions_, widths[3], &block);

  AppendVarint(&blocks_, block.size());
  blocks_ += block;
  last_document_ = pending_.back().document;
  pending_.clear();
  pending_positions_.clear();
}

std::string PostingsBuilder::Finish() {
  BASALT_CHECK(!empty());
  if (!pending_.empty()) WriteBlock();
  std::string segment(1, kVersion);
  AppendVarint(&segment, count_);
  AppendVarint(&segment, removals_);
  AppendVarint(&segment, frequency_max_);
  AppendVarint(&segment, count_ == removals_ ? 0 : length_min_);
  segment += blocks_;
  *this = PostingsBuilder();
  return segment;
}

void PostingsCursor::LoadBlock(uint64_t target) {
  at_ = 0;
  count_ = 0;
  DoLoadBlock(target);
  if (count_ == 0) {
    document_max_ = kNoDocument;
    return;
  }
  document_max_ = documents_[count_ - 1];
  const auto begin = documents_.begin();
  const auto end = begin + static_cast<ptrdiff_t>(count_);
  at_ = static_cast<size_t>(std::lower_bound(begin, end, target) - begin);
}

void PostingsCursor::Seek(uint64_t target) {
  if (document() >= target) return;
  if (target > document_max_) {
    LoadBlock(target);
    return;
  }
  const auto begin = documents_.begin();
  const auto end = begin + static_cast<ptrdiff_t>(count_);
  at_ = static_cast<size_t>(std::lower_bound(begin + static_cast<ptrdiff_t>(at_), end, target) -
                            begin);
}

void PostingsCursor::Fail(Status error) noexcept {
  if (status_.ok()) status_ = std::move(error);
  at_ = 0;
  count_ = 0;
  document_max_ = kNoDocument;
}

SegmentCursor::SegmentCursor(std::string_view segment) : segment_(segment) {
  ReadHeader();
  if (status_.ok()) LoadBlock(0);
}

void SegmentCursor::Malformed(std::string_view what) {
  Fail(base::ErrorThatSays(StatusCode::kCorruption, [&] {
    return "reading a segment of postings, block at offset " + std::to_string(next_block_) + ": " +
           std::string(what);
  }));
}

void SegmentCursor::ReadHeader() {
  if (segment_.empty() || segment_[0] != kVersion) {
    Fail(Status(segment_.empty() ? StatusCode::kCorruption : StatusCode::kUnsupported,
                "reading a segment of postings: it is not of version 1"));
    return;
  }
  base::Decoder in(segment_);
  in.Read<uint8_t>();
  postings_ = in.ReadVarint();
  removals_ = in.ReadVarint();
  const uint64_t frequency_max = in.ReadVarint();
  const uint64_t length_min = in.ReadVarint();
  next_block_ = in.position();
  if (!in.ok() || postings_ == 0 || removals_ > postings_ || frequency_max > UINT32_MAX ||
      length_min > UINT32_MAX) {
    Malformed("its header is malformed");
    return;
  }
  frequency_max_ = static_cast<uint32_t>(frequency_max);
  length_min_ = static_cast<uint32_t>(length_min);
}

void SegmentCursor::DoLoadBlock(uint64_t target) {
  while (next_block_ < segment_.size()) {
    base::Decoder in(segment_.substr(next_block_));
    const std::string_view block = in.ReadBytes(in.ReadVarint());
    const size_t behind = next_block_ + in.position();
    base::Decoder in_block(block);
    const uint64_t distance = in_block.ReadVarint();
    if (!in.ok() || !in_block.ok() || distance >= kNoDocument - block_before_ ||
        (distance == 0 && !is_first_)) {
      Malformed("it does not fit, or its last document is malformed");
      return;
    }
    if (block_before_ + distance >= target) Decode(block);
    if (!status_.ok()) return;
    next_block_ = behind;
    block_before_ += distance;
    is_first_ = false;
    if (count_ != 0) return;
  }
}

void SegmentCursor::Decode(std::string_view block) {
  base::Decoder in(block);
  BlockHead head;
  head.document_max = block_before_ + in.ReadVarint();
  head.count = size_t{in.Read<uint8_t>()} + 1;
  head.document_width = in.Read<uint8_t>();
  head.frequency_width = in.Read<uint8_t>();
  head.length_width = in.Read<uint8_t>();
  head.position_width = in.Read<uint8_t>();
  const uint64_t first = in.ReadVarint();
  const uint64_t length_min = in.ReadVarint();
  const uint64_t before = is_first_ ? 0 : block_before_ + 1;
  if (!in.ok() || head.count > kPostingsBlock || head.document_width > 64 ||
      head.frequency_width > 32 || head.length_width > 32 || head.position_width > 32 ||
      length_min > UINT32_MAX || first > head.document_max - before) {
    Malformed("its head is malformed");
    return;
  }
  head.document_min = before + first;
  head.length_min = static_cast<uint32_t>(length_min);

  const size_t document_bytes = PackedBytes(head.count - 1, head.document_width);
  const size_t frequency_bytes = PackedBytes(head.count, head.frequency_width);
  const size_t length_bytes = PackedBytes(head.count, head.length_width);
  const std::string_view packed = in.rest();
  if (packed.size() < document_bytes + frequency_bytes + length_bytes) {
    Malformed("it is cut off");
    return;
  }
  const char* at = packed.data();
  if (at + packed.size() + kPaddingBytes > segment_.data() + segment_.size()) {
    padded_.assign(packed);
    padded_.resize(packed.size() + kPaddingBytes);
    at = padded_.data();
  }
  if (!DecodeDocuments(head, at) || !DecodeFrequenciesAndLengths(head, at + document_bytes)) return;
  positions_ = at + document_bytes + frequency_bytes + length_bytes;
  position_width_ = head.position_width;
  const size_t left = packed.size() - document_bytes - frequency_bytes - length_bytes;
  const uint64_t positions = position_begins_[head.count];
  // A width of 0 would be any number of positions in no bytes.
  if ((positions == 0) != (position_width_ == 0) ||
      left != PackedBytes(positions, position_width_)) {
    Malformed("its positions do not fill it");
    return;
  }
  count_ = head.count;
}

bool SegmentCursor::DecodeDocuments(const BlockHead& head, const char* packed) {
  uint64_t document = head.document_min;
  documents_[0] = document;
  for (size_t i = 1; i < head.count; ++i) {
    const uint64_t gap = PackedBits::Get(packed, i - 1, head.document_width);
    if (document >= head.document_max || gap >= head.document_max - document) {
      Malformed("its documents do not ascend");
      return false;
    }
    document += gap + 1;
    documents_[i] = document;
  }
  if (document == head.document_max) return true;
  Malformed("its documents do not end with the last one");
  return false;
}

bool SegmentCursor::DecodeFrequenciesAndLengths(const BlockHead& head, const char* packed) {
  const char* const lengths = packed + PackedBytes(head.count, head.frequency_width);
  position_begins_[0] = 0;
  bool is_good = true;
  for (size_t i = 0; i < head.count; ++i) {
    const auto frequency = static_cast<uint32_t>(PackedBits::Get(packed, i, head.frequency_width));
    const auto above = static_cast<uint32_t>(PackedBits::Get(lengths, i, head.length_width));
    const uint32_t length = head.length_min + above;
    const bool is_removal = frequency == 0;
    is_good &= is_removal ? above == 0
                          : frequency <= frequency_max_ && above <= UINT32_MAX - head.length_min &&
                                length >= length_min_;
    frequencies_[i] = frequency;
    lengths_[i] = is_removal ? 0 : length;
    position_begins_[i + 1] = position_begins_[i] + frequency;
  }
  if (!is_good) Malformed("a frequency or length is beyond the bounds in the header");
  return is_good;
}

void SegmentCursor::DoReadPositions(size_t at, std::vector<uint32_t>* positions) {
  const uint64_t begin = position_begins_[at];
  const uint64_t end = position_begins_[at + 1];
  positions->resize(end - begin);
  // Wraps around in a malformed segment, which then has other positions.
  uint32_t position = UINT32_MAX;
  for (uint64_t i = begin; i < end; ++i) {
    position += static_cast<uint32_t>(PackedBits::Get(positions_, i, position_width_)) + 1;
    (*positions)[i - begin] = position;
  }
}

}  // namespace basalt::text

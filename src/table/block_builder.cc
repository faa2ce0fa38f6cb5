#include "table/block_builder.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "base/coding.h"
#include "table/block.h"

namespace basalt::table {
namespace {

size_t CommonPrefixBytes(std::string_view a, std::string_view b) noexcept {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
                             a.begin());
}

// Without its time.
size_t RecordBytes(std::string_view key, std::string_view value) noexcept {
  const size_t rest_bytes = std::max<size_t>(key.size(), 8) - 8;
  return Block::RecordBytes(false, false) + rest_bytes + value.size();
}

void CopyBytes(char* out, std::string_view bytes) noexcept {
  if (!bytes.empty()) std::memcpy(out, bytes.data(), bytes.size());
}

}  // namespace

void BlockBuilder::Add(std::string_view key, base::Tag tag, uint64_t time_ms,
                       std::string_view value) {
  raw_bytes_ += RecordBytes(key, value);
  keys_.append(key);
  values_.append(value);
  key_ends_.push_back(keys_.size());
  value_ends_.push_back(values_.size());
  tags_.push_back(tag);
  times_.push_back(time_ms);
  timed_ |= time_ms != 0;
}

size_t BlockBuilder::RawBytesWith(std::string_view key, uint64_t time_ms,
                                  std::string_view value) const noexcept {
  const size_t times = timed_ || time_ms != 0 ? (tags_.size() + 1) * sizeof(uint64_t) : 0;
  return raw_bytes_ + RecordBytes(key, value) + times;
}

size_t BlockBuilder::raw_bytes_max() const noexcept {
  return Block::kHeaderBytes + tags_.size() * Block::RecordBytes(true, timed_) + keys_.size() +
         values_.size();
}

size_t BlockBuilder::Write(char* out) const {
  BASALT_CHECK(!empty());
  // Keys are sorted: what the first and the last share, all share.
  const size_t shared_bytes = CommonPrefixBytes(Key(0), Key(tags_.size() - 1));
  const bool wide = std::max(keys_.size(), values_.size()) > std::numeric_limits<uint16_t>::max();
  base::Store<uint32_t>(out, count());
  base::Store<uint32_t>(out + 4, (wide ? Block::kFlagWide : 0) | (timed_ ? Block::kFlagTimed : 0));
  base::Store<uint16_t>(out + 8, static_cast<uint16_t>(shared_bytes));
  std::memset(out + 10, 0, Block::kHeaderBytes - 10);
  return wide ? WriteColumns<uint32_t>(shared_bytes, out)
              : WriteColumns<uint16_t>(shared_bytes, out);
}

template <class End>
size_t BlockBuilder::WriteColumns(size_t shared_bytes, char* out) const {
  const size_t n = tags_.size();
  char* const prefixes = out + Block::kHeaderBytes;
  char* const tags = prefixes + n * sizeof(uint64_t);
  char* const times = tags + n * sizeof(base::Tag);
  char* const rest_ends = times + (timed_ ? n * sizeof(uint64_t) : 0);
  char* const value_ends = rest_ends + n * sizeof(End);
  char* const prefix_bytes = value_ends + n * sizeof(End);
  char* const shared = prefix_bytes + n;
  char* const rests = shared + shared_bytes;

  std::memcpy(tags, tags_.data(), n * sizeof(base::Tag));
  if (timed_) std::memcpy(times, times_.data(), n * sizeof(uint64_t));
  CopyBytes(shared, Key(0).substr(0, shared_bytes));
  size_t rest_end = 0;
  for (size_t i = 0; i < n; ++i) {
    const std::string_view own = Key(i).substr(shared_bytes);
    base::Store(prefixes + i * sizeof(uint64_t), base::KeyPrefix(own));
    prefix_bytes[i] = static_cast<char>(std::min<size_t>(own.size(), 8));
    if (own.size() > 8) {
      std::memcpy(rests + rest_end, own.data() + 8, own.size() - 8);
      rest_end += own.size() - 8;
    }
    base::Store(rest_ends + i * sizeof(End), static_cast<End>(rest_end));
    base::Store(value_ends + i * sizeof(End), static_cast<End>(value_ends_[i]));
  }
  char* const values = rests + rest_end;
  CopyBytes(values, values_);
  return static_cast<size_t>(values - out) + values_.size();
}

void BlockBuilder::Clear() noexcept {
  raw_bytes_ = 0;
  keys_.clear();
  values_.clear();
  key_ends_.clear();
  value_ends_.clear();
  tags_.clear();
  times_.clear();
  timed_ = false;
}

}  // namespace basalt::table

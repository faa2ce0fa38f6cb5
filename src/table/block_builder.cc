#include "table/block_builder.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "base/coding.h"
#include "table/block.h"

namespace basalt::table {
namespace {

// Without its time.
size_t RecordBytes(std::string_view key, std::string_view value) noexcept {
  const size_t rest_bytes = std::max<size_t>(key.size(), 8) - 8;
  return Block::RecordBytes(false, false) + rest_bytes + value.size();
}

void CopyBytes(char* out, std::string_view bytes) noexcept {
  if (!bytes.empty()) std::memcpy(out, bytes.data(), bytes.size());
}

}  // namespace

size_t BlockBuilder::LongPrefixWith(std::string_view key) const noexcept {
  if (key.size() < kLongPrefixBytes || empty()) return 0;
  const size_t shared = base::SharedBytes(FirstKey(), key);
  return shared < kLongPrefixBytes ? 0 : shared;
}

void BlockBuilder::Add(std::string_view key, base::Tag tag, uint64_t time_ms,
                       std::string_view value) {
  values_.append(value);
  AddAllButValue(key, tag, time_ms, value);
}

void BlockBuilder::AddLast(std::string_view key, base::Tag tag, uint64_t time_ms,
                           std::string_view value) {
  last_value_ = value;
  AddAllButValue(key, tag, time_ms, value);
}

void BlockBuilder::AddAllButValue(std::string_view key, base::Tag tag, uint64_t time_ms,
                                  std::string_view value) {
  const size_t prefix = LongPrefixWith(key);
  if (empty()) {
    long_prefix_bytes_ = key.size() < kLongPrefixBytes ? 0 : key.size();
  } else {
    long_prefix_bytes_ = std::min(long_prefix_bytes_, prefix);
  }
  raw_bytes_ += RecordBytes(key, value);
  key_bytes_ += key.size();
  keys_.append(key.substr(prefix));
  prefixes_.push_back(prefix);
  key_ends_.push_back(keys_.size());
  value_ends_.push_back(value_bytes());
  tags_.push_back(tag);
  times_.push_back(time_ms);
  timed_ |= time_ms != 0;
}

size_t BlockBuilder::RawBytesWith(std::string_view key, uint64_t time_ms,
                                  std::string_view value) const noexcept {
  const size_t times = timed_ || time_ms != 0 ? (tags_.size() + 1) * sizeof(uint64_t) : 0;
  const size_t prefix =
      long_prefix_bytes_ == 0 ? 0 : std::min(long_prefix_bytes_, LongPrefixWith(key));
  return raw_bytes_ - (tags_.size() + 1) * prefix + RecordBytes(key, value) + times;
}

size_t BlockBuilder::raw_bytes_max() const noexcept {
  return Block::kHeaderBytes + tags_.size() * Block::RecordBytes(true, timed_) + key_bytes_ +
         long_prefix_bytes_ - tags_.size() * long_prefix_bytes_ + value_bytes();
}

size_t BlockBuilder::Write(char* out) const {
  BASALT_CHECK(!empty());
  // Keys are sorted: what the first and the last share, all share.
  size_t shared_bytes = long_prefix_bytes_;
  if (shared_bytes == 0) {
    const size_t last_begin = tags_.size() == 1 ? 0 : key_ends_[tags_.size() - 2];
    shared_bytes = base::SharedBytes(FirstKey(), std::string_view(keys_).substr(last_begin));
  }
  const size_t rests_max = key_bytes_ - tags_.size() * long_prefix_bytes_;
  const bool wide = std::max(rests_max, value_bytes()) > std::numeric_limits<uint16_t>::max();
  base::Store<uint32_t>(out, count());
  base::Store<uint32_t>(out + 4, (wide ? Block::kFlagWide : 0) | (timed_ ? Block::kFlagTimed : 0));
  base::Store<uint16_t>(out + 8, static_cast<uint16_t>(shared_bytes));
  std::memset(out + 10, 0, Block::kHeaderBytes - 10);
  return wide ? WriteColumns<uint32_t>(shared_bytes, out)
              : WriteColumns<uint16_t>(shared_bytes, out);
}

std::string_view BlockBuilder::OwnKey(size_t i, size_t shared_bytes, std::string* joined) const {
  const size_t begin = i == 0 ? 0 : key_ends_[i - 1];
  const auto kept = std::string_view(keys_).substr(begin, key_ends_[i] - begin);
  const size_t prefix = prefixes_[i];
  if (prefix <= shared_bytes) return kept.substr(shared_bytes - prefix);
  joined->assign(FirstKey().substr(shared_bytes, prefix - shared_bytes));
  joined->append(kept);
  return *joined;
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
  CopyBytes(shared, FirstKey().substr(0, shared_bytes));
  size_t rest_end = 0;
  std::string joined;
  for (size_t i = 0; i < n; ++i) {
    const std::string_view own = OwnKey(i, shared_bytes, &joined);
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
  CopyBytes(values + values_.size(), last_value_);
  return static_cast<size_t>(values - out) + value_bytes();
}

void BlockBuilder::Clear() noexcept {
  raw_bytes_ = 0;
  key_bytes_ = 0;
  long_prefix_bytes_ = 0;
  prefixes_.clear();
  keys_.clear();
  values_.clear();
  last_value_ = {};
  key_ends_.clear();
  value_ends_.clear();
  tags_.clear();
  times_.clear();
  timed_ = false;
}

}  // namespace basalt::table

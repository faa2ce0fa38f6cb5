#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/internal_key.h"

namespace basalt::table {

/// Gathers records in internal order and writes them as one block in raw form (see Block). Keys and
/// values are appended to two byte strings as they come; only Write knows the shared prefix and
/// takes the keys apart. Of what a long key shares with the first one only the length is kept, so
/// that a prefix of thousands of bytes is here once. Buffers are kept from block to block, so that
/// adding allocates nothing.
class BlockBuilder {
 public:
  /// `time_ms` as in base::RecordIterator.
  void Add(std::string_view key, base::Tag tag, uint64_t time_ms, std::string_view value);
  /// The same of the block's last record, whose value is not copied: it must stay until Clear.
  void AddLast(std::string_view key, base::Tag tag, uint64_t time_ms, std::string_view value);

  bool empty() const noexcept { return tags_.empty(); }
  uint32_t count() const noexcept { return static_cast<uint32_t>(tags_.size()); }
  /// A prefix that all keys share counts as such from this length on.
  static constexpr size_t kLongPrefixBytes = 256;
  /// How large the raw form is without a long prefix that all keys share, and how large it were
  /// with one more record: exact but for what a shorter prefix saves and wide ends cost.
  size_t raw_bytes() const noexcept {
    return raw_bytes_ - tags_.size() * long_prefix_bytes_ +
           (timed_ ? tags_.size() * sizeof(uint64_t) : 0);
  }
  size_t RawBytesWith(std::string_view key, uint64_t time_ms,
                      std::string_view value) const noexcept;
  /// Bytes that Write needs, at most.
  size_t raw_bytes_max() const noexcept;

  /// Writes the block to `out`, which has raw_bytes_max() bytes; gives the bytes that it took. Not
  /// when empty().
  size_t Write(char* out) const;
  void Clear() noexcept;

 private:
  std::string_view FirstKey() const noexcept {
    return std::string_view(keys_).substr(0, key_ends_.front());
  }
  size_t value_bytes() const noexcept { return values_.size() + last_value_.size(); }
  void AddAllButValue(std::string_view key, base::Tag tag, uint64_t time_ms,
                      std::string_view value);
  /// What a key shares with the first one, if that is long, else 0.
  size_t LongPrefixWith(std::string_view key) const noexcept;
  /// Key i behind its first `shared_bytes`, which all share; `joined` holds it where it is not in
  /// one piece.
  std::string_view OwnKey(size_t i, size_t shared_bytes, std::string* joined) const;
  template <class End>
  size_t WriteColumns(size_t shared_bytes, char* out) const;

  size_t raw_bytes_ = 0;          // without times
  size_t key_bytes_ = 0;          // of all keys
  size_t long_prefix_bytes_ = 0;  // which all keys share; 0: it is not long
  bool timed_ = false;            // there is a time that is not zero
  std::string keys_;              // each without what prefixes_ says
  std::vector<size_t> prefixes_;  // how many bytes of each key are those of the first one; 0 there
  std::string values_;
  std::string_view last_value_;  // behind them
  std::vector<size_t> key_ends_;
  std::vector<size_t> value_ends_;
  std::vector<base::Tag> tags_;
  std::vector<uint64_t> times_;
};

}  // namespace basalt::table

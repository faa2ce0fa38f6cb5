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
/// takes the keys apart. Buffers are kept from block to block, so that adding allocates nothing.
class BlockBuilder {
 public:
  void Add(std::string_view key, base::Tag tag, std::string_view value);

  bool empty() const noexcept { return tags_.empty(); }
  uint32_t count() const noexcept { return static_cast<uint32_t>(tags_.size()); }
  /// What a record adds to the raw form, and how large that is: exact but for what a shared prefix
  /// saves and wide ends cost.
  static size_t RecordBytes(std::string_view key, std::string_view value) noexcept;
  size_t raw_bytes() const noexcept { return raw_bytes_; }
  /// Bytes that Write needs, at most.
  size_t raw_bytes_max() const noexcept;

  /// Writes the block to `out`, which has raw_bytes_max() bytes; gives the bytes that it took. Not
  /// when empty().
  size_t Write(char* out) const;
  void Clear() noexcept;

 private:
  std::string_view Key(size_t i) const noexcept {
    const size_t begin = i == 0 ? 0 : key_ends_[i - 1];
    return std::string_view(keys_).substr(begin, key_ends_[i] - begin);
  }

  template <class End>
  size_t WriteColumns(size_t shared_bytes, char* out) const;

  size_t raw_bytes_ = 0;
  std::string keys_;
  std::string values_;
  std::vector<size_t> key_ends_;
  std::vector<size_t> value_ends_;
  std::vector<base::Tag> tags_;
};

}  // namespace basalt::table

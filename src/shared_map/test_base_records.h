#pragma once

#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/status.h"
#include "base/check.h"
#include "io/file_system.h"
#include "shared_map/base_format.h"
#include "shared_map/base_writer.h"
#include "shared_map/record.h"

namespace basalt::shared_map {

/// A put as record.h has it.
inline std::string EncodedPut(std::string_view key, std::string_view value) {
  const RecordHeader header = {.value_bytes = static_cast<uint32_t>(value.size()),
                               .key_bytes = static_cast<uint16_t>(key.size()),
                               .kind = kBaseRecordKind,
                               .flags = 0};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes.append(key).append(value);
  return bytes;
}

/// Records to be written, each in memory of its own that ends where it ends.
class TestRecords {
 public:
  void Add(std::string_view key, std::string_view value) {
    const std::string encoded = EncodedPut(key, value);
    pieces_.emplace_back(encoded.begin(), encoded.end());
    pointers_.push_back(pieces_.back().data());
  }
  /// `key<i>` for i below `count`, with values of 0 to `value_bytes_max` bytes (all of as many when
  /// `equal`, and keys too).
  static TestRecords Numbered(uint64_t count, uint64_t value_bytes_max, bool equal) {
    TestRecords records;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t bytes = equal ? value_bytes_max : i * 7919 % (value_bytes_max + 1);
      std::string value(bytes, static_cast<char>('a' + i % 26));
      records.Add("key" + std::to_string(equal ? 1'000'000 + i : i), value);
    }
    return records;
  }

  size_t size() const noexcept { return pointers_.size(); }
  RecordRef operator[](size_t i) const noexcept { return RecordRef(pointers_[i]); }
  std::span<const char* const> pointers() const noexcept { return pointers_; }
  std::vector<const char*>& order() noexcept { return pointers_; }

 private:
  std::deque<std::vector<char>> pieces_;
  std::vector<const char*> pointers_;
};

}  // namespace basalt::shared_map

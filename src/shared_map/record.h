#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "basalt/write_batch.h"
#include "base/coding.h"

// A record as it lies in base files, in the log of changes and in the spool of a build:
//
//   offset size
//        0    4  bytes of the value
//        4    2  bytes of the key
//        6    1  kind: 1 put; in a log also 2 erase, which has no value (RecordKind's numbers)
//        7    1  flags: 0, but in a log
//        8       key, value; then zeros to a multiple of 8 bytes, but in the fixed layout of a base

namespace basalt::shared_map {

inline constexpr size_t kRecordHeaderBytes = 8;

struct RecordHeader {
  uint32_t value_bytes;
  uint16_t key_bytes;
  uint8_t kind;
  uint8_t flags;
};
static_assert(sizeof(RecordHeader) == kRecordHeaderBytes);

/// A record where it lies; does not own it. Only of bytes whose sizes have been checked.
class RecordRef {
 public:
  /// Of no record.
  RecordRef() noexcept = default;
  explicit RecordRef(const char* at) noexcept : at_(at) {
    std::memcpy(&header_, at, sizeof header_);
  }

  const char* address() const noexcept { return at_; }
  const RecordHeader& header() const noexcept { return header_; }
  bool is_put() const noexcept { return header_.kind == static_cast<uint8_t>(RecordKind::kPut); }
  std::string_view key() const noexcept { return {at_ + kRecordHeaderBytes, header_.key_bytes}; }
  std::string_view value() const noexcept {
    return {at_ + kRecordHeaderBytes + header_.key_bytes, header_.value_bytes};
  }
  /// Header, key and value, without what fills up to a multiple of 8.
  uint64_t size() const noexcept {
    return kRecordHeaderBytes + uint64_t{header_.key_bytes} + header_.value_bytes;
  }

 private:
  const char* at_ = nullptr;
  RecordHeader header_{};
};

/// Bytes that a record takes, filled up to a multiple of 8.
constexpr uint64_t PaddedRecordBytes(uint64_t key_bytes, uint64_t value_bytes) noexcept {
  return base::RoundUp(kRecordHeaderBytes + key_bytes + value_bytes, 8);
}

}  // namespace basalt::shared_map

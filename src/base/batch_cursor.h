#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "basalt/write_batch.h"
#include "base/coding.h"

// The serialised form of a batch, which is also the log's payload (docs/write-batch.md): records
// one after the other without a header, each
//
//   offset size
//        0    1  kind (RecordKind)
//        1    1  flags: 1 keyspace follows, 2 time follows, 4 a put's time is its expiry though
//                this is no log, where all are, 8 a put has no time and never expires, whatever
//                its keyspace's default is; others are refused
//        2    2  key length
//        4    4  value length
//        8    4  keyspace, if flagged and not zero
//        .    8  time, if flagged: in a batch a put's relative TTL in ms, or its expiry; in a
//                log, in ms since 1970, a put's expiry, and of every merge when it was written
//        .       key bytes, value bytes
//
// One batch has one form: a keyspace of zero and a time of zero or above 2^63 - 1 are refused, and
// so is a delete with a value or a time. The value of a range delete is the range's end, exclusive;
// that of a merge its operator (1 byte) and its operand.

namespace basalt::base {

inline constexpr size_t kBatchRecordHeaderBytes = 8;
inline constexpr uint8_t kBatchFlagKeyspace = 1;
inline constexpr uint8_t kBatchFlagTime = 2;
inline constexpr uint8_t kBatchFlagTimeIsExpiry = 4;
inline constexpr uint8_t kBatchFlagNeverExpires = 8;

/// What a record is made of.
struct BatchRecord {
  RecordKind kind = RecordKind::kPut;
  uint32_t keyspace = 0;
  uint64_t time_ms = 0;
  std::string_view key;
  std::string_view value;
  uint8_t merge_operator = 0;   ///< Goes before the value; 0: nothing does.
  bool time_is_expiry = false;  ///< Not relative; for a batch, not for a log. Only with a time.
  bool never_expires = false;   ///< For a batch, not for a log. Only without a time.
};

/// No record takes more beside its key and value.
inline constexpr size_t kBatchRecordExtraBytesMax =
    kBatchRecordHeaderBytes + sizeof(BatchRecord::keyspace) + sizeof(BatchRecord::time_ms) +
    sizeof(BatchRecord::merge_operator);

/// Appends its serialised form. Its sizes have been checked. What it views may lie in `out` only
/// where that has room for it. Throws std::bad_alloc, and has then changed nothing.
[[gnu::always_inline]] inline void AppendBatchRecord(const BatchRecord& record, std::string* out) {
  const size_t operator_bytes = record.merge_operator != 0 ? 1 : 0;
  const size_t before = out->size();
  const size_t size_max =
      before + kBatchRecordExtraBytesMax + record.key.size() + record.value.size();
  // Its bytes are set below: a function that sets them inside would not be inlined.
  out->resize_and_overwrite(size_max, [](char*, size_t size) { return size; });
  char* at = out->data() + before;
  at[0] = static_cast<char>(record.kind);
  at[1] = static_cast<char>((record.keyspace != 0 ? kBatchFlagKeyspace : 0) |
                            (record.time_ms != 0 ? kBatchFlagTime : 0) |
                            (record.time_is_expiry ? kBatchFlagTimeIsExpiry : 0) |
                            (record.never_expires ? kBatchFlagNeverExpires : 0));
  Store(at + 2, static_cast<uint16_t>(record.key.size()));
  Store(at + 4, static_cast<uint32_t>(operator_bytes + record.value.size()));
  at += kBatchRecordHeaderBytes;
  if (record.keyspace != 0) {
    Store(at, record.keyspace);
    at += sizeof record.keyspace;
  }
  if (record.time_ms != 0) {
    Store(at, record.time_ms);
    at += sizeof record.time_ms;
  }
  at = CopyKey(record.key, at);
  if (operator_bytes != 0) *at++ = static_cast<char>(record.merge_operator);
  at = std::copy(record.value.begin(), record.value.end(), at);
  out->resize(static_cast<size_t>(at - out->data()));
}

/// The bytes of the record that `bytes` begin with, by its kind, flags and lengths alone; 0: none
/// that a log may have begins there and ends within them. For who looks at bytes that are seldom a
/// batch: WriteBatch::Parse says what is wrong with one.
inline size_t BatchRecordBytes(std::string_view bytes) noexcept {
  if (bytes.size() < kBatchRecordHeaderBytes) return 0;
  const auto kind = static_cast<uint8_t>(bytes[0]);
  const auto flags = static_cast<uint8_t>(bytes[1]);
  if (kind < static_cast<uint8_t>(RecordKind::kPut) ||
      kind > static_cast<uint8_t>(RecordKind::kBlobReference) ||
      (flags & ~(kBatchFlagKeyspace | kBatchFlagTime)) != 0) {
    return 0;
  }
  const uint64_t size = kBatchRecordHeaderBytes +
                        ((flags & kBatchFlagKeyspace) != 0 ? sizeof(BatchRecord::keyspace) : 0) +
                        ((flags & kBatchFlagTime) != 0 ? sizeof(BatchRecord::time_ms) : 0) +
                        Load<uint16_t>(bytes.data() + 2) + Load<uint32_t>(bytes.data() + 4);
  return size <= bytes.size() ? size : 0;
}

/// Walks a serialised batch that has been validated (WriteBatch::Parse); does not check again.
class BatchCursor {
 public:
  explicit BatchCursor(std::string_view bytes) noexcept
      : at_(bytes.data()), end_(at_ + bytes.size()) {}

  /// To the next record; false at the end.
  bool Next() noexcept {
    if (at_ == end_) return false;
    kind_ = static_cast<RecordKind>(at_[0]);
    const auto flags = static_cast<uint8_t>(at_[1]);
    const size_t key_size = Load<uint16_t>(at_ + 2);
    const size_t value_size = Load<uint32_t>(at_ + 4);
    at_ += kBatchRecordHeaderBytes;
    keyspace_ = 0;
    time_ms_ = 0;
    time_is_expiry_ = (flags & kBatchFlagTimeIsExpiry) != 0;
    never_expires_ = (flags & kBatchFlagNeverExpires) != 0;
    if ((flags & kBatchFlagKeyspace) != 0) {
      keyspace_ = Load<uint32_t>(at_);
      at_ += 4;
    }
    if ((flags & kBatchFlagTime) != 0) {
      time_ms_ = Load<uint64_t>(at_);
      at_ += 8;
    }
    key_ = {at_, key_size};
    value_ = {at_ + key_size, value_size};
    at_ += key_size + value_size;
    return true;
  }

  /// Where the next record begins: a cursor from there to the end starts with it.
  const char* next() const noexcept { return at_; }

  RecordKind kind() const noexcept { return kind_; }
  uint32_t keyspace() const noexcept { return keyspace_; }
  uint64_t time_ms() const noexcept { return time_ms_; }
  bool time_is_expiry() const noexcept { return time_is_expiry_; }
  bool never_expires() const noexcept { return never_expires_; }
  std::string_view key() const noexcept { return key_; }
  std::string_view value() const noexcept { return value_; }

 private:
  const char* at_;
  const char* end_;
  RecordKind kind_ = RecordKind::kPut;
  uint32_t keyspace_ = 0;
  uint64_t time_ms_ = 0;
  bool time_is_expiry_ = false;
  bool never_expires_ = false;
  std::string_view key_;
  std::string_view value_;
};

}  // namespace basalt::base

#include "basalt/write_batch.h"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include "base/batch_cursor.h"
#include "base/check.h"
#include "base/coding.h"
#include "base/merge_operator.h"

namespace basalt {
namespace {

using base::kBatchFlagKeyspace;
using base::kBatchFlagTime;
using base::kBatchFlagTimeIsExpiry;

constexpr uint8_t kKnownFlags = kBatchFlagKeyspace | kBatchFlagTime | kBatchFlagTimeIsExpiry;

/// What may not stand in a batch, or ok. Sizes are checked here only, so that a record in a batch
/// always fits its length fields.
Status CheckRecord(std::string_view key, std::string_view value, std::chrono::milliseconds ttl) {
  const auto refuse = [](const std::string& what) {
    return Status(StatusCode::kInvalidArgument, "write batch: " + what);
  };
  if (key.size() > kMaxKeyBytes) {
    return refuse("the key has " + std::to_string(key.size()) + " bytes, at most " +
                  std::to_string(kMaxKeyBytes) + " are possible");
  }
  if (value.size() > kMaxValueBytes) {
    return refuse("the value has " + std::to_string(value.size()) + " bytes, at most " +
                  std::to_string(kMaxValueBytes) + " are possible");
  }
  if (ttl.count() < 0) {
    return refuse("the ttl is " + std::to_string(ttl.count()) +
                  " ms; give a positive one, or zero for none");
  }
  return {};
}

/// Takes one record off the front of `in`; `start` is the record's offset.
Status CheckSerialisedRecord(base::Decoder* in, size_t start) {
  const auto refuse = [start](StatusCode code, const std::string& what) {
    return Status(code,
                  "parse write batch: record at offset " + std::to_string(start) + ": " + what);
  };
  const auto truncated = [&] {
    return refuse(StatusCode::kCorruption,
                  "truncated, the bytes end at offset " + std::to_string(in->position()));
  };
  const auto kind = in->Read<uint8_t>();
  const auto flags = in->Read<uint8_t>();
  const auto key_bytes = in->Read<uint16_t>();
  const auto value_bytes = in->Read<uint32_t>();
  if (!in->ok()) return truncated();
  if (kind < static_cast<uint8_t>(RecordKind::kPut) ||
      kind > static_cast<uint8_t>(RecordKind::kBlobReference)) {
    return refuse(StatusCode::kUnsupported,
                  "unknown kind " + std::to_string(kind) + "; a newer version wrote it");
  }
  if ((flags & ~kKnownFlags) != 0) {
    return refuse(StatusCode::kUnsupported,
                  "unknown flags " + std::to_string(flags) + "; a newer version wrote it");
  }
  const bool has_keyspace = (flags & kBatchFlagKeyspace) != 0;
  const bool has_time = (flags & kBatchFlagTime) != 0;
  const uint32_t keyspace = has_keyspace ? in->Read<uint32_t>() : 0;
  const uint64_t time_ms = has_time ? in->Read<uint64_t>() : 0;
  if (!in->ok()) return truncated();
  if (has_keyspace && keyspace == 0) {
    return refuse(StatusCode::kCorruption, "keyspace zero is spelled out");
  }
  if (has_time && (time_ms == 0 || time_ms > std::numeric_limits<int64_t>::max())) {
    return refuse(StatusCode::kCorruption, "time " + std::to_string(time_ms) + " is out of range");
  }
  if ((flags & kBatchFlagTimeIsExpiry) != 0 &&
      (!has_time || kind != static_cast<uint8_t>(RecordKind::kPut))) {
    return refuse(StatusCode::kCorruption, "an expiry without a time, or of what is no put");
  }
  if (kind == static_cast<uint8_t>(RecordKind::kDelete) && (has_time || value_bytes != 0)) {
    return refuse(StatusCode::kCorruption, "a delete with a value or a time");
  }
  if (kind == static_cast<uint8_t>(RecordKind::kDeleteRange) &&
      (has_time || value_bytes > kMaxKeyBytes)) {
    return refuse(StatusCode::kCorruption, "a range delete with a time or an end that is no key");
  }
  in->ReadBytes(key_bytes);
  const std::string_view value = in->ReadBytes(value_bytes);
  if (!in->ok()) return truncated();
  if (kind == static_cast<uint8_t>(RecordKind::kMerge) && !base::IsMergeValue(value)) {
    return refuse(StatusCode::kUnsupported,
                  "a merge whose operator or operand this version does not know");
  }
  return {};
}

/// Where the bytes of a batch were before it grew, and are now.
struct Moved {
  uintptr_t from;
  size_t size;
  const char* to;

  /// What was a view into them still is one; others stay as they are.
  std::string_view Follow(std::string_view view) const noexcept {
    const uintptr_t offset = reinterpret_cast<uintptr_t>(view.data()) - from;
    return offset < size ? std::string_view(to + offset, view.size()) : view;
  }
};

[[gnu::noinline]] Moved Grow(std::string* bytes, size_t size) {
  const auto from = reinterpret_cast<uintptr_t>(bytes->data());
  bytes->reserve(std::max(size, 2 * bytes->capacity()));
  return {.from = from, .size = bytes->size(), .to = bytes->data()};
}

}  // namespace

WriteBatch::WriteBatch(WriteBatch&& other) noexcept
    : bytes_(std::move(other.bytes_)),
      count_(std::exchange(other.count_, 0)),
      contents_(std::exchange(other.contents_, 0)),
      error_(std::move(other.error_)) {
  other.bytes_.clear();
}

WriteBatch& WriteBatch::operator=(WriteBatch&& other) noexcept {
  if (this != &other) {
    // Move assignment of a short string would leave this one its old, perhaps large, buffer.
    bytes_.swap(other.bytes_);
    std::string().swap(other.bytes_);
    count_ = std::exchange(other.count_, 0);
    contents_ = std::exchange(other.contents_, 0);
    error_ = std::move(other.error_);
  }
  return *this;
}

void WriteBatch::Put(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
                     KeyspaceId keyspace) {
  Add(RecordKind::kPut, keyspace, key, value, ttl);
}

void WriteBatch::PutUntil(std::string_view key, std::string_view value, WallTime expiry,
                          KeyspaceId keyspace) {
  const std::chrono::milliseconds since_1970 = expiry.time_since_epoch();
  if (since_1970.count() <= 0) {
    if (error_.ok()) {
      error_ = Status(StatusCode::kInvalidArgument,
                      "write batch: the expiry is " + std::to_string(since_1970.count()) +
                          " ms since 1970; give a positive one, or leave it out with Put");
    }
    return;
  }
  Add(RecordKind::kPut, keyspace, key, value, since_1970, {}, /*time_is_expiry=*/true);
}

void WriteBatch::Delete(std::string_view key, KeyspaceId keyspace) {
  Add(RecordKind::kDelete, keyspace, key, {}, {});
}

void WriteBatch::DeleteRange(std::string_view begin, std::string_view end, KeyspaceId keyspace) {
  if (end.size() > kMaxKeyBytes) {
    if (error_.ok()) error_ = CheckRecord(end, {}, {});
    return;
  }
  if (begin < end) Add(RecordKind::kDeleteRange, keyspace, begin, end, {});
}

void WriteBatch::Merge(std::string_view key, MergeOperator op, std::string_view operand,
                       KeyspaceId keyspace) {
  if (Status fault = base::CheckMergeOperand(op, operand); !fault.ok()) {
    if (error_.ok()) error_ = std::move(fault);
    return;
  }
  Add(RecordKind::kMerge, keyspace, key, operand, {}, op);
}

void WriteBatch::Clear() noexcept {
  bytes_.clear();
  count_ = 0;
  contents_ = 0;
  error_ = Status();
}

void WriteBatch::Add(RecordKind kind, KeyspaceId keyspace, std::string_view key,
                     std::string_view value, std::chrono::milliseconds time, MergeOperator op,
                     bool time_is_expiry) {
  const bool is_merge = kind == RecordKind::kMerge;
  // Apart from what gives the fault its text, which costs more than the rest of a small record.
  if (key.size() > kMaxKeyBytes || value.size() >= kMaxValueBytes || time.count() < 0)
      [[unlikely]] {
    Status fault = CheckRecord(key, value, time);
    if (fault.ok() && is_merge) {
      fault = Status(StatusCode::kInvalidArgument,
                     "write batch: the operand has 4 GiB - 1 bytes, one less is possible");
    }
    if (!fault.ok()) {
      if (error_.ok()) error_ = std::move(fault);
      return;
    }
  }
  try {
    const size_t size_max =
        bytes_.size() + base::kBatchRecordExtraBytesMax + key.size() + value.size();
    if (size_max > bytes_.capacity()) [[unlikely]] {
      const Moved moved = Grow(&bytes_, size_max);
      key = moved.Follow(key);
      value = moved.Follow(value);
    }
    base::AppendBatchRecord({.kind = kind,
                             .keyspace = static_cast<uint32_t>(keyspace),
                             .time_ms = static_cast<uint64_t>(time.count()),
                             .key = key,
                             .value = value,
                             .merge_operator = is_merge ? static_cast<uint8_t>(op) : uint8_t{0},
                             .time_is_expiry = time_is_expiry},
                            &bytes_);
  } catch (const std::bad_alloc&) {
    if (error_.ok()) {
      error_ = Status(StatusCode::kResourceExhausted, "write batch: no memory to add a record");
    }
    return;
  }
  ++count_;
  contents_ |= KindBit(kind) | (time.count() != 0 ? kTtlBit : 0);
}

Status WriteBatch::ForEach(const std::function<Status(const Record&)>& visit) const {
  base::BatchCursor cursor(bytes_);
  while (cursor.Next()) {
    const bool is_merge = cursor.kind() == RecordKind::kMerge;
    const std::chrono::milliseconds time(static_cast<int64_t>(cursor.time_ms()));
    BASALT_RETURN_IF_ERROR(
        visit({.kind = cursor.kind(),
               .keyspace = static_cast<KeyspaceId>(cursor.keyspace()),
               .key = cursor.key(),
               .value = is_merge ? cursor.value().substr(1) : cursor.value(),
               .ttl = cursor.time_is_expiry() ? std::chrono::milliseconds(0) : time,
               .merge_operator =
                   is_merge ? static_cast<MergeOperator>(cursor.value()[0]) : MergeOperator::kAdd,
               .expiry = cursor.time_is_expiry() ? std::optional(WallTime(time)) : std::nullopt}));
  }
  return {};
}

Result<WriteBatch> WriteBatch::Parse(std::string_view bytes) {
  if (bytes == kRefusedBytes) {
    return Status(StatusCode::kCorruption,
                  "parse write batch: the bytes are of a batch that had refused a record; look at "
                  "WriteBatch::status before sending one");
  }
  base::Decoder in(bytes);
  size_t count = 0;
  uint32_t contents = 0;
  while (!in.AtEnd()) {
    const std::string_view record = bytes.substr(in.position());
    BASALT_RETURN_IF_ERROR(CheckSerialisedRecord(&in, in.position()));
    const bool has_ttl = (static_cast<uint8_t>(record[1]) & kBatchFlagTime) != 0;
    contents |= KindBit(static_cast<RecordKind>(record[0])) | (has_ttl ? kTtlBit : 0);
    ++count;
  }
  WriteBatch batch;
  try {
    batch.bytes_ = bytes;
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::kResourceExhausted, "parse write batch: no memory to copy " +
                                                      std::to_string(bytes.size()) + " bytes");
  }
  batch.count_ = count;
  batch.contents_ = contents;
  return batch;
}

}  // namespace basalt

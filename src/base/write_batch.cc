#include "basalt/write_batch.h"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include "base/batch_cursor.h"
#include "base/batch_records.h"
#include "base/check.h"
#include "base/coding.h"
#include "base/merge_operator.h"

namespace basalt {
namespace {

using base::kBatchFlagKeyspace;
using base::kBatchFlagNeverExpires;
using base::kBatchFlagTime;
using base::kBatchFlagTimeIsExpiry;

constexpr uint8_t kKnownFlags =
    kBatchFlagKeyspace | kBatchFlagTime | kBatchFlagTimeIsExpiry | kBatchFlagNeverExpires;
/// The least part of a condition.
constexpr size_t kConditionHeaderBytes = 15;

Status Refusal(const std::string& what) {
  return Status(StatusCode::kInvalidArgument, "write batch: " + what);
}

Status CheckKey(std::string_view key) {
  if (key.size() <= kMaxKeyBytes) return {};
  return Refusal("the key has " + std::to_string(key.size()) + " bytes, at most " +
                 std::to_string(kMaxKeyBytes) + " are possible");
}

/// What may not stand in a batch, or ok. Sizes are checked here only, so that a record in a batch
/// always fits its length fields. `value` goes with an operator of `operator_bytes`.
Status CheckRecord(std::string_view key, std::string_view value, size_t operator_bytes) {
  BASALT_RETURN_IF_ERROR(CheckKey(key));
  const uint64_t most = kMaxValueBytes - operator_bytes;
  if (value.size() <= most) return {};
  return Refusal("the value has " + std::to_string(value.size()) + " bytes, at most " +
                 std::to_string(most) + " are possible");
}

/// Sets when `record` expires.
Status SetExpiry(const RecordOptions& options, base::BatchRecord* record) {
  if (options.ttl && options.expiry) {
    return Refusal("a record has a ttl and an expiry; give one of them");
  }
  if (options.ttl) {
    if (options.ttl->count() < 0) {
      return Refusal("the ttl is " + std::to_string(options.ttl->count()) +
                     " ms; give a positive one, zero for a record that never expires, or none for "
                     "the keyspace's default");
    }
    record->time_ms = static_cast<uint64_t>(options.ttl->count());
    record->never_expires = record->time_ms == 0;
  }
  if (options.expiry) {
    const std::chrono::milliseconds since_1970 = options.expiry->time_since_epoch();
    if (since_1970.count() <= 0) {
      return Refusal("the expiry is " + std::to_string(since_1970.count()) +
                     " ms since 1970; give a positive one, or none");
    }
    record->time_ms = static_cast<uint64_t>(since_1970.count());
    record->time_is_expiry = true;
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
    return refuse(StatusCode::kCorruption, "keyspace zero must be left out");
  }
  if (has_time && (time_ms == 0 || time_ms > std::numeric_limits<int64_t>::max())) {
    return refuse(StatusCode::kCorruption, "time " + std::to_string(time_ms) + " is out of range");
  }
  const bool is_put = kind == static_cast<uint8_t>(RecordKind::kPut);
  if ((flags & kBatchFlagTimeIsExpiry) != 0 && (!has_time || !is_put)) {
    return refuse(StatusCode::kCorruption,
                  "an expiry without a time, or in a record that is not a put");
  }
  if ((flags & kBatchFlagNeverExpires) != 0 && (has_time || !is_put)) {
    return refuse(StatusCode::kCorruption,
                  "no expiry beside a time, or in a record that is not a put");
  }
  if (kind == static_cast<uint8_t>(RecordKind::kDelete) && (has_time || value_bytes != 0)) {
    return refuse(StatusCode::kCorruption, "a delete with a value or a time");
  }
  if (kind == static_cast<uint8_t>(RecordKind::kDeleteRange) &&
      (has_time || value_bytes > kMaxKeyBytes)) {
    return refuse(StatusCode::kCorruption,
                  "a range delete with a time or an end that is not a key");
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
      conditions_(std::move(other.conditions_)),
      count_(std::exchange(other.count_, 0)),
      contents_(std::exchange(other.contents_, 0)),
      error_(std::move(other.error_)) {
  other.bytes_.clear();
  other.conditions_.clear();
}

WriteBatch& WriteBatch::operator=(WriteBatch&& other) noexcept {
  if (this != &other) {
    // Move assignment of a short string would leave this one its old, perhaps large, buffer.
    bytes_.swap(other.bytes_);
    std::string().swap(other.bytes_);
    conditions_.swap(other.conditions_);
    std::string().swap(other.conditions_);
    count_ = std::exchange(other.count_, 0);
    contents_ = std::exchange(other.contents_, 0);
    error_ = std::move(other.error_);
  }
  return *this;
}

void WriteBatch::Put(std::string_view key, std::string_view value, const RecordOptions& options) {
  base::BatchRecord record{.kind = RecordKind::kPut,
                           .keyspace = static_cast<uint32_t>(options.keyspace),
                           .key = key,
                           .value = value};
  if (options.ttl || options.expiry) {
    if (Status fault = SetExpiry(options, &record); !fault.ok()) return Refuse(std::move(fault));
  }
  Add(&record);
}

void WriteBatch::Delete(std::string_view key, KeyspaceId keyspace) {
  base::BatchRecord record{.kind = RecordKind::kDelete,
                           .keyspace = static_cast<uint32_t>(keyspace),
                           .key = key,
                           .value = {}};
  Add(&record);
}

void WriteBatch::DeleteRange(std::string_view begin, std::string_view end, KeyspaceId keyspace) {
  if (Status fault = CheckKey(end); !fault.ok()) return Refuse(std::move(fault));
  if (begin >= end) return;
  base::BatchRecord record{.kind = RecordKind::kDeleteRange,
                           .keyspace = static_cast<uint32_t>(keyspace),
                           .key = begin,
                           .value = end};
  Add(&record);
}

void WriteBatch::Merge(std::string_view key, MergeOperator op, std::string_view operand,
                       const RecordOptions& options) {
  base::BatchRecord record{.kind = RecordKind::kMerge,
                           .keyspace = static_cast<uint32_t>(options.keyspace),
                           .key = key,
                           .value = operand,
                           .merge_operator = static_cast<uint8_t>(op)};
  Status fault = base::CheckMergeOperand(op, operand);
  if (fault.ok() && (options.ttl || options.expiry)) {
    fault = Status(StatusCode::kInvalidArgument,
                   "write batch: a merge takes no ttl and no expiry; it keeps the expiry of the "
                   "record that it builds on (Put or Update sets one)");
  }
  if (!fault.ok()) return Refuse(std::move(fault));
  Add(&record);
}

void WriteBatch::RequireAbsent(std::string_view key, KeyspaceId keyspace) {
  Require(Condition::kAbsent, key, 0, keyspace);
}

void WriteBatch::RequirePresent(std::string_view key, KeyspaceId keyspace) {
  Require(Condition::kPresent, key, 0, keyspace);
}

void WriteBatch::RequireUnchanged(std::string_view key, uint64_t version, KeyspaceId keyspace) {
  Require(Condition::kUnchanged, key, version, keyspace);
}

void WriteBatch::Append(const WriteBatch& other) {
  if (!other.error_.ok()) return Refuse(other.error_);
  try {
    // All the memory first, so that a failure adds nothing.
    bytes_.reserve(bytes_.size() + other.bytes_.size());
    conditions_.append(other.conditions_);
  } catch (const std::bad_alloc&) {
    return Refuse(Status(StatusCode::kResourceExhausted, "write batch: no memory to add another",
                         SubCode::kMemory));
  }
  bytes_.append(other.bytes_);
  count_ += other.count_;
  contents_ |= other.contents_;
}

void WriteBatch::Clear() noexcept {
  bytes_.clear();
  conditions_.clear();
  count_ = 0;
  contents_ = 0;
  error_ = Status();
}

WriteBatch::Mark WriteBatch::mark() const noexcept {
  return {bytes_.size(), conditions_.size(), count_, contents_, error_.ok()};
}

void WriteBatch::TruncateTo(const Mark& mark) noexcept {
  BASALT_CHECK(mark.bytes <= bytes_.size() && mark.condition_bytes <= conditions_.size());
  bytes_.resize(mark.bytes);
  conditions_.resize(mark.condition_bytes);
  count_ = mark.count;
  contents_ = mark.contents;
  if (mark.ok) error_ = Status();
}

void WriteBatch::Refuse(Status fault) noexcept {
  if (error_.ok()) error_ = std::move(fault);
}

void WriteBatch::Add(base::BatchRecord* record) {
  const size_t operator_bytes = record->merge_operator != 0 ? 1 : 0;
  // Apart from what gives the fault its text, which costs more than the rest of a small record.
  if (record->key.size() > kMaxKeyBytes || record->value.size() > kMaxValueBytes - operator_bytes)
      [[unlikely]] {
    return Refuse(CheckRecord(record->key, record->value, operator_bytes));
  }
  try {
    const size_t size_max =
        bytes_.size() + base::kBatchRecordExtraBytesMax + record->key.size() + record->value.size();
    if (size_max > bytes_.capacity()) [[unlikely]] {
      const Moved moved = Grow(&bytes_, size_max);
      record->key = moved.Follow(record->key);
      record->value = moved.Follow(record->value);
    }
    base::AppendBatchRecord(*record, &bytes_);
  } catch (const std::bad_alloc&) {
    return Refuse(Status(StatusCode::kResourceExhausted, "write batch: no memory to add a record",
                         SubCode::kMemory));
  }
  ++count_;
  const bool has_options = record->keyspace != 0 || record->time_ms != 0 || record->never_expires;
  contents_ |= KindBit(record->kind) | (record->time_ms != 0 ? kTtlBit : 0) |
               (has_options ? kOptionsBit : 0);
}

// A condition: condition u8, keyspace u32, version u64, key length u16, key.
void WriteBatch::Require(Condition condition, std::string_view key, uint64_t version,
                         KeyspaceId keyspace) {
  if (Status fault = CheckKey(key); !fault.ok()) return Refuse(std::move(fault));
  char header[kConditionHeaderBytes];
  header[0] = static_cast<char>(condition);
  base::Store(header + 1, static_cast<uint32_t>(keyspace));
  base::Store(header + 5, version);
  base::Store(header + 13, static_cast<uint16_t>(key.size()));
  try {
    conditions_.reserve(conditions_.size() + sizeof header + key.size());
  } catch (const std::bad_alloc&) {
    return Refuse(Status(StatusCode::kResourceExhausted,
                         "write batch: no memory to add a condition", SubCode::kMemory));
  }
  conditions_.append(header, sizeof header);
  conditions_.append(key);
}

Status WriteBatch::ForEachCondition(const std::function<Status(const Requirement&)>& visit) const {
  base::Decoder in(conditions_);
  while (!in.AtEnd()) {
    const auto condition = static_cast<Condition>(in.Read<uint8_t>());
    const auto keyspace = static_cast<KeyspaceId>(in.Read<uint32_t>());
    const auto version = in.Read<uint64_t>();
    const auto size = in.Read<uint16_t>();
    BASALT_RETURN_IF_ERROR(visit({condition, keyspace, in.ReadBytes(size), version}));
  }
  return {};
}

Status WriteBatch::ForEach(const std::function<Status(const Record&)>& visit) const {
  return base::ForEachRecord(bytes_, [&](const Record& record, size_t) { return visit(record); });
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
    const auto flags = static_cast<uint8_t>(record[1]);
    contents |= KindBit(static_cast<RecordKind>(record[0])) |
                ((flags & kBatchFlagTime) != 0 ? kTtlBit : 0) | (flags != 0 ? kOptionsBit : 0);
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

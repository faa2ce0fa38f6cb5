#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "basalt/options.h"
#include "basalt/status.h"
#include "basalt/wall_time.h"

// Batches of writes that are applied as a whole. Read WriteBatch first.

namespace basalt {

namespace base {
struct BatchRecord;
}  // namespace base

/// The largest key and value, in bytes. Larger ones return InvalidArgument.
inline constexpr size_t kMaxKeyBytes = 65'535;
inline constexpr uint64_t kMaxValueBytes = 0xFFFF'FFFF;

/// The kind of a record. The numbers are stored in batches, logs and tables, and never change. A
/// store refuses a kind that it does not know. WriteBatch cannot create the last kind, which is for
/// values in files of their own.
enum class RecordKind : uint8_t {
  kPut = 1,
  kDelete = 2,
  kDeleteRange = 3,
  kMerge = 4,
  kBlobReference = 5,
};

/// How a merge combines its operand with the present value. The numbers never change.
///
/// kAdd, kMin and kMax work on 8-byte little-endian signed integers. Addition wraps around. If the
/// key is absent, each sets the operand. A value that is not such a number stays as it is, and
/// reads of the key return FailedPrecondition until it is overwritten or deleted.
enum class MergeOperator : uint8_t { kAdd = 1, kMin = 2, kMax = 3, kAppend = 4 };

/// A number as kAdd, kMin and kMax take and store it: 8 bytes.
std::string EncodeCounter(int64_t number);
/// The number in 8 such bytes. InvalidArgument: there are not 8 bytes.
Result<int64_t> DecodeCounter(std::string_view bytes);

/// The keyspace and the expiry of a record in a batch.
struct RecordOptions {
  KeyspaceId keyspace = KeyspaceId::kDefault;
  /// As WriteOptions::ttl. Unset: the keyspace's default. Zero: never. Negative: InvalidArgument.
  /// Not used by merges: a merge keeps the expiry of the record that it applies to.
  std::optional<std::chrono::milliseconds> ttl{};
  /// The time of expiry, instead of `ttl`. For copies of a record (Iterator::expiry). It must be
  /// after the beginning of 1970. A record whose time has passed still hides older values.
  std::optional<WallTime> expiry{};
};

/// A condition on a key, checked before the batch is applied.
enum class Condition : uint8_t {
  kAbsent = 1,
  kPresent = 2,
  kUnchanged = 3,  ///< The key is present with a given version (Entry::version).
};

/// Writes that a store applies together: all become visible and durable at once, or none. Later
/// records win over earlier ones of the same key. Copyable. Used by one thread at a time. Keys and
/// values may be views into the same batch.
///
/// A batch does not fail when a record is added. If no store could take the record (a key above
/// 65,535 bytes, a value above 4 GiB - 1), or memory runs out, the batch keeps the error and Write
/// refuses the whole batch. A store's own limit is lower and depends on its memory budget (see DB,
/// MemTable).
class WriteBatch {
 public:
  /// One record, as views into the batch. A put has at most one of `ttl` and `expiry`.
  struct Record {
    RecordKind kind;
    KeyspaceId keyspace;
    std::string_view key;
    std::string_view value;  ///< Or the exclusive end of a range, or the operand of a merge.
    std::optional<std::chrono::milliseconds> ttl{};  ///< Relative to the write. Zero: never.
    std::optional<WallTime> expiry{};
    MergeOperator merge_operator = MergeOperator::kAdd;  ///< Of a merge.
  };
  /// One condition, as views into the batch.
  struct Requirement {
    Condition condition;
    KeyspaceId keyspace;
    std::string_view key;
    uint64_t version;  ///< For kUnchanged.
  };

  WriteBatch() = default;
  WriteBatch(const WriteBatch&) = default;
  WriteBatch& operator=(const WriteBatch&) = default;
  /// The moved-from batch is empty.
  WriteBatch(WriteBatch&& other) noexcept;
  WriteBatch& operator=(WriteBatch&& other) noexcept;
  ~WriteBatch() = default;

  /// Sets `key` to `value`.
  void Put(std::string_view key, std::string_view value, const RecordOptions& options = {});
  /// Removes `key`. It may be absent.
  void Delete(std::string_view key, KeyspaceId keyspace = KeyspaceId::kDefault);
  /// Removes all keys in [begin, end), including keys of earlier records of this batch. An empty
  /// range (end <= begin) adds nothing.
  void DeleteRange(std::string_view begin, std::string_view end,
                   KeyspaceId keyspace = KeyspaceId::kDefault);
  /// Combines `operand` with the key's value, without reading it now. InvalidArgument: the operand
  /// does not fit `op` (EncodeCounter encodes numbers).
  void Merge(std::string_view key, MergeOperator op, std::string_view operand,
             const RecordOptions& options = {});

  // Conditions. The batch is applied only if all of them hold at that moment. Otherwise Write is
  // Aborted and changes nothing. Conditions see the store as it is before the batch.
  void RequireAbsent(std::string_view key, KeyspaceId keyspace = KeyspaceId::kDefault);
  void RequirePresent(std::string_view key, KeyspaceId keyspace = KeyspaceId::kDefault);
  /// The key is present, and was not written since it had this version. 0: no write to it is known.
  void RequireUnchanged(std::string_view key, uint64_t version,
                        KeyspaceId keyspace = KeyspaceId::kDefault);

  /// Adds the records and conditions of another batch.
  void Append(const WriteBatch& other);
  void Clear() noexcept;

  /// A position in the batch, for TruncateTo.
  struct Mark {
    size_t bytes = 0;
    size_t condition_bytes = 0;
    size_t count = 0;
    uint32_t contents = 0;
    bool ok = true;
  };
  Mark mark() const noexcept;
  /// Removes the records and conditions that were added after `mark`, and an error that occurred
  /// after it. `mark` must be of this batch, and the batch must not have been truncated below it
  /// meanwhile.
  void TruncateTo(const Mark& mark) noexcept;

  /// The number of records, and their bytes in serialised form.
  size_t count() const noexcept { return count_; }
  size_t byte_size() const noexcept { return bytes_.size(); }
  bool empty() const noexcept { return count_ == 0; }
  /// Whether the batch has a record of this kind; one that expires; only puts in the default
  /// keyspace that name no expiry.
  bool Has(RecordKind kind) const noexcept { return (contents_ & KindBit(kind)) != 0; }
  bool has_ttl() const noexcept { return (contents_ & kTtlBit) != 0; }
  bool has_only_plain_puts() const noexcept { return contents_ == KindBit(RecordKind::kPut); }
  bool has_conditions() const noexcept { return !conditions_.empty(); }
  /// Ok, or the first error of a record, which Write will return.
  const Status& status() const& noexcept { return error_; }
  Status status() const&& noexcept { return error_; }

  /// Calls `visit` for each record in order. Stops at the first error and returns it. `visit` must
  /// not change the batch. The views are valid until the batch changes.
  Status ForEach(const std::function<Status(const Record&)>& visit) const;
  /// The same for each condition.
  Status ForEachCondition(const std::function<Status(const Requirement&)>& visit) const;

  /// The serialised form, which is also the payload of a log record (docs/write-batch.md). If
  /// status() is an error, Parse refuses these bytes, so that a part of a batch is never taken for
  /// all of it.
  std::string_view bytes() const& noexcept { return error_.ok() ? bytes_ : kRefusedBytes; }
  std::string_view bytes() const&& = delete;
  /// Reads the serialised form and validates all of it. Corruption: the bytes are malformed (the
  /// message has the offset), or they are of a batch with an error. Unsupported: an unknown record
  /// kind or flag.
  static Result<WriteBatch> Parse(std::string_view bytes);

 private:
  /// Keys and values of `record` may lie in this batch; then they follow where its bytes move.
  void Add(base::BatchRecord* record);
  void Refuse(Status fault) noexcept;
  void Require(Condition condition, std::string_view key, uint64_t version, KeyspaceId keyspace);

  static constexpr uint32_t kTtlBit = 1;  // Kinds begin at 1.
  static constexpr uint32_t kOptionsBit = uint32_t{1} << 31;
  static constexpr uint32_t KindBit(RecordKind kind) noexcept {
    return uint32_t{1} << static_cast<uint8_t>(kind);
  }

  /// Shorter than any record.
  static constexpr std::string_view kRefusedBytes{"\0", 1};

  std::string bytes_;
  std::string conditions_;
  size_t count_ = 0;
  /// A bit for each kind that it has, kTtlBit, and kOptionsBit if a record has any flag.
  uint32_t contents_ = 0;
  Status error_;
};

}  // namespace basalt

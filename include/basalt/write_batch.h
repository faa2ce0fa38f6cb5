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

namespace basalt {

namespace base {
struct BatchRecord;
}  // namespace base

/// The largest key and value, in bytes. Larger ones are InvalidArgument.
inline constexpr size_t kMaxKeyBytes = 65'535;
inline constexpr uint64_t kMaxValueBytes = 0xFFFF'FFFF;

/// What a record does. The numbers stand in batches, logs and tables and are frozen. A store that
/// meets a kind it does not know refuses it. A batch has no way to make the last one, which is for
/// values in files of their own.
enum class RecordKind : uint8_t {
  kPut = 1,
  kDelete = 2,
  kDeleteRange = 3,
  kMerge = 4,
  kBlobReference = 5,
};

/// How a merge combines its operand with the value that is there. The numbers are frozen.
///
/// kAdd, kMin and kMax work on 8-byte little-endian signed integers; addition wraps round. On an
/// absent key each sets the operand. A value that is no such number stays as it is, and reading the
/// key is FailedPrecondition until it is overwritten or deleted.
enum class MergeOperator : uint8_t { kAdd = 1, kMin = 2, kMax = 3, kAppend = 4 };

/// Where a record of a batch goes, and how long it lives.
struct RecordOptions {
  KeyspaceId keyspace = KeyspaceId::kDefault;
  /// As WriteOptions::ttl: unset: the keyspace's default; zero: never; negative: InvalidArgument.
  /// A merge has none: it keeps the expiry of the record that it builds on.
  std::optional<std::chrono::milliseconds> ttl{};
  /// The moment itself, instead of `ttl`: for copies of a record (Iterator::expiry). It must be
  /// after the beginning of 1970. A record whose moment has passed hides older values all the same.
  std::optional<WallTime> expiry{};
};

/// What a batch may ask of a key before it is applied.
enum class Condition : uint8_t {
  kAbsent = 1,
  kPresent = 2,
  kUnchanged = 3,  ///< It is there as a given version says (Entry::version).
};

/// Writes that a store applies together: all of them become visible and durable at once, or none.
/// Later records win over earlier ones on the same key. Copyable; one thread at a time. A record
/// that no store takes (a key above 65,535 bytes, a value above 4 GiB - 1), or that memory has no
/// room for, is remembered instead of added, and Write then refuses the whole batch. A store's own
/// limit is lower and depends on its memory budget (see DB, MemTable). Keys and values may be views
/// into the same batch.
class WriteBatch {
 public:
  /// One record, as views into the batch. A put has at most one of `ttl` and `expiry`.
  struct Record {
    RecordKind kind;
    KeyspaceId keyspace;
    std::string_view key;
    std::string_view value;  ///< Or the exclusive end of a range, or a merge's operand.
    std::optional<std::chrono::milliseconds> ttl{};  ///< Relative to the write. Zero: never.
    std::optional<WallTime> expiry{};
    MergeOperator merge_operator = MergeOperator::kAdd;  ///< Of a merge.
  };
  /// One condition, as views into the batch.
  struct Requirement {
    Condition condition;
    KeyspaceId keyspace;
    std::string_view key;
    uint64_t version;  ///< Of kUnchanged.
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
  /// Removes `key`, present or not.
  void Delete(std::string_view key, KeyspaceId keyspace = KeyspaceId::kDefault);
  /// Removes all keys in [begin, end), present or not; earlier records of this batch included. An
  /// empty range (end <= begin) adds nothing.
  void DeleteRange(std::string_view begin, std::string_view end,
                   KeyspaceId keyspace = KeyspaceId::kDefault);
  /// Combines `operand` with the key's value, without reading it now. An operand that is no operand
  /// of `op` is InvalidArgument (EncodeCounter makes one for numbers).
  void Merge(std::string_view key, MergeOperator op, std::string_view operand,
             const RecordOptions& options = {});

  // Conditions: the batch is applied only if all of them hold at that moment; else Write is Aborted
  // and changes nothing. They look at the store before the batch.
  void RequireAbsent(std::string_view key, KeyspaceId keyspace = KeyspaceId::kDefault);
  void RequirePresent(std::string_view key, KeyspaceId keyspace = KeyspaceId::kDefault);
  /// It is there, and nobody has written it since it had this version; 0: no write to it is known.
  void RequireUnchanged(std::string_view key, uint64_t version,
                        KeyspaceId keyspace = KeyspaceId::kDefault);

  /// Adds the records and conditions of another batch.
  void Append(const WriteBatch& other);
  void Clear() noexcept;

  /// A point to go back to.
  struct Mark {
    size_t bytes = 0;
    size_t condition_bytes = 0;
    size_t count = 0;
    uint32_t contents = 0;
    bool ok = true;
  };
  Mark mark() const noexcept;
  /// Takes back the records and conditions that were added since, and a fault that was remembered
  /// since. `mark` is of this batch, and nothing before it has been taken back meanwhile.
  void TruncateTo(const Mark& mark) noexcept;

  /// Records that were added, and their bytes in the serialised form.
  size_t count() const noexcept { return count_; }
  size_t byte_size() const noexcept { return bytes_.size(); }
  bool empty() const noexcept { return count_ == 0; }
  /// Whether it has a record of this kind; of a later one in the list of kinds; one that expires.
  bool Has(RecordKind kind) const noexcept { return (contents_ & KindBit(kind)) != 0; }
  bool HasBeyond(RecordKind kind) const noexcept { return contents_ >= 2 * KindBit(kind); }
  bool has_ttl() const noexcept { return (contents_ & kTtlBit) != 0; }
  bool has_conditions() const noexcept { return !conditions_.empty(); }
  /// Ok, or the first record's fault that Write will answer with.
  const Status& status() const& noexcept { return error_; }
  Status status() const&& noexcept { return error_; }

  /// Calls `visit` for each record in order; stops at and returns the first error. `visit` must not
  /// change the batch; the views that it gets last until the batch is changed.
  Status ForEach(const std::function<Status(const Record&)>& visit) const;
  /// The same for each condition.
  Status ForEachCondition(const std::function<Status(const Requirement&)>& visit) const;

  /// The serialised form, which is also the log's payload (docs/write-batch.md). Of a batch whose
  /// status() is an error it is one that Parse refuses, so that no part of it is taken for all.
  std::string_view bytes() const& noexcept { return error_.ok() ? bytes_ : kRefusedBytes; }
  std::string_view bytes() const&& = delete;
  /// Takes a serialised form; validates all of it. Corruption: the bytes are malformed, and the
  /// message has the offset; or they are of a batch with an error. Unsupported: an unknown record
  /// kind or flag.
  static Result<WriteBatch> Parse(std::string_view bytes);

 private:
  void Add(const base::BatchRecord& record);
  void Refuse(Status fault) noexcept;
  void Require(Condition condition, std::string_view key, uint64_t version, KeyspaceId keyspace);

  static constexpr uint32_t kTtlBit = 1;  // Kinds begin at 1.
  static constexpr uint32_t KindBit(RecordKind kind) noexcept {
    return uint32_t{1} << static_cast<uint8_t>(kind);
  }

  /// Shorter than any record.
  static constexpr std::string_view kRefusedBytes{"\0", 1};

  std::string bytes_;
  std::string conditions_;
  size_t count_ = 0;
  uint32_t contents_ = 0;  // a bit for each kind that it has, and kTtlBit
  Status error_;
};

namespace internal {
/// As WriteBatch::ForEach over the bytes of a validated batch; `end` is where the record ends.
Status ForEachRecord(std::string_view bytes,
                     const std::function<Status(const WriteBatch::Record&, size_t end)>& visit);
}  // namespace internal

}  // namespace basalt

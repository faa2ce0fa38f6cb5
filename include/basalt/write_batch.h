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

/// The largest key and value, in bytes. Larger ones are InvalidArgument.
inline constexpr size_t kMaxKeyBytes = 65'535;
inline constexpr uint64_t kMaxValueBytes = 0xFFFF'FFFF;

/// What a record does. The numbers stand in batches, logs and tables and are frozen. A store that
/// meets a kind it does not know refuses it. A batch has no way to make the last one yet.
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

/// Writes that a store applies together: all of them become visible and durable at once, or none.
/// Later records win over earlier ones on the same key. Copyable; one thread at a time. A record
/// that no store takes (a key above 65,535 bytes, a value above 4 GiB - 1), or that memory has no
/// room for, is remembered instead of added, and Write then refuses the whole batch. A store's own
/// limit is lower and depends on its memory budget (see DB, MemTable). Keys and values may be views
/// into the same batch.
class WriteBatch {
 public:
  /// One record, as views into the batch. `ttl` is relative to the write; zero: none, or there is
  /// an `expiry`.
  struct Record {
    RecordKind kind;
    KeyspaceId keyspace;
    std::string_view key;
    std::string_view value;  ///< Or the exclusive end of a range, or a merge's operand.
    std::chrono::milliseconds ttl;
    MergeOperator merge_operator = MergeOperator::kAdd;  ///< Of a merge.
    std::optional<WallTime> expiry{};                    ///< Of PutUntil.
  };

  WriteBatch() = default;
  WriteBatch(const WriteBatch&) = default;
  WriteBatch& operator=(const WriteBatch&) = default;
  /// The moved-from batch is empty.
  WriteBatch(WriteBatch&& other) noexcept;
  WriteBatch& operator=(WriteBatch&& other) noexcept;
  ~WriteBatch() = default;

  /// Sets `key` to `value`. A `ttl` above zero makes it expire that long after the write (a
  /// MemTable refuses it); zero means never, or a DB's default_ttl; a negative one is
  /// InvalidArgument.
  void Put(std::string_view key, std::string_view value, std::chrono::milliseconds ttl = {},
           KeyspaceId keyspace = KeyspaceId::kDefault);
  /// The same, but expiring at that moment by the database's clock, as Iterator::expiry tells it of
  /// another record: for copies. What has expired already hides older values all the same. A moment
  /// that is not after the beginning of 1970 is InvalidArgument.
  void PutUntil(std::string_view key, std::string_view value, WallTime expiry,
                KeyspaceId keyspace = KeyspaceId::kDefault);
  /// Removes `key`, present or not.
  void Delete(std::string_view key, KeyspaceId keyspace = KeyspaceId::kDefault);
  /// Removes all keys in [begin, end), present or not; earlier records of this batch included. An
  /// empty range (end <= begin) adds nothing.
  void DeleteRange(std::string_view begin, std::string_view end,
                   KeyspaceId keyspace = KeyspaceId::kDefault);
  /// Combines `operand` with the key's value, without reading it now: the value keeps its expiry.
  /// An operand that is no operand of `op` is InvalidArgument. A MemTable refuses merges.
  void Merge(std::string_view key, MergeOperator op, std::string_view operand,
             KeyspaceId keyspace = KeyspaceId::kDefault);
  void Clear() noexcept;

  /// Records that were added, and their bytes in the serialised form.
  size_t count() const noexcept { return count_; }
  size_t byte_size() const noexcept { return bytes_.size(); }
  bool empty() const noexcept { return count_ == 0; }
  /// Whether it has a record of this kind; of a later one in the list of kinds; one that expires.
  bool Has(RecordKind kind) const noexcept { return (contents_ & KindBit(kind)) != 0; }
  bool HasBeyond(RecordKind kind) const noexcept { return contents_ >= 2 * KindBit(kind); }
  bool has_ttl() const noexcept { return (contents_ & kTtlBit) != 0; }
  /// Ok, or the first record's fault that Write will answer with.
  const Status& status() const& noexcept { return error_; }
  Status status() const&& noexcept { return error_; }

  /// Calls `visit` for each record in order; stops at and returns the first error. `visit` must not
  /// change the batch; the views that it gets last until the batch is changed.
  Status ForEach(const std::function<Status(const Record&)>& visit) const;

  /// The serialised form, which is also the log's payload (docs/write-batch.md). Of a batch whose
  /// status() is an error it is one that Parse refuses, so that no part of it is taken for all.
  std::string_view bytes() const& noexcept { return error_.ok() ? bytes_ : kRefusedBytes; }
  std::string_view bytes() const&& = delete;
  /// Takes a serialised form; validates all of it. Corruption: the bytes are malformed, and the
  /// message has the offset; or they are of a batch with an error. Unsupported: an unknown record
  /// kind or flag.
  static Result<WriteBatch> Parse(std::string_view bytes);

 private:
  void Add(RecordKind kind, KeyspaceId keyspace, std::string_view key, std::string_view value,
           std::chrono::milliseconds time, MergeOperator op = MergeOperator::kAdd,
           bool time_is_expiry = false);

  static constexpr uint32_t kTtlBit = 1;  // Kinds begin at 1.
  static constexpr uint32_t KindBit(RecordKind kind) noexcept {
    return uint32_t{1} << static_cast<uint8_t>(kind);
  }

  /// Shorter than any record.
  static constexpr std::string_view kRefusedBytes{"\0", 1};

  std::string bytes_;
  size_t count_ = 0;
  uint32_t contents_ = 0;  // a bit for each kind that it has, and kTtlBit
  Status error_;
};

}  // namespace basalt

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "basalt/options.h"
#include "basalt/status.h"
#include "basalt/wall_time.h"
#include "basalt/write_batch.h"

namespace basalt {

/// Where a write stands in the order of its store.
struct Commit {
  using IsReceipt = void;  ///< A Result<Commit> converts to a Status.
  uint64_t sequence = 0;   ///< Of its last operation. 0: the write changed nothing.
  uint64_t lsn = 0;        ///< Of its log record. 0: it has none.
};

/// A batch that was committed, as listeners and readers of changes see it: the records that were
/// applied, with absolute expiry times and without conditions. Valid during the call that hands it
/// out, or until the reader's next step.
class CommittedBatch {
 public:
  /// `bytes`: a validated batch in log form, of `count` records.
  CommittedBatch(std::string_view bytes, size_t count, Commit commit) noexcept
      : bytes_(bytes), count_(count), commit_(commit) {}

  /// Its last sequence number and its LSN. Record i has the sequence number first_sequence() + i.
  const Commit& commit() const noexcept { return commit_; }
  uint64_t first_sequence() const noexcept { return commit_.sequence - count_ + 1; }
  size_t count() const noexcept { return count_; }
  /// The serialised form (docs/write-batch.md).
  std::string_view bytes() const noexcept { return bytes_; }
  /// Calls `visit` for each record in order. Stops at the first error, which is its result.
  Status ForEach(const std::function<Status(const WriteBatch::Record&)>& visit) const;

 private:
  std::string_view bytes_;
  size_t count_;
  Commit commit_;
};

/// Called with each committed batch, in order, each once. Calls do not overlap. The call for a
/// batch has ended when the write that made it returns. It runs on a thread that writes. It must
/// not throw, and must not write to the store or wait for a thread that does; it may read.
using CommitListener = std::function<void(const CommittedBatch& batch)>;

/// A change of one key, for watchers.
struct Change {
  /// kPut, kDelete, kMerge; or kDeleteRange, whose `key` and `value` are the range's begin and end.
  RecordKind kind = RecordKind::kPut;
  std::string_view key;
  std::string_view value;  ///< Of a put; of a merge the operand.
  uint64_t version = 0;    ///< The write's sequence number.
  std::optional<WallTime> expiry{};
};

/// What a watch looks at: one key, or all keys that begin with a prefix. Expiry is no change.
struct WatchOptions {
  KeyspaceId keyspace = KeyspaceId::kDefault;
  std::string_view key;    ///< Copied.
  bool is_prefix = false;  ///< True: all keys that begin with `key`.
};
/// Called as a CommitListener is, with each change of a watched key.
using WatchFunction = std::function<void(const Change& change)>;

/// A listener's registration. Destruction ends it: it waits for a call that is running, except when
/// it is destroyed by that call, and no call begins afterwards. Move-only; may outlive the store.
class Subscription {
 public:
  Subscription() noexcept = default;
  Subscription(Subscription&& other) noexcept = default;
  Subscription& operator=(Subscription&& other) noexcept;
  ~Subscription();

  /// The first batch that the listener receives has a greater first sequence number, and all
  /// writes up to this one are visible: a snapshot of the store taken now holds them.
  uint64_t sequence() const noexcept { return sequence_; }
  explicit operator bool() const noexcept { return registration_ != nullptr; }

  /// For store implementations: `registration` ends the registration when it is destroyed.
  Subscription(std::shared_ptr<void> registration, uint64_t sequence) noexcept
      : registration_(std::move(registration)), sequence_(sequence) {}

 private:
  std::shared_ptr<void> registration_;
  uint64_t sequence_ = 0;
};

/// Reads committed batches from a store's log, in order, each once.
///
///     auto changes = db->Changes(last_seen_lsn + 1).value();
///     while (changes->Next().value()) Apply(changes->batch());
///
/// Batches that are not logged (keyspaces with kMemory) are not in it, nor are the creation and the
/// drop of keyspaces. One thread at a time. It keeps the store's core alive.
class ChangeReader {
 public:
  virtual ~ChangeReader() = default;
  ChangeReader(const ChangeReader&) = delete;
  ChangeReader& operator=(const ChangeReader&) = delete;

  /// Goes to the next batch. False: there is none yet; a later call looks again. OutOfRange: the
  /// log no longer has it (DBOptions::log_keep_bytes): read the store itself, and follow from
  /// there.
  virtual Result<bool> Next() = 0;
  /// The present batch; valid until the next call of Next. Only after a Next that answered true.
  virtual CommittedBatch batch() const = 0;

 protected:
  ChangeReader() = default;
};

}  // namespace basalt

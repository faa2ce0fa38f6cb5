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

// Committed writes, for programs that follow a store by a listener or by its log. Read
// CommittedBatch first, then ChangeReader.

namespace basalt {

/// The place of a write in the order of its store.
struct Commit {
  using IsReceipt = void;  ///< A Result<Commit> converts to a Status.
  uint64_t sequence = 0;   ///< Of the write's last operation. 0: the write changed nothing.
  uint64_t lsn = 0;        ///< Of its log record. 0: it has no log record.
};

/// A committed batch, as listeners and readers of changes see it. It has the applied records, with
/// absolute expiry times and without conditions. Valid during the call that passes it, or until the
/// reader's next step.
class CommittedBatch {
 public:
  /// `bytes`: a validated batch in log form, of `count` records.
  CommittedBatch(std::string_view bytes, size_t count, Commit commit) noexcept
      : bytes_(bytes), count_(count), commit_(commit) {}

  /// The last sequence number and the LSN. Record i has the sequence number first_sequence() + i.
  const Commit& commit() const noexcept { return commit_; }
  uint64_t first_sequence() const noexcept { return commit_.sequence - count_ + 1; }
  size_t count() const noexcept { return count_; }
  /// The serialised form (docs/write-batch.md).
  std::string_view bytes() const noexcept { return bytes_; }
  /// Calls `visit` for each record in order. Stops at the first error and returns it.
  Status ForEach(const std::function<Status(const WriteBatch::Record&)>& visit) const;

 private:
  std::string_view bytes_;
  size_t count_;
  Commit commit_;
};

/// Called with each committed batch, once and in order. Calls do not overlap. The call for a batch
/// has returned when the write of the batch returns. It runs on a writing thread. It may read. It
/// must not throw, write to the store, or wait for a thread that does.
using CommitListener = std::function<void(const CommittedBatch& batch)>;

/// A change of one key, for watchers.
struct Change {
  /// kPut, kDelete, kMerge or kDeleteRange. For kDeleteRange `key` and `value` are the begin and
  /// end of the range.
  RecordKind kind = RecordKind::kPut;
  std::string_view key;
  std::string_view value;  ///< Of a put: the value. Of a merge: the operand.
  uint64_t version = 0;    ///< The write's sequence number.
  std::optional<WallTime> expiry{};
};

/// The keys of a watch: one key, or all keys with a prefix. Expiry is not reported as a change.
struct WatchOptions {
  KeyspaceId keyspace = KeyspaceId::kDefault;
  std::string_view key;    ///< Copied.
  bool is_prefix = false;  ///< True: all keys that begin with `key`.
};
/// Called with each change of a watched key, under the rules of CommitListener.
using WatchFunction = std::function<void(const Change& change)>;

/// The registration of a listener. The destructor ends it: it waits for a running call, unless that
/// call itself destroys it, and no call begins afterwards. Move-only. May outlive the store.
class Subscription {
 public:
  Subscription() noexcept = default;
  Subscription(Subscription&& other) noexcept = default;
  Subscription& operator=(Subscription&& other) noexcept;
  ~Subscription();

  /// The first batch that the listener receives has a greater first sequence number. All writes up
  /// to this one are visible: a snapshot taken now contains them.
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
/// Batches that are not logged (keyspaces at kMemory) are not included. Neither are the creation
/// and removal of keyspaces. Used by one thread at a time. It keeps the store's internal state
/// alive.
class ChangeReader {
 public:
  virtual ~ChangeReader() = default;
  ChangeReader(const ChangeReader&) = delete;
  ChangeReader& operator=(const ChangeReader&) = delete;

  /// Moves to the next batch. False: there is none yet; call again later. OutOfRange: the log no
  /// longer has it (DBOptions::log_keep_bytes); read the store itself and continue from there.
  virtual Result<bool> Next() = 0;
  /// The current batch. Valid until the next call of Next. Call it only after Next has returned
  /// true.
  virtual CommittedBatch batch() const = 0;

 protected:
  ChangeReader() = default;
};

}  // namespace basalt

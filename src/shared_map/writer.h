#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "basalt/shared_map.h"
#include "io/reserve_file.h"
#include "shared_map/core.h"
#include "shared_map/new_place.h"
#include "shared_map/update_turns.h"

namespace basalt::shared_map {

class NewFiles;

/// The one writer of a map.
///
/// A write: the change is appended to the log at once, by a copy into memory that is mapped over it
/// or by one pwrite (io::File::WriteThroughMemory), synced if that is asked for, then the index
/// words are stored, and at last the visible end, which is when readers see it. All under one
/// mutex. Cost: two cache misses to find what is replaced, and the copy.
///
/// When a log or index is full, or a compaction begins or ends, a new version is published: its
/// files are made and synced, its list is renamed into place and the directory synced, then the
/// control page is stored to, and what only the old one names is unlinked. A write that fails on
/// the way has changed nothing. What a failure leaves in doubt (a failed sync of the log, a name
/// that can neither be removed) ends the writing: all later writes give that error until the map is
/// opened anew.
///
/// A compaction seals the newest changes, so that a fresh set takes the writes, then goes from
/// shard to shard: reads the base and the sealed changes, writes a new base, publishes it. Broken
/// off anywhere, it goes on from there.
class Writer {
 public:
  struct Operation {
    RecordKind kind;  ///< kPut or kDelete
    std::string_view key;
    std::string_view value;
  };

  /// The newest of a map that has the lock. Reads the logs, makes new indexes, publishes. On a full
  /// disk it uses the space of the reserve.
  static Status Open(Core* core, const SharedMapOptions& options,
                     std::unique_ptr<io::FileLock> lock);
  /// The id of a map that is made in the directory: that of the map there, whose readers follow, or
  /// a new one.
  static uint64_t MapIdFor(const Core& core);
  /// Makes a map of base files, which are synced, one a shard, and whose keys are hashed under the
  /// map id, in place of what the directory holds of a map, if anything. They are removed unless it
  /// is published. Takes the lock of `place` when the map is made.
  static Status Create(Core* core, const SharedMapOptions& options, NewPlace* place,
                       uint64_t map_id, std::vector<ShardEntry> shards, uint64_t entries);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  Status Write(std::span<const Operation> operations, const WriteOptions& options);
  Status Update(std::string_view key, const UpdateFunction& fn, const WriteOptions& options);
  Status Sync();
  enum class CompactionReason : uint8_t {
    kAsked,  ///< All changes made before the call are compacted.
    kDue,    ///< Only what was broken off, and changes that have piled up.
  };
  Status Compact(const SharedMapProgressFunction& on_progress, CompactionReason reason);
  Status Close();
  /// What only the writer knows.
  void AddStats(SharedMapStats* stats);

 private:
  struct Planned {
    Location replaces;
    bool had_value;
  };

  Writer(Core* core, const SharedMapOptions& options, std::unique_ptr<io::FileLock> lock);

  /// Open of the newest version. After an error the writer is of no more use.
  Status OpenNewest();
  Status RefuseFork() const;
  Status Refusal() const;
  Status WriteLocked(std::span<const Operation> operations, Durability durability);
  /// The value that a key has now, for Update.
  Status ReadNow(std::string_view key, std::optional<std::string>* present) const;
  Status AppendToLog(Durability durability);
  Status EncodeOperations(std::span<const Operation> operations);
  Result<Planned> Plan(const Operation& operation, uint64_t hash);
  Result<bool> HasValueBelow(uint64_t hash, std::string_view key) const;
  /// Makes log or index larger where a write wants it: by as much as there is room for on the disk.
  /// Puts leave the reserve whole. Deletes take it if there is no other space.
  Status MakeRoom(std::span<const Operation> operations);
  enum class GrowthRoom : uint8_t {
    kBesideReserve,  ///< Only if the reserve is whole.
    kSome,           ///< A part of the free space.
    kAll,            ///< All free space.
  };
  Status Grow(uint64_t bytes, uint64_t keys, GrowthRoom where);
  uint64_t ReserveBytes() const;
  /// False: the disk has no space for it, or the reserve was taken and is not whole yet. The
  /// reserve then keeps its size.
  bool FillReserve();
  Status NoRoomBesideReserve();
  /// How large the next segment of the log and the next index are.
  struct Growth {
    uint64_t log_bytes;  ///< 0: the log goes on.
    uint64_t index_capacity;
    bool operator==(const Growth&) const = default;
  };
  /// The growth that has space for most deletes: an index for all entries, and a log of the rest.
  Growth GrowthInto(uint64_t free, const Growth& least) const;
  Status PublishGrown(const Growth& growth);
  Status SyncLog();

  Result<std::shared_ptr<ChangeIndex>> NewIndex(uint64_t file, uint64_t capacity, NewFiles* files);
  /// Of the segment that comes next in a change set, or first in a fresh one (null), which takes as
  /// much as the newest one did; a set that goes on doubles.
  uint64_t UsualSegmentBytes(const ChangeSetEntry* set) const;
  /// Adds a segment to the newest change set of `next`.
  Status AddSegment(VersionFiles* next, uint64_t capacity, NewFiles* files);
  /// Gives `next` a fresh newest change set; the log before is sealed.
  Status AddChangeSet(VersionFiles* next, uint64_t log_bytes, NewFiles* files);
  /// The number of a file that does not exist yet. It is not given out again, whatever becomes of
  /// the file: one that is not published might not go.
  uint64_t NewFileNumber() { return list_.next_file++; }
  void SealLog(VersionFiles* list) const;
  /// Publishes a list whose last log segment is a new one, and turns to that.
  Status PublishWithFreshLog(VersionFiles next, NewFiles* files);
  Status Publish(VersionFiles next, NewFiles* files);
  Status PublishClosed();
  /// Writes a list, and opens what it names.
  Result<std::shared_ptr<const Version>> WriteList(const VersionFiles& list);
  Status UseLog(const VersionFiles& list);
  /// Of the files that are written through mappings.
  void MarkChanged();
  /// Closes those of held_lists_ that no reader holds any more.
  void ForgetFreeLists();
  void RemoveObsolete(const VersionFiles& before, const VersionFiles& after);
  /// What a log says.
  struct Rebuilt {
    LogEnd end;
    ChangeCount count;
  };
  /// Reads the log of a change set of `next`, and gives it an index of its own. `same_boot`: the
  /// old index says how far the log was visible.
  Result<Rebuilt> Rebuild(VersionFiles* next, size_t set, bool same_boot, NewFiles* files);
  /// Says in the control page who writes, since when.
  Status TakeControl();
  /// Removes what the list, which is the newest one, does not name.
  Status RemoveOrphans(const VersionFiles& list);

  // compaction.cc
  struct CompactedShard {
    uint64_t shard;
    uint64_t base_file;
  };
  class CompactionWork;
  class CompactionUnderWay;
  Status CompactAll(const SharedMapProgressFunction& on_progress, CompactionReason reason);
  /// Lends the reserve's space. Puts are refused until it has been filled again.
  void TakeReserve(std::optional<io::ReserveFile::Loan>* loan);
  /// False: there is nothing to compact.
  Result<bool> BeginCompaction();
  /// Publishes that the newest changes are compacted, with a fresh log of so many bytes.
  Status PublishCompacting(uint64_t log_bytes);
  uint32_t WantedShardBits() const;
  /// Bytes of the records in the bases and the newest log.
  uint64_t StoredBytes() const;
  Status CompactShards(const SharedMapProgressFunction& on_progress);
  Status InstallShards(std::span<const CompactedShard> compacted);
  void SetCompactionThresholds();
  bool ChangesPileUp() const;
  bool CompactionIsDue() const;
  /// A write was refused for want of room: a compaction may give back that of replaced changes.
  void CompactForRoom() noexcept;
  void ScheduleCompaction() noexcept;
  bool MustWaitForCompaction() const;
  /// Waits while compactions do not keep up, so that changes cannot pile up without bound.
  void WaitForCompaction(std::unique_lock<std::mutex>* lock);
  void CompactInBackground();

  Core* const core_;
  io::FileSystem* const fs_;
  const SharedMapOptions options_;
  const uint64_t fork_count_;
  std::unique_ptr<io::FileLock> lock_;

  UpdateTurns turns_;
  mutable std::mutex mutex_;  // Covers the following.
  VersionFiles list_;
  std::shared_ptr<const Version> version_;
  std::unique_ptr<io::File> log_;  // The last segment of the newest change set.
  LogEnd end_;                     // Of it.
  Location synced_ = 0;            // What stands before survives a power cut.
  uint64_t entries_ = 0;
  uint64_t changes_ = 0;  // Of the newest change set,
  uint64_t keys_ = 0;     // and keys in its index.
  bool closed_ = false;
  Status close_status_;
  Status failed_;  // Why nothing can be written any more.
  std::string buffer_;
  std::vector<Planned> plans_;
  std::unordered_map<std::string_view, Planned> in_batch_;
  std::vector<std::unique_ptr<io::File>> held_lists_;  // Older versions that readers may hold.
  uint64_t compactions_ = 0;
  Status compaction_error_;
  bool compaction_scheduled_ = false;
  bool compaction_under_way_ = false;         // Somebody has compaction_mutex_ to compact.
  std::condition_variable compaction_moved_;  // It has begun, or ended.
  uint64_t compaction_waits_ = 0;
  bool lacks_room_ = false;  // The last write was refused for want of it.
  io::ReserveFile reserve_;
  bool reserve_is_owed_ = false;  // It was taken. Puts are refused until it is whole.
  // After a failure: no sooner than with so many changes; a write that lacks room counts as one.
  uint64_t compaction_changes_min_ = 0;
  uint64_t compaction_keys_ = 0;   // A compaction is due with so many changed keys,
  uint64_t compaction_bytes_ = 0;  // or so many bytes of changes.

  std::atomic<bool> cancel_compactions_{false};
  std::mutex compaction_mutex_;  // One compaction at a time; taken before mutex_.
};

}  // namespace basalt::shared_map

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/cache.h"
#include "basalt/status.h"
#include "base/range_cover.h"
#include "db/obsolete_files.h"
#include "db/range_delete_blocks.h"
#include "db/retained_versions.h"
#include "io/descriptor_pool.h"
#include "io/file_system.h"
#include "table/metadata_budget.h"
#include "table/table.h"

namespace basalt::db {

/// One table of a database: what the manifest says of it, and the open table, which is opened at
/// its first read. Its file's descriptor may be closed and opened again meanwhile. When the last
/// version that names it is gone and it was marked obsolete, its file is removed. Thread-safe.
class TableFile {
 public:
  struct Place {
    uint64_t number = 0;
    base::SequenceNumber ranges_applied = 0;
    uint64_t created_ms = 0;
    /// From when on at least half of its keys and values have expired, of what had not when it was
    /// written; 0: that will never be.
    uint64_t half_expired_ms = 0;
    uint64_t retained_bytes = 0;  ///< Of versions that are there for snapshots alone.
  };
  /// What tables share. Each may be null: no blocks are kept; no limit; files stay open; they are
  /// removed at once.
  struct Resources {
    std::shared_ptr<Cache> cache{};
    std::shared_ptr<table::MetadataBudget> metadata{};
    io::DescriptorPool* descriptors = nullptr;
    io::DescriptorPool::Closing closing = io::DescriptorPool::Closing::kAsOthers;
    std::shared_ptr<ObsoleteFiles> obsolete{};
  };
  /// `properties`: with keys as the table itself has them.
  TableFile(io::FileSystem* fs, std::string path, const Place& place,
            table::TableProperties properties, Resources resources, RetainedVersions retained = {});
  ~TableFile();
  TableFile(const TableFile&) = delete;
  TableFile& operator=(const TableFile&) = delete;

  const Place& place() const noexcept { return place_; }
  uint64_t number() const noexcept { return place_.number; }
  const std::string& path() const noexcept { return path_; }
  /// The smallest and the largest key are tree keys (tree_key.h), and where keys are long bounds
  /// that stand for them (key_bounds.h).
  const table::TableProperties& properties() const noexcept { return properties_; }
  /// The properties with keys as the table itself has them.
  table::TableProperties OwnProperties() const;

  /// The open table, which lives as long as this object. A failure to open is tried again by the
  /// next call.
  Result<const table::Table*> Open() const;
  /// Opens the file, so that the table can be opened when the file has no name any more.
  Status Pin() const;
  /// The Corruption of a file that is missing.
  Status NotThere() const;
  /// The open table when some read has opened it already, else null.
  const table::Table* OpenedTable() const noexcept {
    return opened_.load(std::memory_order_acquire);
  }

  /// Every range delete up to here has been applied to it: it holds nothing that one of them
  /// covers.
  base::SequenceNumber ranges_applied() const noexcept { return place_.ranges_applied; }
  /// When it was written: wall milliseconds since 1970.
  uint64_t created_ms() const noexcept { return place_.created_ms; }

  /// Keys and values, before compression.
  uint64_t raw_bytes() const noexcept {
    return properties_.raw_key_bytes + properties_.raw_value_bytes;
  }
  /// Of retained versions, bytes that nobody sees who reads at one of `boundaries` (ascending, at
  /// least one). The snapshots of an earlier opening are gone.
  uint64_t BytesInVain(std::span<const base::SequenceNumber> boundaries) const noexcept {
    if (place_.retained_bytes == 0) return 0;
    if (retained_.bytes() != 0) return retained_.BytesInVain(boundaries);
    return properties_.largest_sequence <= boundaries.front() ? place_.retained_bytes : 0;
  }

  /// What iterators have spent on the tables of level 0, told to the oldest of these: in bytes that
  /// a compaction reads in that time. Some may be lost.
  void AddScanCost(uint64_t bytes) noexcept {
    scan_cost_.store(scan_cost() + bytes, std::memory_order_relaxed);
  }
  void ForgetScanCost() noexcept { scan_cost_.store(0, std::memory_order_relaxed); }
  uint64_t scan_cost() const noexcept { return scan_cost_.load(std::memory_order_relaxed); }

  /// A compaction reads it, or has written it and goes on. Changed by whoever plans compactions,
  /// under a lock of theirs.
  std::atomic<bool> busy{false};

  /// The file goes when this object does, unless the process forked or `Keep` was called since.
  void MarkObsolete() noexcept { obsolete_.store(true, std::memory_order_relaxed); }
  void Keep() noexcept { obsolete_.store(false, std::memory_order_relaxed); }

 private:
  Result<std::unique_ptr<io::File>> OpenFile() const;

  io::FileSystem* const fs_;
  const std::string path_;
  const Place place_;
  const uint64_t fork_count_;
  const table::TableProperties properties_;
  const Resources resources_;
  const RetainedVersions retained_;  ///< Not known of a table of an earlier opening.
  std::atomic<bool> obsolete_{false};
  mutable std::mutex mutex_;
  mutable std::unique_ptr<io::File> pinned_;  // until the table is open
  mutable std::shared_ptr<table::Table> table_;
  mutable CacheReservation reservation_;  // what the table's metadata take of the cache's bytes
  mutable std::atomic<const table::Table*> opened_{nullptr};
  alignas(64) std::atomic<uint64_t> scan_cost_{0};  // Apart from what all readers read.
};

using TableFiles = std::vector<std::shared_ptr<TableFile>>;

/// Some range deletes of one tree, flattened. Immutable.
class RangeDeletePart {
 public:
  /// `ranges`: at least one. `is_shared`: they are of the shared tree.
  RangeDeletePart(std::vector<RangeDelete> ranges, bool is_shared);
  RangeDeletePart(const RangeDeletePart&) = delete;
  RangeDeletePart& operator=(const RangeDeletePart&) = delete;

  bool is_shared() const noexcept { return is_shared_; }
  /// By their beginning, then by their sequence.
  const std::vector<RangeDelete>& ranges() const noexcept { return ranges_; }
  /// All that cover one of these keys, or a key between them; and others, where some reach far. A
  /// part of `ranges`, found in O(log n).
  std::span<const RangeDelete> Near(std::string_view smallest,
                                    std::string_view largest) const noexcept;
  /// The greatest sequence number of all.
  base::SequenceNumber newest() const noexcept { return cover_.newest(); }
  /// The greatest <= `at`; 0: there is none. O(1) if `at` is not among them.
  base::SequenceNumber NewestUpTo(base::SequenceNumber at) const noexcept;
  // The next three are as those of RangeDeletes.
  bool MayCoverBoth(std::string_view smallest, std::string_view largest,
                    base::SequenceNumber after) const noexcept;
  base::SequenceNumber SequenceAt(std::string_view key, base::SequenceNumber at) const noexcept;
  void Collect(uint32_t keyspace, base::SequenceNumber at,
               std::vector<const base::RangeCover*>* covers,
               std::vector<base::RangeCover::Range>* loose) const;
  /// All of them as a manifest stores many (manifest.h): encoded once, for all manifests.
  const RangeDeleteBlocks& blocks() const noexcept { return blocks_; }

 private:
  const bool is_shared_;
  const std::vector<RangeDelete> ranges_;
  const std::vector<std::string_view> reach_;  ///< The greatest end of each and all before it.
  const base::RangeCover cover_;
  const base::SequenceNumber oldest_;
  const RangeDeleteBlocks blocks_;
  /// Of the shared tree: those of each keyspace, and both by keys without it.
  struct OfKeyspace {
    std::vector<base::RangeCover::Range> ranges;
    base::RangeCover cover;
  };
  std::map<uint32_t, OfKeyspace> of_keyspaces_;
};

/// The range deletes of one tree that some table may still need. They stand in the manifest instead
/// of in tables, so that no filter or index can hide one from a lookup.
///
/// They lie in parts, of which each has at least kPartRatio times as many as the next, so there are
/// O(log n). Copies share the parts. Adding some makes a new part, into which those behind go that
/// would be too small. So one that is added costs O(log n) on average, and an edit that adds none
/// costs nothing.
class RangeDeletes {
 public:
  using Parts = std::vector<std::shared_ptr<const RangeDeletePart>>;

  RangeDeletes() = default;
  /// `is_shared`: they are of the shared tree.
  explicit RangeDeletes(std::vector<RangeDelete> ranges, bool is_shared = false);

  void Add(std::vector<RangeDelete> ranges, bool is_shared);
  /// Replaces a part by one of some of its ranges. None: removes it.
  void Replace(size_t part, std::vector<RangeDelete> ranges, bool is_shared);

  const Parts& parts() const noexcept { return parts_; }
  size_t size() const noexcept;
  bool empty() const noexcept { return parts_.empty(); }
  /// The greatest sequence number of all; 0: there are none.
  base::SequenceNumber newest() const noexcept;
  /// Whether one of them that is newer than `after` covers both keys. False is certain.
  bool MayCoverBoth(std::string_view smallest, std::string_view largest,
                    base::SequenceNumber after) const noexcept;
  /// The greatest sequence <= `at` of those that cover `key`; 0: none. For an `at` below the newest
  /// of them a look at all near the key.
  base::SequenceNumber SequenceAt(std::string_view key, base::SequenceNumber at) const noexcept;
  /// Those of a keyspace up to `at`, with keys as its users know them: all of a part flattened,
  /// where these are all, or one by one. They are valid as long as a copy.
  void Collect(uint32_t keyspace, base::SequenceNumber at,
               std::vector<const base::RangeCover*>* covers,
               std::vector<base::RangeCover::Range>* loose) const;

 private:
  static constexpr size_t kPartRatio = 4;

  Parts parts_;  // The largest first.
};

/// As SurvivingRecords::Rules::cover_of, of what outlives it; unset: there are none.
std::function<base::SequenceNumber(std::string_view key, base::SequenceNumber at)> CoverOf(
    const RangeDeletes& ranges);

/// Finds the table of a level >= 1 that may hold a key, mostly without a look at a whole key: by 8
/// bytes of each table's smallest and largest key, behind what all keys of the level share.
/// Immutable.
class LevelSearch {
 public:
  LevelSearch() = default;
  /// `files`: disjoint, in key order.
  explicit LevelSearch(const TableFiles& files);

  size_t size() const noexcept { return largest_.size(); }
  /// The first table whose largest key is not below `key`; size(): none. `files`: those it was made
  /// of. O(log n).
  size_t FirstNotBelow(const TableFiles& files, std::string_view key) const noexcept;
  /// Null: no table's range has the key. O(log n).
  const TableFile* Find(const TableFiles& files, std::string_view key) const noexcept;

 private:
  bool Shares(std::string_view key) const noexcept;
  size_t FirstNotBelow(const TableFiles& files, std::string_view key,
                       uint64_t prefix) const noexcept;

  std::string shared_;
  std::vector<uint64_t> smallest_;
  std::vector<uint64_t> largest_;
};

/// A keyspace that was dropped while it shared tables with others. Tables below `table_number` may
/// still hold records of it; those that are written since do not.
struct DroppedKeyspace {
  uint32_t id = 0;
  uint64_t table_number = 0;
};

/// Whether a table of the shared tree may hold records of it.
bool MayHold(const TableFile& table, const DroppedKeyspace& dropped) noexcept;

/// What the default keyspace, or all others together, have on disk (tree_key.h); immutable. Level 0
/// holds flushed memtables, newest first; of two tables there the keys or the sequence numbers are
/// apart. Each other level is disjoint and in key order. For one key, what a lower number holds is
/// newer, or is in both and no merge (see compaction.cc).
struct Tree {
  static constexpr size_t kLevels = 7;

  uint32_t keyspace = 0;  ///< 0 or kSharedTree.
  TableFiles levels[kLevels];
  RangeDeletes range_deletes;
  std::vector<DroppedKeyspace> dropped;  ///< Ascending by id; those that some table may hold.

  /// To be called after the last change of `levels`, before `Find`.
  void IndexLevels();
  /// The only table of level >= 1 that may hold `key`, or null. O(log n).
  const TableFile* Find(size_t level, std::string_view key) const noexcept;
  /// The first table of a level >= 1 whose largest key is not below `key`, or how many there are.
  /// O(log n).
  size_t FirstNotBelow(size_t level, std::string_view key) const noexcept {
    return searches_[level].FirstNotBelow(levels[level], key);
  }
  /// A level's tables with keys in [smallest, largest], both inclusive; unset: open.
  TableFiles Overlapping(size_t level, std::optional<std::string_view> smallest,
                         std::optional<std::string_view> largest) const;
  /// Whether the rules above hold; Corruption names the two tables that break them.
  Status CheckOrder() const;
  bool empty() const noexcept;

 private:
  Status CheckLevel0() const;

  LevelSearch searches_[kLevels];
};

/// All trees at one moment; immutable.
class Version {
 public:
  using Trees = std::vector<std::shared_ptr<const Tree>>;

  Version() = default;
  /// `trees`: that of the default keyspace, then the shared one, if there are any; none empty.
  explicit Version(Trees trees) : trees_(std::move(trees)) {}

  const Trees& trees() const noexcept { return trees_; }
  /// That of the keyspace, which may be shared. Null: there is none.
  const Tree* tree(uint32_t keyspace) const noexcept;
  Status CheckOrder() const;
  /// Its tables that are not among `names`, which ascend.
  TableFiles MissingFrom(const std::vector<std::string>& names) const;

 private:
  Trees trees_;
};

}  // namespace basalt::db

#pragma once

#include <optional>

#include "db/compaction_source.h"
#include "db/core.h"
#include "db/expiry_profile.h"

namespace basalt::db {

/// What one edit of the manifest changes.
struct Core::Edit {
  struct Addition {
    uint32_t keyspace = 0;  ///< Or its tree.
    size_t level = 0;
    std::shared_ptr<TableFile> file;
  };

  std::vector<Addition> added{};  ///< To level 0: newer than all that is there.
  TableFiles removed{};           ///< One that is also added only moves.
  std::vector<ManifestRangeDelete> range_deletes{};
  std::shared_ptr<LoggedGeneration> flushed{};   ///< Now in tables; null: none.
  std::shared_ptr<const Keyspaces> keyspaces{};  ///< Null: as they are.
  uint32_t next_keyspace_id = 0;                 ///< 0: as it is.
  std::optional<DroppedKeyspace> dropped_keyspace{};
  /// Its tables that a range delete covers go, as they do in every keyspace that the edit changes.
  std::optional<uint32_t> without_covered{};
  /// Whose inputs have to be there still, else the edit is refused with Aborted. Null: nobody's.
  const CompactionJob* job = nullptr;
};

/// A compaction on its way.
struct Core::Merge {
  CompactionJob* job = nullptr;
  bool in_pieces = false;      ///< It installs what it has written before it ends.
  std::string smallest_key{};  ///< Of the job when it begins, and so the largest one.
  std::string largest_key{};
  const RunIterator* replaced = nullptr;  ///< Its inputs in the output level; null: none.
  uint64_t piece_bytes = 0;               ///< So much of them is replaced at once, at least.
  size_t passed = 0;                      ///< So many of them lie before the next record.
  uint64_t passed_bytes = 0;

  /// `key` is the next: whether it lies behind the end of an input for the first time.
  bool Pass(std::string_view key);
  bool IsDueAtNextEnd() const;
};

/// Tables being written: finished ones, and the one that is open.
struct Core::NewTables {
  NewTables() = default;
  NewTables(const NewTables&) = delete;
  NewTables& operator=(const NewTables&) = delete;
  /// What nobody has taken over goes.
  ~NewTables() {
    for (const std::shared_ptr<TableFile>& table : files) table->MarkObsolete();
  }
  /// Of a record that the open table got.
  void CountGarbage(const base::SurvivingRecords& record);
  /// Of the open table.
  TableFile::Place PlaceAt(uint64_t created_ms) const;

  uint32_t tree = 0;
  bool at_last_level = false;
  Merge* merge = nullptr;  ///< Null: a flush.
  base::SequenceNumber ranges_applied = 0;
  uint64_t now_ms = 0;          ///< When the work began.
  ExpiryProfile expiry{};       ///< Of the open table: what had not expired then.
  RetainedVersions retained{};  ///< Of the open table.
  TableFiles files{};           ///< Finished, and not installed.
  uint64_t bytes = 0;           ///< Of all that were finished.
  uint64_t flushed_before = 0;  ///< Of a flush: records of trees that are in tables already.
  uint64_t flushed_in_all = 0;
  std::string path{};
  uint64_t number = 0;
  std::string last_bound{};     ///< Of the table that was finished last: above its keys.
  uint32_t table_keyspace = 0;  ///< Of the open table, or the next: see TableProperties.
  // Of the shared tree: the keyspace that is being written, and whether it was not dropped.
  uint32_t keyspace = 0;
  bool keyspace_is_there = false;
  std::unique_ptr<io::File> file{};
  std::unique_ptr<table::TableBuilder> builder{};
};

}  // namespace basalt::db

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/cache.h"
#include "basalt/status.h"
#include "io/file_system.h"
#include "table/table.h"

namespace basalt::db {

/// One table of a database: what the manifest says of it, and the open table, which is opened at
/// its first read. When the last version that names it is gone and it was marked obsolete, its file
/// is removed. Thread-safe.
class TableFile {
 public:
  TableFile(io::FileSystem* fs, std::string path, uint64_t number,
            table::TableProperties properties, std::shared_ptr<Cache> cache);
  ~TableFile();
  TableFile(const TableFile&) = delete;
  TableFile& operator=(const TableFile&) = delete;

  uint64_t number() const noexcept { return number_; }
  const std::string& path() const noexcept { return path_; }
  const table::TableProperties& properties() const noexcept { return properties_; }

  /// The open table, which lives as long as this object. A failure to open is tried again by the
  /// next call.
  Result<const table::Table*> Open() const;
  /// The open table when some read has opened it already, else null.
  const table::Table* OpenedTable() const noexcept {
    return opened_.load(std::memory_order_acquire);
  }

  /// The file goes when this object does, unless the process forked or `Keep` was called since.
  void MarkObsolete() noexcept { obsolete_.store(true, std::memory_order_relaxed); }
  void Keep() noexcept { obsolete_.store(false, std::memory_order_relaxed); }

 private:
  io::FileSystem* const fs_;
  const std::string path_;
  const uint64_t number_;
  const uint64_t fork_generation_;
  const table::TableProperties properties_;
  std::shared_ptr<Cache> cache_;
  std::atomic<bool> obsolete_{false};
  mutable std::mutex mutex_;
  mutable std::shared_ptr<table::Table> table_;
  mutable std::atomic<const table::Table*> opened_{nullptr};
};

using TableFiles = std::vector<std::shared_ptr<TableFile>>;

/// The tables at one moment; immutable. Level 0 holds flushed memtables, newest first, whose key
/// ranges may overlap and whose sequence ranges do not; level 1 is disjoint and in key order.
class Version {
 public:
  static constexpr size_t kLevels = 2;

  Version() = default;
  Version(TableFiles level0, TableFiles level1);

  const TableFiles& level(size_t number) const noexcept { return levels_[number]; }
  /// Level 1's only table that may hold `key`, or null. O(log n).
  const TableFile* FindInLevel1(std::string_view key) const noexcept;
  /// Level 1's tables with keys in [smallest, largest], both inclusive; unset: open.
  TableFiles OverlappingLevel1(std::optional<std::string_view> smallest,
                               std::optional<std::string_view> largest) const;
  /// Whether the rules above hold; Corruption names the two tables that break them.
  Status CheckOrder() const;

 private:
  TableFiles levels_[kLevels];
};

}  // namespace basalt::db

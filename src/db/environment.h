#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "basalt/db.h"
#include "base/executor.h"
#include "io/clock.h"
#include "io/descriptor_pool.h"
#include "io/file_system.h"

namespace basalt::db {

/// What a database stands on, injected so that a test can simulate all of it and replay a run from
/// its seed. Everything pointed to must outlive the database and what was taken from it.
struct Environment {
  io::FileSystem* fs = nullptr;
  /// Bounds the descriptors of tables; null: they stay open.
  io::DescriptorPool* descriptors = nullptr;
  io::Clock* clock = nullptr;
  base::Executor* executor = nullptr;
  /// Keeps `fs` alive when the database owns it (":memory:").
  std::shared_ptr<io::FileSystem> owned_fs{};
  uint64_t memtable_bytes = 0;  ///< 0: derived from the memory budget.
  /// Size at which a compaction starts the next table; 0: derived from the memory budget.
  uint64_t table_bytes = 0;

  /// The machine's file system and clock; the process's descriptors, whose limit is raised; and the
  /// process's one executor: its first user's `background_threads` (0: derived) decides how many
  /// threads it has.
  static Result<Environment> System(uint32_t background_threads);
};

/// DB::Open, Check and Repair on an injected environment.
Result<std::unique_ptr<DB>> OpenDatabase(std::string_view path, const DBOptions& options,
                                         const Environment& environment);
Result<CheckReport> CheckDatabase(std::string_view path, const Environment& environment,
                                  const ProgressFunction& progress);
Result<std::unique_ptr<DB>> OpenDatabaseReadOnly(std::string_view path, const DBOptions& options,
                                                 const Environment& environment);
Status DestroyDatabase(std::string_view path, const Environment& environment);
Result<RepairReport> RepairDatabase(std::string_view path, const Environment& environment);

}  // namespace basalt::db

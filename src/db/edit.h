#pragma once

#include "db/core.h"

namespace basalt::db {

/// What one edit of the manifest changes.
struct Core::Edit {
  struct Addition {
    uint32_t keyspace = 0;
    size_t level = 0;
    std::shared_ptr<TableFile> file;
  };

  std::vector<Addition> added{};  ///< To level 0: newer than all that is there.
  TableFiles removed{};           ///< One that is also added only moves.
  std::vector<ManifestRangeDelete> range_deletes{};
  std::shared_ptr<Generation> flushed{};         ///< Now in tables; null: none.
  std::shared_ptr<const Keyspaces> keyspaces{};  ///< Null: as they are.
  uint32_t next_keyspace_id = 0;                 ///< 0: as it is.
};

/// Tables being written: finished ones, and the one that is open.
struct Core::NewTables {
  uint32_t keyspace = 0;
  bool at_last_level = false;
  bool may_cut = false;  ///< Begin another table when one is large enough.
  base::SequenceNumber ranges_applied = 0;
  TableFiles files{};
  uint64_t bytes = 0;
  std::string path{};
  uint64_t number = 0;
  std::unique_ptr<io::File> file{};
  std::unique_ptr<table::TableBuilder> builder{};
};

}  // namespace basalt::db

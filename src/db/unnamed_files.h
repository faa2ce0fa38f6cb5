#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "basalt/status.h"
#include "base/internal_key.h"
#include "db/version.h"
#include "io/file_system.h"

namespace basalt::db {

/// The tables in a database's directory that its manifest does not name, and a replacement of the
/// manifest that was not finished. An interrupted flush or compaction leaves such, and they hold
/// nothing that the tables and the log have not. But to a manifest that is older than the database,
/// or another one's, they may be all that there is: they are judged before they go.
class UnnamedFiles {
 public:
  /// None.
  UnnamedFiles() = default;
  /// `names`: what the directory holds; `version`: what its manifest names. Changes nothing.
  /// Corruption: a table has a number so high that it is none of the database's.
  static Result<UnnamedFiles> Find(io::FileSystem* fs, const std::string& directory,
                                   const std::vector<std::string>& names, const Version& version);

  /// Greater than the number of every table in the directory and in `lost/`.
  uint64_t next_table_number() const noexcept { return next_table_number_; }

  /// Removes them, but for whole tables with records above `last_sequence`: these are newer than
  /// manifest and log, and go to `lost/`, durably. Gives their new paths. Not before the log has
  /// been judged, whose last record is `last_sequence`. There are none afterwards.
  Result<std::vector<std::string>> Remove(base::SequenceNumber last_sequence);

 private:
  io::FileSystem* fs_ = nullptr;
  std::string directory_;
  std::vector<std::string> names_;
  uint64_t next_table_number_ = 1;
};

}  // namespace basalt::db

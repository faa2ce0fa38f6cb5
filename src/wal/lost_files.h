#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/status.h"
#include "io/file_system.h"

namespace basalt::wal {

/// The files of one kind in the directory `lost/` inside a database's: what recovery took out of
/// the log, or tables that it took out of the database, in case that someone wants to look at them.
/// Whole files keep their names; the tail of a file is `<name>.<offset>`. At most kLostFilesMax
/// files and kLostBytesMax bytes of each kind, those with the least numbers removed first.
class LostFiles {
 public:
  static constexpr size_t kLostFilesMax = 64;
  static constexpr uint64_t kLostBytesMax = uint64_t{64} << 20;

  /// `suffix`: of the names of the kind, NNNNNN.log or NNNNNN.tbl.
  LostFiles(io::FileSystem* fs, const std::string& database_directory, std::string_view suffix);

  /// The greatest file number in any name there; 0: none, or no such directory.
  Result<uint64_t> GreatestNumber();
  /// Keeps a copy of a file's tail, durably.
  Status KeepTail(std::string_view file_name, uint64_t offset, std::string_view bytes);
  /// Moves a file of the database's directory here. Durable after SyncMoves.
  Status Move(std::string_view file_name);
  Status SyncMoves();
  /// Removes the oldest files above the bounds, but none of those that this object put there.
  Status Bound();

  /// Paths of what this object put there.
  const std::vector<std::string>& kept() const noexcept { return kept_; }

 private:
  Status MakeDirectory();

  io::FileSystem* fs_;
  std::string database_directory_;
  std::string directory_;
  std::string suffix_;
  std::vector<std::string> kept_;
  bool is_made_ = false;  ///< The directory is there, durably.
};

}  // namespace basalt::wal

#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "io/file_system.h"

namespace basalt::db {

/// Disk space kept back for what makes room on a full disk: a delete has to be logged, and the
/// memtables before it flushed, until tables can go; and recovery, without which nobody can delete,
/// may have to flush what was logged. Writes that put anything get none of it, so that it is still
/// there when it is needed. A file of zeros that the file system has allocated;
/// where it cannot allocate, there is no reserve. Thread-safe.
class ReserveFile {
 public:
  /// `bytes`: 0 for none. Makes no file yet.
  ReserveFile(io::FileSystem* fs, std::string path, uint64_t bytes);

  /// Makes it, if it is not there and the disk has room for twice as much. False: it has not.
  bool Fill() noexcept;
  /// Gives its space back, that of one which an earlier run has left, too. False: there was none.
  bool Release() noexcept;

 private:
  enum class Made : uint8_t { kYes, kNoRoom, kUnsupported };
  Made Make();
  Status Remove() noexcept;

  io::FileSystem* const fs_;
  const std::string path_;
  const uint64_t bytes_;
  std::mutex mutex_;
  bool is_there_ = false;
};

}  // namespace basalt::db

#pragma once

#include <memory>
#include <string>

#include "basalt/status.h"
#include "io/file_system.h"

// The lock of a database's directory: one process at a time opens, checks, repairs or destroys the
// database. What a directory holds is judged under its lock, since whoever has it may be making or
// removing the database. Only a directory that holds files of others and no manifest is refused
// without a lock, so that nothing is written into it.

namespace basalt::db {

/// Takes the lock to open the database. `path` becomes absolute and without links, so that what
/// becomes later of the working directory, or of links, leads nowhere else. `create`: makes the
/// directory if it is absent.
///
/// Busy: another handle has it. NotFound: there is no database, and it is not to be made.
/// InvalidArgument: it is no directory, or the directory of something else. Corruption: tables or
/// log are there, and no manifest.
Result<std::unique_ptr<io::FileLock>> LockToOpen(io::FileSystem* fs, std::string* path,
                                                 bool create);

/// Takes the lock of a database that exists. NotFound: there is none; Busy: another handle has it.
Result<std::unique_ptr<io::FileLock>> LockExisting(io::FileSystem* fs, const std::string& path);

}  // namespace basalt::db

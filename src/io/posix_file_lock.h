#pragma once

#include <memory>
#include <string>

#include "io/file_system.h"

namespace basalt::io {

/// FileSystem::Lock on the machine's file system. Gives an errno; for EWOULDBLOCK, `holder` goes on
/// after a path: "is in use by process 12 (...)".
int LockPosixFile(const std::string& path, std::unique_ptr<FileLock>* lock, std::string* holder);

/// FileSystem::MarkDirectory and IsMarked. Give an errno.
int MarkPosixDirectory(const std::string& path, std::unique_ptr<FileLock>* mark);
int IsPosixDirectoryMarked(const std::string& path, bool* is_marked);

}  // namespace basalt::io

#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "io/file_system.h"

namespace basalt::io {

/// FileSystem::Lock on the machine's file system. Gives an errno; for EWOULDBLOCK, `holder` goes on
/// after a path: "is in use by process 12 (...)".
int LockPosixFile(const std::string& path, std::unique_ptr<FileLock>* lock, std::string* holder);

/// Adds to what `holder` says of the lock on this file, which this process holds, where it is
/// reached: "which serves it at redis://127.0.0.1:6379". Empty: nowhere any more. ENOENT: this
/// process holds no lock on the file. EINVAL: the URL is too long, or has control characters.
int SetPosixLockUrl(const std::string& path, std::string_view url);

/// FileSystem::MarkDirectory and IsMarked. Give an errno.
int MarkPosixDirectory(const std::string& path, std::unique_ptr<FileLock>* mark);
int IsPosixDirectoryMarked(const std::string& path, bool* is_marked);

}  // namespace basalt::io

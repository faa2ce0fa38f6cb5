#pragma once

#include <memory>

#include "io/file_system.h"

namespace basalt::io {

/// An empty file system in memory, with a directory "/"; everything in it is gone with it and its
/// open files. Thread-safe.
std::unique_ptr<FileSystem> NewMemoryFileSystem();

}  // namespace basalt::io

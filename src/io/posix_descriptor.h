#pragma once

#include <sys/types.h>

namespace basalt::io {

/// Opens a path as open(2) does, under a number above those of the standard streams: 3 or more. -1:
/// it failed, and `errno` says why.
///
/// A program may have closed its standard streams, as daemons do. open(2) gives their numbers to
/// the files that are opened next, and what the program prints is then written into these. So every
/// file, directory and lock of the library is opened by this function and by no other.
int OpenDescriptor(const char* path, int flags, mode_t mode = 0) noexcept;

}  // namespace basalt::io

#pragma once

#include <sys/types.h>

#include <cstddef>

namespace basalt::io {

/// Opens a path as open(2) does, under a number above those of the standard streams: 3 or more. -1:
/// it failed, and `errno` says why.
///
/// A program may have closed its standard streams, as daemons do. open(2) gives their numbers to
/// the files that are opened next, and what the program prints is then written into these. So every
/// file, directory and lock of the library is opened by this function and by no other.
///
/// Where the process, or the machine, has no more descriptors, a file of the process's
/// DescriptorPool is closed for it, or one that is kept back (SpareDescriptors) given up.
int OpenDescriptor(const char* path, int flags, mode_t mode = 0) noexcept;

/// Closes what OpenDescriptor has opened. Where descriptors that were kept back have been given up,
/// this one is kept back in their place, without a moment in which another thread could take it.
void CloseDescriptor(int descriptor) noexcept;

/// While one lives, kSpareDescriptors descriptors are kept back for the whole process: so a
/// database whose process has come to its limit can still write a manifest, sync a directory and
/// start a log file. As many as can be had, where there are fewer. A forked child has to keep back
/// its own. Thread-safe.
class SpareDescriptors {
 public:
  SpareDescriptors() noexcept;
  ~SpareDescriptors();
  SpareDescriptors(const SpareDescriptors&) = delete;
  SpareDescriptors& operator=(const SpareDescriptors&) = delete;
};

inline constexpr size_t kSpareDescriptors = 8;

}  // namespace basalt::io

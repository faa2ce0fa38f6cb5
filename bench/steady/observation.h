#pragma once

#include <sys/types.h>

#include <cstdint>

// What can be seen of a store without asking it.

namespace basalt::bench {

/// A process's resident memory. Pages of a mapped log are the file's, and the kernel's to drop.
struct ProcessMemory {
  uint64_t anonymous_bytes = 0;
  uint64_t file_bytes = 0;
};
ProcessMemory ReadProcessMemory(pid_t process);

/// Processor time that the process has taken.
double ProcessCpuSeconds(pid_t process);
/// Processor time that everybody has taken, the host of a virtual machine included.
double MachineCpuSeconds();
/// How long the calling thread has been ready and waited for a processor.
uint64_t ProcessorWaitNs();

}  // namespace basalt::bench

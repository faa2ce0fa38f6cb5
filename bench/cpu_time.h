#pragma once

#include <ctime>

namespace basalt::bench {

/// Processor time that the process has taken so far.
inline double CpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

}  // namespace basalt::bench

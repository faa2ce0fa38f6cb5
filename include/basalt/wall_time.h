#pragma once

#include <chrono>

namespace basalt {

/// A moment by the wall clock: milliseconds since 1970 UTC. The present one, to compare with, is
/// floor<milliseconds>(system_clock::now()): nanoseconds, which that clock counts, end in 2262.
using WallTime = std::chrono::sys_time<std::chrono::milliseconds>;

}  // namespace basalt

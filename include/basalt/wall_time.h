#pragma once

#include <chrono>

namespace basalt {

/// A moment by the wall clock: milliseconds since 1970 UTC.
using WallTime = std::chrono::sys_time<std::chrono::milliseconds>;

}  // namespace basalt

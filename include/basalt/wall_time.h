#pragma once

#include <chrono>

// Times of the wall clock, for expiry. Read WallTime first.

namespace basalt {

/// A time of the wall clock: milliseconds since 1970 UTC. Compare it with
/// floor<milliseconds>(system_clock::now()), because the nanoseconds of that clock overflow in
/// 2262.
using WallTime = std::chrono::sys_time<std::chrono::milliseconds>;

}  // namespace basalt

#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "basalt/wall_time.h"

namespace basalt::base {

// An expiry as records have it: milliseconds since 1970, where 0 stands for none.

inline uint64_t MillisOf(const std::optional<WallTime>& time) noexcept {
  return time ? static_cast<uint64_t>(time->time_since_epoch().count()) : 0;
}

inline std::optional<WallTime> WallTimeOf(uint64_t millis) noexcept {
  if (millis == 0) return std::nullopt;
  return WallTime(std::chrono::milliseconds(static_cast<int64_t>(millis)));
}

}  // namespace basalt::base

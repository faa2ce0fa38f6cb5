#pragma once

#include <cstdint>
#include <string>

namespace basalt::tools {

// Figures as people read them. No locale has a say in it.

/// 1234567 as "1,234,567".
std::string FormatCount(uint64_t count);
/// 12897484 as "12.3 MiB"; below 1 KiB as "640 B".
std::string FormatBytes(uint64_t bytes);
/// "850 us", "12.3 ms", "4.56 s", "3 min 20 s".
std::string FormatSeconds(double seconds);
/// `value` with so many decimals.
std::string FormatDecimal(double value, int decimals);
/// How many a second; 0 when no time has passed.
uint64_t PerSecond(uint64_t count, double seconds);

}  // namespace basalt::tools

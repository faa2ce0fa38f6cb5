#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

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

// Cells of a table.

/// `text` with blanks behind it, or before it, up to `width`.
std::string Left(std::string_view text, size_t width);
std::string Right(std::string_view text, size_t width);
/// "name", blanks, "value", newline.
std::string Row(std::string_view name, std::string_view value);

}  // namespace basalt::tools

#include "tools/basalt/figures.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace basalt::tools {

std::string FormatCount(uint64_t count) {
  std::string text = std::to_string(count);
  for (size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, 1, ',');
  return text;
}

std::string FormatBytes(uint64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " B";
  constexpr std::array<const char*, 5> kUnits = {" KiB", " MiB", " GiB", " TiB", " PiB"};
  double amount = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (amount >= 1023.95 && unit + 1 < kUnits.size()) {
    amount /= 1024;
    ++unit;
  }
  return FormatDecimal(amount, 1) + kUnits[unit];
}

std::string FormatSeconds(double seconds) {
  if (seconds <= 0) return "0 s";
  if (seconds < 0.001) return FormatDecimal(seconds * 1e6, seconds < 1e-5 ? 1 : 0) + " us";
  if (seconds < 1) return FormatDecimal(seconds * 1e3, 1) + " ms";
  if (seconds < 120) return FormatDecimal(seconds, 2) + " s";
  const auto whole = static_cast<uint64_t>(std::llround(seconds));
  return std::to_string(whole / 60) + " min " + std::to_string(whole % 60) + " s";
}

std::string FormatDecimal(double value, int decimals) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return text.data();
}

uint64_t PerSecond(uint64_t count, double seconds) {
  return seconds > 0 ? static_cast<uint64_t>(static_cast<double>(count) / seconds) : 0;
}

std::string Left(std::string_view text, size_t width) {
  std::string cell(text);
  if (cell.size() < width) cell.append(width - cell.size(), ' ');
  return cell;
}

std::string Right(std::string_view text, size_t width) {
  std::string cell;
  if (text.size() < width) cell.append(width - text.size(), ' ');
  return cell.append(text);
}

std::string Row(std::string_view name, std::string_view value) {
  return Left(name, 26) + Right(value, 16) + "\n";
}

}  // namespace basalt::tools

#include "server/numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <system_error>

namespace basalt::server {
namespace {

char LowerOf(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
char UpperOf(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

constexpr size_t kNumberBytesMax = 255;

}  // namespace

std::optional<int64_t> ParseInteger(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  const std::string_view digits = text.substr(text.front() == '-' ? 1 : 0);
  if (digits.front() == '0' && text != "0") return std::nullopt;
  return number;
}

std::optional<long double> ParseLongDouble(std::string_view text) {
  if (text.empty() || text.size() > kNumberBytesMax ||
      (text.front() >= '\t' && text.front() <= ' ')) {
    return std::nullopt;
  }
  const std::string terminated(text);
  char* end = nullptr;
  const long double number = std::strtold(terminated.c_str(), &end);
  if (end != terminated.c_str() + terminated.size() || std::isnan(number)) return std::nullopt;
  return number;
}

std::optional<double> ParseDouble(std::string_view text) {
  if (text.empty() || text.size() > kNumberBytesMax ||
      (text.front() >= '\t' && text.front() <= ' ')) {
    return std::nullopt;
  }
  const std::string terminated(text);
  char* end = nullptr;
  const double number = std::strtod(terminated.c_str(), &end);
  if (end != terminated.c_str() + terminated.size() || std::isnan(number)) return std::nullopt;
  return number;
}

std::string FormatDouble(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  constexpr double kExactMax = 4503599627370496.0;  // 2^52: whole numbers up to it are exact.
  char text[64];
  char* end = nullptr;
  if (number > -kExactMax && number < kExactMax && number == std::trunc(number)) {
    if (number == 0 && std::signbit(number)) return "-0";
    end = std::to_chars(text, text + sizeof text, static_cast<int64_t>(number)).ptr;
  } else {
    end = std::to_chars(text, text + sizeof text, number).ptr;
  }
  return {text, end};
}

std::string FormatLongDouble(long double number) {
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  std::string text(5200, '\0');  // The greatest has 4,933 digits before the point.
  const int size = std::snprintf(text.data(), text.size(), "%.17Lf", number);
  text.resize(static_cast<size_t>(std::max(size, 0)));
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.ends_with('.')) text.pop_back();
  }
  return text == "-0" ? "0" : text;
}

bool EqualsIgnoreCase(std::string_view word, std::string_view lower) {
  return std::equal(word.begin(), word.end(), lower.begin(), lower.end(),
                    [](char a, char b) { return LowerOf(a) == b; });
}

std::string ToLower(std::string_view word) {
  std::string lower(word);
  std::transform(lower.begin(), lower.end(), lower.begin(), LowerOf);
  return lower;
}

std::string ToUpper(std::string_view word) {
  std::string upper(word);
  std::transform(upper.begin(), upper.end(), upper.begin(), UpperOf);
  return upper;
}

}  // namespace basalt::server

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace basalt::server {

// Numbers as Redis reads and writes them.

/// A whole number in its only form: no sign "+", no leading zeros, no spaces.
std::optional<int64_t> ParseInteger(std::string_view text);
/// Any finite or infinite number; no spaces, no NaN.
std::optional<double> ParseDouble(std::string_view text);
std::optional<long double> ParseLongDouble(std::string_view text);
/// The shortest text that reads back as the same number; "inf", "-inf", "nan".
std::string FormatDouble(double number);
/// 17 digits behind the point, without trailing zeros, as INCRBYFLOAT gives it.
std::string FormatLongDouble(long double number);

/// Whether two words are equal but for the case of ASCII letters; `lower` is in lower case.
bool EqualsIgnoreCase(std::string_view word, std::string_view lower);
std::string ToLower(std::string_view word);
std::string ToUpper(std::string_view word);

}  // namespace basalt::server

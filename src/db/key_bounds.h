#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace basalt::db {

/// The manifest keeps for each table a bound below its keys and one above them, and so does memory.
/// Keys up to this length are bounds themselves. Longer ones are replaced by shorter bounds where
/// the neighbouring table allows it, so that a table costs the manifest some hundred bytes also
/// where keys have 64 KiB.
inline constexpr size_t kBoundBytesMax = 64;

/// A bound at or below `first`, and above `before`, which is less (unset: there is none).
std::string LowerBoundOf(std::string_view first, std::optional<std::string_view> before);

/// A bound at or above `last`, and below `behind`, which is greater (unset: there is none). Its
/// first `kept` bytes are those of `last`.
std::string UpperBoundOf(std::string_view last, std::optional<std::string_view> behind,
                         size_t kept);

}  // namespace basalt::db

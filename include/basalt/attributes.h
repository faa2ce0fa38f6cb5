#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>

namespace basalt {

/// One attribute of a record: what a JSON object can have as a plain value. An attribute that is
/// null is one that is absent.
using AttributeValue = std::variant<bool, int64_t, double, std::string>;

/// A flat object, by name.
///
///     basalt::Attributes attributes = {{"lang", "en"}, {"year", 2024}};
using Attributes = std::map<std::string, AttributeValue, std::less<>>;

/// Attributes of one record take at most so many bytes, encoded.
inline constexpr size_t kAttributeBytesMax = size_t{1} << 20;

}  // namespace basalt

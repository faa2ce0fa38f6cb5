#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>

// Attributes: values of a record that filters compare, such as those of a vector. Read Attribute
// first.

namespace basalt {

/// One attribute of a record: a plain value of a JSON object. A null attribute is stored as an
/// absent one.
using AttributeValue = std::variant<bool, int64_t, double, std::string>;

/// A flat object, by name.
///
///     basalt::Attributes attributes = {{"lang", "en"}, {"year", 2024}};
using Attributes = std::map<std::string, AttributeValue, std::less<>>;

/// The most bytes that the attributes of one record may take, encoded.
inline constexpr size_t kAttributeBytesMax = size_t{1} << 20;

}  // namespace basalt

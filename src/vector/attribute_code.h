#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "basalt/attributes.h"
#include "basalt/status.h"

// Attributes as bytes.
//
//   varint  how many
//   each    varint  bytes of the name
//           the name; names ascend
//           u8  type: 0 false, 1 true, 2 integer, 3 double, 4 string
//           integer, double: 8 bytes, little-endian
//           string: varint, how many bytes; the bytes
//
// A name is found by walking over those before it. Attributes are few.

namespace basalt::vector {

/// A value that points into the encoded bytes.
using AttributeView = std::variant<bool, int64_t, double, std::string_view>;

/// InvalidArgument: they take more than kAttributeBytesMax.
Result<std::string> EncodeAttributes(const Attributes& attributes);

/// Corruption: the bytes are not what EncodeAttributes writes.
Result<Attributes> DecodeAttributes(std::string_view bytes);

/// Ok where DecodeAttributes would succeed. Takes no memory.
Status ValidateAttributes(std::string_view bytes);

/// Nothing: no attribute has this name. `bytes` have been validated.
std::optional<AttributeView> FindAttribute(std::string_view bytes, std::string_view name) noexcept;

}  // namespace basalt::vector

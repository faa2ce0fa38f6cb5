#pragma once

#include <string>
#include <string_view>

#include "basalt/status.h"

namespace basalt::base {

/// Appends the base64 form of `bytes` (RFC 4648 section 4: with padding, without line breaks).
void AppendBase64(std::string_view bytes, std::string& out);

/// The bytes behind a base64 form. InvalidArgument, with the position, for a foreign character, a
/// length that is no multiple of four, misplaced padding, or unused bits that are not zero: one
/// byte string has one form.
Result<std::string> DecodeBase64(std::string_view text);

}  // namespace basalt::base

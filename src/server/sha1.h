#pragma once

#include <string>
#include <string_view>

namespace basalt::server {

/// The SHA-1 of some bytes (RFC 3174) in 40 hexadecimal digits of lower case. It names scripts and
/// protects nothing.
std::string Sha1Hex(std::string_view bytes);

}  // namespace basalt::server

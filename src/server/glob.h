#pragma once

#include <string>
#include <string_view>

namespace basalt::server {

/// Whether `text` matches `pattern` as Redis has it: * ? [a-z] [^x] and \ to escape. The time is
/// bounded by the product of the two lengths.
bool GlobMatches(std::string_view pattern, std::string_view text);

/// What every match begins with.
std::string GlobPrefix(std::string_view pattern);

}  // namespace basalt::server

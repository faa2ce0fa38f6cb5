#pragma once

#include <string>
#include <string_view>

#include "basalt/status.h"

namespace basalt::tools {

/// One JSON value without the white space between its parts; numbers, strings and the order of
/// members stay as they are written. InvalidArgument says what keeps `text` from being JSON (RFC
/// 8259), and where in it.
Result<std::string> CompactJson(std::string_view text);

}  // namespace basalt::tools

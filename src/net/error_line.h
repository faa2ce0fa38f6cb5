#pragma once

#include <string>
#include <string_view>

#include "basalt/status.h"

// Statuses as error lines of the Redis protocol: "BASALT <code> <sub-code> <message>".

namespace basalt::net {

/// The line without its leading '-'. Line ends in the message become spaces.
std::string ErrorLineOf(const Status& status);

/// What an error line of a server means. `server`: how messages name it. Lines of other commands
/// and servers become the code that fits best.
Status StatusOf(std::string_view error_line, std::string_view server);

}  // namespace basalt::net

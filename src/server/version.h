#pragma once

#include <string_view>

namespace basalt::server {

/// The version of Redis whose commands and replies the server follows. Clients look at it.
inline constexpr std::string_view kRedisVersion = "7.2.0";

}  // namespace basalt::server

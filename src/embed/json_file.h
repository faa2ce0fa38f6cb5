#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "basalt/status.h"

namespace basalt::embed {

/// A JSON object of bounded depth. Corruption: it is something else; `what` is for the message.
Result<boost::json::object> ParseObject(std::string_view text, std::string_view what);

/// A whole number of at least 0. Nothing: it is something else.
std::optional<uint64_t> AsSize(const boost::json::value& value) noexcept;

}  // namespace basalt::embed

#pragma once

#include <string>
#include <string_view>

#include "basalt/graph.h"
#include "basalt/property.h"
#include "basalt/status.h"

// What is stored at nodes and edges of a graph, as JSON:
//
//   a node    {"labels": [STRING...], "properties": {NAME: VALUE...}}
//   an edge   {"weight": NUMBER, "valid_from_ms": INTEGER, "valid_to_ms": INTEGER,
//              "expiry_ms": INTEGER, "properties": {NAME: VALUE...}}
//
// All members are optional. A VALUE is null, true, false, a number (an integer where it has neither
// fraction nor exponent and fits 64 bits, else a double), a string, an array of VALUEs, or one of
// the objects {"$hex": "00ff"} for bytes, {"$time_ms": 0} for a time since 1970 UTC and
// {"$double": "inf"}, "-inf" or "nan". Writing what was read gives equal content.

namespace basalt::c_api {

/// InvalidArgument: it is no such JSON; the message says where. No text at all is no content.
Result<NodeContent> ParseNodeContent(std::string_view json);
Result<EdgeContent> ParseEdgeContent(std::string_view json);

/// Text that is no UTF-8 stands as U+FFFD.
std::string PropertiesJson(const Properties& properties);
std::string NodeJson(const Node& node);
std::string EdgeContentJson(const EdgeContent& content);

/// Two digits for each byte.
std::string ToHex(std::string_view bytes);
/// InvalidArgument: `digits` is no such text.
Result<std::string> FromHex(std::string_view digits);

}  // namespace basalt::c_api

#pragma once

#include <boost/json.hpp>
#include <string>
#include <string_view>

#include "basalt/property.h"
#include "basalt/status.h"
#include "tools/basalt/graph_item.h"

namespace basalt::tools {

// Nodes and edges as JSON, an object each:
//
//   {"id":ID,"labels":[LABEL,...],"properties":{...}}
//   {"from":ID,"type":TYPE,"to":ID,"discriminator":D,"weight":W,"properties":{...},
//    "valid_from":MS,"valid_to":MS,"expiry":MS}
//
// Ids, labels, types and discriminators are strings, or {"base64":"..."} where they are not UTF-8;
// a number as an id stands for its digits. Times are milliseconds since 1970 UTC. Only "id", or
// "from", "type" and "to", must be there. Of properties, bytes are {"base64":"..."}, times
// {"time_ms":N}, and doubles that JSON has no numbers for {"double":"nan"}, "inf" or "-inf". Names
// of properties must be UTF-8.

/// InvalidArgument: the text is no such object; the message says why.
Result<GraphItem> ParseGraphItem(std::string_view text);
/// The line that ParseGraphItem reads as the same item. A property's name that is not UTF-8 is
/// replaced by its text form.
std::string GraphItemLine(const GraphItem& item);

boost::json::value PropertyJson(const PropertyValue& value);
/// A JSON text as a value; another text stands for itself.
PropertyValue ParsePropertyArgument(std::string_view text);

}  // namespace basalt::tools

#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "tools/basalt/output_format.h"

namespace basalt::tools {

/// The result of a verb: named values, lists and further documents, in the order in which they are
/// shown.
using Document = boost::json::object;

/// One JSON object in one line.
std::string JsonLine(const Document& document);
/// One JSON object for people: what holds no lists and documents stands in a line.
std::string IndentedJson(const Document& document);

/// The document in a form for programs, not kTable. `csv` and `raw` have a line a value, its name
/// made of the names and places (from 0) on the way to it: `levels.0.tables`.
std::string Rendered(OutputFormat format, const Document& document);

/// A value that is no list and no document, as it stands in `csv`.
std::string LeafText(const boost::json::value& leaf);

/// Bytes as a string, or as {"base64":"..."} where they are not UTF-8.
boost::json::value BytesValue(std::string_view bytes);
/// A number that is an identity and no amount: "0x00c0ffee00c0ffee". Readers of JSON that keep
/// numbers as doubles would round it.
boost::json::value HexValue(uint64_t number);
/// A number with at most so many decimals.
boost::json::value DecimalValue(double value, int decimals);

}  // namespace basalt::tools

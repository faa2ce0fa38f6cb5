#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/property.h"
#include "basalt/status.h"

// The values of nodes and edges. Integers are varints (base/coding.h) in their shortest form; "z"
// marks those that are signed, as zigzag. Each record has one encoding.
//
//   node    u8 version, 1
//           external id: length, bytes
//           labels: count, then ids, ascending
//           properties
//   edge    head, properties
//   head    u8 flags: 1 weight, 2 valid_from, 4 valid_to are there
//           weight, 8 bytes; without it 1
//           valid_from, valid_to: z, milliseconds since 1970
//   properties  count, then for each: id of the name, ascending, and a value
//   value   u8 type, then
//           0 null, 1 false, 2 true: nothing
//           3 integer: z     4 double: 8 bytes     5 string, 6 bytes: length, bytes
//           7 time: z, milliseconds since 1970     8 list: count, values

namespace basalt::graph {

/// By the id of the name, ascending.
using PropertyList = std::vector<std::pair<uint32_t, PropertyValue>>;

struct NodeRecord {
  std::string external_id;
  std::vector<uint32_t> labels{};  ///< Ascending.
  PropertyList properties{};

  friend bool operator==(const NodeRecord&, const NodeRecord&) = default;
};

/// What a traversal needs of an edge. It stands at both ends.
struct EdgeHead {
  double weight = 1;
  std::optional<int64_t> valid_from_ms{};
  std::optional<int64_t> valid_to_ms{};

  bool IsValidAt(int64_t time_ms) const noexcept {
    return (!valid_from_ms || *valid_from_ms <= time_ms) &&
           (!valid_to_ms || time_ms < *valid_to_ms);
  }
  friend bool operator==(const EdgeHead&, const EdgeHead&) = default;
};

struct EdgeRecord {
  EdgeHead head;
  PropertyList properties{};

  friend bool operator==(const EdgeRecord&, const EdgeRecord&) = default;
};

/// InvalidArgument: lists are nested too deeply.
Status CheckProperties(const Properties& properties);

std::string EncodeNode(const NodeRecord& record);
std::string EncodeHead(const EdgeHead& head);
std::string EncodeEdge(const EdgeRecord& record);

// Corruption, with the offset.
Result<NodeRecord> DecodeNode(std::string_view bytes);
/// The head of an edge, or of the record at its other end.
Result<EdgeHead> DecodeHead(std::string_view bytes);
Result<EdgeRecord> DecodeEdge(std::string_view bytes);

}  // namespace basalt::graph

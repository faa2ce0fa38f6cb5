// Any bytes as keys and values of a graph: refused, or the same when they are written anew.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "graph/keys.h"
#include "graph/record.h"

namespace {

using basalt::StatusCode;
namespace graph = basalt::graph;

void LookAtKey(std::string_view key) {
  const auto edge = graph::ParseEdgeKey(key);
  if (edge) {
    BASALT_CHECK(graph::EdgeKey(edge->owner, edge->tag, edge->type, edge->other,
                                edge->discriminator) == key);
    const std::string other_key = edge->OtherKey();
    const auto other = graph::ParseEdgeKey(other_key);
    // The catalogue owns no edges, though the key of one may name it.
    BASALT_CHECK(other.has_value() == (static_cast<uint64_t>(edge->other) != graph::kCatalogue));
    if (other) BASALT_CHECK(other->OtherKey() == key);
  }
  if (const auto node = graph::ParseRemovalKey(key); node && key[8] == 5) {
    BASALT_CHECK(key.substr(8) == graph::RemovalKey(*node).substr(8));
  }
}

void LookAtValue(std::string_view value) {
  const auto node = graph::DecodeNode(value);
  if (node) BASALT_CHECK(graph::EncodeNode(*node) == value);
  if (!node) BASALT_CHECK(node.code() == StatusCode::kCorruption);
  const auto edge = graph::DecodeEdge(value);
  const auto head = graph::DecodeHead(value);
  if (edge) {
    BASALT_CHECK(graph::EncodeEdge(*edge) == value);
    BASALT_CHECK(head && *head == edge->head);
  }
  if (head) BASALT_CHECK(value.starts_with(graph::EncodeHead(*head)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  LookAtKey(bytes);
  LookAtValue(bytes);
  return 0;
}

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "basalt/graph.h"

namespace basalt::tools {

// A graph in forms for other programs. Text that XML and DOT cannot hold stands in the text form of
// text_format.h. Each function gives one piece of the file.

/// DOT, the language of Graphviz. Nodes are named n1, n2, ...; the external id is the label.
std::string DotBegin();
std::string DotNode(const Node& node);
std::string DotEdge(NodeId from, const Neighbor& edge);
std::string DotEnd();

/// GraphML. External ids, labels, types and weights are data, next to properties. A property whose
/// values have several types is declared as a string.
class GraphMlWriter {
 public:
  /// Declares what properties need. To be called for all nodes and edges before Begin.
  void Declare(const Node& node) { DeclareAll(node.properties, &node_keys_); }
  void Declare(const EdgeContent& content) { DeclareAll(content.properties, &edge_keys_); }

  std::string Begin() const;
  std::string NodeElement(const Node& node) const;
  std::string EdgeElement(NodeId from, const Neighbor& edge, const EdgeContent& content) const;
  static std::string End();

 private:
  enum class Type : uint8_t { kBoolean, kLong, kDouble, kString };
  struct Key {
    size_t number = 0;
    Type type = Type::kString;
  };
  using Keys = std::map<std::string, Key, std::less<>>;

  static Type TypeOf(const PropertyValue& value);
  static void DeclareAll(const Properties& properties, Keys* keys);
  static void AppendKeys(const Keys& keys, std::string_view owner, std::string* out);
  static void AppendProperties(const Properties& properties, const Keys& keys,
                               std::string_view owner, std::string* out);

  Keys node_keys_;
  Keys edge_keys_;
};

}  // namespace basalt::tools

#include "tools/basalt/graph_writer.h"

#include <boost/json.hpp>
#include <utility>

#include "tools/basalt/graph_json.h"
#include "tools/basalt/text_format.h"

namespace basalt::tools {
namespace {

std::string DotString(std::string_view bytes) {
  std::string quoted = "\"";
  for (const char c : ToText(bytes)) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string NodeName(NodeId id) { return "n" + std::to_string(static_cast<uint64_t>(id)); }

std::string XmlText(std::string_view bytes) {
  std::string text;
  for (const char c : ToText(bytes)) {
    switch (c) {
      case '&':
        text += "&amp;";
        break;
      case '<':
        text += "&lt;";
        break;
      case '>':
        text += "&gt;";
        break;
      case '"':
        text += "&quot;";
        break;
      default:
        text += c;
    }
  }
  return text;
}

void AppendXmlData(std::string_view key, std::string_view text, std::string* out) {
  *out += "<data key=\"" + std::string(key) + "\">" + XmlText(text) + "</data>";
}

/// Strings and bytes as they are, other values as JSON.
std::string PropertyText(const PropertyValue& value) {
  if (const auto* text = value.As<std::string>()) return *text;
  if (const auto* bytes = value.As<Bytes>()) return bytes->bytes;
  return boost::json::serialize(PropertyJson(value));
}

}  // namespace

std::string DotBegin() { return "digraph basalt {\n"; }
std::string DotNode(const Node& node) {
  return NodeName(node.id) + " [label=" + DotString(node.external_id) + "];\n";
}
std::string DotEdge(NodeId from, const Neighbor& edge) {
  return NodeName(from) + " -> " + NodeName(edge.node) + " [label=" + DotString(edge.type) + "];\n";
}
std::string DotEnd() { return "}\n"; }

GraphMlWriter::Type GraphMlWriter::TypeOf(const PropertyValue& value) {
  if (value.As<bool>() != nullptr) return Type::kBoolean;
  if (value.As<int64_t>() != nullptr) return Type::kLong;
  return value.As<double>() != nullptr ? Type::kDouble : Type::kString;
}

void GraphMlWriter::DeclareAll(const Properties& properties, Keys* keys) {
  for (const auto& [name, value] : properties) {
    const auto [place, is_new] = keys->try_emplace(name, Key{keys->size(), TypeOf(value)});
    if (!is_new && place->second.type != TypeOf(value)) place->second.type = Type::kString;
  }
}

void GraphMlWriter::AppendKeys(const Keys& keys, std::string_view owner, std::string* out) {
  for (const auto& [name, key] : keys) {
    const char* const type = key.type == Type::kBoolean  ? "boolean"
                             : key.type == Type::kLong   ? "long"
                             : key.type == Type::kDouble ? "double"
                                                         : "string";
    *out += "<key id=\"" + std::string(owner) + std::to_string(key.number) + "\" for=\"" +
            std::string(owner) + "\" attr.name=\"" + XmlText(name) + "\" attr.type=\"" + type +
            "\"/>\n";
  }
}

void GraphMlWriter::AppendProperties(const Properties& properties, const Keys& keys,
                                     std::string_view owner, std::string* out) {
  for (const auto& [name, value] : properties) {
    const auto key = keys.find(name);
    if (key == keys.end()) continue;
    AppendXmlData(std::string(owner) + std::to_string(key->second.number), PropertyText(value),
                  out);
  }
}

std::string GraphMlWriter::Begin() const {
  std::string out = R"(<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="id" for="node" attr.name="id" attr.type="string"/>
<key id="labels" for="node" attr.name="labels" attr.type="string"/>
<key id="type" for="edge" attr.name="type" attr.type="string"/>
<key id="discriminator" for="edge" attr.name="discriminator" attr.type="string"/>
<key id="weight" for="edge" attr.name="weight" attr.type="double"/>
)";
  AppendKeys(node_keys_, "node", &out);
  AppendKeys(edge_keys_, "edge", &out);
  return out + "<graph edgedefault=\"directed\">\n";
}

std::string GraphMlWriter::NodeElement(const Node& node) const {
  std::string out = "<node id=\"" + NodeName(node.id) + "\">";
  AppendXmlData("id", node.external_id, &out);
  std::string labels;
  for (const std::string& label : node.labels) labels += ":" + label;
  if (!labels.empty()) AppendXmlData("labels", labels, &out);
  AppendProperties(node.properties, node_keys_, "node", &out);
  return out + "</node>\n";
}

std::string GraphMlWriter::EdgeElement(NodeId from, const Neighbor& edge,
                                       const EdgeContent& content) const {
  std::string out =
      "<edge source=\"" + NodeName(from) + "\" target=\"" + NodeName(edge.node) + "\">";
  AppendXmlData("type", edge.type, &out);
  if (!edge.discriminator.empty()) AppendXmlData("discriminator", edge.discriminator, &out);
  AppendXmlData("weight", boost::json::serialize(boost::json::value(edge.weight)), &out);
  AppendProperties(content.properties, edge_keys_, "edge", &out);
  return out + "</edge>\n";
}

std::string GraphMlWriter::End() { return "</graph>\n</graphml>\n"; }

}  // namespace basalt::tools

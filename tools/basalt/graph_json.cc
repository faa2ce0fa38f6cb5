#include "tools/basalt/graph_json.h"

#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "basalt/wall_time.h"
#include "base/base64.h"
#include "tools/basalt/document.h"
#include "tools/basalt/text_format.h"

namespace basalt::tools {
namespace {

using JsonObject = boost::json::object;
using JsonValue = boost::json::value;

Status NotAnItem(const std::string& what) { return Status(StatusCode::kInvalidArgument, what); }

/// The only member of an object; null if it has another number of members, or another name.
const JsonValue* OnlyMember(const JsonObject& object, std::string_view name) {
  return object.size() == 1 ? object.if_contains(name) : nullptr;
}

/// Bytes of a string or of {"base64":"..."}.
Result<std::string> BytesOf(const JsonValue& value, std::string_view name) {
  if (value.is_string()) return std::string(value.get_string());
  if (const JsonObject* object = value.if_object()) {
    const JsonValue* base64 = OnlyMember(*object, "base64");
    if (base64 != nullptr && base64->is_string()) return base::DecodeBase64(base64->get_string());
  }
  return NotAnItem("\"" + std::string(name) + "\" must be a string or {\"base64\":\"...\"}");
}

Result<std::string> IdOf(const JsonValue& value, std::string_view name) {
  if (value.is_int64() || value.is_uint64()) return boost::json::serialize(value);
  return BytesOf(value, name);
}

Result<PropertyValue> PropertyOf(const JsonValue& value, int depth);

Result<PropertyValue> PropertyOfObject(const JsonObject& object) {
  if (OnlyMember(object, "base64") != nullptr) {
    Result<std::string> bytes = BytesOf(object, "base64");
    if (!bytes) return bytes.error();
    return PropertyValue(Bytes{*std::move(bytes)});
  }
  if (const JsonValue* time = OnlyMember(object, "time_ms"); time != nullptr && time->is_int64()) {
    return PropertyValue(WallTime(std::chrono::milliseconds(time->get_int64())));
  }
  if (const JsonValue* number = OnlyMember(object, "double")) {
    if (*number == "nan") return PropertyValue(std::numeric_limits<double>::quiet_NaN());
    if (*number == "inf") return PropertyValue(std::numeric_limits<double>::infinity());
    if (*number == "-inf") return PropertyValue(-std::numeric_limits<double>::infinity());
  }
  return NotAnItem(
      "a property is an object; only {\"base64\":\"...\"}, {\"time_ms\":N} and "
      "{\"double\":\"nan\"} are values");
}

Result<PropertyValue> PropertyOfList(const boost::json::array& array, int depth) {
  if (depth == kPropertyDepthMax) {
    return NotAnItem("lists of a property are nested more than " +
                     std::to_string(kPropertyDepthMax) + " deep");
  }
  PropertyValue::List list;
  for (const JsonValue& each : array) {
    Result<PropertyValue> value = PropertyOf(each, depth + 1);
    if (!value) return value.error();
    list.push_back(*std::move(value));
  }
  return PropertyValue(std::move(list));
}

Result<PropertyValue> PropertyOf(const JsonValue& value, int depth) {
  switch (value.kind()) {
    case boost::json::kind::null:
      return PropertyValue();
    case boost::json::kind::bool_:
      return PropertyValue(value.get_bool());
    case boost::json::kind::int64:
      return PropertyValue(int64_t{value.get_int64()});
    case boost::json::kind::uint64:
      return PropertyValue(static_cast<double>(value.get_uint64()));
    case boost::json::kind::double_:
      return PropertyValue(value.get_double());
    case boost::json::kind::string:
      return PropertyValue(std::string(value.get_string()));
    case boost::json::kind::array:
      return PropertyOfList(value.get_array(), depth);
    case boost::json::kind::object:
      break;
  }
  return PropertyOfObject(value.get_object());
}

Result<Properties> PropertiesOf(const JsonValue& value) {
  const JsonObject* object = value.if_object();
  if (object == nullptr) return NotAnItem("\"properties\" must be an object");
  Properties properties;
  for (const auto& member : *object) {
    Result<PropertyValue> one = PropertyOf(member.value(), 0);
    if (!one) {
      return NotAnItem("property " + KeyText(member.key()) + ": " +
                       std::string(one.error().message()));
    }
    properties[std::string(member.key())] = *std::move(one);
  }
  return properties;
}

Status ReadTime(const JsonValue& value, std::string_view name, std::optional<WallTime>* time) {
  if (!value.is_int64()) {
    return NotAnItem("\"" + std::string(name) + "\" must be a number of milliseconds");
  }
  *time = WallTime(std::chrono::milliseconds(value.get_int64()));
  return Status();
}

Status ReadText(const JsonValue& value, std::string_view name, std::string* text) {
  Result<std::string> read = IdOf(value, name);
  if (!read) return read.error();
  *text = *std::move(read);
  return Status();
}

Status ReadProperties(const JsonValue& value, Properties* properties) {
  Result<Properties> read = PropertiesOf(value);
  if (!read) return read.error();
  *properties = *std::move(read);
  return Status();
}

Status ReadLabels(const JsonValue& value, std::vector<std::string>* labels) {
  const boost::json::array* array = value.if_array();
  if (array == nullptr) return NotAnItem("\"labels\" must be an array");
  for (const JsonValue& each : *array) {
    Result<std::string> label = BytesOf(each, "labels");
    if (!label) return label.error();
    labels->push_back(*std::move(label));
  }
  return Status();
}

Result<GraphItem> NodeItemOf(const JsonObject& object) {
  GraphNodeItem node;
  for (const auto& member : object) {
    const std::string_view name = member.key();
    Status read = NotAnItem("a node has no member " + KeyText(name));
    if (name == "id") read = ReadText(member.value(), name, &node.id);
    if (name == "labels") read = ReadLabels(member.value(), &node.content.labels);
    if (name == "properties") read = ReadProperties(member.value(), &node.content.properties);
    if (!read.ok()) return read;
  }
  return GraphItem(std::move(node));
}

Status ReadEdgeMember(std::string_view name, const JsonValue& value, GraphEdgeItem* edge) {
  if (name == "from") return ReadText(value, name, &edge->from);
  if (name == "type") return ReadText(value, name, &edge->type);
  if (name == "to") return ReadText(value, name, &edge->to);
  if (name == "discriminator") return ReadText(value, name, &edge->discriminator);
  if (name == "properties") return ReadProperties(value, &edge->content.properties);
  if (name == "valid_from") return ReadTime(value, name, &edge->content.valid_from);
  if (name == "valid_to") return ReadTime(value, name, &edge->content.valid_to);
  if (name == "expiry") return ReadTime(value, name, &edge->content.expiry);
  if (name != "weight") return NotAnItem("an edge has no member " + KeyText(name));
  if (!value.is_number()) return NotAnItem("\"weight\" must be a number");
  edge->content.weight = value.to_number<double>();
  return Status();
}

Result<GraphItem> EdgeItemOf(const JsonObject& object) {
  GraphEdgeItem edge;
  for (const char* needed : {"type", "to"}) {
    if (!object.contains(needed))
      return NotAnItem(std::string("the edge has no \"") + needed + "\"");
  }
  for (const auto& member : object) {
    const Status read = ReadEdgeMember(member.key(), member.value(), &edge);
    if (!read.ok()) return read;
  }
  return GraphItem(std::move(edge));
}

JsonValue DoubleJson(double number) {
  if (std::isfinite(number)) return number;
  return JsonObject{{"double", std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf"}};
}

JsonObject PropertiesJson(const Properties& properties) {
  JsonObject object;
  for (const auto& [name, value] : properties) {
    object[IsUtf8(name) ? name : ToText(name)] = PropertyJson(value);
  }
  return object;
}

void AddTime(const char* name, std::optional<WallTime> time, Document* document) {
  if (time) (*document)[name] = int64_t{time->time_since_epoch().count()};
}

Document DocumentOf(const GraphNodeItem& node) {
  Document document = {{"id", BytesValue(node.id)}};
  if (!node.content.labels.empty()) {
    boost::json::array labels;
    for (const std::string& label : node.content.labels) labels.push_back(BytesValue(label));
    document["labels"] = std::move(labels);
  }
  if (!node.content.properties.empty()) {
    document["properties"] = PropertiesJson(node.content.properties);
  }
  return document;
}

Document DocumentOf(const GraphEdgeItem& edge) {
  Document document = {{"from", BytesValue(edge.from)},
                       {"type", BytesValue(edge.type)},
                       {"to", BytesValue(edge.to)}};
  if (!edge.discriminator.empty()) document["discriminator"] = BytesValue(edge.discriminator);
  if (edge.content.weight != 1) document["weight"] = edge.content.weight;
  if (!edge.content.properties.empty()) {
    document["properties"] = PropertiesJson(edge.content.properties);
  }
  AddTime("valid_from", edge.content.valid_from, &document);
  AddTime("valid_to", edge.content.valid_to, &document);
  AddTime("expiry", edge.content.expiry, &document);
  return document;
}

}  // namespace

Result<GraphItem> ParseGraphItem(std::string_view text) {
  boost::json::error_code error;
  const JsonValue value = boost::json::parse(text, error);
  if (error) return NotAnItem("not JSON: " + error.message());
  const JsonObject* object = value.if_object();
  if (object != nullptr && object->contains("id")) return NodeItemOf(*object);
  if (object != nullptr && object->contains("from")) return EdgeItemOf(*object);
  return NotAnItem("neither a node, which has \"id\", nor an edge, which has \"from\"");
}

std::string GraphItemLine(const GraphItem& item) {
  // As Boost writes it: a double has an exponent, and so is no integer when it is read.
  return std::visit([](const auto& one) { return boost::json::serialize(DocumentOf(one)); }, item) +
         "\n";
}

JsonValue PropertyJson(const PropertyValue& value) {
  if (const auto* truth = value.As<bool>()) return *truth;
  if (const auto* number = value.As<int64_t>()) return *number;
  if (const auto* number = value.As<double>()) return DoubleJson(*number);
  if (const auto* text = value.As<std::string>()) return BytesValue(*text);
  if (const auto* bytes = value.As<Bytes>()) {
    std::string base64;
    base::AppendBase64(bytes->bytes, base64);
    return JsonObject{{"base64", base64}};
  }
  if (const auto* time = value.As<WallTime>()) {
    return JsonObject{{"time_ms", int64_t{time->time_since_epoch().count()}}};
  }
  if (const auto* list = value.As<PropertyValue::List>()) {
    boost::json::array array;
    for (const PropertyValue& each : *list) array.push_back(PropertyJson(each));
    return array;
  }
  return nullptr;
}

PropertyValue ParsePropertyArgument(std::string_view text) {
  boost::json::error_code error;
  const JsonValue value = boost::json::parse(text, error);
  if (error) return std::string(text);
  Result<PropertyValue> property = PropertyOf(value, 0);
  return property ? *std::move(property) : PropertyValue(std::string(text));
}

}  // namespace basalt::tools

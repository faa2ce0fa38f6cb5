#include "c_api/content_json.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "c_api/json_reader.h"
#include "c_api/json_writer.h"

namespace basalt::c_api {
namespace {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

std::string DoubleJson(double number) {
  std::string json;
  if (std::isfinite(number)) {
    AppendNumber(number, &json);
    return json;
  }
  const char* name = number > 0 ? "inf" : "-inf";
  return ObjectWriter()
      .Add("$double", std::string_view(std::isnan(number) ? "nan" : name))
      .Finish();
}

std::string ValueJson(const PropertyValue& value) {
  std::string json;
  std::visit(
      Overloaded{
          [&](std::monostate) { json = "null"; },
          [&](bool is) { json = is ? "true" : "false"; },
          [&](int64_t number) { json = std::to_string(number); },
          [&](double number) { json = DoubleJson(number); },
          [&](const std::string& text) { AppendString(text, &json); },
          [&](const Bytes& bytes) {
            json = ObjectWriter().Add("$hex", ToHex(bytes.bytes)).Finish();
          },
          [&](WallTime time) {
            json =
                ObjectWriter().Add("$time_ms", int64_t{time.time_since_epoch().count()}).Finish();
          },
          [&](const PropertyValue::List& list) {
            for (const PropertyValue& element : list) {
              json += json.empty() ? '[' : ',';
              json += ValueJson(element);
            }
            json += list.empty() ? "[]" : "]";
          },
      },
      value.variant());
  return json;
}

/// {"$hex": ...} and so on, behind the brace.
Result<PropertyValue> ReadTagged(JsonReader* reader) {
  PropertyValue value;
  size_t members = 0;
  BASALT_RETURN_IF_ERROR(reader->Object([&](std::string_view name) -> Status {
    if (++members > 1) return reader->Wrong("one member");
    if (name == "$time_ms") {
      BASALT_ASSIGN_OR_RETURN(const int64_t ms, reader->Integer());
      value = WallTime(std::chrono::milliseconds(ms));
      return {};
    }
    BASALT_ASSIGN_OR_RETURN(const std::string text, reader->String());
    if (name == "$hex") {
      BASALT_ASSIGN_OR_RETURN(std::string bytes, FromHex(text));
      value = Bytes{std::move(bytes)};
      return {};
    }
    if (name != "$double") return reader->Wrong("$hex, $time_ms or $double as the object's member");
    const double inf = std::numeric_limits<double>::infinity();
    if (text == "inf") value = inf;
    if (text == "-inf") value = -inf;
    if (text == "nan") value = std::numeric_limits<double>::quiet_NaN();
    return value.is_null() ? reader->Wrong("inf, -inf or nan") : Status();
  }));
  if (members == 0) return reader->Wrong("an object with a member");
  return value;
}

Result<PropertyValue> ReadValue(JsonReader* reader, int depth) {
  switch (reader->Peek()) {
    case 'n': {
      BASALT_RETURN_IF_ERROR(reader->Literal("null"));
      return PropertyValue();
    }
    case 't': {
      BASALT_RETURN_IF_ERROR(reader->Literal("true"));
      return PropertyValue(true);
    }
    case 'f': {
      BASALT_RETURN_IF_ERROR(reader->Literal("false"));
      return PropertyValue(false);
    }
    case '"': {
      BASALT_ASSIGN_OR_RETURN(std::string text, reader->String());
      return PropertyValue(std::move(text));
    }
    case '{':
      return ReadTagged(reader);
    case '[': {
      if (depth == kPropertyDepthMax) return reader->Wrong("lists of less depth");
      PropertyValue::List list;
      BASALT_RETURN_IF_ERROR(reader->Array([&]() -> Status {
        BASALT_ASSIGN_OR_RETURN(PropertyValue element, ReadValue(reader, depth + 1));
        list.push_back(std::move(element));
        return {};
      }));
      return PropertyValue(std::move(list));
    }
    default: {
      BASALT_ASSIGN_OR_RETURN(const JsonReader::Number number, reader->ReadNumber());
      return number.is_integer ? PropertyValue(number.integer) : PropertyValue(number.real);
    }
  }
}

Status ReadProperties(JsonReader* reader, Properties* properties) {
  return reader->Object([&](std::string_view name) -> Status {
    std::string key(name);
    BASALT_ASSIGN_OR_RETURN(PropertyValue value, ReadValue(reader, 0));
    properties->insert_or_assign(std::move(key), std::move(value));
    return {};
  });
}

Status ReadTime(JsonReader* reader, std::optional<WallTime>* time) {
  BASALT_ASSIGN_OR_RETURN(const int64_t ms, reader->Integer());
  *time = WallTime(std::chrono::milliseconds(ms));
  return {};
}

}  // namespace

std::string ToHex(std::string_view bytes) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string digits;
  digits.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    digits += kDigits[byte >> 4];
    digits += kDigits[byte & 15];
  }
  return digits;
}

Result<std::string> FromHex(std::string_view digits) {
  std::string bytes(digits.size() / 2, '\0');
  bool is_hex = digits.size() % 2 == 0;
  for (size_t i = 0; is_hex && i < bytes.size(); ++i) {
    unsigned byte = 0;
    const char* begin = digits.data() + 2 * i;
    const auto [end, fault] = std::from_chars(begin, begin + 2, byte, 16);
    is_hex = fault == std::errc() && end == begin + 2;
    bytes[i] = static_cast<char>(byte);
  }
  if (is_hex) return bytes;
  return Status(StatusCode::kInvalidArgument, "bytes are two hexadecimal digits each");
}

Result<NodeContent> ParseNodeContent(std::string_view json) {
  NodeContent content;
  if (json.empty()) return content;
  JsonReader reader(json);
  BASALT_RETURN_IF_ERROR(reader.Object([&](std::string_view name) -> Status {
    if (name == "properties") return ReadProperties(&reader, &content.properties);
    if (name != "labels") return reader.Wrong("labels or properties as a node's member");
    return reader.Array([&]() -> Status {
      BASALT_ASSIGN_OR_RETURN(std::string label, reader.String());
      content.labels.push_back(std::move(label));
      return {};
    });
  }));
  BASALT_RETURN_IF_ERROR(reader.End());
  return content;
}

Result<EdgeContent> ParseEdgeContent(std::string_view json) {
  EdgeContent content;
  if (json.empty()) return content;
  JsonReader reader(json);
  BASALT_RETURN_IF_ERROR(reader.Object([&](std::string_view name) -> Status {
    if (name == "properties") return ReadProperties(&reader, &content.properties);
    if (name == "valid_from_ms") return ReadTime(&reader, &content.valid_from);
    if (name == "valid_to_ms") return ReadTime(&reader, &content.valid_to);
    if (name == "expiry_ms") return ReadTime(&reader, &content.expiry);
    if (name != "weight") {
      return reader.Wrong(
          "weight, valid_from_ms, valid_to_ms, expiry_ms or properties as an edge's member");
    }
    BASALT_ASSIGN_OR_RETURN(const JsonReader::Number number, reader.ReadNumber());
    content.weight = number.real;
    return {};
  }));
  BASALT_RETURN_IF_ERROR(reader.End());
  return content;
}

std::string PropertiesJson(const Properties& properties) {
  ObjectWriter writer;
  for (const auto& [name, value] : properties) writer.AddJson(name, ValueJson(value));
  return writer.Finish();
}

std::string NodeJson(const Node& node) {
  return ObjectWriter()
      .Add("id", node.external_id)
      .Add("labels", node.labels)
      .AddJson("properties", PropertiesJson(node.properties))
      .Finish();
}

std::string EdgeContentJson(const EdgeContent& content) {
  ObjectWriter writer;
  writer.Add("weight", content.weight);
  const auto add_time = [&](const char* name, const std::optional<WallTime>& time) {
    if (time) writer.Add(std::string_view(name), int64_t{time->time_since_epoch().count()});
  };
  add_time("valid_from_ms", content.valid_from);
  add_time("valid_to_ms", content.valid_to);
  add_time("expiry_ms", content.expiry);
  return writer.AddJson("properties", PropertiesJson(content.properties)).Finish();
}

}  // namespace basalt::c_api

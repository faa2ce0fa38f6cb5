#include "tools/basalt/document.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <functional>

#include "base/base64.h"
#include "base/hexadecimal.h"
#include "tools/basalt/figures.h"
#include "tools/basalt/text_format.h"

namespace basalt::tools {
namespace {

namespace json = boost::json;

/// Simpler than Boost's, which writes 2.5 as 2.5E0.
std::string NumberText(double number) {
  std::array<char, 32> text{};
  const std::chars_format format =
      std::abs(number) < 1e15 ? std::chars_format::fixed : std::chars_format::scientific;
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), number, format);
  return {text.data(), end};
}

std::string LeafJson(const json::value& leaf) {
  return leaf.is_double() ? NumberText(leaf.get_double()) : json::serialize(leaf);
}

bool IsNest(const json::value& value) { return value.is_object() || value.is_array(); }

bool HoldsNests(const json::value& value) {
  if (const json::object* object = value.if_object()) {
    return std::any_of(object->begin(), object->end(),
                       [](const auto& member) { return IsNest(member.value()); });
  }
  const json::array* array = value.if_array();
  return array != nullptr && std::any_of(array->begin(), array->end(), IsNest);
}

/// Writes a tree as JSON; under `indented`, what holds no nests stands in a line of its own.
class JsonWriter {
 public:
  explicit JsonWriter(bool indented) : indented_(indented) {}

  void Write(const json::value& value) {
    if (const json::object* object = value.if_object()) {
      WriteAll('{', *object, '}', HoldsNests(value), [&](const json::key_value_pair& member) {
        out_ += json::serialize(member.key());
        out_ += indented_ ? ": " : ":";
        Write(member.value());
      });
    } else if (const json::array* array = value.if_array()) {
      WriteAll('[', *array, ']', HoldsNests(value), [&](const json::value& each) { Write(each); });
    } else {
      out_ += LeafJson(value);
    }
  }
  std::string Take() { return std::move(out_) + "\n"; }

 private:
  template <class All, class WriteEach>
  void WriteAll(char open, const All& all, char close, bool holds_nests,
                const WriteEach& write_each) {
    const bool in_lines = indented_ && holds_nests;
    out_ += open;
    ++depth_;
    bool is_first = true;
    for (const auto& each : all) {
      if (!is_first) out_ += indented_ && !in_lines ? ", " : ",";
      is_first = false;
      if (in_lines) BreakLine();
      write_each(each);
    }
    --depth_;
    if (in_lines) BreakLine();
    out_ += close;
  }
  void BreakLine() { out_.append("\n").append(2 * depth_, ' '); }

  bool indented_;
  size_t depth_ = 0;
  std::string out_;
};

std::string WriteJson(const Document& document, bool indented) {
  JsonWriter writer(indented);
  writer.Write(json::value(document));
  return writer.Take();
}

using VisitLeaf = std::function<void(const std::string& name, const json::value& leaf)>;

void ForEachLeaf(const std::string& name, const json::value& value, const VisitLeaf& visit) {
  const std::string prefix = name.empty() ? "" : name + ".";
  if (const json::object* object = value.if_object()) {
    for (const json::key_value_pair& member : *object) {
      ForEachLeaf(prefix + std::string(member.key()), member.value(), visit);
    }
  } else if (const json::array* array = value.if_array()) {
    for (size_t i = 0; i < array->size(); ++i) {
      ForEachLeaf(prefix + std::to_string(i), (*array)[i], visit);
    }
  } else {
    visit(name, value);
  }
}

}  // namespace

std::string JsonLine(const Document& document) { return WriteJson(document, false); }
std::string IndentedJson(const Document& document) { return WriteJson(document, true); }

std::string Rendered(OutputFormat format, const Document& document) {
  if (format == OutputFormat::kJson) return JsonLine(document);
  const bool is_csv = format == OutputFormat::kCsv;
  std::string text = is_csv ? "name,value\n" : "";
  ForEachLeaf("", json::value(document), [&](const std::string& name, const json::value& leaf) {
    if (is_csv) {
      AppendCsvCell(name, text);
      AppendCsvCell(LeafText(leaf), text += ',');
    } else {
      text.append(name).append("\t");
      AppendText(LeafText(leaf), text);
    }
    text += '\n';
  });
  return text;
}

std::string LeafText(const boost::json::value& leaf) {
  if (leaf.is_null()) return "";
  if (const json::string* text = leaf.if_string()) return {text->data(), text->size()};
  return LeafJson(leaf);
}

json::value BytesValue(std::string_view bytes) {
  if (IsUtf8(bytes)) return json::value(json::string_view(bytes.data(), bytes.size()));
  std::string encoded;
  base::AppendBase64(bytes, encoded);
  return json::value(json::object{{"base64", encoded}});
}

json::value HexValue(uint64_t number) {
  return json::value(json::string(base::Hexadecimal(number)));
}

json::value DecimalValue(double value, int decimals) {
  return json::value(std::strtod(FormatDecimal(value, decimals).c_str(), nullptr));
}

}  // namespace basalt::tools

#include "tools/basalt/graph_csv.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>
#include <utility>

#include "tools/basalt/map_csv.h"
#include "tools/basalt/text_format.h"

namespace basalt::tools {
namespace {

Status BadCsv(const std::string& what) { return Status(StatusCode::kInvalidArgument, what); }

/// The number that the whole text is.
template <class Number>
std::optional<Number> CellNumber(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Calls `take` with each part between semicolons. An empty text has none.
template <class Take>
Status ForEachPart(std::string_view text, const Take& take) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(';'), text.size());
    const Status taken = take(text.substr(0, end));
    if (!taken.ok()) return taken;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return Status();
}

}  // namespace

Result<GraphCsvColumns::Column> GraphCsvColumns::ParseColumn(std::string_view title) {
  Column column;
  column.title = title;
  if (!IsUtf8(title)) return BadCsv("column " + KeyText(title) + " is not UTF-8");
  const size_t colon = title.rfind(':');
  column.name = title.substr(0, colon);
  std::string_view type = colon == std::string_view::npos ? "string" : title.substr(colon + 1);
  if (const size_t open = type.find('('); open != std::string_view::npos) {
    if (!type.ends_with(')')) return BadCsv("column " + KeyText(title) + " lacks a ')'");
    column.id_prefix = std::string(type.substr(open + 1, type.size() - open - 2)) + "/";
    type = type.substr(0, open);
  }
  constexpr std::array<std::pair<std::string_view, Kind>, 8> kKinds = {{
      {"ID", Kind::kId},
      {"LABEL", Kind::kLabel},
      {"START_ID", Kind::kStart},
      {"END_ID", Kind::kEnd},
      {"TYPE", Kind::kType},
      {"WEIGHT", Kind::kWeight},
      {"DISCRIMINATOR", Kind::kDiscriminator},
      {"IGNORE", Kind::kIgnored},
  }};
  const auto kind = std::ranges::find(kKinds, type, [](const auto& each) { return each.first; });
  if (kind != kKinds.end()) {
    column.kind = kind->second;
    return column;
  }
  if (type.ends_with("[]")) {
    column.is_list = true;
    type.remove_suffix(2);
  }
  if (type == "byte" || type == "short" || type == "int" || type == "long") {
    column.value = ValueKind::kInteger;
  } else if (type == "float" || type == "double") {
    column.value = ValueKind::kDouble;
  } else if (type == "boolean") {
    column.value = ValueKind::kBoolean;
  }
  if (column.name.empty()) return BadCsv("column " + KeyText(title) + " has no name");
  return column;
}

size_t GraphCsvColumns::Count(Kind kind) const {
  return static_cast<size_t>(std::ranges::count(columns_, kind, &Column::kind));
}

Result<GraphCsvColumns> GraphCsvColumns::Parse(std::span<const std::string> header) {
  GraphCsvColumns columns;
  for (const std::string& title : header) {
    Result<Column> column = ParseColumn(title);
    if (!column) return column.error();
    columns.columns_.push_back(*std::move(column));
  }
  const size_t ids = columns.Count(Kind::kId);
  const size_t starts = columns.Count(Kind::kStart);
  if (ids == 1 && starts == 0) {
    columns.has_nodes_ = true;
    return columns;
  }
  if (ids == 0 && starts == 1 && columns.Count(Kind::kEnd) == 1 &&
      columns.Count(Kind::kType) == 1 && columns.Count(Kind::kWeight) <= 1 &&
      columns.Count(Kind::kDiscriminator) <= 1) {
    return columns;
  }
  return BadCsv(
      "the first line must have one column :ID for nodes, or one of each of :START_ID, "
      ":END_ID and :TYPE for edges" +
      (header.empty() ? "" : SeparatorRemark(header.front())));
}

Result<PropertyValue> GraphCsvColumns::ParseScalar(const Column& column, std::string_view text) {
  switch (column.value) {
    case ValueKind::kInteger:
      if (const auto number = CellNumber<int64_t>(text)) return PropertyValue(*number);
      return BadCsv("not a 64-bit integer: " + KeyText(text));
    case ValueKind::kDouble:
      if (const auto number = CellNumber<double>(text)) return PropertyValue(*number);
      return BadCsv("not a number: " + KeyText(text));
    case ValueKind::kBoolean:
      if (text == "true" || text == "false") return PropertyValue(text == "true");
      return BadCsv("neither true nor false: " + KeyText(text));
    case ValueKind::kString:
      break;
  }
  return PropertyValue(std::string(text));
}

Result<PropertyValue> GraphCsvColumns::ParseValue(const Column& column, std::string_view text) {
  if (!column.is_list) return ParseScalar(column, text);
  PropertyValue::List list;
  const Status status = ForEachPart(text, [&](std::string_view part) {
    Result<PropertyValue> value = ParseScalar(column, part);
    if (!value) return value.error();
    list.push_back(*std::move(value));
    return Status();
  });
  if (!status.ok()) return status;
  return PropertyValue(std::move(list));
}

Result<GraphItem> GraphCsvColumns::Read(std::span<const std::string> row) const {
  if (row.size() != columns_.size()) {
    return BadCsv("the row has " + std::to_string(row.size()) + " cells, the first line " +
                  std::to_string(columns_.size()));
  }
  return has_nodes_ ? ReadNode(row) : ReadEdge(row);
}

Result<GraphItem> GraphCsvColumns::ReadNode(std::span<const std::string> row) const {
  GraphNodeItem node;
  for (size_t i = 0; i < row.size(); ++i) {
    const Column& column = columns_[i];
    if (column.kind == Kind::kLabel) {
      (void)ForEachPart(row[i], [&](std::string_view label) {
        node.content.labels.emplace_back(label);
        return Status();
      });
    }
    if (column.kind == Kind::kId) node.id = column.id_prefix + row[i];
    const bool is_property =
        column.kind == Kind::kProperty || (column.kind == Kind::kId && !column.name.empty());
    if (!is_property || row[i].empty()) continue;
    Result<PropertyValue> value = ParseValue(column, row[i]);
    if (!value) {
      return BadCsv("column " + KeyText(column.title) + ": " +
                    std::string(value.error().message()));
    }
    node.content.properties[column.name] = *std::move(value);
  }
  return GraphItem(std::move(node));
}

Result<GraphItem> GraphCsvColumns::ReadEdge(std::span<const std::string> row) const {
  GraphEdgeItem edge;
  for (size_t i = 0; i < row.size(); ++i) {
    const Column& column = columns_[i];
    if (column.kind == Kind::kStart) edge.from = column.id_prefix + row[i];
    if (column.kind == Kind::kEnd) edge.to = column.id_prefix + row[i];
    if (column.kind == Kind::kType) edge.type = row[i];
    if (column.kind == Kind::kDiscriminator) edge.discriminator = row[i];
    if (column.kind == Kind::kWeight && !row[i].empty()) {
      const auto weight = CellNumber<double>(row[i]);
      if (!weight)
        return BadCsv("column " + KeyText(column.title) + ": not a number: " + KeyText(row[i]));
      edge.content.weight = *weight;
    }
    if (column.kind != Kind::kProperty || row[i].empty()) continue;
    Result<PropertyValue> value = ParseValue(column, row[i]);
    if (!value) {
      return BadCsv("column " + KeyText(column.title) + ": " +
                    std::string(value.error().message()));
    }
    edge.content.properties[column.name] = *std::move(value);
  }
  return GraphItem(std::move(edge));
}

}  // namespace basalt::tools

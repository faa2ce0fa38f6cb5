#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/status.h"
#include "tools/basalt/graph_item.h"

namespace basalt::tools {

/// The columns of a CSV file of nodes or of edges, in the form that Neo4j's import tool reads. A
/// header cell is `name:TYPE`.
///
/// | column                     | meaning                                                        |
/// |----------------------------|----------------------------------------------------------------|
/// | `name:ID`, `:ID(Group)`    | external id; kept as property `name`, too, if there is a name   |
/// | `:LABEL`                   | labels, parted by `;`                                          |
/// | `:START_ID`, `:END_ID`     | the ends of an edge; may have a `(Group)`                      |
/// | `:TYPE`                    | type of an edge                                                |
/// | `:WEIGHT`, `:DISCRIMINATOR`| of an edge; not of Neo4j                                       |
/// | `:IGNORE`                  | nothing                                                        |
/// | `name:type`                | a property: byte, short, int, long; float, double; boolean;    |
/// |                            | others are kept as strings. `type[]`: a list, parted by `;`     |
///
/// An empty cell is no property. With a group, ids begin with `Group/`.
class GraphCsvColumns {
 public:
  /// InvalidArgument: the header is of no such file.
  static Result<GraphCsvColumns> Parse(std::span<const std::string> header);
  /// InvalidArgument: the row is malformed; the message names the column.
  Result<GraphItem> Read(std::span<const std::string> row) const;

 private:
  enum class Kind : uint8_t {
    kProperty,
    kId,
    kLabel,
    kStart,
    kEnd,
    kType,
    kWeight,
    kDiscriminator,
    kIgnored,
  };
  enum class ValueKind : uint8_t { kString, kInteger, kDouble, kBoolean };
  struct Column {
    Kind kind = Kind::kProperty;
    std::string title;  // The whole cell.
    std::string name;
    std::string id_prefix;
    ValueKind value = ValueKind::kString;
    bool is_list = false;
  };

  static Result<Column> ParseColumn(std::string_view title);
  static Result<PropertyValue> ParseScalar(const Column& column, std::string_view text);
  static Result<PropertyValue> ParseValue(const Column& column, std::string_view text);
  size_t Count(Kind kind) const;
  Result<GraphItem> ReadNode(std::span<const std::string> row) const;
  Result<GraphItem> ReadEdge(std::span<const std::string> row) const;

  std::vector<Column> columns_;
  bool has_nodes_ = false;
};

}  // namespace basalt::tools

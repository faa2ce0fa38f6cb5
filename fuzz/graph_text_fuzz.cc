// Any bytes as a line of JSON, and as a header and a row of CSV, from which graphs are loaded: what
// is refused is InvalidArgument with a reason; what is accepted and is written as JSON is read as
// the same.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "tools/basalt/graph_csv.h"
#include "tools/basalt/graph_json.h"

namespace {

using basalt::Result;
using basalt::tools::GraphItem;

void CheckItem(const Result<GraphItem>& item) {
  if (!item) {
    BASALT_CHECK(item.code() == basalt::StatusCode::kInvalidArgument);
    BASALT_CHECK(!item.error().message().empty());
    return;
  }
  const std::string line = basalt::tools::GraphItemLine(*item);
  const Result<GraphItem> again = basalt::tools::ParseGraphItem(line);
  BASALT_CHECK(again.ok());
  BASALT_CHECK(basalt::tools::GraphItemLine(*again) == line);
}

std::vector<std::string> CellsOf(std::string_view line) {
  std::vector<std::string> cells(1);
  for (const char c : line) {
    if (c == ',') {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  return cells;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  CheckItem(basalt::tools::ParseGraphItem(bytes));
  const size_t end = bytes.find('\n');
  if (end == std::string_view::npos) return 0;
  const std::vector<std::string> header = CellsOf(bytes.substr(0, end));
  const auto columns = basalt::tools::GraphCsvColumns::Parse(header);
  if (!columns) {
    BASALT_CHECK(columns.code() == basalt::StatusCode::kInvalidArgument);
    return 0;
  }
  CheckItem(columns->Read(CellsOf(bytes.substr(end + 1))));
  return 0;
}

#include "tools/basalt/document_line.h"

#include "tools/basalt/output_format.h"

namespace basalt::tools {
namespace {

/// What `append` appends for each member, with separators between.
template <class Append>
std::string Line(const Document& document, char separator, const Append& append) {
  std::string line;
  bool is_first = true;
  for (const auto& member : document) {
    if (!is_first) line += separator;
    is_first = false;
    append(member, line);
  }
  return line + "\n";
}

using Member = boost::json::key_value_pair;

}  // namespace

std::string CsvNameLine(const Document& document) {
  return Line(document, ',', [](const Member& member, std::string& line) {
    AppendCsvCell(std::string(member.key()), line);
  });
}

std::string CsvLine(const Document& document) {
  return Line(document, ',', [](const Member& member, std::string& line) {
    AppendCsvCell(LeafText(member.value()), line);
  });
}

std::string RawLine(const Document& document) {
  return Line(document, '\t',
              [](const Member& member, std::string& line) { line += LeafText(member.value()); });
}

}  // namespace basalt::tools

#include "tools/basalt/record_printer.h"

#include "tools/basalt/text_format.h"

namespace basalt::tools {

RecordPrinter::RecordPrinter(OutputFormat format, Columns columns, Output& out)
    : format_(format), columns_(columns), out_(out) {
  if (format_ != OutputFormat::kCsv) return;
  out_.Write(columns_ == Columns::kKey ? "key\n" : "key,value\n");
}

bool RecordPrinter::Print(std::string_view key, std::string_view value) {
  std::optional<std::string_view> shown;
  if (columns_ == Columns::kKeyAndValue) shown = value;
  line_.clear();
  switch (format_) {
    case OutputFormat::kTable:
      AppendRecord(RecordFormat::kText, key, shown, line_);
      break;
    case OutputFormat::kJson:
      AppendRecord(RecordFormat::kJson, key, shown, line_);
      break;
    case OutputFormat::kCsv:
      AppendCsvCell(key, line_);
      if (shown) AppendCsvCell(*shown, line_ += ',');
      if (line_.empty()) line_ = "\"\"";  // An empty line is no row.
      line_ += '\n';
      break;
    case OutputFormat::kRaw:
      line_ += key;
      if (shown) line_.append("\t").append(*shown);
      line_ += '\n';
      break;
  }
  return out_.Write(line_);
}

}  // namespace basalt::tools

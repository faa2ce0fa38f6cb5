#include "tools/basalt/map_csv.h"

#include <utility>

namespace basalt::tools {

Result<CsvReader> CsvReader::Open(const std::string& path) {
  Result<LineReader> lines = LineReader::Open(path);
  if (!lines) return lines.error();
  return CsvReader(path == "-" ? "standard input" : path, std::move(*lines));
}

std::string CsvReader::position() const { return name_ + ":" + std::to_string(row_line_); }

Result<bool> CsvReader::NextLine(std::string_view& line) {
  if (pending_at_ < pending_.size()) {
    const size_t newline = pending_.find('\n', pending_at_);
    line = std::string_view(pending_).substr(pending_at_, newline - pending_at_);
    pending_at_ = newline + 1;
  } else {
    Result<bool> more = lines_.Next(line);
    if (!more || !*more) return more;
  }
  ++line_number_;
  return true;
}

Result<bool> CsvReader::NextFullLine(std::string_view& line) {
  while (true) {
    Result<bool> more = NextLine(line);
    if (!more || !*more || (!line.empty() && line != "\r")) return more;
  }
}

std::string& CsvReader::NewCell() {
  if (count_ == cells_.size()) cells_.emplace_back();
  std::string& cell = cells_[count_++];
  cell.clear();
  return cell;
}

CsvReader::Step CsvReader::Bad(std::string fault) {
  fault_ = std::move(fault);
  pending_.replace(0, pending_at_, taken_);
  pending_at_ = 0;
  line_number_ = row_line_;
  return Step::kBadRow;
}

std::string CsvReader::Place(size_t at) const {
  const std::string column = "column " + std::to_string(at + 1);
  return line_number_ == row_line_ ? column
                                   : "line " + std::to_string(line_number_) + ", " + column;
}

Result<CsvReader::Step> CsvReader::Next() {
  std::string_view line;
  const Result<bool> more = NextFullLine(line);
  if (!more) return more.error();
  if (!*more) return Step::kEnd;
  row_line_ = line_number_;
  count_ = 0;
  taken_.clear();
  return ReadCells(line);
}

Result<CsvReader::Step> CsvReader::ReadCells(std::string_view line) {
  size_t at = 0;
  while (true) {
    std::string& cell = NewCell();
    if (at < line.size() && line[at] == '"') {
      ++at;
      const Result<bool> closed = ReadQuoted(cell, line, at);
      if (!closed) return closed.error();
      if (!*closed) return Step::kBadRow;
      if (at == line.size() || line.substr(at) == "\r") return Step::kRow;
      if (line[at] != ',') {
        return Bad("no comma after the closing quote at " + Place(at - 1) +
                   ": inside a quoted cell a quote is doubled" +
                   SeparatorRemark(line.substr(at, 1)));
      }
    } else {
      const size_t comma = line.find(',', at);
      std::string_view text = line.substr(at, comma - at);
      if (comma == std::string_view::npos && text.ends_with('\r')) text.remove_suffix(1);
      const size_t quote = text.find('"');
      if (quote != std::string_view::npos) {
        return Bad("a quote at " + Place(at + quote) +
                   " in a cell that begins with none: quote the whole cell, and double the quotes "
                   "inside it");
      }
      cell = text;
      if (comma == std::string_view::npos) return Step::kRow;
      at = comma;
    }
    ++at;  // The comma.
  }
}

Result<bool> CsvReader::ReadQuoted(std::string& cell, std::string_view& line, size_t& at) {
  while (true) {
    const size_t quote = line.find('"', at);
    if (quote != std::string_view::npos) {
      cell += line.substr(at, quote - at);
      at = quote + 1;
      if (at == line.size() || line[at] != '"') return true;
      cell += '"';
      ++at;
      continue;
    }
    cell.append(line.substr(at)).append("\n");
    const Result<bool> more = NextLine(line);
    if (!more) return more.error();
    if (*more) taken_.append(line).append("\n");
    if (!*more || taken_.size() > LineReader::kLineBytesMax) {
      Bad(*more ? "a row longer than 1 GiB: is a quote not closed?"
                : "a quote is not closed before the end");
      return false;
    }
    at = 0;
  }
}

std::string SeparatorRemark(std::string_view text) {
  const size_t at = text.find_first_of(";\t");
  if (at == std::string_view::npos) return {};
  return std::string(" (only commas part cells, and no ") +
         (text[at] == ';' ? "semicolons)" : "tabs)");
}

}  // namespace basalt::tools

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/status.h"
#include "tools/basalt/line_reader.h"

namespace basalt::tools {

/// Rows of comma-separated values (RFC 4180), of any bytes. A cell that begins with a quote ends
/// with one and may hold commas and line ends; a quote inside it is doubled. A line ends with a
/// newline, or a carriage return and a newline. Empty lines are passed over, and so is the byte
/// order mark that some programs begin a file with; that of UTF-16 is InvalidArgument. Memory: the
/// longest row, twice.
class CsvReader {
 public:
  enum class Step : uint8_t { kRow, kBadRow, kEnd };

  /// Opens `path`; "-" is standard input. IoError names it.
  static Result<CsvReader> Open(const std::string& path);

  /// kRow: `cells` has the next row. kBadRow: `fault` says what is wrong with it, and the next call
  /// goes on with the line after that row's first. An error: nothing can be read any more.
  Result<Step> Next();

  /// Until the next call.
  std::span<const std::string> cells() const noexcept { return {cells_.data(), count_}; }
  const std::string& fault() const noexcept { return fault_; }
  /// "<file>:<line>" of the row's first line.
  std::string position() const;
  uint64_t consumed_bytes() const noexcept { return lines_.consumed_bytes(); }
  uint64_t total_bytes() const noexcept { return lines_.total_bytes(); }

 private:
  CsvReader(std::string name, LineReader lines)
      : name_(std::move(name)), lines_(std::move(lines)) {}

  Result<bool> NextLine(std::string_view& line);
  Result<bool> NextFullLine(std::string_view& line);
  Result<Step> ReadCells(std::string_view line);
  /// Appends to `cell` what stands from `at` on, behind the opening quote, up to the closing one;
  /// `at` is then behind that. False: the row is bad.
  Result<bool> ReadQuoted(std::string& cell, std::string_view& line, size_t& at);
  std::string& NewCell();
  /// Where `at` is in the line that was read last.
  std::string Place(size_t at) const;
  Step Bad(std::string fault);

  std::string name_;
  LineReader lines_;
  uint64_t line_number_ = 0;  // Of the line that was read last.
  uint64_t row_line_ = 0;     // Where the present row begins.
  // The row's lines after its first. When the row is bad, they come to the front of what is
  // pending.
  std::string taken_;
  std::string pending_;
  size_t pending_at_ = 0;
  std::vector<std::string> cells_;
  size_t count_ = 0;
  std::string fault_;
};

/// For messages about a text that should have been parted by commas, when it has another usual
/// separator: a remark in brackets. Empty otherwise.
std::string SeparatorRemark(std::string_view text);

}  // namespace basalt::tools

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tools/basalt/output.h"
#include "tools/basalt/output_format.h"

namespace basalt::tools {

/// Prints records, a line each, under the heading that `csv` has. One thread at a time.
class RecordPrinter {
 public:
  enum class Columns : uint8_t { kKeyAndValue, kKey };

  RecordPrinter(OutputFormat format, Columns columns, Output& out);
  RecordPrinter(const RecordPrinter&) = delete;
  RecordPrinter& operator=(const RecordPrinter&) = delete;

  /// `value` is not looked at where there is no column for it. False: the output has no reader any
  /// more.
  bool Print(std::string_view key, std::string_view value);

 private:
  OutputFormat format_;
  Columns columns_;
  Output& out_;
  std::string line_;
};

}  // namespace basalt::tools

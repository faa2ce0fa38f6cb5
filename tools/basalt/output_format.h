#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace basalt::tools {

/// How a verb prints what it found (`--output`).
///
/// | name    | figures                               | records                                  |
/// |---------|---------------------------------------|------------------------------------------|
/// | `table` | aligned columns, units                | key, tab, value, in the text form        |
/// | `csv`   | `name,value`, exact numbers           | `key,value`, in the text form            |
/// | `json`  | one object                            | an object a line                         |
/// | `raw`   | name, tab, value, exact numbers       | key, tab, value, their bytes as they are |
enum class OutputFormat : uint8_t { kTable, kCsv, kJson, kRaw };

/// "table" and so on; nothing for another word.
std::optional<OutputFormat> ParseOutputFormat(std::string_view name);

/// Appends one cell of a CSV line (RFC 4180): quoted when it holds a comma, a quote or a line's
/// end.
void AppendCsvCell(std::string_view text, std::string& out);

}  // namespace basalt::tools

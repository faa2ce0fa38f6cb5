#pragma once

#include <string>

#include "tools/basalt/document.h"

namespace basalt::tools {

// Documents without lists and further documents, a line each, all with the same names.

/// The names, as the first line of `csv`.
std::string CsvNameLine(const Document& document);
/// The values: in `csv`; in `raw`, as they are with tabs between them.
std::string CsvLine(const Document& document);
std::string RawLine(const Document& document);

}  // namespace basalt::tools

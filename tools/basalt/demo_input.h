#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/status.h"
#include "basalt/write_batch.h"

namespace basalt::tools {

/// The input of the demo: package paragraphs as `apt-cache dumpavail` prints them (RFC 822 fields,
/// blank lines between), or the lines of any text file.
struct DemoInput {
  std::string source;  ///< For people: a command or a path.
  std::string bytes;   ///< At most kInputBytesMax; the rest is left out.
  bool holds_packages = false;
};

inline constexpr size_t kInputBytesMax = size_t{256} << 20;

/// Reads `file`; when it is empty, what `apt-cache dumpavail` prints, or, where apt knows no
/// packages, dpkg's list of the installed ones. Errors say what to give instead.
Result<DemoInput> ReadDemoInput(const std::string& file);

/// Views into the input.
struct DemoDependency {
  std::string_view type;  ///< The field: Depends, Pre-Depends, Recommends or Suggests.
  std::string_view on;
  std::string_view versions;  ///< Such as ">= 2.36"; may be empty.
};
struct DemoPackage {
  std::string_view name;
  std::string_view section;
  std::string_view description;
  std::vector<DemoDependency> dependencies{};  ///< Alternatives count as one each.
};
/// The package of the paragraph at `offset`, which moves behind it. Paragraphs without a name are
/// passed over. Nothing: there are no more.
std::optional<DemoPackage> NextPackage(const DemoInput& input, size_t& offset);

/// Adds the records of the paragraph or line at `offset`, and moves `offset` behind it. False:
/// there are no more. A paragraph becomes
///
///     package/<name>                 the whole paragraph
///     section/<section>/<name>       its short description
///     depends/<name>/<dependency>    the versions that will do, such as ">= 2.36"; may be empty
///
/// and a line becomes line/<number, 8 digits>; `line_number` counts them.
bool AddNextItem(const DemoInput& input, size_t& offset, size_t& line_number, WriteBatch& batch);

}  // namespace basalt::tools

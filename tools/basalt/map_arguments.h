#pragma once

#include <string>
#include <string_view>

#include "basalt/shared_map.h"
#include "basalt/status.h"
#include "tools/basalt/argument_bytes.h"  // Part of what is shared.
#include "tools/basalt/exit_code.h"

namespace basalt::tools {

// What the verbs on maps share.

/// Says what went wrong on stderr, and what to do where the code alone tells it; gives the exit
/// code.
ExitCode ReportMap(const Status& status);
/// The same for a verb that makes no map.
ExitCode ReportMapThatIsThere(const Status& status);

/// Refuses what can be no map on a disk: ":memory:", which would end with the command
/// (InvalidArgument), and a database's directory (`code`; the message ends with `instead`, which
/// says what was perhaps meant). Ok for anything else, also for what is not there.
Status CheckMapPath(const std::string& path, std::string_view instead,
                    StatusCode code = StatusCode::kNotFound);

/// How the shards of a map are laid out, in words.
std::string LayoutText(const SharedMapStats& stats);

}  // namespace basalt::tools

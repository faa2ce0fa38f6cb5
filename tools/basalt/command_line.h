#pragma once

#include <functional>

#include "tools/basalt/exit_code.h"
#include "tools/basalt/output.h"

namespace basalt::tools {

/// What a command line asks for; runs once.
using Action = std::function<ExitCode(Output&)>;

/// Understands the program's arguments. Help is an action too, and a mistake is one that explains
/// it and gives kUsage: this function has no effects.
Action ParseCommandLine(int argc, const char* const* argv);

}  // namespace basalt::tools

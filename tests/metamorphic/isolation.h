#pragma once

#include <optional>

#include "tests/metamorphic/operation.h"
#include "tests/metamorphic/runner.h"

namespace basalt::metamorphic {

/// Runs a list in a child process, so that a failed check, a signal or a loop without end is a
/// failure like any other: its problem says how the child ended and what it last said.
std::optional<Failure> RunIsolated(const OperationList& list);

}  // namespace basalt::metamorphic

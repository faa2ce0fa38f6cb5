#pragma once

#include <cstddef>
#include <functional>

#include "tests/metamorphic/operation.h"

namespace basalt::metamorphic {

/// Whether a list still fails.
using FailsFunction = std::function<bool(const OperationList&)>;

/// The shortest failing list that removing parts of `list` leads to: first long chunks of
/// operations, then shorter ones, then single ones; then records of batches, moves and keys; then
/// bytes of values and times to live (delta debugging, Zeller and Hildebrandt 2002). Calls `fails`
/// at most `runs_max` times.
OperationList Reduce(OperationList list, const FailsFunction& fails, size_t runs_max);

}  // namespace basalt::metamorphic

#pragma once

#include <optional>
#include <string>

#include "tests/metamorphic/operation.h"

namespace basalt::metamorphic {

/// Where a database did not do what the model says.
struct Failure {
  size_t operation = 0;  ///< Its index in the list; the list's size: at the end.
  std::string problem;
};

/// Runs a list against a database on a simulated machine of its own (file system, clock, executor)
/// and against the model, one thread, the same way every time. At the end the database is compared
/// whole, closed and checked.
std::optional<Failure> Run(const OperationList& list);

}  // namespace basalt::metamorphic

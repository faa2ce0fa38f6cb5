#pragma once

#include <cstddef>
#include <cstdint>

#include "tests/metamorphic/operation.h"

namespace basalt::metamorphic {

/// A random list: the same for the same seed. Each list has settings, a set of keys and frequencies
/// of operations of its own, so that lists differ in kind and not only in order; some kinds are
/// left out of a list altogether, which lets states arise that a steady mixture never reaches.
OperationList Generate(uint64_t seed, size_t operations);

}  // namespace basalt::metamorphic

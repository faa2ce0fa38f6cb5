#pragma once

#include <cstdint>

namespace basalt::base {

/// Raised in every forked child, by a fork handler: a handle that remembers another number than
/// this belongs to the parent. One relaxed load.
uint64_t ForkGeneration() noexcept;

}  // namespace basalt::base

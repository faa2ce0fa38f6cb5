#pragma once

#include <cstdint>

namespace basalt::base {

/// Raised in every forked child, by a fork handler: a handle that remembers another number than
/// this belongs to the parent. One relaxed load. What else the handlers do stands in the .cc file.
uint64_t ForkCount() noexcept;

}  // namespace basalt::base

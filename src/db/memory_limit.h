#pragma once

#include <cstdint>

namespace basalt::db {

/// Bytes that this process may use: physical memory, or its cgroup's limit when that is less.
uint64_t MemoryLimit();

}  // namespace basalt::db

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace basalt::base {

/// So many keys of a hash table may have one Hash. Anybody can make more of them, so the table
/// places each further one by its SecondHash. Lookups then stay short.
inline constexpr size_t kKeysOfOneHashMax = 16;

/// A SeededHash whose seed is random and of this process: nobody can make keys for which it is
/// equal. Not for what is stored.
uint64_t SecondHash(std::string_view bytes) noexcept;

}  // namespace basalt::base

#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdint>
#include <string_view>

#include "base/hash.h"

namespace basalt::cache {

/// base::Hash. Its way for keys up to 16 bytes stands where it is called: some 25 instructions, so
/// that a call and what it makes the caller save would be as much again.
[[gnu::always_inline]] inline uint64_t HashOfKey(std::string_view key, uint64_t seed) noexcept {
  constexpr size_t kShortMax = 16;
  if (key.size() > kShortMax) return base::Hash(key, seed);
  return XXH3_len_0to16_64b(reinterpret_cast<const xxh_u8*>(key.data()), key.size(), XXH3_kSecret,
                            seed);
}

}  // namespace basalt::cache

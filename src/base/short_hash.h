#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdint>
#include <string_view>

#include "base/hash.h"
#include "base/seeded_hash.h"

namespace basalt::base {

/// Hash. Its way for up to 16 bytes stands where it is called: some 25 instructions, so that a call
/// and what it makes the caller save would be as much again.
[[gnu::always_inline]] inline uint64_t HashShort(std::string_view bytes,
                                                 uint64_t seed = 0) noexcept {
  constexpr size_t kShortMax = 16;
  if (bytes.size() > kShortMax) return Hash(bytes, seed);
  return XXH3_len_0to16_64b(reinterpret_cast<const xxh_u8*>(bytes.data()), bytes.size(),
                            XXH3_kSecret, seed);
}
[[gnu::always_inline]] inline uint64_t HashShort(std::string_view bytes,
                                                 const SeededHash& hash) noexcept {
  constexpr size_t kShortMax = 16;
  if (bytes.size() > kShortMax) return hash(bytes);
  return XXH3_len_0to16_64b(reinterpret_cast<const xxh_u8*>(bytes.data()), bytes.size(),
                            hash.secret(), 0);
}

}  // namespace basalt::base

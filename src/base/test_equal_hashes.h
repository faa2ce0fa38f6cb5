#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/seeded_hash.h"

namespace basalt::base {

/// Keys of 32 bytes that have one and the same hash. Their first word is that of XXH3's secret, so
/// that what their second word is multiplied by is zero. Anybody can make them who knows the seed.
inline std::vector<std::string> KeysOfOneHash(size_t count, const SeededHash& hash = SeededHash()) {
  std::vector<std::string> keys;
  keys.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    std::string key(32, 'k');
    const uint64_t word = i * 0x9E37'79B9'7F4A'7C15 + 1;
    std::memcpy(key.data(), hash.secret(), sizeof word);
    std::memcpy(key.data() + sizeof word, &word, sizeof word);
    keys.push_back(key);
  }
  return keys;
}

}  // namespace basalt::base

#include "base/seeded_hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>

#include "base/random.h"

namespace basalt::base {

SeededHash::SeededHash(uint64_t seed) noexcept : seed_(seed) {
  static_assert(sizeof XXH3_kSecret == kSecretBytes);
  if (seed == 0) {
    std::memcpy(secret_.data(), XXH3_kSecret, kSecretBytes);
    return;
  }
  Random random(seed);
  for (size_t at = 0; at < kSecretBytes; at += sizeof(uint64_t)) {
    const uint64_t word = random.Next();
    std::memcpy(secret_.data() + at, &word, sizeof word);
  }
}

uint64_t SeededHash::operator()(std::string_view bytes) const noexcept {
  return XXH3_64bits_withSecret(bytes.data(), bytes.size(), secret_.data(), kSecretBytes);
}

}  // namespace basalt::base

#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace basalt::base {
namespace {

/// A bijection that spreads neighbouring offsets over all 64 bits (the finaliser of splitmix64).
constexpr uint64_t Spread(uint64_t value) noexcept {
  value = (value ^ (value >> 30)) * 0xBF58'476D'1CE4'E5B9;
  value = (value ^ (value >> 27)) * 0x94D0'49BB'1331'11EB;
  return value ^ (value >> 31);
}

}  // namespace

uint64_t Hash(std::string_view bytes, uint64_t seed) noexcept {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

uint64_t Checksum(uint64_t file_id, uint64_t offset, std::string_view bytes) noexcept {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), file_id ^ Spread(offset));
}

}  // namespace basalt::base

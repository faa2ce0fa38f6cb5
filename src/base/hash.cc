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

uint64_t Checksum(uint64_t file_id, uint64_t offset, std::string_view first,
                  std::string_view second) noexcept {
  XXH3_state_t state;
  XXH3_INITSTATE(&state);
  XXH3_64bits_reset_withSeed(&state, file_id ^ Spread(offset));
  XXH3_64bits_update(&state, first.data(), first.size());
  XXH3_64bits_update(&state, second.data(), second.size());
  return XXH3_64bits_digest(&state);
}

}  // namespace basalt::base

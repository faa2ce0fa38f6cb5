#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace basalt::base {

/// 64 random bits from the system (getrandom): for file ids and for seeds of what need not be
/// repeatable.
uint64_t RandomSeed() noexcept;

/// A small fast generator, the same on every machine for the same seed: xoshiro256**, its state
/// filled by splitmix64 (Blackman and Vigna, "Scrambled linear pseudorandom number generators",
/// 2021). Not for secrets. One thread at a time. May drive the distributions of <random>.
class Random {
 public:
  using result_type = uint64_t;

  explicit Random(uint64_t seed) noexcept {
    for (uint64_t& word : state_) {
      seed += 0x9E37'79B9'7F4A'7C15;
      uint64_t mixed = (seed ^ (seed >> 30)) * 0xBF58'476D'1CE4'E5B9;
      mixed = (mixed ^ (mixed >> 27)) * 0x94D0'49BB'1331'11EB;
      word = mixed ^ (mixed >> 31);
    }
  }

  /// All 64 bits are uniform.
  uint64_t Next() noexcept {
    const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  /// Uniform in [0, bound); `bound` above zero. The bias is below bound / 2^64.
  uint64_t Below(uint64_t bound) noexcept {
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>((Wide{Next()} * bound) >> 64);
  }
  /// Uniform in [low, high], both included.
  uint64_t Between(uint64_t low, uint64_t high) noexcept {
    const uint64_t span = high - low + 1;
    return span == 0 ? Next() : low + Below(span);
  }
  /// True once in `count` times.
  bool OneIn(uint64_t count) noexcept { return Below(count) == 0; }
  /// Uniform in [0, 1).
  double NextDouble() noexcept { return static_cast<double>(Next() >> 11) * 0x1p-53; }

  uint64_t operator()() noexcept { return Next(); }
  static constexpr uint64_t min() noexcept { return 0; }
  static constexpr uint64_t max() noexcept { return std::numeric_limits<uint64_t>::max(); }

 private:
  uint64_t state_[4];
};

}  // namespace basalt::base

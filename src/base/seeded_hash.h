#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace basalt::base {

/// XXH3-64 under a secret that is made of a seed: nobody who does not know the seed can make keys
/// that have equal hashes. Seed 0 is Hash, for which anybody can.
///
/// The secret of another seed is 192 bytes long: 24 numbers of Random. (XXH3's own seed would not
/// do. It is added to the words of the secret that everybody knows, so that their differences stay
/// known: keys of more than 240 bytes can be made, as many as one likes, that have equal hashes
/// under one of 60 seeds.) The values are part of on-disk formats and never change.
class SeededHash {
 public:
  explicit SeededHash(uint64_t seed = 0) noexcept;

  uint64_t seed() const noexcept { return seed_; }
  uint64_t operator()(std::string_view bytes) const noexcept;
  /// As XXH3 takes it.
  const unsigned char* secret() const noexcept { return secret_.data(); }

 private:
  static constexpr size_t kSecretBytes = 192;

  alignas(uint64_t) std::array<unsigned char, kSecretBytes> secret_;
  uint64_t seed_;
};

}  // namespace basalt::base

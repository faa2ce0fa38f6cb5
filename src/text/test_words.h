#pragma once

#include <cstdint>
#include <string>

#include "base/random.h"

// Random texts for tests.

namespace basalt::text {

/// Words of a made-up language, the first ones frequent.
inline std::string AnyWord(base::Random* random) {
  const double x = random->NextDouble();
  auto rank = static_cast<uint64_t>(300 * x * x * x);
  std::string word;
  do {
    word += "bdgklmnrst"[rank % 10];
    word += "aeiou"[rank / 10 % 5];
    rank /= 50;
  } while (rank > 0);
  return word;
}

inline std::string AnyText(base::Random* random, uint64_t words) {
  std::string text;
  for (uint64_t i = 0; i < words; ++i) text += AnyWord(random) + (random->OneIn(9) ? ", " : " ");
  return text;
}

}  // namespace basalt::text

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/random.h"

namespace basalt::cache_sim {

/// Draws a rank below `ranks`, rank r with a probability proportional to (r + 1)^-skew.
class Zipf {
 public:
  Zipf(uint32_t ranks, double skew) : sums_(ranks) {
    double sum = 0;
    for (uint32_t rank = 0; rank < ranks; ++rank) sums_[rank] = sum += std::pow(rank + 1.0, -skew);
  }

  uint32_t operator()(base::Random* random) const {
    const double point = random->NextDouble() * sums_.back();
    const auto found = std::upper_bound(sums_.begin(), sums_.end() - 1, point);
    return static_cast<uint32_t>(found - sums_.begin());
  }

 private:
  std::vector<double> sums_;
};

}  // namespace basalt::cache_sim

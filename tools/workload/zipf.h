#pragma once

#include <cstdint>

#include "base/random.h"

namespace basalt::workload {

/// The skew of YCSB.
inline constexpr double kYcsbSkew = 0.99;

/// Zipf-distributed ranks below `items`: rank i comes up in proportion to 1 / (i + 1)^skew. Draws
/// with one power and no table, as in Gray et al., "Quickly Generating Billion-Record Synthetic
/// Databases", SIGMOD 1994, which is also what YCSB does. Immutable, so thread-safe.
class Zipf {
 public:
  /// `items` at least 1; `skew` above 0 and below 1.
  Zipf(uint64_t items, double skew);

  uint64_t operator()(base::Random& random) const;

  /// The sum of 1 / i^skew for i from 1 to `items`, to about ten digits; its cost does not grow
  /// with `items`.
  static double Zeta(uint64_t items, double skew);

 private:
  uint64_t items_;
  double skew_;
  double zeta_;
  double eta_;
};

/// YCSB's scrambled Zipf: ranks below 10^10 are hashed onto the items, so that the popular ones lie
/// anywhere among them, and their popularity does not depend on how many items there are.
class ScrambledZipf {
 public:
  explicit ScrambledZipf(uint64_t items) : items_(items), ranks_(kRanks, kYcsbSkew) {}

  uint64_t operator()(base::Random& random) const { return Scramble(ranks_(random)) % items_; }

  /// FNV-1a over the number's 8 bytes, lowest first.
  static uint64_t Scramble(uint64_t number) noexcept;

 private:
  static constexpr uint64_t kRanks = 10'000'000'000;

  uint64_t items_;
  Zipf ranks_;
};

}  // namespace basalt::workload

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench/two_reads.h"

namespace basalt::bench {

/// Vectors to index, others to ask for, and the exact answers.
class VectorData {
 public:
  static constexpr size_t kNeighbours = 10;

  /// Gaussian clusters: `vectors` of them around `centres`, drawn from `seed`. The coordinates
  /// become smaller from the first to the last, as those of text do.
  static VectorData Clusters(size_t vectors, size_t queries, size_t dimension, size_t centres,
                             uint64_t seed);
  /// Of a file of fvecs, the last ones as queries. Empty: there is no such file.
  static VectorData FromFile(const std::string& path, size_t queries);

  bool is_empty() const noexcept { return vectors_ == 0; }
  size_t vectors() const noexcept { return vectors_; }
  size_t queries() const noexcept { return queries_; }
  size_t dimension() const noexcept { return dimension_; }
  const float* Vector(size_t i) const noexcept { return floats() + i * dimension_; }
  const float* Query(size_t i) const noexcept { return Vector(vectors_ + i); }

  /// The share of the kNeighbours nearest to a query that `ids` has. One as near as the last
  /// counts.
  double Recall(size_t query, std::span<const uint32_t> ids) const;
  /// The same of those that pass.
  double Recall(size_t query, std::span<const uint32_t> ids, const std::vector<bool>& passes) const;

 private:
  VectorData() = default;
  float* floats() const noexcept { return reinterpret_cast<float*>(block_->data()); }
  void FindNeighbours();
  std::vector<float> DistancesFrom(size_t query) const;

  size_t vectors_ = 0;
  size_t queries_ = 0;
  size_t dimension_ = 0;
  std::unique_ptr<HugeBlock> block_;
  std::vector<float> radius_;  ///< Of each query: the distance of its last neighbour.
};

}  // namespace basalt::bench

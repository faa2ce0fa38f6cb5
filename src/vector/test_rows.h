#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "vector/hnsw_index.h"
#include "vector/test_vectors.h"

// Vectors for tests of indexes, and exact search over them.

namespace basalt::vector {

/// Vectors by slot; what is not there has been removed. One thread at a time changes it.
class TestRows {
 public:
  TestRows(VectorMetric metric, size_t dimension)
      : distance_(*VectorDistance::Create(metric, VectorElement::kFloat32, dimension)) {}

  size_t dimension() const noexcept { return distance_.dimension(); }
  void Put(uint32_t slot, const std::vector<float>& vector) {
    if (rows_.size() <= slot) rows_.resize(slot + 1);
    rows_[slot] = vector;
  }
  void Erase(uint32_t slot) { rows_[slot].clear(); }
  bool Has(uint32_t slot) const noexcept { return slot < rows_.size() && !rows_[slot].empty(); }
  const std::vector<float>& At(uint32_t slot) const noexcept { return rows_[slot]; }
  std::vector<uint32_t> Slots() const {
    std::vector<uint32_t> slots;
    for (uint32_t slot = 0; slot < rows_.size(); ++slot) {
      if (Has(slot)) slots.push_back(slot);
    }
    return slots;
  }
  float Distance(const std::vector<float>& query, uint32_t slot) const noexcept {
    return Has(slot) ? distance_(query.data(), rows_[slot].data())
                     : std::numeric_limits<float>::infinity();
  }

  /// The `count` nearest of those that pass, nearest first.
  template <class Passes>
  std::vector<SearchHit> Exact(const std::vector<float>& query, size_t count,
                               const Passes& passes) const {
    std::vector<SearchHit> hits;
    for (uint32_t slot = 0; slot < rows_.size(); ++slot) {
      if (Has(slot) && passes(slot)) hits.push_back({slot, Distance(query, slot)});
    }
    count = std::min(count, hits.size());
    std::partial_sort(hits.begin(), hits.begin() + static_cast<ptrdiff_t>(count), hits.end(),
                      [](const SearchHit& a, const SearchHit& b) {
                        return a.distance != b.distance ? a.distance < b.distance : a.slot < b.slot;
                      });
    hits.resize(count);
    return hits;
  }
  std::vector<SearchHit> Exact(const std::vector<float>& query, size_t count) const {
    return Exact(query, count, [](uint32_t) { return true; });
  }

  /// The vectors, for one query.
  class Source : public RowSource {
   public:
    Source(const TestRows* rows, const std::vector<float>* query) : rows_(*rows), query_(*query) {}
    Status Distances(std::span<const uint32_t> slots, float* distances) const override {
      for (size_t i = 0; i < slots.size(); ++i) distances[i] = rows_.Distance(query_, slots[i]);
      return Status();
    }

   private:
    const TestRows& rows_;
    const std::vector<float>& query_;
  };

 private:
  VectorDistance distance_;
  std::vector<std::vector<float>> rows_;
};

}  // namespace basalt::vector

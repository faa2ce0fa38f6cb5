#include "graph/adjacency_base.h"

#include <algorithm>

namespace basalt::graph {

uint32_t AdjacencyRows::LowerBound(std::pair<uint32_t, uint32_t> range, uint32_t type,
                                   uint32_t other, std::string_view discriminator) const noexcept {
  auto [low, high] = range;
  const std::tuple key(type, other, discriminator);
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (At(middle).key() < key) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

size_t AdjacencyRows::bytes() const noexcept {
  return (begins_.capacity() + others_.capacity() + types_.capacity() + detail_places_.capacity()) *
             sizeof(uint32_t) +
         weights_.capacity() * sizeof(double) + details_bytes_;
}

void AdjacencyRows::Reserve(size_t nodes, size_t edges) {
  begins_.reserve(nodes + 1);
  others_.reserve(edges);
  types_.reserve(edges);
}

bool AdjacencyRows::Append(uint32_t node, const AdjacentEdge& edge) {
  if (others_.size() >= UINT32_MAX || edge.type >= kAdjacentTypesEnd) return false;
  const auto place = static_cast<uint32_t>(others_.size());
  if (begins_.size() <= node) begins_.resize(node + size_t{1}, place);
  if (edge.weight != 1 && weights_.empty()) {
    weights_.reserve(others_.capacity());
    weights_.resize(place, 1);
    weights_.push_back(edge.weight);
  } else if (!weights_.empty()) {
    weights_.push_back(edge.weight);
  }
  const bool has_detail = edge.detail != nullptr && !edge.detail->is_empty();
  if (has_detail) {
    detail_places_.push_back(place);
    details_.push_back(*edge.detail);
    details_bytes_ += details_.back().bytes();
  }
  others_.push_back(edge.other);
  types_.push_back(has_detail ? edge.type | kHasDetail : edge.type);
  return true;
}

void AdjacencyRows::Finish() {
  begins_.push_back(static_cast<uint32_t>(others_.size()));
  begins_.shrink_to_fit();
  others_.shrink_to_fit();
  types_.shrink_to_fit();
  weights_.shrink_to_fit();
  detail_places_.shrink_to_fit();
}

const EdgeDetail* AdjacencyRows::DetailAt(uint32_t place) const noexcept {
  const auto found = std::ranges::lower_bound(detail_places_, place);
  return &details_[static_cast<size_t>(found - detail_places_.begin())];
}

}  // namespace basalt::graph

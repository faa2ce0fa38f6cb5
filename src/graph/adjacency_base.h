#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "graph/keys.h"
#include "graph/record.h"

// The edges of a graph in memory, immutable: compressed sparse rows, one set for each direction.
//
//   begins    u32 a node      the edges of node n are those from begins[n] up to begins[n + 1]
//   others    u32 an edge     the node at the other end
//   types     u32 an edge     the type; the highest bit is set if the edge has a detail
//   weights   f64 an edge     empty if all weights are 1
//   details   EdgeDetail for each edge with a discriminator, a validity or an expiry
//
// The edges of a node are in the order of their keys: by type, other end and discriminator. So a
// reader finds them in the order in which a scan of the store does.
//
// Limits: node numbers and edges of a direction are below 2^32 - 1, types below 2^31.
//
// Cost: 8 bytes a node number, removed nodes included. 16 bytes an edge, both directions together;
// 32 if one of the weights is not 1. A detail is 84 bytes at each end, and a discriminator of more
// than 15 bytes its own length. An edge of a node costs a step in three arrays.

namespace basalt::graph {

/// What few edges have.
struct EdgeDetail {
  std::optional<int64_t> valid_from_ms{};
  std::optional<int64_t> valid_to_ms{};
  std::optional<int64_t> expiry_ms{};
  std::string discriminator{};

  bool is_empty() const noexcept {
    return !valid_from_ms && !valid_to_ms && !expiry_ms && discriminator.empty();
  }
  bool IsExpired(int64_t now_ms) const noexcept { return expiry_ms && *expiry_ms <= now_ms; }
  bool IsValidAt(int64_t time_ms) const noexcept {
    return (!valid_from_ms || *valid_from_ms <= time_ms) &&
           (!valid_to_ms || time_ms < *valid_to_ms);
  }
  size_t bytes() const noexcept {
    return sizeof *this + (discriminator.size() > 15 ? discriminator.capacity() : 0);
  }
};

/// An edge as its node has it in memory.
struct AdjacentEdge {
  uint32_t other = 0;
  uint32_t type = 0;
  double weight = 1;
  const EdgeDetail* detail = nullptr;  ///< Null: it has none.

  std::string_view discriminator() const noexcept {
    return detail == nullptr ? std::string_view() : std::string_view(detail->discriminator);
  }
  /// By which edges of a node and direction are ordered and told apart.
  std::tuple<uint32_t, uint32_t, std::string_view> key() const noexcept {
    return {type, other, discriminator()};
  }
};

inline constexpr uint64_t kAdjacentNodesEnd = UINT32_MAX;
inline constexpr uint32_t kAdjacentTypesEnd = uint32_t{1} << 31;

class AdjacencyRows {
 public:
  /// Places of the edges of a node.
  std::pair<uint32_t, uint32_t> RangeOf(uint32_t node) const noexcept {
    if (node + size_t{1} >= begins_.size()) return {0, 0};
    return {begins_[node], begins_[node + size_t{1}]};
  }
  AdjacentEdge At(uint32_t place) const noexcept {
    const uint32_t type = types_[place];
    return {.other = others_[place],
            .type = type & ~kHasDetail,
            .weight = weights_.empty() ? 1 : weights_[place],
            .detail = (type & kHasDetail) == 0 ? nullptr : DetailAt(place)};
  }
  /// The first place in a range whose edge has this key or a greater one.
  uint32_t LowerBound(std::pair<uint32_t, uint32_t> range, uint32_t type, uint32_t other,
                      std::string_view discriminator) const noexcept;

  uint32_t edges() const noexcept { return static_cast<uint32_t>(others_.size()); }
  bool has_details() const noexcept { return !details_.empty(); }
  bool has_weights() const noexcept { return !weights_.empty(); }
  /// One more than the greatest node that has an edge.
  uint32_t nodes_end() const noexcept {
    return begins_.empty() ? 0 : static_cast<uint32_t>(begins_.size() - 1);
  }
  size_t bytes() const noexcept;

  /// Adds an edge of `node`. Edges come in ascending order of nodes, and for each in the order of
  /// keys. False: there is no room for more.
  bool Append(uint32_t node, const AdjacentEdge& edge);
  /// After the last edge.
  void Finish();
  void Reserve(size_t nodes, size_t edges);

 private:
  static constexpr uint32_t kHasDetail = kAdjacentTypesEnd;

  const EdgeDetail* DetailAt(uint32_t place) const noexcept;

  std::vector<uint32_t> begins_;
  std::vector<uint32_t> others_;
  std::vector<uint32_t> types_;
  std::vector<double> weights_;
  std::vector<uint32_t> detail_places_;  // Ascending.
  std::deque<EdgeDetail> details_;
  size_t details_bytes_ = 0;
};

/// Both directions.
struct AdjacencyBase {
  AdjacencyRows out;
  AdjacencyRows in;

  const AdjacencyRows& rows(NodeTag tag) const noexcept { return tag == NodeTag::kOut ? out : in; }
  AdjacencyRows& rows(NodeTag tag) noexcept { return tag == NodeTag::kOut ? out : in; }
  uint64_t edges() const noexcept { return out.edges(); }
  size_t bytes() const noexcept { return out.bytes() + in.bytes(); }
  void Finish() {
    out.Finish();
    in.Finish();
  }
};

}  // namespace basalt::graph

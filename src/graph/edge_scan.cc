#include "graph/edge_scan.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/printable_key.h"

namespace basalt::graph {

Result<EdgeScan> EdgeScan::Make(const Reader* reader, const EdgeFilter& filter,
                                std::unique_ptr<Iterator> it, bool is_search) {
  EdgeScan scan(reader, std::move(it), is_search);
  if (filter.as_of) scan.as_of_ms_ = filter.as_of->time_since_epoch().count();
  for (const NodeTag tag : {NodeTag::kOut, NodeTag::kIn}) {
    if (filter.direction == EdgeDirection::kOut && tag == NodeTag::kIn) continue;
    if (filter.direction == EdgeDirection::kIn && tag == NodeTag::kOut) continue;
    if (filter.types.empty()) scan.ranges_.emplace_back(1, static_cast<char>(tag));
    for (const std::string& type : filter.types) {
      BASALT_ASSIGN_OR_RETURN(const std::optional<uint32_t> id,
                              reader->FindName(Dictionary::kEdgeType, type));
      if (!id) continue;
      std::string range(1, static_cast<char>(tag));
      AppendBigEndian(&range, *id);
      scan.ranges_.push_back(std::move(range));
    }
  }
  std::ranges::sort(scan.ranges_);
  const auto repeated = std::ranges::unique(scan.ranges_);
  scan.ranges_.erase(repeated.begin(), repeated.end());
  return scan;
}

void EdgeScan::StartAt(NodeId node, std::string_view position) {
  node_ = node;
  valid_ = false;
  range_ = 0;
  if (static_cast<uint64_t>(node) == kCatalogue || reader_->IsRemoved(node)) return;
  // Ranges before the position are passed.
  while (range_ < ranges_.size() && ranges_[range_] < position &&
         !position.starts_with(ranges_[range_])) {
    ++range_;
  }
  if (range_ == ranges_.size()) return;
  if (is_in_memory()) {
    StartRows(position);
    SettleInRows();
    return;
  }
  if (is_search_) reader_->CountScannedNode();
  SeekRange(position);
  Settle();
}

/// Moves to the first key of the present range that is equal to `position` or comes after it.
void EdgeScan::SeekRange(std::string_view position) {
  const std::string& range = ranges_[range_];
  prefix_ = NodePrefix(node_);
  const std::string target =
      prefix_ + std::string(position > std::string_view(range) ? position : range);
  prefix_ += range;
  it_->Seek(target);
}

/// From where the iterator stands, to the first edge that passes the filter.
void EdgeScan::Settle() {
  valid_ = false;
  while (status_.ok()) {
    if (!it_->Valid()) status_ = it_->status();
    if (!status_.ok()) return;
    if (it_->Valid() && it_->key().starts_with(prefix_)) {
      if (Passes()) {
        valid_ = true;
        return;
      }
      it_->Next();
      continue;
    }
    if (++range_ == ranges_.size()) return;
    SeekRange({});
  }
}

bool EdgeScan::Passes() {
  const auto parts = ParseEdgeKey(it_->key());
  if (!parts) {
    status_ = Status(StatusCode::kCorruption, "the key " + base::PrintableKey(it_->key()) +
                                                  " of an edge of a graph is malformed; run basalt "
                                                  "graph verify");
    return false;
  }
  edge_ = *parts;
  if (reader_->IsRemoved(edge_.other)) return false;
  const Result<EdgeHead> head = DecodeHead(it_->value());
  if (!head) {
    status_ = head.error();
    return false;
  }
  weight_ = head->weight;
  return !as_of_ms_ || head->IsValidAt(*as_of_ms_);
}

/// Goes to the edges of the present range in memory, from `position` on.
void EdgeScan::StartRows(std::string_view position) {
  const std::string& range = ranges_[range_];
  const auto tag = static_cast<NodeTag>(range[0]);
  at_ = end_ = 0;
  const auto number = static_cast<uint64_t>(node_);
  if (number >= kAdjacentNodesEnd) return;
  const auto node = static_cast<uint32_t>(number);
  const AdjacencyRows& rows = adjacency_->base.rows(tag);
  const DeltaEntry* const head = adjacency_->delta.Head(node, tag);
  if (head == nullptr) {
    rows_ = &rows;
    std::tie(at_, end_) = rows.RangeOf(node);
  } else {
    rows_ = nullptr;
    MergeEdges(rows, node, head, reader_->sequence(), &entries_, &merged_);
    end_ = static_cast<uint32_t>(merged_.size());
  }
  const auto from = [this](uint32_t type, uint32_t other, std::string_view discriminator) {
    if (rows_ != nullptr) return rows_->LowerBound({at_, end_}, type, other, discriminator);
    const auto found =
        std::ranges::lower_bound(merged_.begin() + at_, merged_.begin() + end_,
                                 std::tuple(type, other, discriminator), {}, &AdjacentEdge::key);
    return static_cast<uint32_t>(found - merged_.begin());
  };
  if (range.size() > 1) {
    const auto type = LoadBigEndian<uint32_t>(range.data() + 1);
    at_ = from(type, 0, {});
    end_ = from(type + 1, 0, {});  // Types are below 2^31.
  }
  if (position <= std::string_view(range)) return;
  const std::string key = NodePrefix(node_).append(position);
  if (const auto parts = ParseEdgeKey(key)) {
    const auto other = static_cast<uint64_t>(parts->other);
    at_ = other < kAdjacentNodesEnd
              ? from(parts->type, static_cast<uint32_t>(other), parts->discriminator)
              : from(parts->type, UINT32_MAX, {});
  }
}

/// From where it stands, to the first edge that passes the filter.
void EdgeScan::SettleInRows() {
  valid_ = false;
  while (true) {
    for (; at_ < end_; ++at_) {
      if (PassesInRows(rows_ != nullptr ? rows_->At(at_) : merged_[at_])) {
        valid_ = true;
        return;
      }
    }
    if (++range_ == ranges_.size()) return;
    StartRows({});
  }
}

bool EdgeScan::PassesInRows(const AdjacentEdge& edge) {
  const NodeId other{edge.other};
  if (reader_->IsRemoved(other)) return false;
  if (edge.detail != nullptr) {
    if (edge.detail->IsExpired(reader_->time_ms())) return false;
    if (as_of_ms_ && !edge.detail->IsValidAt(*as_of_ms_)) return false;
  }
  weight_ = edge.weight;
  edge_ = {.owner = node_,
           .tag = static_cast<NodeTag>(ranges_[range_][0]),
           .type = edge.type,
           .other = other,
           .discriminator = edge.discriminator()};
  return true;
}

/// Nothing: they have to be looked at.
std::optional<uint64_t> EdgeScan::EdgesWithoutLooking(NodeId node) const {
  const auto number = static_cast<uint64_t>(node);
  if (!is_in_memory() || number >= kAdjacentNodesEnd || reader_->has_removed()) {
    return std::nullopt;
  }
  uint64_t edges = 0;
  for (const std::string& range : ranges_) {
    const auto tag = static_cast<NodeTag>(range[0]);
    const AdjacencyRows& rows = adjacency_->base.rows(tag);
    const auto owner = static_cast<uint32_t>(number);
    if (range.size() > 1 || rows.has_details() || rows.has_weights() ||
        adjacency_->delta.Head(owner, tag) != nullptr) {
      return std::nullopt;
    }
    const auto [begin, end] = rows.RangeOf(owner);
    edges += end - begin;
  }
  return edges;
}

uint64_t EdgeScan::CountWeighted(NodeId node, uint64_t count_max) {
  valid_ = false;
  if (const auto edges = EdgesWithoutLooking(node)) return std::min(*edges, count_max);
  uint64_t edges = 0;
  for (Start(node); valid_ && edges < count_max; Next()) edges += weight_ > 0 ? 1 : 0;
  return edges;
}

void EdgeScan::Next() {
  if (!valid_) return;
  if (is_in_memory()) {
    ++at_;
    SettleInRows();
    return;
  }
  it_->Next();
  Settle();
}

std::string EdgeScan::position() const {
  return EdgeKey(edge_.owner, edge_.tag, edge_.type, edge_.other, edge_.discriminator).substr(8);
}

Result<Neighbor> EdgeScan::ToNeighbor() const {
  BASALT_ASSIGN_OR_RETURN(const std::string_view type,
                          reader_->core().names().NameOf(Dictionary::kEdgeType, edge_.type));
  return Neighbor{
      .node = edge_.other,
      .type = type,
      .direction = edge_.tag == NodeTag::kOut ? EdgeDirection::kOut : EdgeDirection::kIn,
      .discriminator = std::string(edge_.discriminator),
      .weight = weight_};
}

}  // namespace basalt::graph

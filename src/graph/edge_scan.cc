#include "graph/edge_scan.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/printable_key.h"

namespace basalt::graph {

Result<EdgeScan> EdgeScan::Make(const Reader* reader, const EdgeFilter& filter,
                                std::unique_ptr<Iterator> it) {
  EdgeScan scan(reader, std::move(it));
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
  Result<EdgeHead> head = DecodeHead(it_->value());
  if (!head) {
    status_ = head.error();
    return false;
  }
  head_ = *head;
  return !as_of_ms_ || head_.IsValidAt(*as_of_ms_);
}

void EdgeScan::Next() {
  if (!valid_) return;
  it_->Next();
  Settle();
}

Result<Neighbor> EdgeScan::ToNeighbor() const {
  BASALT_ASSIGN_OR_RETURN(const std::string_view type,
                          reader_->core().names().NameOf(Dictionary::kEdgeType, edge_.type));
  return Neighbor{
      .node = edge_.other,
      .type = type,
      .direction = edge_.tag == NodeTag::kOut ? EdgeDirection::kOut : EdgeDirection::kIn,
      .discriminator = std::string(edge_.discriminator),
      .weight = head_.weight};
}

}  // namespace basalt::graph

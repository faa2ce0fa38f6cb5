#include "vector/row_search.h"

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

#include "base/check.h"
#include "vector/attribute_code.h"

namespace basalt::vector {
namespace {

constexpr int kTries = 64;
// A filter of more ids is applied to what is found.
constexpr size_t kLookedUpIdsMax = 1'000;
// Records that are asked for at once.
constexpr size_t kLookedUpAtOnce = 64;

// The ef of a walk by the recall that is wanted. 0: the graph's own choice.
struct RecallStep {
  double recall;
  size_t ef;
};
constexpr RecallStep kRecallSteps[] = {{0.9, 40}, {0.95, 0}, {0.98, 160}, {0.99, 256}, {1, 512}};

size_t EfOf(const VectorSearchOptions& options) noexcept {
  if (options.ef != 0) return options.ef;
  for (const RecallStep& step : kRecallSteps) {
    if (options.recall <= step.recall) return step.ef == 0 ? 0 : std::max(step.ef, 2 * options.k);
  }
  return 0;
}

VectorSearchPlan::Path PathOf(SearchResult::Path path) noexcept {
  switch (path) {
    case SearchResult::Path::kWalk:
      return VectorSearchPlan::Path::kWalk;
    case SearchResult::Path::kScan:
      return VectorSearchPlan::Path::kScanCodes;
    case SearchResult::Path::kWalkThenScan:
      break;
  }
  return VectorSearchPlan::Path::kWalkThenScan;
}

}  // namespace

/// Full vectors of rows, read from the store at the search's snapshot.
class RowSearch::StoredVectors final : public RowSource {
 public:
  explicit StoredVectors(RowSearch* search) : search_(*search) {}

  Status Distances(std::span<const uint32_t> slots, float* distances) const override {
    std::array<const IndexRow*, kLookedUpAtOnce> rows;
    for (size_t begin = 0; begin < slots.size(); begin += rows.size()) {
      const size_t count = std::min(rows.size(), slots.size() - begin);
      for (size_t i = 0; i < count; ++i) rows[i] = VisibleRow(slots[begin + i]);
      BASALT_RETURN_IF_ERROR(DistancesOf({rows.data(), count}, distances + begin));
    }
    return Status();
  }

  /// Infinity for what is null.
  Status DistancesOf(std::span<const IndexRow* const> rows, float* distances) const {
    keys_.clear();
    for (const IndexRow* row : rows) {
      if (row != nullptr) keys_.push_back(std::string(kVectorPrefix).append(row->id()));
    }
    const std::vector<std::string_view> views(keys_.begin(), keys_.end());
    std::vector<Result<MaybeValue>> values(views.size());
    BASALT_RETURN_IF_ERROR(search_.target_.store.MultiGet(
        views, values, {.snapshot = &*search_.snapshot_, .keyspace = search_.target_.keyspace}));
    auto next = values.begin();
    for (size_t i = 0; i < rows.size(); ++i) {
      distances[i] = std::numeric_limits<float>::infinity();
      if (rows[i] == nullptr) continue;
      const Result<MaybeValue>& value = *next++;
      if (!value) return value.error();
      const std::optional<std::string_view> vector =
          *value ? VectorOfRecord(search_.target_.metadata, (*value)->view(), rows[i]->stamp)
                 : std::nullopt;
      if (!vector) {
        is_stale_ = true;
        continue;
      }
      distances[i] = search_.target_.distance(search_.query_.data(), vector->data());
      ++search_.plan_.vectors_compared;
    }
    return Status();
  }

  /// The row that Distances took for a slot.
  const IndexRow* RowOf(uint32_t slot) const { return rows_.at(slot); }
  bool is_stale() const noexcept { return is_stale_; }

 private:
  const IndexRow* VisibleRow(uint32_t slot) const {
    const IndexRow* const row = search_.rows_->AtSlot(slot);
    if (row == nullptr || !row->IsVisible(search_.view_.commit, search_.snapshot_->time())) {
      return nullptr;
    }
    rows_[slot] = row;
    return row;
  }

  RowSearch& search_;
  mutable std::unordered_map<uint32_t, const IndexRow*> rows_;
  mutable std::vector<std::string> keys_;
  mutable bool is_stale_ = false;
};

RowSearch::RowSearch(const RowSearchTarget& target, std::shared_ptr<RowSet> rows,
                     std::span<const float> query, const VectorSearchOptions& options)
    : target_(target),
      rows_(std::move(rows)),
      query_(query),
      options_(options),
      filter_(options.filter.row_filter()) {}

bool RowSearch::LooksUpIds() const noexcept {
  const RowFilter::Ids* const ids = filter_ == nullptr ? nullptr : filter_->ids();
  return ids != nullptr && ids->size() <= kLookedUpIdsMax;
}

bool RowSearch::Passes(const IndexRow& row) const {
  return row.IsVisible(view_.commit, snapshot_->time()) &&
         (filter_ == nullptr || filter_->Passes(row.id(), row.attributes()));
}

float RowSearch::Bound() const noexcept {
  return found_.size() < options_.k ? options_.max_distance : found_.front().distance;
}

void RowSearch::Offer(Found found) {
  const auto is_nearer = [](const Found& a, const Found& b) {
    return a.distance != b.distance ? a.distance < b.distance : a.row->id() < b.row->id();
  };
  if (!(found.distance <= options_.max_distance)) return;
  if (found_.size() == options_.k) {
    if (!is_nearer(found, found_.front())) return;
    std::ranges::pop_heap(found_, is_nearer);
    found_.pop_back();
  }
  found_.push_back(found);
  std::ranges::push_heap(found_, is_nearer);
}

void RowSearch::ScanBlock(const RowBlock& block) {
  std::array<float, kBlockRows> distances;
  const uint32_t count = block.count.load(std::memory_order_acquire);
  const size_t stride = target_.metadata.dimension * sizeof(float);
  target_.distance.ToRows(query_.data(), block.vectors.get(), stride, count, distances.data());
  plan_.vectors_compared += count;
  for (uint32_t i = 0; i < count; ++i) {
    if (!(distances[i] <= Bound())) continue;
    const IndexRow* const row = block.rows[i].load(std::memory_order_acquire);
    if (row != nullptr && Passes(*row)) Offer({distances[i], row});
  }
}

void RowSearch::ScanBlocks(const RowBlocks& blocks) {
  for (const std::shared_ptr<RowBlock>& block : blocks) ScanBlock(*block);
}

Status RowSearch::LookUp(std::span<IndexRow* const> rows, bool* is_stale) {
  plan_.path = VectorSearchPlan::Path::kLookUp;
  const StoredVectors vectors(this);
  std::array<const IndexRow*, kLookedUpAtOnce> visible;
  std::array<float, kLookedUpAtOnce> distances;
  for (size_t begin = 0; begin < rows.size(); begin += kLookedUpAtOnce) {
    const size_t count = std::min(kLookedUpAtOnce, rows.size() - begin);
    for (size_t i = 0; i < count; ++i) {
      visible[i] = Passes(*rows[begin + i]) ? rows[begin + i] : nullptr;
    }
    BASALT_RETURN_IF_ERROR(vectors.DistancesOf({visible.data(), count}, distances.data()));
    for (size_t i = 0; i < count; ++i) {
      if (visible[i] != nullptr) Offer({distances[i], visible[i]});
    }
  }
  *is_stale = vectors.is_stale();
  return Status();
}

Status RowSearch::SearchGraph(const HnswIndex& graph, bool* is_stale) {
  SearchRequest request;
  request.k = options_.k;
  request.max_distance = options_.max_distance;
  request.ef = EfOf(options_);
  if (filter_ != nullptr) {
    request.filter.predicate = [this](uint32_t slot) {
      const IndexRow* const row = rows_->AtSlot(slot);
      return row != nullptr && Passes(*row);
    };
  }
  const StoredVectors vectors(this);
  BASALT_ASSIGN_OR_RETURN(const SearchResult result, graph.Search(query_.data(), request, vectors));
  *is_stale = vectors.is_stale();
  plan_.path = PathOf(result.path);
  plan_.codes_compared += result.codes_compared;
  if (*is_stale) return Status();
  for (const SearchHit& hit : result.hits) {
    const IndexRow* const row = vectors.RowOf(hit.slot);
    // A row that has moved meanwhile was met in its block, too.
    if (std::ranges::none_of(found_, [&](const Found& one) { return one.row == row; })) {
      Offer({hit.distance, row});
    }
  }
  return Status();
}

VectorHit RowSearch::MakeHit(float distance, std::string_view id,
                             std::string_view attributes) const {
  VectorHit hit;
  hit.id = id;
  hit.distance = distance;
  switch (target_.metadata.metric) {
    case VectorMetric::kCosine:
      hit.score = 1 - distance / 2;
      break;
    case VectorMetric::kInnerProduct:
      hit.score = -distance;
      break;
    default:
      hit.score = 1 / (1 + distance);
      break;
  }
  if (options_.with_attributes) hit.attributes = DecodeAttributes(attributes).value();
  return hit;
}

Result<VectorSearchResult> RowSearch::Finish() {
  VectorSearchResult result;
  result.plan = plan_;
  std::ranges::sort(found_, [](const Found& a, const Found& b) {
    return a.distance != b.distance ? a.distance < b.distance : a.row->id() < b.row->id();
  });
  for (const Found& found : found_) {
    result.hits.push_back(MakeHit(found.distance, found.row->id(), found.row->attributes()));
  }
  return result;
}

Result<VectorSearchResult> RowSearch::RunOnRows(bool* is_stale) {
  found_.clear();
  plan_ = {};
  RowSet::Reader reader(rows_.get());
  BASALT_ASSIGN_OR_RETURN(snapshot_, target_.store.GetSnapshot());
  if (LooksUpIds()) {
    std::vector<IndexRow*> rows;
    const auto view = reader.CaptureIds(snapshot_->sequence(), *filter_->ids(), &rows);
    *is_stale = !view.has_value();
    if (*is_stale) return VectorSearchResult();
    view_ = *view;
    BASALT_RETURN_IF_ERROR(LookUp(rows, is_stale));
    return Finish();
  }
  view_ = reader.Capture(snapshot_->sequence());
  ScanBlocks(*view_.blocks);
  if (const HnswIndex* const graph = rows_->graph(); graph != nullptr) {
    BASALT_RETURN_IF_ERROR(SearchGraph(*graph, is_stale));
  }
  return Finish();
}

Result<VectorSearchResult> RowSearch::RunOnStore() {
  VectorSearchResult result;
  result.plan.path = VectorSearchPlan::Path::kScanStore;
  const auto is_nearer = [](const VectorHit& a, const VectorHit& b) {
    return a.distance != b.distance ? a.distance < b.distance : a.id < b.id;
  };
  std::vector<VectorHit>& hits = result.hits;
  BASALT_ASSIGN_OR_RETURN(snapshot_, target_.store.GetSnapshot());
  const auto it = target_.store.NewIterator({.snapshot = &*snapshot_,
                                             .keyspace = target_.keyspace,
                                             .fill_cache = false,
                                             .prefix = kVectorPrefix});
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    const std::string_view id = it->key().substr(kVectorPrefix.size());
    const auto record = DecodeVectorRecord(target_.metadata, it->value());
    if (!record) continue;
    if (filter_ != nullptr && !filter_->Passes(id, record->attributes)) continue;
    const float distance = target_.distance(query_.data(), record->vector.data());
    ++result.plan.vectors_compared;
    if (!(distance <= options_.max_distance)) continue;
    const bool is_full = hits.size() == options_.k;
    if (is_full && distance > hits.front().distance) continue;
    VectorHit hit = MakeHit(distance, id, record->attributes);
    if (is_full) {
      if (!is_nearer(hit, hits.front())) continue;
      std::ranges::pop_heap(hits, is_nearer);
      hits.pop_back();
    }
    hits.push_back(std::move(hit));
    std::ranges::push_heap(hits, is_nearer);
  }
  BASALT_RETURN_IF_ERROR(it->status());
  std::ranges::sort(hits, is_nearer);
  return result;
}

Result<VectorSearchResult> RowSearch::Run() {
  // Looking up ids is exact, and so is comparing all rows.
  const bool avoids_graph = (options_.exact || options_.recall == 1) && !LooksUpIds();
  for (int i = 0; i < kTries && !rows_->is_broken(); ++i) {
    if (avoids_graph && rows_->graph() != nullptr) break;
    bool is_stale = false;
    auto result = RunOnRows(&is_stale);
    if (avoids_graph && rows_->graph() != nullptr) break;
    if (!is_stale && !rows_->is_broken()) return result;
    std::this_thread::yield();
  }
  return RunOnStore();
}

}  // namespace basalt::vector

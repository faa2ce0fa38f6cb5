#include "vector/hnsw_search.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/epoch.h"

namespace basalt::vector {
namespace {

constexpr size_t kEfDefault = 64;
constexpr size_t kNever = std::numeric_limits<size_t>::max();
// Full vectors that are asked for at once.
constexpr size_t kRowsAtOnce = 16;
// A walk that chooses its ef itself takes at most so many times as much.
constexpr size_t kEfGrowthMax = 8;
// So many more than asked for, a scan compares full vectors of at most.
constexpr size_t kScannedRowsMax = 1'000;

// What things cost, in codes that a scan compares.
constexpr double kVisitCost = 6;        // A node that a walk visits.
constexpr double kVisitsPerFound = 10;  // Nodes visited for each that passes, if all do.
// A walk with a filter gives up when it has cost this share of the scan.
constexpr double kPatience = 0.15;

bool IsThere(SlotState state) noexcept {
  return state == SlotState::kLive || state == SlotState::kDuplicate;
}

// Ordered as hits are returned.
bool IsNearer(const SearchHit& a, const SearchHit& b) noexcept {
  return a.distance != b.distance ? a.distance < b.distance : a.slot < b.slot;
}

}  // namespace

HnswSearch::HnswSearch(const HnswIndex& index, const float* query, const SearchRequest& request,
                       const RowSource& rows)
    : index_(index),
      nodes_(index.nodes_),
      request_(request),
      rows_(rows),
      memory_(index.memories_.Take()),
      k_(request.k == 0 ? kNever : request.k) {
  const CodeBook& book = index.book_;
  memory_->code.resize(book.code_bytes());
  memory_->floats.resize(book.scratch_floats());
  query_ = book.EncodeQuery(query, memory_->code.data(), memory_->floats.data());
  found_max_ = k_ == kNever ? kNever : 4 * k_ + 60;
}

bool HnswSearch::PassesFilter(uint32_t slot) const {
  const SlotFilter& filter = request_.filter;
  if (filter.has_bits) {
    const size_t word = slot / 64;
    if (word >= filter.bits.size() || (filter.bits[word] >> (slot % 64) & 1) == 0) return false;
  }
  return filter.predicate == nullptr || filter.predicate(slot);
}

bool HnswSearch::Passes(uint32_t slot) const {
  if (nodes_.IsSpecial(slot) && !IsThere(nodes_.State(slot))) return false;
  return PassesFilter(slot);
}

void HnswSearch::CollectRing(uint32_t node, std::vector<uint32_t>* slots) const {
  const base::EpochGuard inside;
  const SlotState state = nodes_.State(node);
  if (state == SlotState::kLive) slots->push_back(node);
  if (state != SlotState::kLive && state != SlotState::kRemoved) return;
  // Whatever leaves the ring meanwhile still leads on to the node.
  for (uint32_t slot = nodes_.NextInRing(node); slot != node; slot = nodes_.NextInRing(slot)) {
    if (nodes_.State(slot) == SlotState::kDuplicate) slots->push_back(slot);
  }
}

bool HnswSearch::NodePasses(uint32_t node) const {
  if (!nodes_.IsSpecial(node)) return PassesFilter(node);
  if (request_.filter.IsOpen() && nodes_.State(node) == SlotState::kLive) return true;
  std::vector<uint32_t>& slots = memory_->slots;
  slots.clear();
  CollectRing(node, &slots);
  return std::ranges::any_of(slots, [this](uint32_t slot) { return PassesFilter(slot); });
}

size_t HnswSearch::CountPassing() const {
  const SlotFilter& filter = request_.filter;
  const size_t live = index_.size();
  size_t passing = live;
  if (filter.has_bits) {
    passing = 0;
    for (const uint64_t word : filter.bits) passing += static_cast<size_t>(std::popcount(word));
    passing = std::min(passing, live);
  }
  if (filter.predicate == nullptr) return passing;
  constexpr uint32_t kAsked = 256;
  const uint32_t size = nodes_.size();
  const uint32_t step = size / kAsked + 1;
  size_t asked = 0;
  size_t passed = 0;
  for (uint32_t slot = 0; slot < size; slot += step, ++asked) {
    passed += static_cast<size_t>(Passes(slot));
  }
  return std::min(passing, passed * size / std::max<size_t>(asked, 1));
}

bool HnswSearch::ScansRather(size_t passing) const noexcept {
  if (request_.scans || passing <= k_) return true;
  const size_t ef = std::max({request_.ef, kEfDefault, k_});
  const double selectivity =
      static_cast<double>(passing) / static_cast<double>(std::max<size_t>(index_.size(), 1));
  const double walk = kVisitCost * kVisitsPerFound * static_cast<double>(ef) / selectivity;
  return static_cast<double>(passing) < walk;
}

bool HnswSearch::WalkOnce(size_t ef, size_t visited_max) {
  found_.clear();
  GraphWalk walk(&nodes_, &*memory_);
  const GraphNodes::Entry start = walk.Descend(0);
  if (start.slot == kNoSlot) return false;
  const bool is_finished =
      walk.Run(0, start.slot, ef, visited_max, [this](uint32_t node) { return NodePasses(node); });
  result_.codes_compared += walk.visited();
  if (!is_finished) return false;
  const CandidatePool& pool = memory_->pool;
  for (size_t i = 0; i < pool.size(); ++i) {
    const CandidatePool::Entry entry = pool.At(i);
    if (!entry.passes()) continue;
    if (!nodes_.IsSpecial(entry.slot())) {
      found_.push_back({entry.distance(), entry.slot()});
      continue;
    }
    memory_->slots.clear();
    CollectRing(entry.slot(), &memory_->slots);
    size_t taken = 0;  // Of one code no more than could be wanted.
    for (const uint32_t slot : memory_->slots) {
      if (taken == found_max_) break;
      if (!PassesFilter(slot)) continue;
      found_.push_back({entry.distance(), slot});
      ++taken;
    }
  }
  return true;
}

bool HnswSearch::MayMissNearer(uint32_t code_distance) const noexcept {
  return CodeBook::DistanceAtLeast(query_, code_distance) <= WorstHit();
}

Status HnswSearch::Walk(size_t passing) {
  const size_t visited_max =
      request_.filter.IsOpen()
          ? kNever
          : static_cast<size_t>(kPatience * static_cast<double>(passing) / kVisitCost) + 1;
  const bool is_free = request_.ef == 0;
  size_t ef = std::max(is_free ? kEfDefault : request_.ef, k_ == kNever ? 0 : k_);
  const size_t ef_max = is_free || k_ == kNever ? kEfGrowthMax * ef : ef;
  for (;;) {
    if (!WalkOnce(ef, visited_max)) break;
    result_.hits.clear();
    if (Status status = Rerank(); !status.ok()) return status;
    const CandidatePool& pool = memory_->pool;
    const bool is_whole = pool.passing() < ef;
    if (!is_whole && MayMissNearer(pool.bound()) && (k_ == kNever || 2 * ef <= ef_max)) {
      ef *= 2;
      continue;
    }
    if (k_ == kNever || result_.hits.size() >= std::min(k_, passing)) return Status();
    break;
  }
  result_.path = SearchResult::Path::kWalkThenScan;
  return Scan();
}

void HnswSearch::Offer(uint32_t distance, uint32_t slot) {
  const Found found{distance, slot};
  if (found_.size() == found_max_) {
    if (found > found_.front()) return;
    std::ranges::pop_heap(found_);
    found_.back() = found;
  } else {
    found_.push_back(found);
  }
  std::ranges::push_heap(found_);
}

void HnswSearch::ScanGranule(uint32_t begin, uint32_t end) {
  std::vector<uint32_t>& slots = memory_->slots;
  std::vector<uint32_t>& distances = memory_->distances;
  const SlotFilter& filter = request_.filter;
  slots.clear();
  for (uint32_t slot = begin; slot < end;) {
    if (!filter.has_bits) {
      slots.push_back(slot++);
      continue;
    }
    const size_t word = slot / 64;
    if (word >= filter.bits.size()) break;
    const uint64_t rest = filter.bits[word] >> (slot % 64);
    slot += rest == 0 ? 64 - slot % 64 : static_cast<uint32_t>(std::countr_zero(rest));
    if (rest != 0 && slot < end) slots.push_back(slot++);
  }
  distances.resize(slots.size());
  {
    const base::EpochGuard inside;
    if (slots.size() == end - begin) {
      ProcessorKernels().codes.to_rows(memory_->code.data(), nodes_.Code(begin),
                                       nodes_.code_bytes(), slots.size(), nodes_.code_bytes(),
                                       distances.data());
    } else {
      nodes_.Distances(memory_->code.data(), slots, distances.data());
    }
  }
  result_.codes_compared += slots.size();
  const uint32_t radius = CodeBook::CodeDistanceAtMost(query_, request_.max_distance);
  for (size_t i = 0; i < slots.size(); ++i) {
    if (distances[i] > radius) continue;
    if (found_.size() == found_max_ && distances[i] > found_.front().distance) continue;
    if (Passes(slots[i])) Offer(distances[i], slots[i]);
  }
}

Status HnswSearch::Scan() {
  const auto granule = static_cast<uint32_t>(nodes_.codes().granule_rows());
  for (;;) {
    found_.clear();
    result_.hits.clear();
    const uint32_t size = nodes_.size();
    for (uint32_t begin = 0; begin < size; begin += granule) {
      ScanGranule(begin, std::min(size, begin + granule));
    }
    std::ranges::sort(found_);
    if (Status status = Rerank(); !status.ok()) return status;
    if (found_.size() < found_max_) return Status();
    // There are more, and the source refused some or codes tell them too little apart.
    const bool lacks = result_.hits.size() < k_;
    const bool is_unsure =
        MayMissNearer(found_.back().distance) && found_max_ < k_ + kScannedRowsMax;
    if (!lacks && !is_unsure) return Status();
    found_max_ *= 4;
  }
}

double HnswSearch::WorstHit() const noexcept {
  if (result_.hits.size() < k_) return request_.max_distance;
  return std::min<double>(request_.max_distance, result_.hits.front().distance);
}

void HnswSearch::AddHit(uint32_t slot, float distance) {
  if (!(distance <= request_.max_distance) || distance == std::numeric_limits<float>::infinity()) {
    return;
  }
  std::vector<SearchHit>& hits = result_.hits;
  const SearchHit hit{slot, distance};
  if (hits.size() == k_) {
    if (!IsNearer(hit, hits.front())) return;
    std::ranges::pop_heap(hits, IsNearer);
    hits.back() = hit;
  } else {
    hits.push_back(hit);
  }
  std::ranges::push_heap(hits, IsNearer);
}

Status HnswSearch::Rerank() {
  std::array<uint32_t, kRowsAtOnce> slots;
  std::array<float, kRowsAtOnce> distances;
  for (size_t i = 0; i < found_.size();) {
    if (CodeBook::DistanceAtLeast(query_, found_[i].distance) > WorstHit()) break;
    const size_t count = std::min(kRowsAtOnce, found_.size() - i);
    for (size_t j = 0; j < count; ++j) slots[j] = found_[i + j].slot;
    if (Status status = rows_.Distances({slots.data(), count}, distances.data()); !status.ok()) {
      return status;
    }
    result_.rows_compared += count;
    for (size_t j = 0; j < count; ++j) AddHit(slots[j], distances[j]);
    i += count;
  }
  std::ranges::sort(result_.hits, IsNearer);
  return Status();
}

Result<SearchResult> HnswSearch::Run() {
  if (request_.k == 0 && request_.max_distance == std::numeric_limits<double>::infinity()) {
    return Status(StatusCode::kInvalidArgument,
                  "a search needs a number of vectors to find or a greatest distance: set k or "
                  "max_distance");
  }
  const size_t passing = CountPassing();
  if (passing == 0 && request_.filter.predicate == nullptr) return std::move(result_);
  if (ScansRather(passing)) {
    result_.path = SearchResult::Path::kScan;
    if (Status status = Scan(); !status.ok()) return status;
  } else {
    if (Status status = Walk(passing); !status.ok()) return status;
  }
  return std::move(result_);
}

}  // namespace basalt::vector

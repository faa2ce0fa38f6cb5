#include "retrieve/passage_walk.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "retrieve/corpus_core.h"

namespace basalt::retrieve {
namespace {

/// The probability of returning to the seeds at each step.
constexpr double kRestart = 0.5;
/// A passage is pushed while more than this is left there.
constexpr double kResidualMin = 1e-3;
/// Of a passage and its entry in a map.
constexpr uint64_t kPassageBytes = 128;
constexpr size_t kNoRoom = SIZE_MAX;

}  // namespace

Result<std::vector<NodeScore>> PassageWalk::Run(std::span<const NodeScore> seeds) {
  for (const NodeScore& seed : seeds) {
    const size_t place = PlaceOf(seed.node);
    if (place != kNoRoom) AddResidual(place, seed.score);
  }
  while (!queue_.empty()) {
    if (IsOverTime()) {
      truncated_ = true;
      break;
    }
    const size_t place = queue_.front();
    queue_.pop_front();
    BASALT_RETURN_IF_ERROR(Push(place));
  }
  for (const NodeScore& seed : seeds) {
    const size_t place = PlaceOf(seed.node);
    if (place != kNoRoom) passages_[place].score -= kRestart * seed.score;
  }
  std::vector<NodeScore> reached;
  for (const Passage& passage : passages_) {
    // What is left of a seed that nothing has reached is a rounding error.
    if (passage.score > 1e-12) reached.push_back({passage.id, passage.score});
  }
  std::ranges::sort(reached, [](const NodeScore& a, const NodeScore& b) {
    return a.score != b.score ? a.score > b.score : a.node < b.node;
  });
  return reached;
}

bool PassageWalk::IsOverTime() const {
  return limits_.time_max && std::chrono::steady_clock::now() - begin_ > *limits_.time_max;
}

size_t PassageWalk::PlaceOf(NodeId passage) {
  const auto known = places_.find(passage);
  if (known != places_.end()) return known->second;
  if (passages_.size() >= limits_.visited_max || bytes_ >= limits_.bytes_max) {
    truncated_ = true;
    return kNoRoom;
  }
  bytes_ += kPassageBytes;
  places_.emplace(passage, passages_.size());
  passages_.push_back({.id = passage});
  return passages_.size() - 1;
}

void PassageWalk::AddResidual(size_t place, double amount) {
  Passage& passage = passages_[place];
  passage.residual += amount;
  if (passage.is_queued || passage.residual < kResidualMin) return;
  passage.is_queued = true;
  queue_.push_back(place);
}

Status PassageWalk::Push(size_t place) {
  passages_[place].is_queued = false;
  BASALT_RETURN_IF_ERROR(LoadSteps(place));
  const double residual = std::exchange(passages_[place].residual, 0);
  passages_[place].score += kRestart * residual;
  for (const Step& step : passages_[place].steps) {
    AddResidual(step.to, (1 - kRestart) * residual * step.probability);
  }
  return {};
}

/// The steps of a passage are read when it is pushed for the first time, and kept.
Status PassageWalk::LoadSteps(size_t place) {
  if (std::exchange(passages_[place].has_steps, true)) return {};
  const NodeId id = passages_[place].id;
  std::vector<Step> steps;
  BASALT_ASSIGN_OR_RETURN(const NeighborPage entities,
                          view_->Neighbors(id, {.types = {kAbout, kNames}}, limits_.fan_out_max));
  truncated_ |= !entities.next.empty();
  for (const Neighbor& entity : entities.neighbors) {
    BASALT_ASSIGN_OR_RETURN(const std::vector<NodeId>* passages, PassagesOf(entity.node));
    AddSteps(place, *passages, &steps);
  }
  BASALT_ASSIGN_OR_RETURN(
      const NeighborPage beside,
      view_->Neighbors(id, {.direction = EdgeDirection::kBoth, .types = {kNext}}, 2));
  for (const Neighbor& neighbor : beside.neighbors) {
    AddSteps(place, {id, neighbor.node}, &steps);
  }
  double sum = 0;
  for (const Step& step : steps) sum += step.probability;
  for (Step& step : steps) step.probability /= sum;
  bytes_ += steps.size() * sizeof(Step);
  passages_[place].steps = std::move(steps);
  return {};
}

/// Adds steps to the other ones of `passages`, which share an entity. Their weights sum up to 1 /
/// d.
void PassageWalk::AddSteps(size_t from, const std::vector<NodeId>& passages,
                           std::vector<Step>* steps) {
  if (passages.size() < 2) return;
  const auto count = static_cast<double>(passages.size());
  for (const NodeId passage : passages) {
    const size_t to = PlaceOf(passage);
    if (to != from && to != kNoRoom) steps->push_back({to, 1 / (count * (count - 1))});
  }
}

Result<const std::vector<NodeId>*> PassageWalk::PassagesOf(NodeId entity) {
  const auto known = passages_of_entity_.find(entity);
  if (known != passages_of_entity_.end()) return &known->second;
  const size_t limit = std::min<size_t>(limits_.fan_out_max, kEntityPassagesMax);
  BASALT_ASSIGN_OR_RETURN(
      const NeighborPage page,
      view_->Neighbors(entity, {.direction = EdgeDirection::kIn, .types = {kAbout, kNames}},
                       limit));
  std::vector<NodeId>& passages = passages_of_entity_[entity];
  if (page.next.empty()) {
    for (const Neighbor& neighbor : page.neighbors) passages.push_back(neighbor.node);
  } else {
    truncated_ |= limit < kEntityPassagesMax;
  }
  return &passages;
}

}  // namespace basalt::retrieve

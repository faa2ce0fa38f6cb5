#include "vector/graph_repair.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "vector/graph_insertion.h"

namespace basalt::vector {
namespace {

// Fewer candidates than this share of what a node may link to are too few.
constexpr size_t kCandidatesMinShare = 4;
// Of the walk that then finds more.
constexpr size_t kEf = 64;

}  // namespace

void GraphRepair::LeaveRings(uint32_t node) {
  uint32_t before = node;
  for (uint32_t slot = nodes_.NextInRing(node); slot != node; slot = nodes_.NextInRing(slot)) {
    if (nodes_.State(slot) != SlotState::kRemovedDuplicate) {
      before = slot;
      continue;
    }
    nodes_.SetNextInRing(before, nodes_.NextInRing(slot));  // It still leads on itself.
    nodes_.SetState(slot, SlotState::kCondemned);
  }
  const bool is_alone = nodes_.NextInRing(node) == node;
  if (is_alone && nodes_.State(node) == SlotState::kLive) nodes_.SetSpecial(node, false);
}

void GraphRepair::MakeTreeLink(uint32_t from, uint32_t to) {
  const LinkWords words = nodes_.Links(0, from);
  std::array<uint32_t, GraphNodes::kBaseLinks> slots;
  std::array<uint32_t, GraphNodes::kBaseLinks> distances;
  size_t count = 0;
  ForEachLink(words, [&](uint32_t word) { slots[count++] = Link::SlotOf(word); });
  for (size_t i = 0; i < count; ++i) {
    if (slots[i] != to) continue;
    words[i].store(to | Link::kTree, std::memory_order_release);
    return;
  }
  if (count < words.size()) {
    words[count].store(to | Link::kTree, std::memory_order_release);
    return;
  }
  // In place of one that goes anyway, else of the farthest.
  nodes_.Distances(nodes_.Code(from), {slots.data(), count}, distances.data());
  size_t replaced = count;
  uint64_t most = 0;
  for (size_t i = 0; i < count; ++i) {
    if (Link::IsTree(words[i].load(std::memory_order_relaxed))) continue;
    const uint64_t priority = uint64_t{IsCondemned(slots[i])} << 32 | distances[i];
    if (replaced != count && priority <= most) continue;
    replaced = i;
    most = priority;
  }
  // A node gets one more edge than it had only between two that have as many, and insertions give
  // 12: for all links to be of the tree there would have to be 3^20 nodes.
  BASALT_CHECK(replaced != count);
  words[replaced].store(to | Link::kTree, std::memory_order_release);
}

void GraphRepair::JoinInTree(uint32_t a, uint32_t b) {
  MakeTreeLink(a, b);
  MakeTreeLink(b, a);
}

void GraphRepair::LeaveTree(uint32_t node) {
  std::array<std::pair<size_t, uint32_t>, GraphNodes::kBaseLinks> ends;
  size_t count = 0;
  for (LinkWord& link : nodes_.Links(0, node)) {
    const uint32_t word = link.load(std::memory_order_acquire);
    if (word == Link::kNone) break;
    if (!Link::IsTree(word)) continue;
    const uint32_t end = Link::SlotOf(word);
    link.store(end, std::memory_order_release);
    size_t edges = 0;
    for (LinkWord& back : nodes_.Links(0, end)) {
      const uint32_t back_word = back.load(std::memory_order_acquire);
      if (back_word == Link::kNone) break;
      edges += static_cast<size_t>(Link::IsTree(back_word));
      if (back_word == (node | Link::kTree)) back.store(node, std::memory_order_release);
    }
    ends[count++] = {edges, end};
  }
  // The two with the most edges become the ends of the path: they have no more than before.
  std::sort(ends.begin(), ends.begin() + static_cast<ptrdiff_t>(count));
  if (count > 1) {
    std::rotate(ends.begin(), ends.begin() + static_cast<ptrdiff_t>(count - 1),
                ends.begin() + static_cast<ptrdiff_t>(count));
  }
  for (size_t i = 1; i < count; ++i) JoinInTree(ends[i - 1].second, ends[i].second);
}

void GraphRepair::ReplaceEntry() {
  const std::lock_guard lock(nodes_.entry_mutex());
  const GraphNodes::Entry entry = nodes_.entry();
  if (entry.slot == kNoSlot || !IsCondemned(entry.slot)) return;
  GraphNodes::Entry best;
  const uint32_t size = nodes_.size();
  for (uint32_t slot = 0; slot < size; ++slot) {
    if (nodes_.IsSpecial(slot) && !IsNode(nodes_.State(slot))) continue;
    const uint32_t level = nodes_.LevelOf(slot);
    if (best.slot == kNoSlot || level > best.level) best = {slot, level};
  }
  nodes_.set_entry(best);
}

void GraphRepair::Condemn() {
  const std::lock_guard lock(maintenance_);
  const uint32_t size = nodes_.size();
  const auto for_each_special = [&](const auto& visit) {
    for (uint32_t slot = 0; slot < size; ++slot) {
      if (nodes_.IsSpecial(slot)) visit(slot);
    }
  };
  size_t leaving = 0;
  for_each_special([&](uint32_t slot) {
    const SlotState state = nodes_.State(slot);
    leaving += static_cast<size_t>(state != SlotState::kFree && state != SlotState::kLive);
  });
  condemned_.reserve(leaving);  // Nothing below may fail.
  for_each_special([&](uint32_t slot) {
    if (nodes_.State(slot) != SlotState::kRemovedDuplicate) return;
    uint32_t node = slot;
    while (!IsNode(nodes_.State(node))) node = nodes_.NextInRing(node);
    LeaveRings(node);
  });
  for_each_special([&](uint32_t slot) {
    const SlotState state = nodes_.State(slot);
    if (state == SlotState::kRemoved && nodes_.NextInRing(slot) == slot) {
      nodes_.SetState(slot, SlotState::kCondemned);
      condemned_.push_back(slot);
    } else if (state == SlotState::kCondemned) {
      condemned_.push_back(slot);
    }
  });
  for (const uint32_t slot : condemned_) LeaveTree(slot);
  ReplaceEntry();
}

bool GraphRepair::LinksToCondemned(uint32_t level, uint32_t slot) const noexcept {
  bool does = false;
  ForEachLink(nodes_.Links(level, slot),
              [&](uint32_t word) { does |= IsCondemned(Link::SlotOf(word)); });
  return does;
}

void GraphRepair::CollectCandidates(uint32_t level, uint32_t slot) {
  candidates_.clear();
  // What is linked to was there before the lock was taken.
  memory_.visited.Reset(nodes_.size());
  memory_.visited.Add(slot);
  const auto add = [&](uint32_t word) {
    const uint32_t candidate = Link::SlotOf(word);
    if (IsCondemned(candidate) || !memory_.visited.Add(candidate)) return;
    candidates_.push_back({0, word});
  };
  const LinkWords words = nodes_.Links(level, slot);
  ForEachLink(words, add);
  ForEachLink(words, [&](uint32_t word) {
    const uint32_t neighbour = Link::SlotOf(word);
    if (!IsCondemned(neighbour)) return;
    ForEachLink(nodes_.Links(level, neighbour), [&](uint32_t next) { add(Link::SlotOf(next)); });
  });
}

void GraphRepair::WalkForCandidates(uint32_t level, uint32_t slot) {
  const uint8_t* const code = nodes_.Code(slot);
  memory_.code.assign(code, code + nodes_.code_bytes());
  GraphWalk walk(&nodes_, &memory_);
  uint32_t start = walk.Descend(level).slot;
  // The entry never is, and at level 0 the tree leads from it to all others.
  if (IsCondemned(start)) start = nodes_.entry().slot;
  walk.Run(level, start, kEf, std::numeric_limits<size_t>::max(),
           [&](uint32_t found) { return found != slot && !IsCondemned(found); });
  for (size_t i = 0; i < memory_.pool.size(); ++i) {
    const CandidatePool::Entry entry = memory_.pool.At(i);
    const bool is_known = std::ranges::any_of(candidates_, [&](const Candidate& candidate) {
      return Link::SlotOf(candidate.word) == entry.slot();
    });
    if (entry.passes() && !is_known) candidates_.push_back({0, entry.slot()});
  }
}

void GraphRepair::Relink(uint32_t level, uint32_t slot) {
  const std::lock_guard lock(nodes_.LockOf(slot));
  const LinkWords words = nodes_.Links(level, slot);
  CollectCandidates(level, slot);
  if (candidates_.size() < words.size() / kCandidatesMinShare) WalkForCandidates(level, slot);
  std::vector<uint32_t>& slots = memory_.slots;
  std::vector<uint32_t>& distances = memory_.distances;
  slots.clear();
  for (const Candidate& candidate : candidates_) slots.push_back(Link::SlotOf(candidate.word));
  distances.resize(slots.size());
  nodes_.Distances(nodes_.Code(slot), slots, distances.data());
  for (size_t i = 0; i < slots.size(); ++i) candidates_[i].distance = distances[i];
  std::sort(candidates_.begin(), candidates_.end());
  const size_t chosen = ChooseNeighbours(nodes_, words.size(), words.size() * 3 / 4, candidates_);
  WriteLinkWords(words, {candidates_.data(), chosen});
}

std::vector<uint32_t> GraphRepair::Run() {
  Condemn();
  if (condemned_.empty()) return {};
  // Nodes that come later link to none.
  const uint32_t size = nodes_.size();
  for (uint32_t slot = 0; slot < size; ++slot) {
    if (nodes_.IsSpecial(slot) && !IsNode(nodes_.State(slot))) continue;
    for (uint32_t level = 0; level <= nodes_.LevelOf(slot); ++level) {
      if (LinksToCondemned(level, slot)) Relink(level, slot);
    }
  }
  return std::move(condemned_);
}

}  // namespace basalt::vector

#include "vector/graph_insertion.h"

#include <algorithm>
#include <limits>
#include <mutex>

#include "base/check.h"

namespace basalt::vector {
namespace {

// Links that a node keeps when it chooses anew because one more does not fit. A list that is not
// filled to the end takes the next ones without choosing.
constexpr size_t KeptLinks(LinkWords words) noexcept { return words.size() * 3 / 4; }

size_t CountLinks(LinkWords words) noexcept {
  size_t count = 0;
  ForEachLink(words, [&](uint32_t) { ++count; });
  return count;
}

}  // namespace

void WriteLinkWords(LinkWords words, std::span<const Candidate> links) noexcept {
  for (size_t i = 0; i < links.size(); ++i) {
    words[i].store(links[i].word, std::memory_order_release);
  }
  for (size_t i = links.size(); i < words.size(); ++i) {
    words[i].store(Link::kNone, std::memory_order_relaxed);
  }
}

void AddLinkLocked(const GraphNodes& nodes, uint32_t level, uint32_t from, Candidate added) {
  const LinkWords words = nodes.Links(level, from);
  const size_t count = CountLinks(words);
  if (count < words.size()) {
    words[count].store(added.word, std::memory_order_release);
    return;
  }
  std::array<uint32_t, GraphNodes::kBaseLinks> slots;
  std::array<uint32_t, GraphNodes::kBaseLinks> distances;
  std::array<Candidate, GraphNodes::kBaseLinks + 1> links;
  for (size_t i = 0; i < count; ++i) {
    links[i].word = words[i].load(std::memory_order_acquire);
    slots[i] = Link::SlotOf(links[i].word);
  }
  nodes.Distances(nodes.Code(from), {slots.data(), count}, distances.data());
  for (size_t i = 0; i < count; ++i) links[i].distance = distances[i];
  links[count] = added;
  std::sort(links.begin(), links.begin() + static_cast<ptrdiff_t>(count + 1));
  const size_t chosen =
      ChooseNeighbours(nodes, words.size(), KeptLinks(words), {links.data(), count + 1});
  WriteLinkWords(words, {links.data(), chosen});
}

bool GraphInsertion::InsertFirst(uint32_t slot) {
  const std::lock_guard lock(nodes_.entry_mutex());
  if (nodes_.entry().slot != kNoSlot) return false;
  nodes_.SetState(slot, SlotState::kLive);
  nodes_.SetSpecial(slot, false);
  nodes_.set_entry({slot, nodes_.LevelOf(slot)});
  return true;
}

bool GraphInsertion::JoinRing(uint32_t slot, uint32_t node) {
  const std::lock_guard lock(nodes_.LockOf(node));
  const SlotState state = nodes_.State(node);
  if (state != SlotState::kLive && state != SlotState::kRemoved) return false;
  nodes_.SetNextInRing(slot, nodes_.NextInRing(node));
  nodes_.SetState(slot, SlotState::kDuplicate);
  nodes_.SetSpecial(node, true);
  nodes_.SetNextInRing(node, slot);
  return true;
}

void GraphInsertion::FindCandidates(uint32_t level, uint32_t start) {
  const auto may_be_linked_to = [this](uint32_t slot) {
    if (!nodes_.IsSpecial(slot)) return true;
    const SlotState state = nodes_.State(slot);
    return state == SlotState::kLive || state == SlotState::kRemoved;
  };
  GraphWalk walk(&nodes_, &memory_);
  walk.Run(level, start, kCandidates, std::numeric_limits<size_t>::max(), may_be_linked_to);
  candidates_.clear();
  for (size_t i = 0; i < memory_.pool.size(); ++i) {
    const CandidatePool::Entry entry = memory_.pool.At(i);
    if (entry.passes()) candidates_.push_back({entry.distance(), entry.slot()});
  }
}

GraphInsertion::Neighbours GraphInsertion::Choose() {
  Neighbours neighbours;
  neighbours.count = ChooseNeighbours(nodes_, kNeighbours, 0, candidates_);
  std::copy_n(candidates_.begin(), neighbours.count, neighbours.links.begin());
  return neighbours;
}

void GraphInsertion::WriteLinks(uint32_t level, uint32_t slot,
                                const Neighbours& neighbours) noexcept {
  WriteLinkWords(nodes_.Links(level, slot), neighbours.span());
}

size_t GraphInsertion::TreeLinks(uint32_t slot) const noexcept {
  size_t count = 0;
  ForEachLink(nodes_.Links(0, slot),
              [&](uint32_t word) { count += static_cast<size_t>(Link::IsTree(word)); });
  return count;
}

bool GraphInsertion::AddTreeLink(uint32_t slot, const Candidate& neighbour) {
  // First there, where nobody looks yet.
  const LinkWords words = nodes_.Links(0, slot);
  size_t at = 0;
  uint32_t before = Link::kNone;
  for (; at < words.size(); ++at) {
    before = words[at].load(std::memory_order_relaxed);
    if (before == Link::kNone || before == neighbour.word) break;
  }
  BASALT_CHECK(at < words.size());
  words[at].store(neighbour.word | Link::kTree, std::memory_order_release);
  const std::lock_guard lock(nodes_.LockOf(neighbour.word));
  if (TreeLinks(neighbour.word) < kTreeLinksMax) {
    AddLinkLocked(nodes_, 0, neighbour.word, {neighbour.distance, slot | Link::kTree});
    return true;
  }
  words[at].store(before, std::memory_order_relaxed);
  return false;
}

Candidate GraphInsertion::FindRoomInTree(uint32_t from) {
  std::vector<uint32_t> seen = {from};
  for (size_t i = 0;; ++i) {  // A tree has leaves.
    const uint32_t slot = seen[i];
    if (TreeLinks(slot) < kTreeLinksMax) {
      return {nodes_.Distance(memory_.code.data(), slot), slot};
    }
    ForEachLink(nodes_.Links(0, slot), [&](uint32_t word) {
      const uint32_t next = Link::SlotOf(word);
      if (Link::IsTree(word) && std::ranges::find(seen, next) == seen.end()) seen.push_back(next);
    });
  }
}

void GraphInsertion::JoinTree(uint32_t slot) {
  for (const Candidate& candidate : candidates_) {
    if (AddTreeLink(slot, candidate)) return;
  }
  while (!AddTreeLink(slot, FindRoomInTree(candidates_.front().word))) {
  }
}

void GraphInsertion::BecomeEntry(uint32_t slot) {
  const uint32_t level = nodes_.LevelOf(slot);
  if (level <= nodes_.entry().level) return;
  const std::lock_guard lock(nodes_.entry_mutex());
  if (level > nodes_.entry().level) nodes_.set_entry({slot, level});
}

void GraphInsertion::Insert(uint32_t slot) {
  const uint32_t slot_level = nodes_.LevelOf(slot);
  for (uint32_t level = 0; level <= slot_level; ++level) WriteLinks(level, slot, {});
  nodes_.SetNextInRing(slot, slot);
  if (InsertFirst(slot)) return;

  const GraphNodes::Entry entry = nodes_.entry();
  const uint32_t top = std::min(slot_level, entry.level);
  uint32_t start = GraphWalk(&nodes_, &memory_).Descend(top).slot;
  std::array<Neighbours, GraphNodes::kLevelsMax> neighbours;
  for (uint32_t level = top + 1; level-- > 0;) {
    FindCandidates(level, start);
    // Where all nodes near it are being taken out: the entry never is, and leads to all others.
    if (candidates_.empty()) FindCandidates(level, entry.slot);
    if (level == 0 && candidates_.front().distance == 0 &&
        JoinRing(slot, candidates_.front().word)) {
      return;
    }
    start = candidates_.front().word;
    neighbours[level] = Choose();
  }
  for (uint32_t level = 0; level <= top; ++level) WriteLinks(level, slot, neighbours[level]);
  nodes_.SetState(slot, SlotState::kLive);
  nodes_.SetSpecial(slot, false);
  JoinTree(slot);
  for (uint32_t level = 0; level <= top; ++level) {
    for (const Candidate& neighbour : neighbours[level].span()) {
      const std::lock_guard lock(nodes_.LockOf(neighbour.word));
      const LinkWords words = nodes_.Links(level, neighbour.word);
      bool is_linked = false;  // By the tree.
      ForEachLink(words, [&](uint32_t word) { is_linked |= Link::SlotOf(word) == slot; });
      if (!is_linked) AddLinkLocked(nodes_, level, neighbour.word, {neighbour.distance, slot});
    }
  }
  BecomeEntry(slot);
}

}  // namespace basalt::vector

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/epoch.h"
#include "vector/candidate_pool.h"
#include "vector/graph_nodes.h"

// Walks over a graph: from where a level is entered, always expanding the nearest node that has
// been seen, until the `ef` nearest that pass have been expanded.
//
// Each expansion stays inside an epoch while it reads links and codes; whether a node passes is
// asked outside, since that may be the user's function. A slot in the pool may so have been used
// again for another row since. Its links are then those of another node, which leads no walk astray
// for long; whoever takes results out of the pool looks at what the slot is now.
//
// Cost: an expansion is a line and a half of links and, for each node not seen before, the lines of
// its code, which are asked for together. Walks wait for memory: a node takes about 25 ns at 128
// bytes, of which 3 are arithmetic, while the codes do not fit a cache.

namespace basalt::vector {

/// Slots that a walk has met: a byte each, which is the walk's number when they were.
class VisitedSlots {
 public:
  /// Forgets all. Slots from `size` on are as if they had been met.
  void Reset(uint32_t size) {
    if (marks_.size() < size) marks_.resize(size, 0);
    size_ = size;
    if (++mark_ == 0) {
      std::fill(marks_.begin(), marks_.end(), uint8_t{0});
      mark_ = 1;
    }
  }
  /// True: it had not been met.
  bool Add(uint32_t slot) noexcept {
    if (slot >= size_ || marks_[slot] == mark_) return false;
    marks_[slot] = mark_;
    return true;
  }
  size_t bytes() const noexcept { return marks_.capacity(); }

 private:
  std::vector<uint8_t> marks_;
  uint32_t size_ = 0;
  uint8_t mark_ = 0;
};

/// What one walk needs, kept for the next one.
struct WalkMemory {
  VisitedSlots visited;
  CandidatePool pool;
  std::vector<uint8_t> code;    ///< Of what is looked for.
  std::vector<float> floats;    ///< For CodeBook.
  std::vector<uint32_t> slots;  ///< For whatever lasts as long as a step.
  std::vector<uint32_t> distances;

  size_t bytes() const noexcept {
    return visited.bytes() + pool.bytes() + code.capacity() + 4 * floats.capacity() +
           4 * slots.capacity() + 4 * distances.capacity();
  }
};

/// Hands out memory for walks; as many exist as walks ever went on at once. Thread-safe.
class WalkMemories {
 public:
  class Handle {
   public:
    Handle(WalkMemories* owner, std::unique_ptr<WalkMemory> memory) noexcept
        : owner_(owner), memory_(std::move(memory)) {}
    Handle(Handle&&) noexcept = default;
    Handle& operator=(Handle&&) = delete;
    ~Handle() {
      if (memory_ != nullptr) owner_->Give(std::move(memory_));
    }
    WalkMemory* operator->() const noexcept { return memory_.get(); }
    WalkMemory& operator*() const noexcept { return *memory_; }

   private:
    WalkMemories* owner_;
    std::unique_ptr<WalkMemory> memory_;
  };

  Handle Take() {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        auto memory = std::move(free_.back());
        free_.pop_back();
        return Handle(this, std::move(memory));
      }
      free_.reserve(++count_);  // So that giving back needs no memory.
    }
    return Handle(this, std::make_unique<WalkMemory>());
  }
  size_t bytes() const {
    const std::lock_guard lock(mutex_);
    size_t bytes = 0;
    for (const auto& memory : free_) bytes += memory->bytes();
    return bytes;
  }

 private:
  void Give(std::unique_ptr<WalkMemory> memory) noexcept {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(memory));
  }

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<WalkMemory>> free_;
  size_t count_ = 0;
};

/// A walk at one level. `memory` holds the code that is looked for, what has been seen, and the
/// pool, into which the walk has put where it begins.
class GraphWalk {
 public:
  GraphWalk(const GraphNodes* nodes, WalkMemory* memory) noexcept
      : nodes_(*nodes), memory_(*memory) {}

  /// Nodes whose distances were computed.
  size_t visited() const noexcept { return visited_; }

  /// The node of level `level` at which a walk that descends from the entry arrives: the nearest it
  /// finds going always to a nearer neighbour. kNoSlot: there are no nodes.
  GraphNodes::Entry Descend(uint32_t level) {
    GraphNodes::Entry at = nodes_.entry();
    if (at.slot == kNoSlot) return at;
    const base::EpochGuard inside;
    uint32_t distance = nodes_.Distance(memory_.code.data(), at.slot);
    for (; at.level > level; --at.level) {
      while (StepNearer(at.level, &at.slot, &distance)) {
      }
    }
    return at;
  }

  /// Fills the pool from `start` on with the `ef` nearest that pass. Stops when it has visited
  /// `visited_max` nodes; false: it did.
  template <class Passes>
  bool Run(uint32_t level, uint32_t start, size_t ef, size_t visited_max, const Passes& passes) {
    memory_.visited.Reset(nodes_.size());
    memory_.pool.Reset(ef);
    memory_.visited.Add(start);
    memory_.pool.Add(DistanceOf(start), start, passes(start));
    uint32_t slot;
    while (memory_.pool.Next(&slot)) {
      if (visited_ > visited_max) return false;
      Expand(level, slot, passes);
    }
    return true;
  }

 private:
  uint32_t DistanceOf(uint32_t slot) {
    const base::EpochGuard inside;
    ++visited_;
    return nodes_.Distance(memory_.code.data(), slot);
  }

  bool StepNearer(uint32_t level, uint32_t* slot, uint32_t* distance) noexcept {
    std::array<uint32_t, GraphNodes::kBaseLinks> slots;
    std::array<uint32_t, GraphNodes::kBaseLinks> distances;
    size_t count = 0;
    ForEachLink(nodes_.Links(level, *slot),
                [&](uint32_t word) { slots[count++] = Link::SlotOf(word); });
    nodes_.Distances(memory_.code.data(), {slots.data(), count}, distances.data());
    visited_ += count;
    const uint32_t before = *distance;
    for (size_t i = 0; i < count; ++i) {
      if (distances[i] >= *distance) continue;
      *distance = distances[i];
      *slot = slots[i];
    }
    return *distance < before;
  }

  template <class Passes>
  void Expand(uint32_t level, uint32_t slot, const Passes& passes) {
    std::array<uint32_t, GraphNodes::kBaseLinks> slots;
    std::array<uint32_t, GraphNodes::kBaseLinks> distances;
    size_t count = 0;
    {
      const base::EpochGuard inside;
      ForEachLink(nodes_.Links(level, slot), [&](uint32_t word) {
        const uint32_t next = Link::SlotOf(word);
        slots[count] = next;
        count += static_cast<size_t>(memory_.visited.Add(next));
      });
      if (level == 0) {
        const uint32_t next = memory_.pool.Peek();
        if (next != CandidatePool::kNoEntry) nodes_.PrefetchLinks(next);
      }
      nodes_.Distances(memory_.code.data(), {slots.data(), count}, distances.data());
    }
    visited_ += count;
    uint32_t bound = memory_.pool.bound();
    for (size_t i = 0; i < count; ++i) {
      if (distances[i] >= bound) continue;
      memory_.pool.Add(distances[i], slots[i], passes(slots[i]));
      bound = memory_.pool.bound();
    }
  }

  const GraphNodes& nodes_;
  WalkMemory& memory_;
  size_t visited_ = 0;
};

}  // namespace basalt::vector

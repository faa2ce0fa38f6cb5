#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "base/adaptive_lock.h"
#include "vector/kernels.h"
#include "vector/slot_rows.h"

// The nodes of a navigable small-world graph in levels (HNSW) over codes: what lies where, and what
// always holds. graph_walk.h searches it, graph_insertion.h adds to it, graph_repair.h takes from
// it.
//
// Source: Y. Malkov, D. Yashunin, "Efficient and robust approximate nearest neighbor search using
// hierarchical navigable small world graphs" (2016).
//
// Layout, by slot, each in rows of its own (slot_rows.h):
//
//   codes         code_bytes: 16, 32, ...
//   base links    32 words, two cache lines: the node's neighbours at level 0, packed to the front
//   infos         12 bytes: next of the same code, first of its upper links, state
//   upper links   16 words for each level above 0; by a number of its own, which a slot keeps for
//                 life. One slot in 16 has level 1, one in 256 level 2, and so on.
//   special bits  one bit a slot: it is not simply a live node of which there is one
//
//   link word     slot (30 bits) | 0 | tree (the highest bit); all ones: no more links
//
// With the byte by which a search marks what it has seen: 128 + 12 + 4.3 + 1.1 bytes and the code.
//
// Equal codes. A node stands for all slots of its code: they hang off it in a ring and have no
// links. So 10,000 copies of one vector are one neighbour of their neighbours, and not 10,000 that
// know only one another. A removed node stays as long as there are others in its ring.
//
// The tree. Some links at level 0 are marked as tree links: they exist in both directions and, as
// edges, form a tree of all nodes. Choosing neighbours never drops one. So level 0 is strongly
// connected: from every node every other one can be reached, whatever is inserted or removed, and a
// search without a limit finds everything. Inserting makes one edge; removing joins the edges
// that end at a node to a path.
//
// Levels. A slot's level comes from the seed and the slot, so that inserting the same rows in the
// same order, by one thread, gives the same graph.
//
// Threads. Links and states are atomic words; whoever follows a link by an acquiring load finds
// code and links of what it leads to. A node's links are changed under its lock (one of kLocks). A
// slot is used again only when no reader that may have met it is inside its epoch any more.
// Inserting and removing hold `maintenance` shared, so that repair can have the graph for itself
// for a moment. Searches take no lock: what they meet may be some links old, never wrong.

namespace basalt::vector {

inline constexpr uint32_t kSlotsMax = uint32_t{1} << 30;
inline constexpr uint32_t kNoSlot = 0xFFFF'FFFF;

/// What a slot is.
enum class SlotState : uint8_t {
  kFree = 0,              ///< Nothing; the links of a reader may still lead there.
  kLive = 1,              ///< A node.
  kDuplicate = 2,         ///< In the ring of a node.
  kRemoved = 3,           ///< A node that searches pass through and do not return.
  kRemovedDuplicate = 4,  ///< In the ring, and not to be returned.
  kCondemned = 5,         ///< A node that repair is taking out: nothing new links to it.
};

/// Whether a slot in this state is a node of the graph.
constexpr bool IsNode(SlotState state) noexcept {
  return state == SlotState::kLive || state == SlotState::kRemoved;
}

struct Link {
  static constexpr uint32_t kNone = 0xFFFF'FFFF;
  static constexpr uint32_t kTree = 0x8000'0000;

  static uint32_t SlotOf(uint32_t word) noexcept { return word & ~kTree; }
  static bool IsTree(uint32_t word) noexcept { return (word & kTree) != 0; }
};

using LinkWord = std::atomic<uint32_t>;
using LinkWords = std::span<LinkWord>;

class GraphNodes {
 public:
  static constexpr size_t kBaseLinks = 32;
  static constexpr size_t kUpperLinks = 16;
  static constexpr uint32_t kLevelsMax = 8;

  GraphNodes(size_t code_bytes, uint64_t seed);

  size_t code_bytes() const noexcept { return codes_.stride(); }
  uint64_t seed() const noexcept { return seed_; }
  /// Slots that have ever been used are below.
  uint32_t size() const noexcept { return size_.load(std::memory_order_acquire); }
  /// Bytes that all rows take.
  size_t bytes() const noexcept;

  /// Has rows for slots below `size`, and upper links for what they may need. One thread at a time.
  /// Throws std::bad_alloc.
  void Grow(uint32_t size);

  uint8_t* Code(uint32_t slot) const noexcept {
    return reinterpret_cast<uint8_t*>(codes_.Row(slot));
  }
  const SlotRows& codes() const noexcept { return codes_; }
  /// Distances from a code to those of slots.
  void Distances(const uint8_t* code, std::span<const uint32_t> slots,
                 uint32_t* distances) const noexcept;
  uint32_t Distance(const uint8_t* code, uint32_t slot) const noexcept {
    uint32_t distance;
    Distances(code, {&slot, 1}, &distance);
    return distance;
  }

  uint32_t LevelOf(uint32_t slot) const noexcept;
  LinkWords Links(uint32_t level, uint32_t slot) const noexcept {
    if (level == 0) return base_links_[slot].words;
    return upper_links_[infos_[slot].upper.load(std::memory_order_relaxed) + level - 1].words;
  }
  /// The links of a node at level 0 start to be loaded.
  [[gnu::always_inline]] void PrefetchLinks(uint32_t slot) const noexcept {
    const LinkWord* const words = base_links_[slot].words.data();
    __builtin_prefetch(words);
    __builtin_prefetch(words + kBaseLinks / 2);
  }

  SlotState State(uint32_t slot) const noexcept {
    return infos_[slot].state.load(std::memory_order_acquire);
  }
  void SetState(uint32_t slot, SlotState state) noexcept {
    infos_[slot].state.store(state, std::memory_order_release);
  }
  /// False: the state is not `from` any more.
  bool ChangeState(uint32_t slot, SlotState from, SlotState to) noexcept {
    return infos_[slot].state.compare_exchange_strong(from, to, std::memory_order_acq_rel);
  }

  /// The next slot of the same code; of the last one, the node itself.
  uint32_t NextInRing(uint32_t slot) const noexcept {
    return infos_[slot].next.load(std::memory_order_acquire);
  }
  void SetNextInRing(uint32_t slot, uint32_t next) noexcept {
    infos_[slot].next.store(next, std::memory_order_release);
  }

  bool IsSpecial(uint32_t slot) const noexcept {
    return (special_[slot / 64].load(std::memory_order_acquire) >> (slot % 64) & 1) != 0;
  }
  void SetSpecial(uint32_t slot, bool is_special) noexcept {
    const uint64_t bit = uint64_t{1} << (slot % 64);
    if (is_special) {
      special_[slot / 64].fetch_or(bit, std::memory_order_release);
    } else {
      special_[slot / 64].fetch_and(~bit, std::memory_order_release);
    }
  }

  base::AdaptiveLock& LockOf(uint32_t slot) const noexcept { return locks_[slot % kLocks]; }

  /// Where walks begin: a node of the highest level there is.
  struct Entry {
    uint32_t slot = kNoSlot;  ///< kNoSlot: there is no node.
    uint32_t level = 0;
  };
  Entry entry() const noexcept {
    const uint64_t word = entry_.load(std::memory_order_acquire);
    return {static_cast<uint32_t>(word), static_cast<uint32_t>(word >> 32)};
  }
  void set_entry(Entry entry) noexcept {
    entry_.store(uint64_t{entry.level} << 32 | entry.slot, std::memory_order_release);
  }
  /// Held by whoever changes the entry.
  std::mutex& entry_mutex() const noexcept { return entry_mutex_; }

 private:
  static constexpr size_t kLocks = 1'024;

  struct Info {
    std::atomic<uint32_t> next;
    std::atomic<uint32_t> upper;
    std::atomic<SlotState> state;
  };
  static_assert(sizeof(Info) == 12);
  struct alignas(64) BaseLinks {
    std::array<LinkWord, kBaseLinks> words;
  };
  struct alignas(64) UpperLinks {
    std::array<LinkWord, kUpperLinks> words;
  };

  const uint64_t seed_;
  const CodeFunctions* const functions_;
  SlotRows codes_;
  SlotArray<BaseLinks> base_links_;
  SlotArray<Info> infos_;
  SlotArray<UpperLinks> upper_links_;
  SlotArray<std::atomic<uint64_t>> special_;
  mutable std::array<base::AdaptiveLock, kLocks> locks_;
  std::atomic<uint32_t> size_{0};
  uint32_t upper_size_ = 0;  ///< Of who grows.
  std::atomic<uint64_t> entry_{kNoSlot};
  mutable std::mutex entry_mutex_;
};

/// The links of a node, up to where they end, as one moment after another shows them.
template <class Visit>
void ForEachLink(LinkWords words, const Visit& visit) {
  for (const LinkWord& link : words) {
    const uint32_t word = link.load(std::memory_order_acquire);
    if (word == Link::kNone) break;
    visit(word);
  }
}

}  // namespace basalt::vector

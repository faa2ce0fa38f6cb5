#include "vector/hnsw_index.h"

#include <cstring>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/out_of_memory.h"
#include "vector/graph_insertion.h"
#include "vector/graph_repair.h"
#include "vector/hnsw_search.h"

namespace basalt::vector {

HnswIndex::HnswIndex(CodeBook book)
    : book_(std::move(book)), nodes_(book_.code_bytes(), book_.seed()), allocator_(&nodes_) {}

HnswIndex::~HnswIndex() = default;

Result<uint32_t> HnswIndex::Add(const float* vector) {
  return base::OrOutOfMemory([&]() -> Result<uint32_t> {
    const std::shared_lock lock(maintenance_);
    const WalkMemories::Handle memory = memories_.Take();
    memory->code.resize(book_.code_bytes());
    memory->floats.resize(book_.scratch_floats());
    const size_t beyond = book_.Encode(vector, memory->code.data(), memory->floats.data());
    const uint32_t slot = allocator_.Take();
    if (slot == kNoSlot) {
      return Status(StatusCode::kResourceExhausted,
                    "an index holds at most 2^30 vectors: divide them among several");
    }
    std::memcpy(nodes_.Code(slot), memory->code.data(), book_.code_bytes());
    try {
      GraphInsertion(&nodes_, &*memory).Insert(slot);
    } catch (const std::bad_alloc&) {
      nodes_.SetSpecial(slot, true);
      nodes_.SetState(slot, SlotState::kFree);
      allocator_.GiveUnseen(slot);
      throw;
    }
    live_.fetch_add(1, std::memory_order_relaxed);
    coordinates_added_.fetch_add(book_.scratch_floats(), std::memory_order_relaxed);
    coordinates_beyond_.fetch_add(beyond, std::memory_order_relaxed);
    return slot;
  });
}

Status HnswIndex::Remove(uint32_t slot) {
  const std::shared_lock lock(maintenance_);
  const bool is_removed =
      slot < nodes_.size() &&
      (nodes_.ChangeState(slot, SlotState::kLive, SlotState::kRemoved) ||
       nodes_.ChangeState(slot, SlotState::kDuplicate, SlotState::kRemovedDuplicate));
  if (!is_removed) {
    return Status(StatusCode::kNotFound, "no vector has slot " + std::to_string(slot) +
                                             ": it was removed, or never added");
  }
  nodes_.SetSpecial(slot, true);
  live_.fetch_sub(1, std::memory_order_relaxed);
  removed_.fetch_add(1, std::memory_order_relaxed);
  return Status();
}

Result<SearchResult> HnswIndex::Search(const float* query, const SearchRequest& request,
                                       const RowSource& rows) const {
  return base::OrOutOfMemory(
      [&]() -> Result<SearchResult> { return HnswSearch(*this, query, request, rows).Run(); });
}

void HnswIndex::RepairLocked() {
  const WalkMemories::Handle memory = memories_.Take();
  std::vector<uint32_t> slots = GraphRepair(&nodes_, &maintenance_, &*memory).Run();
  const size_t count = slots.size();
  allocator_.Give(std::move(slots));
  removed_.fetch_sub(count, std::memory_order_relaxed);
  leaves_condemned_ = false;
}

Status HnswIndex::Repair() {
  return base::OrOutOfMemory([&]() -> Status {
    const std::lock_guard lock(repair_mutex_);
    leaves_condemned_ = true;
    RepairLocked();
    return Status();
  });
}

Status HnswIndex::Save(uint64_t id, const CheckpointSink& sink) {
  return base::OrOutOfMemory([&]() -> Status {
    const std::lock_guard lock(repair_mutex_);
    if (leaves_condemned_) RepairLocked();
    const SlotAllocator::FreshOnly fresh_only(&allocator_);
    uint32_t slots = 0;
    GraphNodes::Entry entry;
    {
      const std::lock_guard no_insertion(maintenance_);
      slots = nodes_.size();
      entry = nodes_.entry();
    }
    return WriteCheckpoint(nodes_, book_, slots, entry, id, sink);
  });
}

Result<std::unique_ptr<HnswIndex>> HnswIndex::Load(std::string_view image) {
  return base::OrOutOfMemory([&]() -> Result<std::unique_ptr<HnswIndex>> {
    CheckpointReader reader(image);
    BASALT_ASSIGN_OR_RETURN(CodeBook book, reader.ReadBook());
    auto index = std::make_unique<HnswIndex>(std::move(book));
    BASALT_RETURN_IF_ERROR(reader.ReadNodes(&index->nodes_));
    index->CountSlots();
    return index;
  });
}

void HnswIndex::CountSlots() {
  size_t live = 0;
  size_t removed = 0;
  for (uint32_t slot = nodes_.size(); slot-- > 0;) {
    switch (nodes_.State(slot)) {
      case SlotState::kLive:
      case SlotState::kDuplicate:
        ++live;
        break;
      case SlotState::kRemoved:
      case SlotState::kRemovedDuplicate:
        ++removed;
        break;
      case SlotState::kFree:
      case SlotState::kCondemned:
        allocator_.AddUnused(slot);
        break;
    }
  }
  live_.store(live, std::memory_order_relaxed);
  removed_.store(removed, std::memory_order_relaxed);
}

Result<GraphAudit> HnswIndex::Audit() const {
  return base::OrOutOfMemory([&]() -> Result<GraphAudit> {
    const std::lock_guard repair_lock(repair_mutex_);
    const std::lock_guard lock(maintenance_);
    return AuditGraph(nodes_);
  });
}

HnswStats HnswIndex::Stats() const {
  const auto added = static_cast<double>(coordinates_added_.load(std::memory_order_relaxed));
  const auto beyond = static_cast<double>(coordinates_beyond_.load(std::memory_order_relaxed));
  return {.live = live_.load(std::memory_order_relaxed),
          .removed = removed_.load(std::memory_order_relaxed),
          .free = allocator_.free_slots(),
          .bytes = nodes_.bytes() + memories_.bytes() + sizeof *this,
          .beyond_share = added == 0 ? 0 : beyond / added};
}

}  // namespace basalt::vector

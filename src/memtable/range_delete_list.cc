#include "memtable/range_delete_list.h"

#include <algorithm>
#include <utility>

#include "base/out_of_memory.h"

namespace basalt::memtable {

RangeDeleteList::~RangeDeleteList() {
  for (RangeDelete* range = newest_.load(std::memory_order_relaxed); range != nullptr;) {
    delete std::exchange(range, range->next);
  }
}

void RangeDeleteList::Add(RangeDelete* range) noexcept {
  range->next = newest_.load(std::memory_order_relaxed);
  while (!newest_.compare_exchange_weak(range->next, range, std::memory_order_release,
                                        std::memory_order_relaxed)) {
  }
  count_.fetch_add(1, std::memory_order_relaxed);
}

// The parts first: the list that is loaded then holds all that is in them.
template <class One, class Whole>
void RangeDeleteList::Visit(base::SequenceNumber at, const One& one, const Whole& whole) const {
  const auto one_by_one = [&](const RangeDelete* first, const RangeDelete* behind) {
    for (const RangeDelete* range = first; range != behind; range = range->next) {
      const base::SequenceNumber sequence = range->sequence.load(std::memory_order_relaxed);
      if (sequence <= at) one(*range, sequence);
    }
  };
  const Part* part = parts_.load(std::memory_order_acquire);
  one_by_one(newest(), part == nullptr ? nullptr : part->first);
  for (; part != nullptr; part = part->older) {
    if (part->lowest > at) continue;
    if (part->highest <= at) {
      whole(*part);
    } else {
      one_by_one(part->first, part->behind);
    }
  }
}

base::SequenceNumber RangeDeleteList::SequenceAt(uint32_t keyspace, std::string_view key,
                                                 base::SequenceNumber at,
                                                 BatchCheck* check) const noexcept {
  base::SequenceNumber newest = 0;
  const auto look_at_one = [&](const RangeDelete& range, base::SequenceNumber sequence) {
    if (sequence <= newest || !range.Covers(keyspace, key)) return;
    if (check != nullptr && check->Hides(sequence, range.is_of_several)) return;
    newest = sequence;
  };
  const auto look_in_part = [&](const Part& part) {
    if (part.highest <= newest) return;
    const auto cover = part.covers.find(keyspace);
    if (cover != part.covers.end()) newest = std::max(newest, cover->second.SequenceAt(key));
  };
  Visit(at, look_at_one, look_in_part);
  return newest;
}

void RangeDeleteList::Collect(uint32_t keyspace, base::SequenceNumber at,
                              std::vector<const base::RangeCover*>* covers,
                              std::vector<base::RangeCover::Range>* loose) const {
  const auto take_one = [&](const RangeDelete& range, base::SequenceNumber sequence) {
    if (range.keyspace == keyspace) loose->push_back({range.begin, range.end, sequence});
  };
  const auto take_part = [&](const Part& part) {
    const auto cover = part.covers.find(keyspace);
    if (cover != part.covers.end()) covers->push_back(&cover->second);
  };
  Visit(at, take_one, take_part);
}

RangeDeleteList::Part RangeDeleteList::PartOf(const RangeDelete* first) const {
  Part part;
  part.first = first;
  part.older = parts_.load(std::memory_order_relaxed);
  if (part.older != nullptr) part.behind = part.older->first;
  std::map<uint32_t, std::vector<base::RangeCover::Range>> ranges;
  for (const RangeDelete* range = first; range != part.behind; range = range->next) {
    const base::SequenceNumber sequence = range->sequence.load(std::memory_order_relaxed);
    ranges[range->keyspace].push_back({range->begin, range->end, sequence});
    part.lowest = std::min(part.lowest, sequence);
    part.highest = std::max(part.highest, sequence);
    ++part.count;
  }
  for (const auto& [keyspace, its] : ranges) part.covers.emplace(keyspace, its);
  return part;
}

RangeDeleteList::Part RangeDeleteList::Merged(Part part) {
  std::map<uint32_t, std::vector<const base::RangeCover*>> covers;
  const auto add = [&](const Part& its) {
    for (const auto& [keyspace, cover] : its.covers) covers[keyspace].push_back(&cover);
  };
  add(part);
  const Part* older = part.older;
  for (; older != nullptr && older->count <= part.count && older->count + part.count <= kMergedMax;
       older = older->older) {
    add(*older);
    part.behind = older->behind;
    part.count += older->count;
    part.lowest = std::min(part.lowest, older->lowest);
    part.highest = std::max(part.highest, older->highest);
  }
  if (older == part.older) return part;
  part.older = older;
  std::map<uint32_t, base::RangeCover> merged;
  for (const auto& [keyspace, its] : covers) merged.emplace(keyspace, base::RangeCover::Of(its));
  part.covers = std::move(merged);
  return part;
}

void RangeDeleteList::Flatten(BatchCheck* check) noexcept {
  if (loose_count() < kPartMin) return;
  const std::unique_lock lock(flatten_mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  const Part* const parts = parts_.load(std::memory_order_relaxed);
  // What a part holds is no longer asked for: it begins behind the last that has to be.
  const RangeDelete* first = newest();
  for (const RangeDelete* range = first; range != (parts == nullptr ? nullptr : parts->first);
       range = range->next) {
    const base::SequenceNumber sequence = range->sequence.load(std::memory_order_relaxed);
    if (check != nullptr && check->Hides(sequence, range->is_of_several)) first = range->next;
  }
  // Without memory they go on to be looked at one by one.
  static_cast<void>(base::OrOutOfMemory([&] { return AddPart(first); }));
}

Status RangeDeleteList::AddPart(const RangeDelete* first) {
  Part fresh = PartOf(first);
  if (fresh.count < kPartMin) return {};
  const uint64_t flattened = fresh.count;
  made_.push_back(Merged(std::move(fresh)));
  uint64_t bytes = sizeof(Part);
  for (const auto& [keyspace, cover] : made_.back().covers) bytes += cover.ByteSize();
  budget_->Charge(bytes, /*within_limit=*/false);
  parts_.store(&made_.back(), std::memory_order_release);
  flattened_count_.fetch_add(flattened, std::memory_order_relaxed);
  return {};
}

}  // namespace basalt::memtable

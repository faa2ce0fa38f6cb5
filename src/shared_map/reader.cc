#include <algorithm>
#include <array>
#include <new>
#include <type_traits>

#include "base/check.h"
#include "base/short_hash.h"
#include "shared_map/reader_state.h"

// Get and MultiGet. A batch goes in groups, and a group in steps, each of which asks for the memory
// that the next one reads: hashes; slots; records, or index words and then the changes that may
// stand for them; then the answers. Memory is asked for in bursts: taking the steps of each key in
// turn, a fixed number of keys apart, was slower.

namespace basalt {

using shared_map::Change;
using shared_map::Found;
using shared_map::Generation;
using shared_map::ReaderState;

namespace shared_map {

Status ReaderState::FollowNow() {
  BASALT_ASSIGN_OR_RETURN(generation, core->Newest(&seen_word));
  return Status();
}

[[gnu::always_inline]] inline Result<std::optional<SharedMap::View>> ReaderState::Get(
    std::string_view key) {
  std::string_view value;
  const Found found = generation->Find(base::HashShort(key), key, limit, &value);
  if (found == Found::kPresent) [[likely]] {
    return Result<std::optional<SharedMap::View>>(std::in_place, ViewOf(value));
  }
  if (found == Found::kAbsent) return std::optional<SharedMap::View>();
  return WhyCorrupt(key);
}

namespace {

/// A key of a batch on its way to its answer.
struct Underway {
  uint64_t hash;
  const BaseFile* base;  // Null: no base has the key.
  uint64_t slot;
  Generation::Candidate candidate;  // A change that may decide about it.
};

/// How many keys go through the steps together: their records fit the second-level cache.
constexpr size_t kGroup = 64;

template <bool kChanges>
[[gnu::always_inline]] inline Underway SetOut(const Generation& from, std::string_view key) {
  Underway underway = {.hash = base::HashShort(key), .base = nullptr, .slot = 0, .candidate = {}};
  if constexpr (kChanges) from.PrefetchFilters(underway.hash);
  const BaseFile* const base = from.BaseOf(underway.hash);
  if (base == nullptr || base->figures().records == 0) return underway;
  underway.base = base;
  base->PrefetchSeed(underway.hash);
  return underway;
}

[[gnu::always_inline]] inline void FindSlot(std::string_view key, Underway* underway) {
  const BaseFile* const base = underway->base;
  if (base == nullptr) return;
  underway->slot = base->Slot(underway->hash, key);
  base->PrefetchStart(underway->slot);
}

[[gnu::always_inline]] inline void FetchRecord(const Underway& underway) {
  if (underway.base != nullptr) underway.base->PrefetchRecord(underway.slot);
}

/// The same where there are changes: of keys that may have one, what answers is found first.
[[gnu::always_inline]] inline void FetchChangedOrRecord(const Generation& from,
                                                        std::span<Underway> group) {
  // Which keys have changes cannot be predicted: so they are sorted without a branch.
  std::array<uint8_t, kGroup> order;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  size_t changed = 0;
  size_t unchanged = group.size();
  for (size_t i = 0; i < group.size(); ++i) {
    const bool may_be = from.MayBeChanged(group[i].hash);
    order[may_be ? changed : unchanged - 1] = static_cast<uint8_t>(i);
    changed += may_be ? 1 : 0;
    unchanged -= may_be ? 0 : 1;
  }
  const std::span<const uint8_t> may_be_changed = std::span(order).first(changed);
  for (const uint8_t i : may_be_changed) from.PrefetchWords(group[i].hash);
  for (size_t at = changed; at < group.size(); ++at) FetchRecord(group[order[at]]);
  for (const uint8_t i : may_be_changed) {
    Underway& underway = group[i];
    underway.candidate = from.CandidateOf(underway.hash);
    if (underway.candidate.set != nullptr) {
      underway.candidate.set->PrefetchChange(underway.candidate.location);
    } else {
      FetchRecord(underway);
    }
  }
}

template <bool kChanges>
[[gnu::always_inline]] inline Found Answer(const Generation& from, const Underway& underway,
                                           std::string_view key, uint64_t limit,
                                           std::string_view* value) {
  const Generation::Candidate& candidate = underway.candidate;
  if (kChanges && candidate.set != nullptr) {
    Change change;
    const bool is_it = limit == ChangeSet::kNoLimit &&
                       candidate.set->At(candidate.location, &change) && change.record.key() == key;
    const Found found =
        is_it ? Found::kPresent : from.FindInChanges(underway.hash, key, limit, &change);
    if (found == Found::kCorrupt) return found;
    if (found == Found::kPresent) {
      *value = change.record.value();
      return change.is_put() ? Found::kPresent : Found::kAbsent;
    }
  }
  if (underway.base == nullptr) return Found::kAbsent;
  return underway.base->FindAt(underway.slot, key, value);
}

}  // namespace

template <bool kChanges>
void ReaderState::GetGroup(std::span<const std::string_view> keys,
                           std::span<Result<std::optional<SharedMap::View>>> results) {
  const Generation& from = *generation;
  std::array<Underway, kGroup> group;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  const std::span<Underway> all = std::span(group).first(keys.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = SetOut<kChanges>(from, keys[i]);
  for (size_t i = 0; i < all.size(); ++i) FindSlot(keys[i], &all[i]);
  if constexpr (kChanges) {
    FetchChangedOrRecord(from, all);
  } else {
    for (const Underway& underway : all) FetchRecord(underway);
  }
  for (size_t i = 0; i < all.size(); ++i) {
    std::string_view value;
    const Found found = Answer<kChanges>(from, all[i], keys[i], limit, &value);
    if (found == Found::kPresent) {
      results[i]->emplace(ViewOf(value));
    } else if (found == Found::kCorrupt) {
      results[i] = WhyCorrupt(keys[i]);
    }
  }
}

void ReleaseReader(ReaderState* state) noexcept { delete state; }

}  // namespace shared_map

void SharedMap::View::Release() noexcept {
  static_assert(std::is_standard_layout_v<ReaderState> || offsetof(ReaderState, pins) == 0);
  shared_map::ReleaseReader(reinterpret_cast<ReaderState*>(pins_));
}

SharedMap::Reader::~Reader() {
  if (state_ != nullptr && --state_->pins == 0) shared_map::ReleaseReader(state_);
}

Result<std::optional<SharedMap::View>> SharedMap::Reader::Get(std::string_view key) {
  BASALT_RETURN_IF_ERROR(state_->Follow());
  return state_->Get(key);
}

Result<bool> SharedMap::Reader::Contains(std::string_view key) {
  BASALT_RETURN_IF_ERROR(state_->Follow());
  std::string_view value;
  const Found found = state_->generation->Find(base::HashShort(key), key, state_->limit, &value);
  if (found == Found::kCorrupt) return state_->WhyCorrupt(key);
  return found == Found::kPresent;
}

Status SharedMap::Reader::MultiGet(std::span<const std::string_view> keys,
                                   std::span<Result<std::optional<View>>> results) {
  if (results.size() != keys.size()) {
    return Status(StatusCode::kInvalidArgument,
                  "MultiGet: " + std::to_string(keys.size()) + " keys and room for " +
                      std::to_string(results.size()) + " results; they must be as many");
  }
  // What the results held may be what keeps this reader on an old generation.
  for (auto& result : results) {
    if (result) {
      result->reset();
    } else {
      result = std::optional<View>();
    }
  }
  BASALT_RETURN_IF_ERROR(state_->Follow());
  while (!keys.empty()) {
    const size_t count = std::min(keys.size(), shared_map::kGroup);
    if (state_->generation->MayHaveChanges()) {
      state_->GetGroup<true>(keys.first(count), results.first(count));
    } else {
      state_->GetGroup<false>(keys.first(count), results.first(count));
    }
    keys = keys.subspan(count);
    results = results.subspan(count);
  }
  return Status();
}

Result<SharedMap::Reader> SharedMap::Reader::GetSnapshot() {
  BASALT_RETURN_IF_ERROR(state_->Follow());
  const std::optional<uint64_t> end = state_->generation->newest().index().visible_end();
  if (!end) {
    return Status(StatusCode::kCorruption,
                  state_->core->directory() + ": the state of the change index is damaged");
  }
  auto* const state = new (std::nothrow) ReaderState(*state_);
  if (state == nullptr) return Status(StatusCode::kResourceExhausted, "out of memory");
  state->pins = 1;
  state->is_snapshot = true;
  state->limit = std::min(state_->limit, *end);
  return Reader(state);
}

Status SharedMap::Reader::ParallelScan(
    uint32_t threads,
    const std::function<Status(std::string_view key, std::string_view value)>& visit) {
  BASALT_ASSIGN_OR_RETURN(const Reader snapshot, GetSnapshot());
  return shared_map::ScanGeneration(*snapshot.state_->generation, snapshot.state_->limit, threads,
                                    visit);
}

uint64_t SharedMap::Reader::generation() const noexcept { return state_->generation->number(); }

}  // namespace basalt

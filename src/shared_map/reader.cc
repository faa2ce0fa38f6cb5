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
// turn, a fixed number of keys apart, was slower. A prefetch of a page whose address has to be
// translated anew holds up what comes after it, so that few instructions should stand between two.

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
  PerfectHash::Asked asked;
  uint64_t slot;
};

/// How many keys go through the steps together: their records fit the second-level cache.
constexpr size_t kGroup = 64;

template <bool kChanges>
[[gnu::always_inline]] inline void SetOut(const Generation& from, std::string_view key,
                                          Underway* underway) {
  underway->hash = base::HashShort(key);
  if constexpr (kChanges) from.PrefetchFilters(underway->hash);
  underway->base = from.BaseOf(underway->hash);
  if (underway->base != nullptr) underway->asked = underway->base->AskForSlot(underway->hash);
}

[[gnu::always_inline]] inline void FindSlot(std::string_view key, Underway* underway) {
  const BaseFile* const base = underway->base;
  if (base == nullptr) return;
  underway->slot = base->Slot(underway->asked, key);
  base->PrefetchStart(underway->slot);
}

[[gnu::always_inline]] inline void FetchRecord(const Underway& underway) {
  if (underway.base != nullptr) underway.base->PrefetchRecord(underway.slot);
}

[[gnu::always_inline]] inline Found AnswerOfBase(const Underway& underway, std::string_view key,
                                                 std::string_view* value) {
  if (underway.base == nullptr) return Found::kAbsent;
  return underway.base->FindAt(underway.slot, key, value);
}

/// Of a key that may have a change. `candidate`: the change that may decide about it.
[[gnu::always_inline]] inline Found AnswerOfChanged(const Generation& from,
                                                    const Underway& underway,
                                                    const Generation::Candidate& candidate,
                                                    std::string_view key, uint64_t limit,
                                                    std::string_view* value) {
  if (candidate.set == nullptr) return AnswerOfBase(underway, key, value);
  Change change;
  const bool is_it = limit == ChangeSet::kNoLimit &&
                     candidate.set->At(candidate.location, &change) &&
                     base::SameBytes(change.record.key(), key);
  const Found found =
      is_it ? Found::kPresent : from.FindInChanges(underway.hash, key, limit, &change);
  if (found == Found::kCorrupt) return found;
  if (found == Found::kAbsent) return AnswerOfBase(underway, key, value);
  *value = change.record.value();
  return change.is_put() ? Found::kPresent : Found::kAbsent;
}

/// The keys of a group by whether they may have a change, which cannot be predicted: so they are
/// sorted without a branch, and each kind goes its way by itself.
class Sorted {
 public:
  Sorted(const Generation& from, std::span<const Underway> group) noexcept : size_(group.size()) {
    size_t unchanged = group.size();
    for (size_t i = 0; i < group.size(); ++i) {
      const bool may_be = from.MayBeChanged(group[i].hash);
      order_[may_be ? changed_ : unchanged - 1] = static_cast<uint8_t>(i);
      changed_ += may_be ? 1 : 0;
      unchanged -= may_be ? 0 : 1;
    }
  }
  std::span<const uint8_t> changed() const noexcept { return std::span(order_).first(changed_); }
  std::span<const uint8_t> unchanged() const noexcept {
    return std::span(order_).subspan(changed_, size_ - changed_);
  }

 private:
  const size_t size_;
  size_t changed_ = 0;
  std::array<uint8_t, kGroup> order_;
};

}  // namespace

[[gnu::always_inline]] inline void ReaderState::Answer(
    Found found, std::string_view key, std::string_view value,
    Result<std::optional<SharedMap::View>>* result) {
  if (found == Found::kPresent) [[likely]] {
    (*result)->emplace(ViewOf(value));
  } else if (found == Found::kCorrupt) {
    *result = WhyCorrupt(key);
  }
}

template <bool kChanges>
void ReaderState::GetGroup(std::span<const std::string_view> keys,
                           std::span<Result<std::optional<SharedMap::View>>> results) {
  const Generation& from = *generation;
  std::array<Underway, kGroup> group;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  const std::span<Underway> all = std::span(group).first(keys.size());
  const auto answer_of_base = [&](size_t i) __attribute__((always_inline)) {
    std::string_view value;
    const Found found = AnswerOfBase(all[i], keys[i], &value);
    Answer(found, keys[i], value, &results[i]);
  };
  for (size_t i = 0; i < all.size(); ++i) SetOut<kChanges>(from, keys[i], &all[i]);
  for (size_t i = 0; i < all.size(); ++i) FindSlot(keys[i], &all[i]);
  if constexpr (!kChanges) {
    for (const Underway& underway : all) FetchRecord(underway);
    for (size_t i = 0; i < all.size(); ++i) answer_of_base(i);
  } else {
    const Sorted sorted(from, all);
    for (const uint8_t i : sorted.changed()) from.PrefetchWords(all[i].hash);
    for (const uint8_t i : sorted.unchanged()) FetchRecord(all[i]);
    std::array<Generation::Candidate, kGroup> candidates;
    for (const uint8_t i : sorted.changed()) {
      candidates[i] = from.CandidateOf(all[i].hash);
      if (candidates[i].set != nullptr) {
        candidates[i].set->PrefetchChange(candidates[i].location);
      } else {
        FetchRecord(all[i]);
      }
    }
    for (const uint8_t i : sorted.unchanged()) answer_of_base(i);
    for (const uint8_t i : sorted.changed()) {
      std::string_view value;
      const Found found = AnswerOfChanged(from, all[i], candidates[i], keys[i], limit, &value);
      Answer(found, keys[i], value, &results[i]);
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

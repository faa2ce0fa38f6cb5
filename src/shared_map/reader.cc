#include <algorithm>
#include <array>
#include <bit>
#include <new>
#include <type_traits>

#include "base/check.h"
#include "base/short_hash.h"
#include "shared_map/reader_state.h"

// Get and MultiGet. Each key of a batch takes steps. A step prefetches the memory that the next one
// reads: the key's hash; its slot, or its words in the indexes of changes; its record, or the
// change that may replace it; the answer. In the fixed layout the slot determines the record's
// place, so the record is prefetched in the same step, also if a change may replace it. The steps
// of other keys come between two steps of a key, so that the processor computes while memory is
// loading.

namespace basalt {

using shared_map::Detour;
using shared_map::Found;
using shared_map::ReaderState;
using shared_map::ReadLimit;
using shared_map::Version;

namespace shared_map {

Status ReaderState::FollowNow() {
  // When that fails, the next call tries again.
  BASALT_ASSIGN_OR_RETURN(Core::Followed followed, core->Newest());
  version = std::move(followed.version);
  control = followed.control;
  seen_word = followed.word;
  limit.end = 0;  // Those of another set count from 0 again.
  return Status();
}

[[gnu::always_inline]] inline Result<SharedMap::MaybeView> ReaderState::Get(std::string_view key) {
  std::string_view value;
  const Found found = version->Find(base::HashShort(key, version->hash_of()), key, &limit, &value);
  if (found == Found::kPresent) [[likely]] {
    return Result<SharedMap::MaybeView>(std::in_place, ViewOf(value));
  }
  if (found == Found::kAbsent) return SharedMap::MaybeView();
  return WhyCorrupt(key);
}

namespace {

/// A key of a batch on its way to its answer. A line each: elsewhere on the stack, batches took a
/// third longer in some builds.
struct alignas(64) Underway {
  uint64_t hash;
  const BaseFile* base;  // Null: no base has the key.
  phash::Function::Lookup lookup;
  uint64_t slot;
  Version::MaybeIn maybe;
  ChangeSet::Candidate candidate;  // The change that may decide.
};
static_assert(sizeof(Underway) == 64);

// How many keys take each step together. A prefetch from a page whose address has to be translated
// anew holds up what comes after it, unless that is one, too: they are translated side by side if
// the processor sees them at once. Seeds of the function are in a cache mostly; for the words of
// indexes and starts a group waits as long as one group takes, for its records as long again.
constexpr size_t kGroup = 32;

template <Detour kDetour>
[[gnu::always_inline]] inline void SetOut(const Version& from, std::string_view key,
                                          Underway* underway) {
  underway->hash = base::HashShort(key, from.hash_of());
  if constexpr (kDetour == Detour::kChanges) from.PrefetchFilters(underway->hash);
  underway->base = from.BaseOf(underway->hash);
  if (underway->base != nullptr) underway->lookup = underway->base->PrefetchSeed(underway->hash);
}

template <Detour kDetour>
[[gnu::always_inline]] inline void Locate(const Version& from, std::string_view key,
                                          Underway* underway) {
  if constexpr (kDetour == Detour::kChanges) {
    underway->maybe = from.MayBeChanged(underway->hash);
    from.PrefetchWords(underway->hash, underway->maybe);
  }
  const BaseFile* const base = underway->base;
  if (base == nullptr) return;
  underway->slot = base->Slot(underway->lookup, key);
  if (kDetour == Detour::kNone || base->is_fixed()) {
    base->PrefetchRecord(underway->slot);
  } else {
    base->PrefetchStart(underway->slot);
  }
}

template <Detour kDetour>
[[gnu::always_inline]] inline void Fetch(const Version& from, Underway* underway) {
  if constexpr (kDetour == Detour::kChanges) {
    ChangeSet::Candidate& candidate = underway->candidate;
    candidate.is_there = false;
    if (underway->maybe.any()) {
      candidate = from.CandidateOf(underway->hash, underway->maybe);
      candidate.Prefetch();
      if (candidate.is_there) return;
    }
  }
  const BaseFile* const base = underway->base;
  if (base != nullptr && !base->is_fixed()) base->PrefetchRecord(underway->slot);
}

[[gnu::always_inline]] inline Found AnswerOfBase(const Underway& underway, std::string_view key,
                                                 std::string_view* value) {
  if (underway.base == nullptr) return Found::kAbsent;
  return underway.base->FindAt(underway.slot, key, value);
}

/// Of a key that has a candidate.
[[gnu::always_inline]] inline Found AnswerOfChanges(const Version& from, const Underway& underway,
                                                    std::string_view key, ReadLimit limit,
                                                    std::string_view* value) {
  RecordRef record;
  if (!underway.candidate.Is(key, limit.end, &record)) [[unlikely]] {
    const Found found = from.FindInChanges(underway.hash, key, &limit, &record);
    if (found == Found::kCorrupt) return found;
    if (found == Found::kAbsent) return AnswerOfBase(underway, key, value);
  }
  *value = record.value();
  return record.is_put() ? Found::kPresent : Found::kAbsent;
}

}  // namespace

[[gnu::always_inline]] inline void ReaderState::Answer(Found found, std::string_view key,
                                                       std::string_view value,
                                                       Result<SharedMap::MaybeView>* result) {
  if (found == Found::kPresent) [[likely]] {
    (*result)->emplace(ViewOf(value));
  } else if (found == Found::kCorrupt) {
    *result = WhyCorrupt(key);
  }
}

template <Detour kDetour>
void ReaderState::GetMany(ReadLimit within, std::span<const std::string_view> keys,
                          std::span<Result<SharedMap::MaybeView>> results) {
  const Version& from = *version;
  constexpr bool kChanges = kDetour == Detour::kChanges;
  // Groups that wait for their records while another one is located.
  constexpr size_t kWaiting = kDetour == Detour::kNone ? 1 : 2;
  constexpr size_t kRing = std::bit_ceil((1 + kWaiting) * kGroup);
  std::array<Underway, kRing> ring;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  const auto end_of = [&](size_t first) { return std::min(first + kGroup, keys.size()); };
  for (size_t first = 0; first < keys.size() + kWaiting * kGroup; first += kGroup) {
    // Before the first key they are, without a sign, behind the last one.
    const size_t fetched = first - kGroup;
    const size_t answered = first - kWaiting * kGroup;
    Underway* at = &ring[first % kRing];
    for (size_t i = first; i < end_of(first); ++i) SetOut<kDetour>(from, keys[i], at++);
    at = &ring[first % kRing];
    for (size_t i = first; i < end_of(first); ++i) Locate<kDetour>(from, keys[i], at++);
    if constexpr (kDetour != Detour::kNone) {
      at = &ring[fetched % kRing];
      for (size_t i = fetched; i < end_of(fetched); ++i) Fetch<kDetour>(from, at++);
    }
    at = &ring[answered % kRing];
    for (size_t i = answered; i < end_of(answered); ++i, ++at) {
      std::string_view value;
      const Found found = kChanges && at->candidate.is_there
                              ? AnswerOfChanges(from, *at, keys[i], within, &value)
                              : AnswerOfBase(*at, keys[i], &value);
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

Result<SharedMap::MaybeView> SharedMap::Reader::Get(std::string_view key) {
  BASALT_RETURN_IF_ERROR(state_->Follow());
  return state_->Get(key);
}

Result<bool> SharedMap::Reader::Contains(std::string_view key) {
  BASALT_RETURN_IF_ERROR(state_->Follow());
  std::string_view value;
  const Version& from = *state_->version;
  const Found found = from.Find(base::HashShort(key, from.hash_of()), key, &state_->limit, &value);
  if (found == Found::kCorrupt) return state_->WhyCorrupt(key);
  return found == Found::kPresent;
}

Status SharedMap::Reader::MultiGet(std::span<const std::string_view> keys,
                                   std::span<Result<MaybeView>> results) {
  if (results.size() != keys.size()) {
    return Status(StatusCode::kInvalidArgument,
                  "MultiGet: " + std::to_string(keys.size()) + " keys and room for " +
                      std::to_string(results.size()) + " results; they must be as many");
  }
  // What the results held may be what keeps this reader on an old version.
  for (auto& result : results) {
    if (result) {
      result->reset();
    } else {
      result = MaybeView();
    }
  }
  BASALT_RETURN_IF_ERROR(state_->Follow());
  const Version& from = *state_->version;
  if (from.MayHaveChanges()) {
    ReadLimit within{.end = state_->limit.end};
    if (state_->limit.follows) {
      // The same for all keys, so that the answers are as of one moment.
      BASALT_ASSIGN_OR_RETURN(within.end, from.newest().VisibleEnd());
      state_->limit.end = within.end;
    }
    state_->GetMany<Detour::kChanges>(within, keys, results);
  } else if (from.has_starts()) {
    state_->GetMany<Detour::kStarts>({}, keys, results);
  } else {
    state_->GetMany<Detour::kNone>({}, keys, results);
  }
  return Status();
}

Result<SharedMap::Reader> SharedMap::Reader::GetSnapshot() {
  BASALT_RETURN_IF_ERROR(state_->Follow());
  ReadLimit limit{.end = state_->limit.end};
  if (state_->limit.follows) {
    BASALT_ASSIGN_OR_RETURN(limit.end, state_->version->newest().VisibleEnd());
  }
  auto* const state = new (std::nothrow) ReaderState(*state_);
  if (state == nullptr) return Status(StatusCode::kResourceExhausted, "out of memory");
  state->pins = 1;
  state->limit = limit;
  return Reader(state);
}

Status SharedMap::Reader::ParallelScan(
    uint32_t threads,
    const std::function<Status(std::string_view key, std::string_view value)>& visit) {
  BASALT_ASSIGN_OR_RETURN(const Reader snapshot, GetSnapshot());
  return shared_map::ScanVersion(*snapshot.state_->version, snapshot.state_->limit.end, threads,
                                 visit);
}

uint64_t SharedMap::Reader::version() const noexcept { return state_->version->number(); }

}  // namespace basalt

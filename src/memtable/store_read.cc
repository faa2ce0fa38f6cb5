#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/merge_operator.h"
#include "base/merging_iterator.h"
#include "base/short_hash.h"
#include "base/visible_iterator.h"
#include "base/wall_time_millis.h"
#include "memtable/snapshot_state.h"
#include "memtable/store.h"

// What reads: lookups of one key and of many, and iterators.

namespace basalt::memtable {
StoreCore::Seen StoreCore::Look(const Generation& generation, uint32_t keyspace,
                                std::string_view key, uint64_t hash,
                                base::SequenceNumber at) const {
  std::optional<Seen> before;
  for (;;) {
    BatchCheck check(*this);
    Seen seen;
    if (!generation.range_deletes().empty()) {
      seen.covered = generation.range_deletes().SequenceAt(keyspace, key, at, &check);
    }
    seen.record = generation.Find(keyspace, key, hash, at, &check);
    if (!check.has_asked() || seen == before) return seen;
    before = seen;
  }
}

StoreCore::Found StoreCore::Find(const State& state, uint32_t keyspace, std::string_view key,
                                 uint64_t hash, base::SequenceNumber at) const {
  for (const auto& generation : state.sealed) generation->Prefetch(keyspace, hash);
  Found found;
  const auto is_decided = [&](const Generation& generation) {
    const Seen seen = Look(generation, keyspace, key, hash, at);
    found.sequence = seen.covered;
    if (seen.record == nullptr) return seen.covered != 0;  // It covers all that is older.
    const base::Tag tag = seen.record->tag.load(std::memory_order_relaxed);
    if (base::TagSequence(tag) < seen.covered) return true;
    found.sequence = base::TagSequence(tag);
    if (base::TagKind(tag) != RecordKind::kDelete) {
      found.record = seen.record;
      found.generation = &generation;
    }
    return true;
  };
  if (is_decided(*state.active)) return found;
  for (const auto& generation : state.sealed) {
    if (is_decided(*generation)) break;
  }
  return found;
}

Result<StoreCore::ReadPoint> StoreCore::PointOf(const Snapshot& snapshot) const {
  const auto* const state = static_cast<const SnapshotState*>(snapshot.state().get());
  if (state == nullptr || state->core() != this) {
    return Status(
        StatusCode::kInvalidArgument,
        "read from a memtable: the snapshot is of another store; take one from this store");
  }
  return ReadPoint{.at = snapshot.sequence(),
                   .now_ms = static_cast<uint64_t>(snapshot.time().time_since_epoch().count())};
}

Result<StoreCore::ReadPoint> StoreCore::PointOf(const State& state,
                                                const ReadOptions& options) const {
  const auto keyspace = static_cast<uint32_t>(options.keyspace);
  if (!state.keyspaces->Contains(keyspace)) return NoSuchKeyspace(keyspace);
  if (options.snapshot == nullptr) return ReadPoint();
  return PointOf(*options.snapshot);
}

// Most lookups are told by the first record that they meet, in some 250 instructions, of which a
// processor's window holds more than of the general way's 430.
Result<MaybeValue> StoreCore::Get(std::string_view key, const ReadOptions& options) const {
  const uint64_t hash = base::HashShort(key);
  if (options.snapshot == nullptr && options.keyspace == KeyspaceId::kDefault) {
    const base::QuickEpochGuard inside;
    if (inside) [[likely]] {
      const State& seen = *state();
      if (seen.sealed.empty() && seen.active->range_deletes().empty()) {
        const base::SequenceNumber settled = sequencer_.BatchesSettledBelow();
        const Record* const first = seen.active->First(hash);
        if (first == nullptr) return MaybeValue();
        first->FetchBehind();
        if (first->IsPlainPutOf(key) && first->has_short_value() && IsSettled(*first, settled))
            [[likely]] {
          return Result<MaybeValue>(std::in_place, std::in_place,
                                    first->PlainShortValue(key.size()));
        }
      }
    }
  }
  return GetSlowly(key, hash, options);
}

Result<MaybeValue> StoreCore::GetSlowly(std::string_view key, uint64_t hash,
                                        const ReadOptions& options) const {
  const auto keyspace = static_cast<uint32_t>(options.keyspace);
  const base::EpochGuard inside;
  const State& seen = *state();
  ReadPoint point;
  if (options.snapshot != nullptr || keyspace != 0) {
    BASALT_ASSIGN_OR_RETURN(point, PointOf(seen, options));
  }
  const Found found = Find(seen, keyspace, key, hash, point.at);
  if (!found) return MaybeValue();
  if (found.is_merge()) [[unlikely]] {
    BASALT_ASSIGN_OR_RETURN(WholeEntry whole, FindWhole(seen, keyspace, key, hash, point));
    return std::move(whole.value);
  }
  if (HasExpired(*found.record, point)) return MaybeValue();
  return Result<MaybeValue>(std::in_place, std::in_place, found);
}

Result<StoreCore::WholeEntry> StoreCore::FindWhole(const State& state, uint32_t keyspace,
                                                   std::string_view key, uint64_t hash,
                                                   ReadPoint point) const {
  const State* seen = &state;
  Found found = Find(*seen, keyspace, key, hash, point.at);
  if (found.is_merge()) {
    if (point.at == base::kMaxSequence) seen = Settled(&point.at);
    point.now_ms = NowOf(point);
    return FindMerged(*seen, keyspace, key, hash, point);
  }
  WholeEntry whole;
  whole.sequence = found.sequence;
  if (found && !HasExpired(*found.record, point)) {
    whole.expiry_ms = found.record->time_ms();
    whole.value.emplace(found);
  }
  return whole;
}

// Since the first look another version may have come to stand above the merge: it is then seen
// here.
Result<StoreCore::WholeEntry> StoreCore::FindMerged(const State& state, uint32_t keyspace,
                                                    std::string_view key, uint64_t hash,
                                                    const ReadPoint& point) const {
  const auto gather = [&](uint64_t expiry_ms) {
    MergesOfKey read;
    const auto ends_in = [&](const std::shared_ptr<Generation>& generation) {
      return read.TakeFrom(generation.get(), keyspace, key, hash, point.at, expiry_ms);
    };
    if (!ends_in(state.active)) {
      static_cast<void>(std::ranges::any_of(state.sealed, ends_in));
    }
    return read;
  };
  MergesOfKey read = gather(0);
  const uint64_t expiry_ms = read.below.time_ms;
  if (read.IsSplit()) read = gather(expiry_ms);
  WholeEntry whole;
  whole.sequence = Find(state, keyspace, key, hash, point.at).sequence;
  const auto is_live = [&](uint64_t its_expiry_ms) {
    return its_expiry_ms == 0 || its_expiry_ms > point.now_ms;
  };
  const bool has_below = base::TagKind(read.below.tag) == RecordKind::kPut;
  if (read.merges.empty()) {
    if (!has_below || !is_live(expiry_ms)) return whole;
    whole.value = std::move(read.below.value);
    whole.expiry_ms = expiry_ms;
    return whole;
  }
  std::optional<std::string_view> below;
  if (has_below) below = read.below.value.view();
  BASALT_ASSIGN_OR_RETURN(const base::MergedValue merged,
                          base::ApplyMerges(read.merges, below, expiry_ms, point.now_ms));
  for (Generation* const table : read.long_walks) {
    table->FoldMerges(keyspace, key, hash, point.at, expiry_ms);
  }
  if (!is_live(merged.expiry_ms)) return whole;
  whole.expiry_ms = merged.expiry_ms;
  whole.value = Value::Copy(merged.value);
  return whole;
}

Result<std::optional<Entry>> StoreCore::GetEntry(std::string_view key,
                                                 const ReadOptions& options) const {
  const base::EpochGuard inside;
  const State& seen = *state();
  BASALT_ASSIGN_OR_RETURN(const ReadPoint point, PointOf(seen, options));
  BASALT_ASSIGN_OR_RETURN(WholeEntry whole, FindWhole(seen, static_cast<uint32_t>(options.keyspace),
                                                      key, base::HashShort(key), point));
  if (!whole.value) return std::optional<Entry>();
  return std::optional(Entry{.value = std::move(*whole.value),
                             .version = whole.sequence,
                             .expiry = base::WallTimeOf(whole.expiry_ms)});
}

Result<bool> StoreCore::Contains(std::string_view key, const ReadOptions& options) const {
  const auto keyspace = static_cast<uint32_t>(options.keyspace);
  const uint64_t hash = base::HashShort(key);
  const base::EpochGuard inside;
  const State& seen = *state();
  BASALT_ASSIGN_OR_RETURN(const ReadPoint point, PointOf(seen, options));
  const Found found = Find(seen, keyspace, key, hash, point.at);
  if (!found.is_merge()) return found && !HasExpired(*found.record, point);
  BASALT_ASSIGN_OR_RETURN(const WholeEntry whole, FindWhole(seen, keyspace, key, hash, point));
  return whole.value.has_value();
}

const StoreCore::State* StoreCore::Settled(base::SequenceNumber* at) const {
  for (;;) {
    const State* const seen = state();
    *at = sequencer_.Settle();
    // Another one would have writes up to `at` that this one lacks.
    if (state() == seen) return seen;
  }
}

Status StoreCore::MultiGet(std::span<const std::string_view> keys,
                           std::span<Result<MaybeValue>> results,
                           const ReadOptions& options) const {
  if (options.keyspace != KeyspaceId::kDefault) {
    const base::EpochGuard inside;
    if (Result<ReadPoint> point = PointOf(*state(), options); !point) return point.error();
  }
  const auto key_at = [keys, keyspace = options.keyspace](size_t i) {
    return KeyspaceKey{keyspace, keys[i]};
  };
  return MultiGetOf(keys.size(), key_at, results, options);
}

Status StoreCore::MultiGet(std::span<const KeyspaceKey> keys, std::span<Result<MaybeValue>> results,
                           const ReadOptions& options) const {
  return MultiGetOf(keys.size(), [&](size_t i) { return keys[i]; }, results, options);
}

template <class KeyAt>
Status StoreCore::MultiGetOf(size_t count, const KeyAt& key_at,
                             std::span<Result<MaybeValue>> results,
                             const ReadOptions& options) const {
  const base::EpochGuard inside;
  const State* seen = nullptr;
  ReadPoint point;
  if (options.snapshot != nullptr) {
    BASALT_ASSIGN_OR_RETURN(point, PointOf(*options.snapshot));
    seen = state();
  } else {
    seen = Settled(&point.at);
  }
  constexpr size_t kGroup = 32;
  uint64_t hashes[kGroup];
  const Record* candidates[kGroup];
  const bool has_ranges = !seen->active->range_deletes().empty();
  for (size_t first = 0; first < count; first += kGroup) {
    const size_t in_group = std::min(kGroup, count - first);
    for (size_t i = 0; i < in_group; ++i) {
      const KeyspaceKey key = key_at(first + i);
      const auto keyspace = static_cast<uint32_t>(key.keyspace);
      hashes[i] = base::HashShort(key.key);
      seen->active->Prefetch(keyspace, hashes[i]);
      for (const auto& generation : seen->sealed) generation->Prefetch(keyspace, hashes[i]);
    }
    for (size_t i = 0; i < in_group; ++i) {
      const auto keyspace = static_cast<uint32_t>(key_at(first + i).keyspace);
      candidates[i] = seen->active->Candidate(keyspace, hashes[i]);
      for (const auto& generation : seen->sealed) {
        static_cast<void>(generation->Candidate(keyspace, hashes[i]));
      }
    }
    for (size_t i = 0; i < in_group; ++i) {
      const KeyspaceKey key = key_at(first + i);
      const auto keyspace = static_cast<uint32_t>(key.keyspace);
      // In its place: a value that is moved there is copied three times.
      Result<MaybeValue>& result = results[first + i];
      if (keyspace != 0 && !seen->keyspaces->Contains(keyspace)) [[unlikely]] {
        result = NoSuchKeyspace(keyspace);
        continue;
      }
      if (!result) result = MaybeValue();
      // What can be told from the newest version alone, which is nearly always the case: nothing up
      // to `at` is under way.
      const Record* const newest = candidates[i];
      const bool is_it = newest != nullptr && !has_ranges && newest->keyspace() == keyspace &&
                         base::SameBytes(newest->key(), key.key);
      const base::Tag tag = is_it ? newest->tag.load(std::memory_order_acquire) : 0;
      if (is_it && base::TagSequence(tag) <= point.at && base::TagKind(tag) == RecordKind::kPut &&
          newest->time_ms() == 0) [[likely]] {
        result->emplace(Found{.record = newest, .generation = seen->active.get()});
        continue;
      }
      const Found found = Find(*seen, keyspace, key.key, hashes[i], point.at);
      if (found.is_merge()) [[unlikely]] {
        auto whole = FindWhole(*seen, keyspace, key.key, hashes[i], point);
        if (whole) {
          *result = std::move(whole->value);
        } else {
          result = whole.error();
        }
      } else if (found && !HasExpired(*found.record, point)) {
        result->emplace(found);
      } else {
        result->reset();
      }
    }
  }
  return {};
}

StoreCore::State StoreCore::CopyState() const {
  const base::EpochGuard inside;
  return *state();
}

std::unique_ptr<Iterator> StoreCore::NewIterator(const ReadOptions& options) const {
  if (Status bounds = base::CheckBounds(options); !bounds.ok()) {
    return base::NewErrorIterator(bounds);
  }
  State seen;
  Result<ReadPoint> point;
  {
    const base::EpochGuard inside;
    point = PointOf(*state(), options);
    if (!point) return base::NewErrorIterator(point.error());
    seen = options.snapshot != nullptr ? *state() : *Settled(&point->at);
  }
  point->now_ms = NowOf(*point);
  const auto keyspace = static_cast<uint32_t>(options.keyspace);
  std::vector<const base::RangeCover*> covers;
  std::vector<base::RangeCover::Range> loose;
  const auto read = [&](const Generation& generation) {
    auto iterator = generation.NewIterator(keyspace, point->at);
    generation.range_deletes().Collect(keyspace, point->at, &covers, &loose);
    return iterator;
  };
  if (!was_iterated_.load(std::memory_order_relaxed)) {
    was_iterated_.store(true, std::memory_order_relaxed);
  }
  std::unique_ptr<base::RecordIterator> source;
  if (seen.sealed.empty()) {
    source = read(*seen.active);
  } else {
    std::vector<std::unique_ptr<base::RecordIterator>> children;
    if (!seen.active->empty()) children.push_back(read(*seen.active));
    for (const auto& generation : seen.sealed) children.push_back(read(*generation));
    source = base::NewMergingIterator(std::move(children));
  }
  base::View view{.ranges = base::NewRangeCovers(std::move(covers), loose),
                  .at = point->at,
                  .now_ms = point->now_ms,
                  .source = std::move(source),
                  .records_stay = true};
  if (has_merges_.load(std::memory_order_acquire)) {
    view.read_merged = [core = shared_from_this(), seen = std::move(seen), keyspace,
                        point = *point](std::string_view key) {
      return core->ReadMerged(seen, keyspace, key, point);
    };
  }
  return base::NewVisibleIterator(std::move(view), options);
}

Result<std::optional<base::MergedValue>> StoreCore::ReadMerged(const State& state,
                                                               uint32_t keyspace,
                                                               std::string_view key,
                                                               const ReadPoint& point) const {
  const base::EpochGuard inside;
  BASALT_ASSIGN_OR_RETURN(const WholeEntry whole,
                          FindMerged(state, keyspace, key, base::HashShort(key), point));
  if (!whole.value) return std::optional<base::MergedValue>();
  return std::optional(base::MergedValue{whole.value->ToString(), whole.expiry_ms});
}

Result<Snapshot> StoreCore::TakeSnapshot() const {
  auto taken = std::make_shared<const SnapshotState>(shared_from_this());
  const base::SequenceNumber sequence = taken->sequence();
  const WallTime time(std::chrono::milliseconds(static_cast<int64_t>(taken->time_ms())));
  sequencer_.Settle(sequence);
  return Snapshot(std::move(taken), sequence, time);
}

}  // namespace basalt::memtable

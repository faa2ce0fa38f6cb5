#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/epoch.h"
#include "base/hash.h"
#include "base/merging_iterator.h"
#include "base/surviving_records.h"
#include "memtable/store.h"

// Merging sealed generations: of like size, and for room where the budget is used up.

namespace basalt::memtable {
namespace {

/// A merge for room has to free so much of the budget, or writers would wait for one all the time.
constexpr uint64_t kFreedShare = 64;
/// No merge is under way for so long: one that has its time and cannot be found yet.
constexpr uint64_t kMergeUnderWayMs = 60'000;
/// So many neighbours of like size are merged.
constexpr size_t kFanIn = 4;

/// Appends versions to a generation, some at a time, so that the index lines that they need are
/// fetched together.
class Appender {
 public:
  explicit Appender(Generation* out) : out_(out) {}

  /// Views must last until Flush. False: there is no room.
  bool Add(const RecordSource& source, base::SequenceNumber sequence) {
    const uint64_t hash = base::Hash(source.key);
    out_->Prefetch(source.keyspace, hash);
    pending_.push_back({source, sequence, hash});
    return pending_.size() < kGroup || Flush();
  }
  bool Flush() {
    for (const auto& [source, sequence, hash] : pending_) {
      if (source.ByteSize() > Generation::kSmallBytesMax) {
        auto reservation = out_->Reserve(source);
        if (!reservation) return false;
        out_->Insert(std::move(*reservation), sequence);
        continue;
      }
      bool has_piled_up = false;
      const auto assign = [number = sequence](base::Tag) { return number; };
      const base::EpochGuard inside;
      if (out_->Put(source, hash, inside.thread_number(), assign, &has_piled_up) !=
          Generation::Placed::kYes) {
        return false;
      }
    }
    pending_.clear();
    return true;
  }

 private:
  static constexpr size_t kGroup = 16;
  struct Pending {
    RecordSource source;
    base::SequenceNumber sequence;
    uint64_t hash;
  };
  Generation* const out_;
  std::vector<Pending> pending_;
};

/// The range deletes of some generations, by the boundaries between which they stand.
class RangeStripes {
 public:
  RangeStripes(const std::vector<std::shared_ptr<Generation>>& inputs, uint32_t keyspace,
               const std::vector<base::SequenceNumber>& boundaries)
      : boundaries_(boundaries) {
    std::vector<std::vector<base::RangeCover::Range>> ranges(boundaries.size() + 1);
    for (const auto& input : inputs) {
      for (const RangeDelete& range : input->range_deletes()) {
        if (range.keyspace != keyspace) continue;
        const base::SequenceNumber sequence = range.sequence.load(std::memory_order_relaxed);
        ranges[StripeOf(sequence)].push_back({range.begin, range.end, sequence});
        is_empty_ = false;
      }
    }
    if (is_empty_) return;
    for (const auto& stripe : ranges) covers_.emplace_back(stripe);
  }
  size_t StripeOf(base::SequenceNumber sequence) const {
    return static_cast<size_t>(std::lower_bound(boundaries_.begin(), boundaries_.end(), sequence) -
                               boundaries_.begin());
  }
  bool empty() const noexcept { return is_empty_; }
  /// The newest that covers the key, of those up to the boundary `at`; 0: there is none.
  base::SequenceNumber SequenceAt(std::string_view key, base::SequenceNumber at) const {
    for (size_t stripe = StripeOf(at) + 1; stripe-- > 0;) {
      if (const base::SequenceNumber cover = covers_[stripe].SequenceAt(key)) return cover;
    }
    return 0;
  }

 private:
  const std::vector<base::SequenceNumber>& boundaries_;
  std::vector<base::RangeCover> covers_;  // of what the inputs hold
  bool is_empty_ = true;
};

/// Whether a merge keeps it. `at_bottom`: nothing older lies below. `oldest`: what readers see at
/// least.
bool IsKept(const RangeDelete& range, const Keyspaces& keyspaces, bool at_bottom,
            base::SequenceNumber oldest) {
  return keyspaces.Contains(range.keyspace) &&
         (!at_bottom || range.sequence.load(std::memory_order_relaxed) > oldest);
}

/// Walks forward over another iterator, and counts what it meets.
class CountingIterator final : public base::RecordIterator {
 public:
  CountingIterator(base::RecordIterator* source, uint32_t keyspace, uint64_t* records,
                   uint64_t* bytes) noexcept
      : source_(source), keyspace_(keyspace), records_(records), bytes_(bytes) {}

  void SeekToFirst() override {
    source_->SeekToFirst();
    Count();
  }
  void Next() override {
    source_->Next();
    Count();
  }
  void SeekToLast() override {}
  void Seek(std::string_view, base::Tag) override {}
  void SeekForPrev(std::string_view, base::Tag) override {}
  void Prev() override {}

 private:
  void Count() {
    ShowAs(*source_);
    if (!valid_) return;
    ++*records_;
    *bytes_ += RecordSource{.kind = base::TagKind(tag_),
                            .keyspace = keyspace_,
                            .key = key_,
                            .value = value_,
                            .time_ms = time_ms_}
                   .ByteSize();
  }

  base::RecordIterator* const source_;
  const uint32_t keyspace_;
  uint64_t* const records_;
  uint64_t* const bytes_;
};

}  // namespace

// The flag of merges is read behind the time, by a read-modify-write that the first merge's follows
// if it does not see that (NoteMerges): that merge is then not written before what has expired
// here.
StoreCore::Readers StoreCore::PresentReaders() const {
  Readers readers;
  const std::lock_guard lock(snapshots_mutex_);
  for (const auto& [sequence, time_ms] : snapshots_) {
    if (readers.boundaries.empty() || readers.boundaries.back() != sequence) {
      readers.boundaries.push_back(sequence);
    }
  }
  readers.now_ms = time_.NowMs();
  if (!snapshots_.empty()) readers.now_ms = std::min(readers.now_ms, snapshots_.begin()->second);
  bool expected = false;
  readers.has_merges =
      !has_merges_.compare_exchange_strong(expected, false, std::memory_order_acq_rel);
  // Later snapshots are at this or above.
  const base::SequenceNumber last = sequencer_.last();
  if (readers.boundaries.empty() || readers.boundaries.back() != last) {
    readers.boundaries.push_back(last);
  }
  return readers;
}

// What newer generations hide from everybody is not kept, either: else a generation whose records
// have all been overwritten could only go together with those that did it.
template <class Visit>
std::optional<StoreCore::Counts> StoreCore::ForEachKept(const State& seen, size_t first,
                                                        size_t last, const Readers& readers,
                                                        const Visit& visit) const {
  const Generations inputs(seen.sealed.begin() + static_cast<ptrdiff_t>(first),
                           seen.sealed.begin() + static_cast<ptrdiff_t>(last));
  Generations newer = {seen.active};
  newer.insert(newer.end(), seen.sealed.begin(),
               seen.sealed.begin() + static_cast<ptrdiff_t>(first));
  const auto is_hidden_from_above = [&](uint32_t keyspace, std::string_view key,
                                        base::SequenceNumber sequence) {
    // The lowest that anybody may read at, of those who see this version.
    const base::SequenceNumber at =
        *std::lower_bound(readers.boundaries.begin(), readers.boundaries.end(), sequence);
    const uint64_t hash = base::Hash(key);
    const base::EpochGuard inside;
    return std::any_of(newer.begin(), newer.end(), [&](const auto& generation) {
      const Seen its = Look(*generation, keyspace, key, hash, at);
      if (its.covered != 0) return true;
      // Merges build on what is older.
      return its.record != nullptr && its.record->kind != static_cast<uint8_t>(RecordKind::kMerge);
    });
  };

  // Beneath newer versions, too: snapshots may see it.
  const auto has_merge_above = [&](uint32_t keyspace, std::string_view key) {
    const uint64_t hash = base::Hash(key);
    const base::EpochGuard inside;
    return std::any_of(newer.begin(), newer.end(), [&](const auto& generation) {
      const Record* record = generation->Find(keyspace, key, hash, base::kMaxSequence, nullptr);
      while (record != nullptr && record->kind != static_cast<uint8_t>(RecordKind::kMerge)) {
        record = generation->Older(*record);
      }
      return record != nullptr;
    });
  };

  std::set<uint32_t> keyspaces;
  for (const auto& input : inputs) input->AddKeyspacesTo(&keyspaces);
  Counts counts;
  for (const uint32_t keyspace : keyspaces) {
    std::vector<std::unique_ptr<base::RecordIterator>> children;
    for (const auto& input : inputs) {
      children.push_back(input->NewIterator(keyspace, base::kMaxSequence));
    }
    const auto source = base::NewMergingIterator(std::move(children));
    CountingIterator counted(source.get(), keyspace, &counts.read, &counts.read_bytes);
    counted.SeekToFirst();
    if (!seen.keyspaces->Contains(keyspace)) {
      while (counted.Valid()) counted.Next();
      continue;
    }
    const RangeStripes ranges(inputs, keyspace, readers.boundaries);
    base::SurvivingRecords::Rules rules{.boundaries = readers.boundaries,
                                        .now_ms = readers.now_ms,
                                        .has_merges_above = readers.has_merges};
    if (!ranges.empty()) {
      rules.cover_of = [&](std::string_view key, base::SequenceNumber at) {
        return ranges.SequenceAt(key, at);
      };
    }
    rules.has_merge_above = [&](std::string_view key, uint64_t expiry_ms) {
      return expiry_ms + kMergeUnderWayMs > readers.now_ms || has_merge_above(keyspace, key);
    };
    const bool is_bottom = last == seen.sealed.size();
    rules.is_bottom = [is_bottom](std::string_view) { return is_bottom; };
    base::SurvivingRecords kept(&counted, std::move(rules));
    while (kept.Next()) {
      const base::SequenceNumber sequence = base::TagSequence(kept.tag());
      RecordSource record{.kind = base::TagKind(kept.tag()),
                          .keyspace = keyspace,
                          .key = kept.key(),
                          .value = kept.value(),
                          .time_ms = kept.time_ms()};
      if (sequence <= readers.boundaries.back() &&
          is_hidden_from_above(keyspace, record.key, sequence)) {
        continue;
      }
      // The inputs live as long as `seen`, and so do the bytes of their records, but not what
      // merges came to.
      const bool stays = counted.Valid() && base::TagSequence(counted.tag()) == sequence &&
                         counted.key() == record.key &&
                         (record.value.empty() || record.value.data() == counted.value().data());
      if (stays) record.key = counted.key();
      ++counts.kept;
      counts.kept_bytes += record.ByteSize();
      if (record.kind == RecordKind::kDelete) counts.delete_bytes += record.ByteSize();
      if (!visit(record, sequence, stays) || is_released_.load(std::memory_order_relaxed)) {
        return std::nullopt;
      }
    }
  }
  return counts;
}

std::optional<uint64_t> StoreCore::MergeUnderLock(const State& seen, size_t first, size_t last,
                                                  uint64_t limit_bytes) {
  if (limit_bytes < LeastMergedBytes()) return std::nullopt;
  // Who began before they were sealed may still be inserting.
  sequencer_.Settle();
  const bool at_bottom = last == seen.sealed.size();
  const Readers readers = PresentReaders();
  const std::shared_ptr<Generation> out = NewGeneration(limit_bytes);
  Appender appender(out.get());
  const std::optional<Counts> counts =
      ForEachKept(seen, first, last, readers,
                  [&](const RecordSource& record, base::SequenceNumber sequence, bool stays) {
                    return appender.Add(record, sequence) && (stays || appender.Flush());
                  });
  if (!counts || !appender.Flush()) return std::nullopt;
  const auto begin = seen.sealed.begin() + static_cast<ptrdiff_t>(first);
  const Generations inputs(begin, seen.sealed.begin() + static_cast<ptrdiff_t>(last));
  for (const auto& input : inputs) {
    for (const RangeDelete& range : input->range_deletes()) {
      if (!IsKept(range, *seen.keyspaces, at_bottom, readers.boundaries.front())) continue;
      RangeDelete* const kept =
          out->PrepareRangeDelete(range.keyspace, range.begin, range.end, false);
      if (kept == nullptr) return std::nullopt;
      out->Finish(kept, range.sequence.load(std::memory_order_relaxed));
    }
  }
  out->FlattenRangeDeletes(nullptr);
  out->SortAll();
  uint64_t freed_bytes = 0;
  for (const auto& input : inputs) freed_bytes += input->memory_bytes();
  freed_bytes -= std::min(freed_bytes, out->memory_bytes());

  {
    const std::lock_guard lock(state_mutex_);
    State next = CopyState();
    const auto old = std::find(next.sealed.begin(), next.sealed.end(), inputs.front());
    const auto place = next.sealed.erase(old, old + static_cast<ptrdiff_t>(inputs.size()));
    if (!out->empty()) next.sealed.insert(place, out);
    Publish(std::move(next));
  }
  compactions_.fetch_add(1, std::memory_order_relaxed);
  compacted_records_.fetch_add(counts->read, std::memory_order_relaxed);
  dropped_records_.fetch_add(counts->read - counts->kept, std::memory_order_relaxed);
  return freed_bytes;
}

// Neighbours of like size, the newest first, where what is kept for merging has room for the
// result: so it will have room for what is left of that, too.
bool StoreCore::CompactSomeUnderLock() {
  const State seen = CopyState();
  const size_t count = seen.sealed.size();
  const uint64_t left = BytesLeft(seen);
  std::vector<uint64_t> bytes;
  for (const auto& generation : seen.sealed) bytes.push_back(generation->memory_bytes());
  for (size_t first = 0; first + kFanIn <= count; ++first) {
    const auto [least, most] =
        std::minmax_element(bytes.begin() + static_cast<ptrdiff_t>(first),
                            bytes.begin() + static_cast<ptrdiff_t>(first + kFanIn));
    uint64_t together = 0;
    for (size_t i = first; i < first + kFanIn; ++i) together += bytes[i];
    if (*most > 3 * *least || together > options_.memory_budget / kReserveShare ||
        together > left) {
      continue;
    }
    return MergeUnderLock(seen, first, first + kFanIn, together + kGenerationMin).has_value();
  }
  return false;
}

// ---- Merging for room ----

// By a walk over all records that copies nothing. What a generation keeps of its own is scaled by
// what its records take at present, index and order included.
std::vector<StoreCore::Outlook> StoreCore::LookAheadUnderLock(const State& seen) const {
  sequencer_.Settle();
  const Readers readers = PresentReaders();
  std::vector<Outlook> outlooks;
  for (size_t i = 0; i < seen.sealed.size(); ++i) {
    const auto look_only = [](const RecordSource&, base::SequenceNumber, bool) { return true; };
    const std::optional<Counts> counts = ForEachKept(seen, i, i + 1, readers, look_only);
    if (!counts) return {};
    const uint64_t bytes = seen.sealed[i]->memory_bytes();
    uint64_t range_bytes = 0;
    uint64_t kept_range_bytes = 0;
    for (const RangeDelete& range : seen.sealed[i]->range_deletes()) {
      range_bytes += range.ByteSize();
      if (IsKept(range, *seen.keyspaces, i + 1 == seen.sealed.size(), readers.boundaries.front())) {
        kept_range_bytes += range.ByteSize();
      }
    }
    const double scale = static_cast<double>(bytes - std::min(bytes, range_bytes)) /
                         static_cast<double>(std::max<uint64_t>(counts->read_bytes, 1));
    const auto scaled = [scale](uint64_t of_records) {
      return static_cast<uint64_t>(scale * static_cast<double>(of_records));
    };
    outlooks.push_back({.bytes = bytes,
                        .kept_bytes = scaled(counts->kept_bytes) + kept_range_bytes,
                        .put_bytes = scaled(counts->kept_bytes - counts->delete_bytes)});
  }
  return outlooks;
}

// An index that has just been doubled is half empty. What keeps nothing leaves no generation.
uint64_t StoreCore::BytesForMerged(uint64_t kept_bytes) const {
  return kept_bytes == 0 ? 0 : kept_bytes + kept_bytes / 8 + LeastMergedBytes();
}

// Of all ranges of neighbours whose result fits beside them the one that frees the most. So a
// generation that is mostly garbage can go when the result of merging all would have no room.
bool StoreCore::MergeForRoomUnderLock(uint64_t freed_min) {
  const State seen = CopyState();
  const uint64_t limit = BytesLeft(seen);
  const std::vector<Outlook> outlooks = LookAheadUnderLock(seen);
  std::pair<size_t, size_t> best{0, 0};
  uint64_t most_freed = freed_min;
  for (size_t first = 0; first < outlooks.size(); ++first) {
    Outlook together;
    for (size_t last = first; last < outlooks.size(); ++last) {
      together += outlooks[last];
      const uint64_t kept = last + 1 == outlooks.size() ? together.put_bytes : together.kept_bytes;
      const uint64_t freed = together.bytes - std::min(together.bytes, kept);
      if (BytesForMerged(kept) > limit || freed <= most_freed) continue;
      most_freed = freed;
      best = {first, last + 1};
    }
  }
  if (best.second == 0) return false;
  // Not by what is taken now: others may have used the room already.
  const std::optional<uint64_t> freed =
      MergeUnderLock(seen, best.first, best.second, std::max(limit, LeastMergedBytes()));
  return freed.value_or(0) != 0;
}

// What was futile once is so until something changes.
bool StoreCore::CompactForRoomUnderLock() {
  const uint64_t freed_min = options_.memory_budget / kFreedShare;
  const State seen = CopyState();
  const Prospects prospects{
      .seals = seals_.load(std::memory_order_relaxed),
      .snapshot_changes = snapshot_changes_.load(std::memory_order_relaxed),
      .freed_parts = MemoryBytes(seen) / freed_min,
      .newest_range = seen.active->range_deletes().newest(),
      .keyspaces_number = seen.keyspaces->number(),
      .expired_until_s = has_expiring_.load(std::memory_order_relaxed) ? time_.NowMs() / 1000 : 0};
  if (futile_ == prospects) return false;
  if (MergeForRoomUnderLock(freed_min)) return true;
  futile_ = prospects;
  return false;
}

Status StoreCore::Compact() {
  const std::lock_guard work(work_mutex_);
  const auto seal = [this] {
    const std::lock_guard lock(state_mutex_);
    return CopyState().active->empty() || SealUnderLock(0, Use::kAnything) || SealMostUnderLock(0);
  };
  // Without room for a fresh one the active generation stays as it is.
  if (!seal() && MergeForRoomUnderLock(0)) seal();
  SortUnderLock();
  for (;;) {
    const State seen = CopyState();
    if (seen.sealed.empty()) return {};
    const uint64_t limit = BytesLeft(seen);
    Outlook all;
    for (const Outlook& outlook : LookAheadUnderLock(seen)) all += outlook;
    if (BytesForMerged(all.put_bytes) <= limit &&
        MergeUnderLock(seen, 0, seen.sealed.size(), std::max(limit, LeastMergedBytes()))) {
      return {};
    }
    if (MergeForRoomUnderLock(0)) continue;
    if (seen.sealed.size() == 1 && all.put_bytes == all.bytes) return {};  // As it would be.
    return Status(StatusCode::kResourceExhausted,
                  "compact a memtable: the merged generation does not fit into the " +
                      std::to_string(limit) + " bytes that memory_budget leaves; raise it");
  }
}

}  // namespace basalt::memtable

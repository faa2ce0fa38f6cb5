#include "memtable/shard.h"

#include <algorithm>
#include <utility>

namespace basalt::memtable {

Shard::Shard(std::shared_ptr<base::ChunkPool> pool, base::ByteBudget* budget,
             base::RetireList* retired, std::span<InsertGate::Place* const> places,
             const base::Arena* records)
    : records_(records), index_(std::move(pool), budget, retired, places) {}

size_t Shard::Finish(std::span<const Taken> records, base::SequenceNumber first,
                     Segment* segment) noexcept {
  constexpr size_t kAtOnce = 32;
  constexpr size_t kAhead = 8;
  size_t new_keys = 0;
  while (!records.empty()) {
    const std::span<const Taken> group = records.first(std::min(records.size(), kAtOnce));
    records = records.subspan(group.size());
    for (const auto [hash, record, position, index] : group) {
      record->tag.store(base::MakeTag(first + index, static_cast<RecordKind>(record->kind)),
                        std::memory_order_release);
    }
    InsertGate::Visit visit(index_.gate(), segment->place());
    visit.Enter();
    for (size_t i = 0; i < group.size(); ++i) {
      if (i + kAhead < group.size()) {
        index_.PrefetchToWrite(static_cast<uint32_t>(group[i + kAhead].hash));
      }
      const auto [hash, record, position, index] = group[i];
      if (Link(hash, record, position).was == 0) ++new_keys;
      segment->CountFinished(*record);
    }
  }
  return new_keys;
}

// Inside the gate. Gives the word as it was.
[[gnu::always_inline]] inline HashIndex::Seen Shard::Link(uint64_t hash, Record* record,
                                                          Position position) noexcept {
  for (;;) {
    const auto has_same_key = [record](const Record& other) {
      return other.keyspace() == record->keyspace() && base::SameBytes(other.key(), record->key());
    };
    const Place place = Search(record->keyspace(), record->key(), hash, has_same_key);
    if (TryToLink(place, record, position)) return place.seen;
  }
}

void Shard::LinkFold(Record* fold, Position position, uint64_t hash, Segment* segment) noexcept {
  InsertGate::Visit visit(index_.gate(), segment->place());
  visit.Enter();
  Link(hash, fold, position);
}

uint32_t Shard::SecondTag(uint32_t keyspace, std::string_view key) noexcept {
  return static_cast<uint32_t>(base::SecondHash(key)) ^ keyspace * 0x9E37'79B9;
}

bool Shard::IsVersionOf(const Record& record, const RecordSource& source) noexcept {
  return record.keyspace() == source.keyspace && base::SameBytes(record.key(), source.key);
}

const Record* Shard::Candidate(uint64_t hash) const noexcept {
  const Record* const record = First(hash);
  if (record == nullptr) return nullptr;
  constexpr size_t kLineBytes = 64;
  // To the second cache, which can have several times as many lines on their way as the first.
  for (size_t line = 0; line < 3 * kLineBytes; line += kLineBytes) {
    __builtin_prefetch(reinterpret_cast<const char*>(record) + line, /*rw=*/0, /*locality=*/2);
  }
  return record;
}

const Record* Shard::Find(uint32_t keyspace, std::string_view key, uint64_t hash,
                          base::SequenceNumber at, BatchCheck* check) const noexcept {
  const Record* record = nullptr;
  size_t others = 0;
  const auto is_it = [&](Position position) {
    record = RecordAt(position);
    record->FetchBehind();
    if (record->keyspace() == keyspace && base::SameBytes(record->key(), key)) return true;
    ++others;
    return false;
  };
  Position newest = index_.Find(static_cast<uint32_t>(hash), is_it);
  if (newest == 0 && others >= base::kKeysOfOneHashMax) [[unlikely]] {
    newest = index_.Find(SecondTag(keyspace, key), is_it);
  }
  if (newest == 0) return nullptr;
  const auto is_hidden = [&] {
    const base::SequenceNumber sequence =
        base::TagSequence(record->tag.load(std::memory_order_acquire));
    if (sequence > at) return true;
    return check != nullptr && check->Hides(sequence, (record->flags & Record::kFlagBatch) != 0);
  };
  while (is_hidden()) {
    Position older = record->previous.load(std::memory_order_acquire);
    if (record->is_fold()) [[unlikely]] {
      const FoldedMerges folded = record->folded();
      if (folded.oldest > at) older = folded.behind;
    }
    if (older == 0) return nullptr;
    record = RecordAt(older);
  }
  return record;
}

}  // namespace basalt::memtable

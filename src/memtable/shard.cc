#include "memtable/shard.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace basalt::memtable {
namespace {

constexpr size_t kLineBytes = 64;

}  // namespace

Shard::Shard(std::shared_ptr<base::ChunkPool> pool, base::ByteBudget* budget,
             base::RetireList* retired, const base::Arena* records)
    : index_(std::move(pool), budget, retired), records_(records) {}

// The chain descends in sequence: a late smaller one goes behind the larger ones.
void Shard::Link(Record* record, Position position, uint64_t hash, HashIndex::Word* word) noexcept {
  const base::Tag tag = record->tag.load(std::memory_order_relaxed);
  Record* newer = nullptr;
  Position older = HashIndex::PositionOf(word->load(std::memory_order_relaxed));
  while (older != 0 && RecordAt(older)->tag.load(std::memory_order_relaxed) > tag) {
    newer = RecordAt(older);
    older = newer->previous.load(std::memory_order_relaxed);
  }
  record->previous.store(older, std::memory_order_relaxed);
  if (newer == nullptr) {
    index_.Publish(word, static_cast<uint32_t>(hash), position);
  } else {
    newer->previous.store(position, std::memory_order_release);
  }
  const auto add = [](std::atomic<uint64_t>& counter, uint64_t count) {
    counter.store(counter.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
  };
  add(finished_count_, 1);
  add(logical_bytes_, uint64_t{record->key_size} + record->value_size);
}

bool Shard::Reserve(size_t count, bool within_limit) noexcept {
  const std::lock_guard lock(lock_);
  if (!index_.Prepare(pending_ + count, within_limit)) return false;
  pending_ += static_cast<uint32_t>(count);
  return true;
}

void Shard::Finish(std::span<const Taken> records, base::SequenceNumber first) noexcept {
  constexpr size_t kAtOnce = 32;
  constexpr size_t kAhead = 8;
  while (!records.empty()) {
    const std::span<const Taken> group = records.first(std::min(records.size(), kAtOnce));
    records = records.subspan(group.size());
    // First the tag, then the link: whoever comes by the index must find the record finished.
    for (const auto [hash, record, position, index] : group) {
      record->tag.store(base::MakeTag(first + index, static_cast<RecordKind>(record->kind)),
                        std::memory_order_release);
    }
    const std::lock_guard lock(lock_);
    for (size_t i = 0; i < group.size(); ++i) {
      if (i + kAhead < group.size()) {
        index_.PrefetchToWrite(static_cast<uint32_t>(group[i + kAhead].hash));
      }
      const auto [hash, record, position, index] = group[i];
      HashIndex::Word* const word = WordOf(hash, [record](const Record& other) {
        return other.keyspace() == record->keyspace() &&
               base::SameBytes(other.key(), record->key());
      });
      Link(record, position, hash, word);
    }
    pending_ -= static_cast<uint32_t>(group.size());
  }
}

void Shard::Abandon(std::span<const Taken> records) noexcept {
  for (const Taken& taken : records) {
    taken.record->tag.store(Record::kAbandonedTag, std::memory_order_release);
  }
  const std::lock_guard lock(lock_);
  pending_ -= static_cast<uint32_t>(records.size());
}

const Record* Shard::Candidate(uint64_t hash) const noexcept {
  const Record* const record = First(hash);
  if (record == nullptr) return nullptr;
  // To the second cache, which can have several times as many lines on their way as the first.
  for (size_t line = 0; line < 3 * kLineBytes; line += kLineBytes) {
    __builtin_prefetch(reinterpret_cast<const char*>(record) + line, /*rw=*/0, /*locality=*/2);
  }
  return record;
}

const Record* Shard::Find(uint32_t keyspace, std::string_view key, uint64_t hash,
                          base::SequenceNumber at, BatchCheck* check) const noexcept {
  const Record* record = nullptr;
  const Position newest = index_.Find(static_cast<uint32_t>(hash), [&](Position position) {
    record = RecordAt(position);
    record->FetchBehind();
    return record->keyspace() == keyspace && base::SameBytes(record->key(), key);
  });
  if (newest == 0) return nullptr;
  const auto is_hidden = [&] {
    const base::SequenceNumber sequence =
        base::TagSequence(record->tag.load(std::memory_order_acquire));
    if (sequence > at) return true;
    return check != nullptr && check->Hides(sequence, (record->flags & Record::kFlagBatch) != 0);
  };
  while (is_hidden()) {
    const Position older = record->previous.load(std::memory_order_acquire);
    if (older == 0) return nullptr;
    record = RecordAt(older);
  }
  return record;
}

}  // namespace basalt::memtable

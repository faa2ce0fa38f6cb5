#include "memtable/shard.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/coding.h"

namespace basalt::memtable {
namespace {

// An order entry is about an eighth of a record, so its chunks are, too.
size_t OrderChunkBytesMax(size_t chunk_bytes_max) noexcept {
  return std::max(chunk_bytes_max / 8, base::ChunkPool::kBlockBytesMin);
}

constexpr size_t kLineBytes = 64;

// The lines behind the one in which one of the shard's next records will begin, for a record as
// long as this one. They are likely to have left the caches since they were written last. Inlined
// by force: g++ takes a function that only prefetches for one without effects.
[[gnu::always_inline]] inline void FetchNext(const char* next, size_t bytes) noexcept {
  constexpr size_t kFetchedBytesMax = 4 * kLineBytes;
  const size_t end = bytes < kFetchedBytesMax ? bytes : kFetchedBytesMax;
  for (size_t line = 0; line < end; line += kLineBytes) {
    __builtin_prefetch(next + kLineBytes + line, /*rw=*/1, /*locality=*/2);
  }
}

// The lines of a record behind its first one: where its value lies is known only when that has
// come.
[[gnu::always_inline]] inline void FetchBehind(const Record* record) {
  const char* const first = reinterpret_cast<const char*>(record);
  __builtin_prefetch(first + kLineBytes);
  __builtin_prefetch(first + 2 * kLineBytes);
}

}  // namespace

Shard::Shard(std::shared_ptr<base::ChunkPool> pool, base::ByteBudget* budget,
             base::RetireList* retired, size_t chunk_bytes_max)
    : records_(pool.get(), budget, chunk_bytes_max),
      order_(pool.get(), budget, OrderChunkBytesMax(chunk_bytes_max)),
      index_(std::move(pool), budget, retired) {}

Shard::Position Shard::Place(const RecordSource& source, uint64_t prefix, bool within_limit,
                             size_t ahead) noexcept {
  if (!order_.PrepareBlock(within_limit) || !index_.Prepare(pending_ + 1, within_limit)) return 0;
  const size_t bytes = source.ByteSize();
  const Position position = records_.Allocate(bytes, within_limit);
  if (position == 0) return 0;
  char* const place = records_.At(position);
  FetchNext(place + ahead * bytes, bytes);
  new (place)
      Record{.tag = 0,
             .previous = 0,
             .value_size = static_cast<uint32_t>(source.value.size()),
             .key_size = static_cast<uint16_t>(source.key.size()),
             .kind = static_cast<uint8_t>(source.kind),
             .flags = static_cast<uint8_t>((source.time_ms != 0 ? Record::kFlagTime : 0) |
                                           (source.is_of_several ? Record::kFlagBatch : 0) |
                                           (source.keyspace != 0 ? Record::kFlagKeyspace : 0))};
  const uint32_t order = order_count_.load(std::memory_order_relaxed);
  const Position order_position = order_.Allocate(sizeof(OrderEntry), within_limit);
  BASALT_CHECK(order_position == OrderPosition(order));
  char* const order_place = order_.At(order_position);
  __builtin_prefetch(order_place + kLineBytes, /*rw=*/1, /*locality=*/2);
  new (order_place) OrderEntry{prefix, position, source.keyspace};
  return position;
}

void Shard::Fill(Record* record, const RecordSource& source) noexcept {
  char* out = record->body();
  if (source.keyspace != 0) {
    base::Store(out, source.keyspace);
    out += sizeof source.keyspace;
  }
  if (source.time_ms != 0) {
    base::Store(out, source.time_ms);
    out += sizeof source.time_ms;
  }
  if (!source.key.empty()) std::memcpy(out, source.key.data(), source.key.size());
  if (!source.value.empty()) {
    std::memcpy(out + source.key.size(), source.value.data(), source.value.size());
  }
}

HashIndex::Word* Shard::WordOf(uint32_t keyspace, std::string_view key, uint64_t hash) noexcept {
  return index_.FindOrPlace(static_cast<uint32_t>(hash), [&](Position other) {
    const Record* const stored = RecordAt(other);
    return stored->keyspace() == keyspace && stored->key() == key;
  });
}

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

void Shard::Finish(std::span<const Taken> records, base::SequenceNumber first) noexcept {
  while (!records.empty()) {
    const std::span<const Taken> group = records.first(std::min(records.size(), kAtOnce));
    records = records.subspan(group.size());
    // First the tag, then the link: whoever comes by the index must find the record finished.
    for (const Taken& taken : group) {
      Record* const record = RecordAt(taken.position);
      record->tag.store(base::MakeTag(first + taken.index, static_cast<RecordKind>(record->kind)),
                        std::memory_order_release);
    }
    const std::lock_guard lock(lock_);
    for (size_t i = 0; i < group.size(); ++i) {
      if (i + kAhead < group.size()) Prefetch(group[i + kAhead].hash);
      const auto [hash, position, index] = group[i];
      Record* const record = RecordAt(position);
      Link(record, position, hash, WordOf(record->keyspace(), record->key(), hash));
    }
    pending_ -= static_cast<uint32_t>(group.size());
  }
}

void Shard::Abandon(std::span<const Taken> records) noexcept {
  uint32_t count = 0;
  for (const Taken& taken : records) {
    if (taken.position == 0) continue;
    RecordAt(taken.position)->tag.store(Record::kAbandonedTag, std::memory_order_release);
    ++count;
  }
  const std::lock_guard lock(lock_);
  pending_ -= count;
}

const Record* Shard::Candidate(uint64_t hash) const noexcept {
  const Position position = index_.Find(static_cast<uint32_t>(hash), [](Position) { return true; });
  if (position == 0) return nullptr;
  const char* const record = records_.At(position);
  // To the second cache, which can have several times as many lines on their way as the first.
  for (size_t line = 0; line < 3 * kLineBytes; line += kLineBytes) {
    __builtin_prefetch(record + line, /*rw=*/0, /*locality=*/2);
  }
  return reinterpret_cast<const Record*>(record);
}

const Record* Shard::Find(uint32_t keyspace, std::string_view key, uint64_t hash,
                          base::SequenceNumber at, BatchCheck* check) const noexcept {
  const Record* record = nullptr;
  const Position newest = index_.Find(static_cast<uint32_t>(hash), [&](Position position) {
    record = RecordAt(position);
    FetchBehind(record);
    return record->keyspace() == keyspace && record->key() == key;
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

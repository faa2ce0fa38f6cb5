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

}  // namespace

Shard::Shard(std::shared_ptr<base::ChunkPool> pool, base::ByteBudget* budget,
             base::RetireList* retired, size_t chunk_bytes_max)
    : records_(pool.get(), budget, chunk_bytes_max),
      order_(pool.get(), budget, OrderChunkBytesMax(chunk_bytes_max)),
      index_(std::move(pool), budget, retired) {}

Shard::Position Shard::Take(const base::BatchCursor& source, uint64_t hash,
                            bool within_limit) noexcept {
  const std::string_view key = source.key();
  const std::string_view value = source.value();
  const bool expires = source.time_ms() != 0;
  const uint64_t prefix = base::KeyPrefix(key);
  Prefetch(hash);

  Record* record;
  Position position;
  {
    const std::lock_guard lock(lock_);
    if (!order_.PrepareUnit(within_limit) || !index_.Prepare(pending_ + 1, within_limit)) return 0;
    position = records_.Allocate(Record::ByteSize(key.size(), value.size(), expires), within_limit);
    if (position == 0) return 0;
    record = new (records_.At(position)) Record{.tag = 0,
                                                .previous = 0,
                                                .value_size = static_cast<uint32_t>(value.size()),
                                                .key_size = static_cast<uint16_t>(key.size()),
                                                .kind = static_cast<uint8_t>(source.kind()),
                                                .flags = expires ? Record::kFlagExpiry : uint8_t{0},
                                                .keyspace = source.keyspace()};
    const uint32_t order = order_count_.load(std::memory_order_relaxed);
    const Position order_position = order_.Allocate(sizeof(OrderEntry), within_limit);
    BASALT_CHECK(order_position == base::Arena::kFirstPosition + order);
    new (order_.At(order_position)) OrderEntry{prefix, position, source.keyspace()};
    ++pending_;
    order_count_.store(order + 1, std::memory_order_release);
  }

  // Nobody reads the body of an unfinished record, so it is filled outside the lock.
  char* out = record->body();
  if (expires) {
    base::Store(out, source.time_ms());
    out += sizeof(uint64_t);
  }
  std::memcpy(out, key.data(), key.size());
  std::memcpy(out + key.size(), value.data(), value.size());
  return position;
}

void Shard::Finish(Position position, uint64_t hash, base::SequenceNumber sequence) noexcept {
  const auto index_tag = static_cast<uint32_t>(hash);
  Record* const record = RecordAt(position);
  const base::Tag tag = base::MakeTag(sequence, static_cast<RecordKind>(record->kind));
  // First the tag, then the link: whoever comes by the index must find the record finished.
  record->tag.store(tag, std::memory_order_release);
  {
    const std::lock_guard lock(lock_);
    HashIndex::Word* const word = index_.FindOrPlace(index_tag, [&](Position other) {
      const Record* const stored = RecordAt(other);
      return stored->keyspace == record->keyspace && stored->key() == record->key();
    });
    BASALT_CHECK(record->tag.load(std::memory_order_relaxed) == tag);
    // The chain descends in sequence: a late smaller one goes behind the larger ones.
    Record* newer = nullptr;
    Position older = HashIndex::PositionOf(word->load(std::memory_order_relaxed));
    while (older != 0 && RecordAt(older)->tag.load(std::memory_order_relaxed) > tag) {
      newer = RecordAt(older);
      older = newer->previous.load(std::memory_order_relaxed);
    }
    record->previous.store(older, std::memory_order_relaxed);
    if (newer == nullptr) {
      index_.Publish(word, index_tag, position);
    } else {
      newer->previous.store(position, std::memory_order_release);
    }
    --pending_;
    finished_count_.store(finished_count_.load(std::memory_order_relaxed) + 1,
                          std::memory_order_relaxed);
  }
}

void Shard::Abandon(Position position) noexcept {
  RecordAt(position)->tag.store(Record::kAbandonedTag, std::memory_order_release);
  const std::lock_guard lock(lock_);
  --pending_;
}

const Record* Shard::Find(uint32_t keyspace, std::string_view key, uint64_t hash,
                          base::SequenceNumber at) const noexcept {
  const Record* record = nullptr;
  const Position newest = index_.Find(static_cast<uint32_t>(hash), [&](Position position) {
    record = RecordAt(position);
    return record->keyspace == keyspace && record->key() == key;
  });
  if (newest == 0) return nullptr;
  while (base::TagSequence(record->tag.load(std::memory_order_acquire)) > at) {
    const Position older = record->previous.load(std::memory_order_acquire);
    if (older == 0) return nullptr;
    record = RecordAt(older);
  }
  return record;
}

}  // namespace basalt::memtable

#include "memtable/segment.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/check.h"
#include "base/coding.h"
#include "base/prefetch.h"

namespace basalt::memtable {
namespace {

// An order entry is about an eighth of a record, so its chunks are, too.
size_t OrderChunkBytesMax(size_t chunk_bytes_max) noexcept {
  return std::max(chunk_bytes_max / 8, base::ChunkPool::kBlockBytesMin);
}

constexpr size_t kLineBytes = 64;

// The lines behind the one in which a record will begin that comes some later, if they are all as
// long as this one: the segment's memory may have been another thread's, or have left the caches.
// Inlined by force: g++ takes a function that only prefetches for one without effects.
[[gnu::always_inline]] inline void FetchAhead(const char* record, size_t bytes) noexcept {
  constexpr size_t kAhead = 8;
  constexpr size_t kFetchedBytesMax = 4 * kLineBytes;
  const char* const later = record + kAhead * bytes;
  const size_t end = bytes < kFetchedBytesMax ? bytes : kFetchedBytesMax;
  for (size_t line = 0; line < end; line += kLineBytes) {
    base::PrefetchToWrite(later + kLineBytes + line);
  }
}

}  // namespace

Segment::Segment(base::ChunkPool* pool, base::ByteBudget* budget, size_t chunk_bytes_max,
                 base::Arena* records, size_t shards, bool is_shared)
    : is_shared_(is_shared),
      records_(records),
      pool_(pool),
      budget_(budget),
      order_chunk_bytes_max_(OrderChunkBytesMax(chunk_bytes_max)),
      // On lines that have nothing of other segments.
      room_in_many_(shards > kFewShards ? new uint8_t[shards + 2 * kLineBytes]() : nullptr),
      room_in_(room_in_many_ != nullptr ? room_in_many_.get() + kLineBytes : room_in_few_.data()) {}

bool Segment::PrepareOrder(bool within_limit) noexcept {
  if (order_ == nullptr) {
    order_.reset(new (std::nothrow) base::Arena(pool_, budget_, order_chunk_bytes_max_));
  }
  return order_ != nullptr && order_->PrepareBlock(&order_cursor_, within_limit);
}

inline Record* Segment::Begin(char* at, const RecordSource& source, uint8_t flags) noexcept {
  return new (at) Record{.tag = 0,
                         .previous = 0,
                         .value_size = static_cast<uint32_t>(source.value.size()),
                         .key_size = static_cast<uint16_t>(source.key.size()),
                         .kind = static_cast<uint8_t>(source.kind),
                         .flags = flags};
}

Segment::Placed Segment::Place(const RecordSource& source, bool within_limit) noexcept {
  if (order_cursor_.is_empty() && !PrepareOrder(within_limit)) return {};
  const size_t bytes = source.ByteSize();
  const base::Arena::Block block = records_->Allocate(&record_cursor_, bytes, within_limit);
  if (block.position == 0) return {};
  FetchAhead(block.at, bytes);
  Record* const record = Begin(block.at, source, source.flags());
  const base::Arena::Block order =
      order_->Allocate(&order_cursor_, sizeof(OrderEntry), within_limit);
  BASALT_CHECK(order.position == OrderPosition(placed_count_++));
  base::PrefetchToWrite(order.at + kLineBytes);
  new (order.at) OrderEntry{base::KeyPrefix(source.key), block.position, source.keyspace};
  return {block.position, record};
}

Segment::Placed Segment::PlaceFold(const RecordSource& source) noexcept {
  const size_t bytes = source.ByteSize() + sizeof(FoldedMerges);
  const base::Arena::Block block =
      records_->Allocate(&record_cursor_, bytes, /*within_limit=*/true);
  if (block.position == 0) return {};
  const auto flags = static_cast<uint8_t>(source.flags() | Record::kFlagFold);
  return {block.position, Begin(block.at, source, flags)};
}

void Segment::FillFold(Record* record, const RecordSource& source,
                       const FoldedMerges& folded) noexcept {
  Fill(record, source);
  std::memcpy(record->body() + record->key_offset() + source.key.size() + source.value.size(),
              &folded, sizeof folded);
}

void Segment::Fill(Record* record, const RecordSource& source) noexcept {
  char* out = record->body();
  if (source.keyspace != 0) {
    base::Store(out, source.keyspace);
    out += sizeof source.keyspace;
  }
  if (source.time_ms != 0) {
    base::Store(out, source.time_ms);
    out += sizeof source.time_ms;
  }
  out = base::CopyKey(source.key, out);
  if (!source.value.empty()) std::memcpy(out, source.value.data(), source.value.size());
}

}  // namespace basalt::memtable

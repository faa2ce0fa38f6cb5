#include "memtable/memtable.h"

#include <algorithm>
#include <bit>
#include <map>
#include <new>
#include <string>

#include "base/batch_cursor.h"
#include "base/check.h"
#include "base/hash.h"
#include "memtable/memtable_iterator.h"
#include "memtable/shard.h"
#include "memtable/sorted_run.h"

namespace basalt::memtable {
namespace {

constexpr uint32_t kShardsMax = 256;
constexpr size_t kPinnedValueBytesMin = (size_t{64} << 10) + 1;

uint32_t DefaultShards(uint64_t budget_bytes) noexcept {
  return static_cast<uint32_t>(
      std::bit_floor(std::clamp<uint64_t>(budget_bytes / (512 << 10), 1, 16)));
}

// Equal keys of different keyspaces go different ways.
uint64_t MixKeyspace(uint64_t hash, uint32_t keyspace) noexcept {
  return hash ^ keyspace * 0x9E37'79B9'7F4A'7C15;
}

// A value that stays where it is, and the table with it.
struct TablePin : Value::Pin {
  std::shared_ptr<const MemTable> table;

  static void Release(Value::Pin* pin) noexcept { delete static_cast<TablePin*>(pin); }
};

Value TakeValue(const Record& record, const MemTable& table) {
  const std::string_view value = record.value();
  if (value.size() < kPinnedValueBytesMin) return Value::Copy(value);
  auto* const pin = new TablePin;
  pin->data = value.data();
  pin->release = &TablePin::Release;
  pin->table = table.shared_from_this();
  return Value::Pinned(pin, value.size());
}

Status DoesNotFit(const base::ByteBudget& budget, std::string_view batch, size_t count) {
  return Status(StatusCode::kResourceExhausted,
                "reserve " + std::to_string(count) + " records (" + std::to_string(batch.size()) +
                    " bytes) in a memtable with " + std::to_string(budget.used_bytes()) + " of " +
                    std::to_string(budget.limit_bytes()) +
                    " bytes taken: flush it, or raise its budget");
}

}  // namespace

/// What has been sorted so far. Immutable.
struct MemTable::Runs {
  std::vector<uint32_t> watermarks;  // a shard each: how many of its order entries are covered
  std::map<uint32_t, std::shared_ptr<const SortedRun>> keyspaces;
  size_t entries = 0;
};

MemTable::Reservation& MemTable::Reservation::operator=(Reservation&& other) noexcept {
  BASALT_CHECK(count_ == 0);
  count_ = std::exchange(other.count_, 0);
  is_first_ = other.is_first_;
  only_ = other.only_;
  several_ = std::move(other.several_);
  return *this;
}

MemTable::Reservation::~Reservation() { BASALT_CHECK(count_ == 0); }

std::shared_ptr<MemTable> MemTable::Create(const MemTableOptions& options) {
  return std::make_shared<MemTable>(Private{}, options);
}

MemTable::MemTable(Private, const MemTableOptions& options)
    : pool_(options.pool != nullptr ? options.pool : ChunkPool::Process()),
      budget_(options.budget_bytes) {
  const uint32_t shards =
      options.shards != 0 ? options.shards : DefaultShards(options.budget_bytes);
  BASALT_CHECK(std::has_single_bit(shards) && shards <= kShardsMax);
  shard_shift_ = 63 - static_cast<uint32_t>(std::countr_zero(shards));
  const size_t chunk_bytes_max = base::Arena::ChunkBytesMax(options.budget_bytes);
  for (uint32_t i = 0; i < shards; ++i) {
    shards_.push_back(std::make_unique<Shard>(pool_, &budget_, &retired_, chunk_bytes_max));
  }
  auto runs = std::make_shared<Runs>();
  runs->watermarks.resize(shards);
  runs_ = std::move(runs);
}

MemTable::~MemTable() = default;

Result<MemTable::Reservation> MemTable::Reserve(std::string_view batch, size_t count) {
  Reservation reservation;
  reservation.is_first_ = !first_taken_.load(std::memory_order_relaxed) &&
                          !first_taken_.exchange(true, std::memory_order_relaxed) && empty();
  const bool within_limit = !reservation.is_first_;
  if (count > 1) {
    // A batch that cannot fit should not take half of its space before that shows.
    const uint64_t bytes = batch.size() + count * (sizeof(OrderEntry) + sizeof(uint64_t));
    const bool fits = budget_.used_bytes() + bytes <= budget_.limit_bytes();
    if (within_limit && bytes > base::Arena::ChunkBytesMax(budget_.limit_bytes()) && !fits) {
      return DoesNotFit(budget_, batch, count);
    }
    reservation.several_.reset(new (std::nothrow) Reservation::Place[count]);
    if (reservation.several_ == nullptr) {
      Drop(&reservation);
      return DoesNotFit(budget_, batch, count);
    }
  }

  base::BatchCursor cursor(batch);
  while (cursor.Next()) {
    BASALT_CHECK(reservation.count_ < count);
    const uint64_t hash = MixKeyspace(base::Hash(cursor.key()), cursor.keyspace());
    const base::Arena::Position position = ShardOf(hash).Take(cursor, hash, within_limit);
    if (position == 0) {
      Drop(&reservation);
      return DoesNotFit(budget_, batch, count);
    }
    reservation.place(reservation.count_++) = {hash, position};
  }
  BASALT_CHECK(reservation.count_ == count);
  CollectRetired();
  return reservation;
}

void MemTable::Insert(Reservation reservation, base::SequenceNumber first_sequence) noexcept {
  constexpr size_t kPrefetchDistance = 8;
  const size_t count = std::exchange(reservation.count_, 0);
  for (size_t i = 0; i < count; ++i) {
    if (i + kPrefetchDistance < count) {
      const uint64_t ahead = reservation.place(i + kPrefetchDistance).hash;
      ShardOf(ahead).Prefetch(ahead);
    }
    const auto [hash, position] = reservation.place(i);
    ShardOf(hash).Finish(position, hash, first_sequence + i);
  }
}

void MemTable::Abandon(Reservation reservation) noexcept { Drop(&reservation); }

void MemTable::Drop(Reservation* reservation) noexcept {
  const size_t count = std::exchange(reservation->count_, 0);
  for (size_t i = 0; i < count; ++i) {
    const auto [hash, position] = reservation->place(i);
    ShardOf(hash).Abandon(position);
  }
  if (reservation->is_first_) first_taken_.store(false, std::memory_order_relaxed);
}

// Frees words that doublings left behind, once they are worth a look at all readers.
void MemTable::CollectRetired() noexcept {
  constexpr uint64_t kRetiredBytesMin = 64 << 10;
  if (retired_.bytes() > std::max(budget_.limit_bytes() / 64, kRetiredBytesMin)) {
    retired_.Collect();
  }
}

bool MemTable::Get(uint32_t keyspace, std::string_view key, uint64_t hash, base::SequenceNumber at,
                   FoundRecord* found) const {
  hash = MixKeyspace(hash, keyspace);
  const Record* record;
  {
    const base::EpochGuard inside;
    record = ShardOf(hash).Find(keyspace, key, hash, at);
  }
  if (record == nullptr) return false;
  found->tag = record->tag.load(std::memory_order_relaxed);
  found->value =
      base::TagKind(found->tag) == RecordKind::kPut ? TakeValue(*record, *this) : Value();
  return true;
}

std::unique_ptr<base::RecordIterator> MemTable::NewIterator(uint32_t keyspace,
                                                            base::SequenceNumber visible) const {
  const std::shared_ptr<const Runs> runs = FreshRuns();
  std::vector<SortEntry> beyond;
  for (size_t i = 0; i < shards_.size(); ++i) {
    shards_[i]->VisitOrder(
        runs->watermarks[i], shards_[i]->order_count(),
        [&](uint32_t, const OrderEntry& entry, const Record* record, base::Tag tag) {
          const bool seen =
              tag != 0 && tag != Record::kAbandonedTag && base::TagSequence(tag) <= visible;
          if (seen && entry.keyspace == keyspace) beyond.push_back({record, entry.prefix});
          return true;
        });
  }
  const auto found = runs->keyspaces.find(keyspace);
  return std::make_unique<MemTableIterator>(
      shared_from_this(),
      found != runs->keyspaces.end() ? found->second : std::make_shared<const SortedRun>(),
      SortedRun::Sort(std::move(beyond)), visible);
}

// The runs, after what has been written since they were made was sorted into them, unless that is
// so little that an iterator sorts it faster for itself than all is merged.
std::shared_ptr<const MemTable::Runs> MemTable::FreshRuns() const {
  constexpr size_t kTailEntriesMax = 256;
  const std::lock_guard lock(runs_mutex_);
  size_t tail = 0;
  for (size_t i = 0; i < shards_.size(); ++i) {
    tail += shards_[i]->order_count() - runs_->watermarks[i];
  }
  if (tail > std::min(kTailEntriesMax, runs_->entries / 8)) runs_ = ExtendRuns(*runs_, tail);
  return runs_;
}

std::shared_ptr<const MemTable::Runs> MemTable::ExtendRuns(const Runs& old, size_t tail_max) const {
  auto runs = std::make_shared<Runs>(old);
  std::map<uint32_t, std::vector<SortEntry>> tails;
  std::pair<uint32_t, std::vector<SortEntry>*>
      latest{};  // most records follow one of their keyspace
  for (size_t i = 0; i < shards_.size(); ++i) {
    const uint32_t count = shards_[i]->order_count();
    runs->watermarks[i] = count;
    shards_[i]->VisitOrder(
        old.watermarks[i], count,
        [&](uint32_t index, const OrderEntry& entry, const Record* record, base::Tag tag) {
          if (tag == 0) {  // it could not be added later: the run ends before it
            runs->watermarks[i] = index;
            return false;
          }
          if (tag != Record::kAbandonedTag) {
            if (latest.second == nullptr || latest.first != entry.keyspace) {
              latest = {entry.keyspace, &tails[entry.keyspace]};
              if (tails.size() == 1) latest.second->reserve(tail_max);
            }
            latest.second->push_back({record, entry.prefix});
          }
          return true;
        });
  }

  for (auto& [keyspace, tail] : tails) {
    runs->entries += tail.size();
    SortedRun sorted = SortedRun::Sort(std::move(tail));
    std::shared_ptr<const SortedRun>& run = runs->keyspaces[keyspace];
    run = std::make_shared<const SortedRun>(
        run == nullptr ? std::move(sorted) : SortedRun::Merge(*run, std::move(sorted)));
  }
  uint64_t bytes = 0;
  for (const auto& [keyspace, run] : runs->keyspaces) bytes += run->memory_bytes();
  run_bytes_.store(bytes, std::memory_order_relaxed);
  return runs;
}

uint64_t MemTable::memory_bytes() const noexcept {
  return budget_.used_bytes() + retired_.bytes() + run_bytes_.load(std::memory_order_relaxed);
}

uint64_t MemTable::record_count() const noexcept {
  uint64_t count = 0;
  for (const auto& shard : shards_) count += shard->finished_count();
  return count;
}

double MemTable::MeanIndexProbes() const noexcept {
  HashIndex::ProbeCounts total;
  for (const auto& shard : shards_) {
    const HashIndex::ProbeCounts counts = shard->CountProbes();
    total.buckets += counts.buckets;
    total.words += counts.words;
  }
  return total.words == 0 ? 0
                          : static_cast<double>(total.buckets) / static_cast<double>(total.words);
}

}  // namespace basalt::memtable

#include "server/dataset.h"

#include <utility>
#include <vector>

#include "basalt/transaction.h"
#include "base/random.h"
#include "server/encoding.h"

namespace basalt::server {
namespace {

constexpr int kEpochShift = 40;
constexpr uint64_t kEpochMax = uint64_t{1} << (64 - kEpochShift);
/// JSON and JavaScript read whole numbers exactly up to 2^53.
constexpr uint64_t kCursorMask = (uint64_t{1} << 51) - 1;

}  // namespace

CursorTable::CursorTable() : next_((base::RandomSeed() & kCursorMask) + 1) {}

uint64_t CursorTable::Add(std::string place) {
  const std::lock_guard lock(mutex_);
  const uint64_t cursor = next_++;
  places_.emplace(cursor, std::move(place));
  order_.push_back(cursor);
  if (order_.size() > kCursorsMax) {
    places_.erase(order_.front());
    order_.pop_front();
  }
  return cursor;
}

std::optional<std::string> CursorTable::Find(uint64_t cursor) const {
  const std::lock_guard lock(mutex_);
  const auto found = places_.find(cursor);
  return found == places_.end() ? std::nullopt : std::optional(found->second);
}

uint64_t Dataset::NowMs() noexcept {
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  return static_cast<uint64_t>(now.time_since_epoch().count());
}

Result<std::unique_ptr<Dataset>> Dataset::Open(DB* db, bool is_power_durable) {
  std::unique_ptr<Dataset> dataset(new Dataset(db, is_power_durable));
  const Result<KeyspaceId> keyspace = db->OpenOrCreateKeyspace("redis");
  if (!keyspace) return keyspace.error();
  dataset->keyspace_ = *keyspace;
  if (Status begun = dataset->BeginEpoch(); !begun.ok()) return begun;
  dataset->LookAtTables();
  return dataset;
}

Status Dataset::BeginEpoch() {
  uint64_t epoch = 0;
  const auto raise = [&](EntryUpdate& entry) -> Status {
    if (entry.exists() && entry.value().size() != sizeof epoch) {
      return {StatusCode::kCorruption, "the epoch of ids in the keyspace 'redis' is malformed"};
    }
    epoch = entry.exists() ? LoadBigEndian(entry.value().data()) + 1 : 1;
    if (epoch >= kEpochMax) {
      return {StatusCode::kResourceExhausted, "the database was opened too often: ids are used up"};
    }
    std::string bytes;
    AppendBigEndian(&bytes, epoch);
    entry.Set(std::move(bytes));
    return {};
  };
  const Result<Commit> raised =
      db_->Update(kEpochKey, raise, {.durability = Durability::kPower, .keyspace = keyspace_});
  if (!raised) return raised.error();
  next_id_ = epoch << kEpochShift;
  return {};
}

void Dataset::LookAtTables() {
  const DBStats stats = db_->GetStats();
  uint64_t bytes = 0;
  for (const LevelStats& level : stats.levels) bytes += level.bytes;
  iterates_in_memory_.store(bytes <= stats.memory_budget / 4, std::memory_order_relaxed);
}

Status Dataset::SweepOne(std::string_view record_key, std::string_view owner) {
  const uint64_t id = LoadBigEndian(record_key.data() + 9);
  return Transact(*db_, [&](Transaction& tx) -> Status {
    std::string metadata_key = "M";
    metadata_key.append(owner);
    const Result<MaybeValue> metadata = tx.Get(metadata_key, {.keyspace = keyspace_});
    if (!metadata) return metadata.error();
    const auto present =
        *metadata ? DecodeMetadata((*metadata)->view()) : std::optional<Metadata>();
    // Still there under its id: its expiry was put off or removed, and has a record of its own.
    if (!present || present->id != id || present->type == Type::kString) {
      const std::string prefix = ElementPrefix(id);
      Status gone = tx.DeleteRange(prefix, EndOfPrefix(prefix), {.keyspace = keyspace_});
      if (!gone.ok()) return gone;
    }
    return tx.Delete(record_key, {.keyspace = keyspace_});
  });
}

Result<size_t> Dataset::Sweep(size_t limit) {
  LookAtTables();
  // Cleared before the look: who commits a record that the look misses sets it again.
  if (!may_have_expiries_.exchange(false, std::memory_order_acquire)) return size_t{0};
  const Result<size_t> swept = SweepExpired(limit);
  if (!swept || *swept > 0) NoteExpiry();
  return swept;
}

Result<size_t> Dataset::SweepExpired(size_t limit) {
  std::vector<std::pair<std::string, std::string>> expired;
  const std::string end = ExpiryKey(NowMs(), 0);
  const auto it = db_->NewIterator({.keyspace = keyspace_, .lower = "X", .upper = "Y"});
  for (it->SeekToFirst(); it->Valid() && expired.size() < limit && it->key() < end; it->Next()) {
    expired.emplace_back(it->key(), it->value());
  }
  if (it->Valid()) NoteExpiry();
  if (!it->status().ok()) return it->status();
  for (const auto& [record_key, owner] : expired) {
    if (record_key.size() != 17) {
      return Status(StatusCode::kCorruption, "a record of an expiry is malformed");
    }
    if (Status swept = SweepOne(record_key, owner); !swept.ok()) return swept;
  }
  return expired.size();
}

Result<uint64_t> Dataset::CountKeys(uint8_t db) {
  const std::string prefix = MetadataKey(db, {});
  uint64_t keys = 0;
  const auto it = db_->NewIterator({.keyspace = keyspace_, .prefix = prefix, .keys_only = true});
  for (it->SeekToFirst(); it->Valid(); it->Next()) ++keys;
  if (!it->status().ok()) return it->status();
  return keys;
}

uint64_t Dataset::ApproximateKeys(uint8_t db) {
  const std::lock_guard lock(counts_mutex_);
  Count& count = counts_[db];
  const auto begun = std::chrono::steady_clock::now();
  if (begun < count.valid_until) return count.keys;
  const Result<uint64_t> keys = CountKeys(db);
  if (keys) count.keys = *keys;
  const auto ended = std::chrono::steady_clock::now();
  count.valid_until = ended + std::chrono::seconds(1) + 100 * (ended - begun);
  return count.keys;
}

}  // namespace basalt::server

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "base/merge_operator.h"
#include "db/core.h"

// Lookups of single keys: the newest place that knows a key decides. Memtables come first, then the
// tables of level 0, newest first, then one table of each further level.

namespace basalt::db {
namespace {

/// The newest of a memtable's range deletes up to `at` that covers the key; 0: none.
base::SequenceNumber RangeSequence(const memtable::Generation& table, uint32_t keyspace,
                                   std::string_view key, base::SequenceNumber at) noexcept {
  base::SequenceNumber newest = 0;
  for (const memtable::RangeDelete* range = table.range_deletes(); range != nullptr;
       range = range->next) {
    const base::SequenceNumber sequence = range->sequence.load(std::memory_order_relaxed);
    if (sequence > newest && sequence <= at && range->Covers(keyspace, key)) newest = sequence;
  }
  return newest;
}

const Status& NotCached() {
  static const Status status(StatusCode::kAborted, "a table is not open");
  return status;
}

/// So many keys of a MultiGet are on their way at once.
constexpr size_t kKeysAtOnce = 16;

}  // namespace

Result<Core::ReadPoint> Core::PointOf(const Snapshot* snapshot, bool fill_cache) const {
  ReadPoint point = Now();
  point.fill_cache = fill_cache;
  if (snapshot != nullptr) {
    BASALT_ASSIGN_OR_RETURN(point.at, SnapshotSequence(*snapshot));
  }
  return point;
}

Result<Core::Found> Core::Find(const ReadState& state, uint32_t keyspace, std::string_view key,
                               uint64_t hash, const ReadPoint& point) const {
  BASALT_ASSIGN_OR_RETURN(StoredVersion version, FindVersion(state, keyspace, key, hash, point));
  if (base::TagKind(version.tag) == RecordKind::kMerge) {
    return FindMerged(state, keyspace, key, hash, point, std::move(version));
  }
  Found found;
  found.sequence = base::TagSequence(version.tag);
  if (base::TagKind(version.tag) == RecordKind::kPut && !HasExpired(version.time_ms, point)) {
    found.expiry_ms = version.time_ms;
    found.value = std::move(version.value);
  }
  return found;
}

// Goes down to what the merges build on.
Result<Core::Found> Core::FindMerged(const ReadState& state, uint32_t keyspace,
                                     std::string_view key, uint64_t hash, ReadPoint point,
                                     StoredVersion newest) const {
  Found found;
  found.sequence = base::TagSequence(newest.tag);
  std::vector<base::PendingMerge> merges;
  StoredVersion version = std::move(newest);
  while (base::TagKind(version.tag) == RecordKind::kMerge) {
    merges.push_back({version.value.ToString(), version.time_ms});
    point.at = base::TagSequence(version.tag) - 1;
    BASALT_ASSIGN_OR_RETURN(version, FindVersion(state, keyspace, key, hash, point));
  }
  std::optional<std::string_view> below;
  if (base::TagKind(version.tag) == RecordKind::kPut) below = version.value.view();
  BASALT_ASSIGN_OR_RETURN(const base::MergedValue merged,
                          base::ApplyMerges(merges, below, version.time_ms, NowOf(point)));
  if (!HasExpired(merged.expiry_ms, point)) {
    found.expiry_ms = merged.expiry_ms;
    found.value = Value::Copy(merged.value);
  }
  return found;
}

Result<Core::StoredVersion> Core::FindVersion(const ReadState& state, uint32_t keyspace,
                                              std::string_view key, uint64_t hash,
                                              const ReadPoint& point) const {
  const auto covered_by = [](base::SequenceNumber sequence) {
    return StoredVersion{base::MakeTag(sequence, RecordKind::kDeleteRange), 0, Value()};
  };
  StoredVersion version;
  // True: this memtable decides. All that it holds is newer than what later places hold.
  const auto look_in = [&](const memtable::Generation& table) {
    memtable::FoundRecord record;
    const bool is_found = table.Get(keyspace, key, hash, point.at, &record);
    if (table.range_deletes() != nullptr) {
      const base::SequenceNumber cover = RangeSequence(table, keyspace, key, point.at);
      if (cover > base::TagSequence(record.tag)) {
        version = covered_by(cover);
        return true;
      }
    }
    if (is_found) version = {record.tag, record.time_ms, std::move(record.value)};
    return is_found;
  };
  if (look_in(*state.active->table)) return version;
  for (const auto& sealed : state.sealed) {
    if (look_in(*sealed->table)) return version;
  }

  const Tree* const tree = state.version->tree(keyspace);
  if (tree == nullptr) return version;
  BASALT_ASSIGN_OR_RETURN(version, FindInTables(*tree, key, hash, point));
  if (!tree->range_deletes.empty()) {
    const base::SequenceNumber cover = tree->range_deletes.SequenceAt(key, point.at);
    if (cover > base::TagSequence(version.tag)) return covered_by(cover);
  }
  return version;
}

Result<Core::StoredVersion> Core::FindInTables(const Tree& tree, std::string_view key,
                                               uint64_t hash, const ReadPoint& point) const {
  table::TableRead read;
  const auto find_in = [&](const TableFile& file) -> Result<bool> {
    if (const table::Table* const opened = file.OpenedTable();
        opened != nullptr && point.cached_only) {
      return opened->GetCached(key, hash, point.at, &read);
    }
    if (point.cached_only) return NotCached();
    BASALT_ASSIGN_OR_RETURN(const table::Table* table, file.Open());
    return table->Get(key, hash, point.at, point.fill_cache, &read);
  };
  for (const std::shared_ptr<TableFile>& file : tree.levels[0]) {
    const table::TableProperties& properties = file->properties();
    if (key < properties.smallest_key || key > properties.largest_key) continue;
    BASALT_ASSIGN_OR_RETURN(const bool found, find_in(*file));
    if (found) return StoredVersion{read.tag, read.time_ms, std::move(read.value)};
  }
  for (size_t level = 1; level < Tree::kLevels; ++level) {
    const TableFile* const file = tree.Find(level, key);
    if (file == nullptr) continue;
    BASALT_ASSIGN_OR_RETURN(const bool found, find_in(*file));
    if (found) return StoredVersion{read.tag, read.time_ms, std::move(read.value)};
  }
  return StoredVersion{};
}

Result<MaybeValue> Core::Get(std::string_view key, const ReadOptions& options) const {
  Result<MaybeValue> result;
  BASALT_RETURN_IF_ERROR(MultiGet({&key, 1}, {&result, 1}, options));
  return result;
}

// What is in memory is read inside the epoch, without touching anything that threads share. Only
// when a block has to be read from disk does the call take a reference to the state; the keys that
// are left then go on with that.
Status Core::MultiGet(std::span<const std::string_view> keys, std::span<Result<MaybeValue>> results,
                      const ReadOptions& options) const {
  BASALT_RETURN_IF_ERROR(CheckUsable());
  if (keys.size() != results.size()) {
    return Status(StatusCode::kInvalidArgument, "MultiGet: " + std::to_string(keys.size()) +
                                                    " keys, but room for " +
                                                    std::to_string(results.size()) + " results");
  }
  const auto keyspace = static_cast<uint32_t>(options.keyspace);
  ReadPoint point;
  std::shared_ptr<const ReadState> held;
  size_t done = 0;
  {
    const base::EpochGuard inside;
    const ReadState& state = *current_.load(std::memory_order_acquire);
    BASALT_RETURN_IF_ERROR(CheckKeyspace(state, options.keyspace));
    BASALT_ASSIGN_OR_RETURN(point, PointOf(options.snapshot, options.fill_cache));
    point.cached_only = true;
    done = FindSome(state, keyspace, keys, results, point);
    // All keys are read at one moment: the rest of them in this state, too.
    if (done < keys.size()) held = state.shared_from_this();
  }
  if (held == nullptr) return {};
  point.cached_only = false;
  FindSome(*held, keyspace, keys.subspan(done), results.subspan(done), point);
  return {};
}

// Gives how many of the keys, from the first on, it answered: fewer than all when a block is not
// cached and must not be read.
size_t Core::FindSome(const ReadState& state, uint32_t keyspace,
                      std::span<const std::string_view> keys, std::span<Result<MaybeValue>> results,
                      const ReadPoint& point) const {
  uint64_t hashes[kKeysAtOnce];
  for (size_t begin = 0; begin < keys.size(); begin += kKeysAtOnce) {
    const auto group = keys.subspan(begin, std::min(kKeysAtOnce, keys.size() - begin));
    for (size_t i = 0; i < group.size(); ++i) hashes[i] = base::Hash(group[i]);
    if (group.size() > 1) Prefetch(state, keyspace, group, hashes);
    for (size_t i = 0; i < group.size(); ++i) {
      auto found = Find(state, keyspace, group[i], hashes[i], point);
      if (found) {
        results[begin + i] = std::move(found->value);
      } else if (point.cached_only && found.error().code() == StatusCode::kAborted) {
        return begin + i;
      } else {
        results[begin + i] = found.error();
      }
    }
  }
  return keys.size();
}

// The lines where the lookups of all keys begin are loaded at once, instead of one after the other.
void Core::Prefetch(const ReadState& state, uint32_t keyspace,
                    std::span<const std::string_view> keys, const uint64_t* hashes) {
  const Tree* const tree = state.version->tree(keyspace);
  for (size_t i = 0; i < keys.size(); ++i) {
    state.active->table->Prefetch(keyspace, hashes[i]);
    for (const auto& sealed : state.sealed) sealed->table->Prefetch(keyspace, hashes[i]);
    if (tree == nullptr) continue;
    for (const std::shared_ptr<TableFile>& file : tree->levels[0]) {
      if (const table::Table* table = file->OpenedTable()) table->Prefetch(hashes[i]);
    }
    for (size_t level = 1; level < Tree::kLevels; ++level) {
      const TableFile* const file = tree->Find(level, keys[i]);
      if (file == nullptr) continue;
      if (const table::Table* table = file->OpenedTable()) table->Prefetch(hashes[i]);
    }
  }
}

Result<uint64_t> Core::ApproximateSize(std::optional<std::string_view> begin,
                                       std::optional<std::string_view> end,
                                       KeyspaceId keyspace) const {
  BASALT_RETURN_IF_ERROR(CheckUsable());
  const std::shared_ptr<const ReadState> state = State();
  BASALT_RETURN_IF_ERROR(CheckKeyspace(*state, keyspace));
  const Tree* const tree = state->version->tree(static_cast<uint32_t>(keyspace));
  uint64_t bytes = 0;
  if (tree == nullptr || (begin && end && *begin >= *end)) return bytes;
  for (const TableFiles& level : tree->levels) {
    for (const std::shared_ptr<TableFile>& file : level) {
      const table::TableProperties& properties = file->properties();
      if (begin && properties.largest_key < *begin) continue;
      if (end && properties.smallest_key >= *end) continue;
      const bool is_whole =
          (!begin || *begin <= properties.smallest_key) && (!end || *end > properties.largest_key);
      if (is_whole) {
        bytes += properties.file_bytes;
        continue;
      }
      BASALT_ASSIGN_OR_RETURN(const table::Table* table, file->Open());
      const size_t first = begin ? table->FindBlock(*begin, base::kNewestTag) : 0;
      const size_t last = end ? table->FindBlock(*end, base::kNewestTag) : table->block_count();
      const size_t blocks = std::min(last + 1, table->block_count()) - std::min(first, last);
      bytes += properties.file_bytes * blocks / table->block_count();
    }
  }
  return bytes;
}

}  // namespace basalt::db

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/epoch.h"
#include "base/hash.h"
#include "base/merge_operator.h"
#include "base/short_hash.h"
#include "base/wall_time_millis.h"
#include "db/core.h"
#include "db/tree_key.h"

// Lookups of single keys: the newest place that knows a key decides. Memtables come first, then the
// tables of level 0, newest first, then one table of each further level.

namespace basalt::db {
namespace {

/// What stands for all versions that a range delete hides.
table::TableRead HiddenBy(base::SequenceNumber range) noexcept {
  return {base::MakeTag(range, RecordKind::kDeleteRange), 0, Value()};
}

/// Nobody reads why, so that it takes no memory.
Status NotCached() noexcept { return Status(StatusCode::kAborted, ""); }

Status NotInMemory() noexcept {
  return Status(StatusCode::kWouldBlock,
                "the read needs the disk: make it on a thread that may wait");
}

/// Starts to load the lines where a lookup in each of the tables begins.
void PrefetchAll(const TableFiles& files, const LookupKey& key) noexcept {
  for (const std::shared_ptr<TableFile>& file : files) {
    const table::Table* const table = file->OpenedTable();
    if (table != nullptr) table->Prefetch(key.In(file->properties()).hash);
  }
}

/// Calls `visit` with each table in whose range the key of the tree lies, the newest first, until
/// it answers true.
template <class Visit>
[[gnu::always_inline]] inline void VisitTables(const Tree& tree, std::string_view key,
                                               const Visit& visit) {
  for (const std::shared_ptr<TableFile>& file : tree.levels[0]) {
    const table::TableProperties& properties = file->properties();
    if (key < properties.smallest_key || key > properties.largest_key) continue;
    if (visit(*file)) return;
  }
  for (size_t level = 1; level < Tree::kLevels; ++level) {
    if (tree.levels[level].empty()) continue;
    const TableFile* const file = tree.Find(level, key);
    if (file != nullptr && visit(*file)) return;
  }
}

/// So many keys of a MultiGet are on their way at once.
constexpr size_t kKeysAtOnce = 16;

/// Where a lookup in tables will most likely find its key.
struct FirstPlace {
  const table::Table* table = nullptr;  ///< Null: no table that is open knows it.
  table::RecordPlace record{};
};

FirstPlace FindFirstPlace(const Tree& tree, const LookupKey& key) noexcept {
  FirstPlace found;
  VisitTables(tree, key.tree_key(), [&](const TableFile& file) {
    const table::Table* const table = file.OpenedTable();
    if (table == nullptr) return false;
    const auto place = table->FirstPlace(key.In(file.properties()).hash);
    if (place) found = {table, *place};
    return place.has_value();
  });
  return found;
}

}  // namespace

Result<Core::Found> Core::Find(const ReadState& state, uint32_t keyspace, std::string_view key,
                               uint64_t hash, const ReadPoint& point) const {
  StoredVersion version;
  BASALT_RETURN_IF_ERROR(FindVersion(state, keyspace, key, hash, point, &version));
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

// As Find, of the value alone, which is copied once on its way.
Status Core::FindValue(const ReadState& state, uint32_t keyspace, std::string_view key,
                       uint64_t hash, const ReadPoint& point, MaybeValue* value) const {
  StoredVersion version;
  BASALT_RETURN_IF_ERROR(FindVersion(state, keyspace, key, hash, point, &version));
  value->reset();
  if (base::TagKind(version.tag) == RecordKind::kPut) {
    if (!HasExpired(version.time_ms, point)) value->emplace(std::move(version.value));
  } else if (base::TagKind(version.tag) == RecordKind::kMerge) {
    BASALT_ASSIGN_OR_RETURN(Found found,
                            FindMerged(state, keyspace, key, hash, point, std::move(version)));
    *value = std::move(found.value);
  }
  return {};
}

// Goes down to what the merges build on. `newest`: as FindVersion found it, or without a tag.
Status Core::FindMerges(const ReadState& state, uint32_t keyspace, std::string_view key,
                        uint64_t hash, ReadPoint point, uint64_t expiry_ms, StoredVersion newest,
                        memtable::MergesOfKey* found) const {
  const auto ends_in = [&](const auto& generation) {
    return found->TakeFrom(generation->table.get(), keyspace, key, hash, point.at, expiry_ms);
  };
  if (ends_in(state.active) || std::ranges::any_of(state.sealed, ends_in)) return {};
  // Without a merge in a memtable it was found in a table.
  StoredVersion version;
  if (found->merges.empty()) version = std::move(newest);
  while (true) {
    if (version.tag == 0) {
      BASALT_RETURN_IF_ERROR(FindFlushed(state, keyspace, key, hash, point, &version));
    }
    if (base::TagKind(version.tag) != RecordKind::kMerge) {
      found->below = {version.tag, version.time_ms, std::move(version.value)};
      return {};
    }
    found->merges.push_back({version.value.ToString(), version.time_ms});
    point.at = base::TagSequence(version.tag) - 1;
    version = StoredVersion();
  }
}

Result<Core::Found> Core::FindMerged(const ReadState& state, uint32_t keyspace,
                                     std::string_view key, uint64_t hash, const ReadPoint& point,
                                     StoredVersion newest) const {
  Found found;
  found.sequence = base::TagSequence(newest.tag);
  memtable::MergesOfKey read;
  BASALT_RETURN_IF_ERROR(
      FindMerges(state, keyspace, key, hash, point, 0, std::move(newest), &read));
  const uint64_t expiry_ms = read.below.time_ms;
  if (read.IsSplit()) {
    read = {};
    BASALT_RETURN_IF_ERROR(FindMerges(state, keyspace, key, hash, point, expiry_ms, {}, &read));
  }
  std::optional<std::string_view> below;
  if (base::TagKind(read.below.tag) == RecordKind::kPut) below = read.below.value.view();
  BASALT_ASSIGN_OR_RETURN(const base::MergedValue merged,
                          base::ApplyMerges(read.merges, below, expiry_ms, NowOf(point)));
  for (memtable::Generation* const table : read.long_walks) {
    table->FoldMerges(keyspace, key, hash, point.at, expiry_ms);
  }
  if (!HasExpired(merged.expiry_ms, point)) {
    found.expiry_ms = merged.expiry_ms;
    found.value = Value::Copy(merged.value);
  }
  return found;
}

Result<std::optional<base::MergedValue>> Core::ReadMerged(const ReadState& state, uint32_t keyspace,
                                                          std::string_view key,
                                                          base::SequenceNumber at,
                                                          uint64_t now_ms) const {
  const ReadPoint point{.at = at, .now_ms = now_ms};
  BASALT_ASSIGN_OR_RETURN(const Found found, Find(state, keyspace, key, point));
  if (!found.value) return std::nullopt;
  return base::MergedValue{found.value->ToString(), found.expiry_ms};
}

Status Core::FindVersion(const ReadState& state, uint32_t keyspace, std::string_view key,
                         uint64_t hash, const ReadPoint& point, StoredVersion* version) const {
  // True: this memtable decides. All that it holds is newer than what later places hold.
  const auto look_in = [&](const memtable::Generation& table) {
    const memtable::Record* record;
    {
      const base::EpochGuard inside;
      record = table.Find(keyspace, key, hash, point.at, nullptr);
    }
    const base::Tag tag = record == nullptr ? 0 : record->tag.load(std::memory_order_relaxed);
    if (!table.range_deletes().empty()) {
      const base::SequenceNumber cover =
          table.range_deletes().SequenceAt(keyspace, key, point.at, nullptr);
      if (cover > base::TagSequence(tag)) {
        *version = HiddenBy(cover);
        return true;
      }
    }
    if (record == nullptr) return false;
    version->tag = tag;
    version->time_ms = record->time_ms();
    if (base::TagKind(tag) != RecordKind::kDelete) version->value = table.ValueOf(*record);
    return true;
  };
  if (look_in(*state.active->table)) return {};
  for (const auto& sealed : state.sealed) {
    if (look_in(*sealed->table)) return {};
  }
  return FindFlushed(state, keyspace, key, hash, point, version);
}

Status Core::FindFlushed(const ReadState& state, uint32_t keyspace, std::string_view key,
                         uint64_t hash, const ReadPoint& point, StoredVersion* version) const {
  const Tree* const tree = state.version->tree(keyspace);
  if (tree == nullptr) return {};
  return FindInTree(*tree, LookupKey(keyspace, key, hash), point, version);
}

Status Core::FindInTree(const Tree& tree, const LookupKey& lookup, const ReadPoint& point,
                        StoredVersion* version) const {
  BASALT_RETURN_IF_ERROR(FindInTables(tree, lookup, point, version));
  if (!tree.range_deletes.empty()) {
    const base::SequenceNumber cover = tree.range_deletes.SequenceAt(lookup.tree_key(), point.at);
    if (cover > base::TagSequence(version->tag)) *version = HiddenBy(cover);
  }
  return {};
}

// Most often the tables tell without being read that nothing expires between the merges. Else a
// long chain is worth some lookups.
std::optional<uint64_t> Core::ExpiryBelow(const Tree& tree, std::string_view tree_key,
                                          const base::SurvivingRecords::Chain& chain) const {
  constexpr size_t kWorthReading = 16;
  constexpr int kVersionsMax = 64;
  bool may_expire_between = false;
  VisitTables(tree, tree_key, [&](const TableFile& file) {
    const table::TableProperties& properties = file.properties();
    may_expire_between = properties.expiring > 0 &&
                         properties.earliest_expiry_ms <= chain.latest_ms &&
                         properties.latest_expiry_ms > chain.earliest_ms;
    return may_expire_between;
  });
  if (!may_expire_between) return 0;
  if (chain.count < kWorthReading) return std::nullopt;
  const bool is_shared = tree.keyspace == kSharedTree;
  const std::string_view key = tree_key.substr(is_shared ? kKeyspaceBytes : 0);
  const LookupKey lookup(is_shared ? KeyspaceOf(tree_key) : 0, key, base::Hash(key));
  ReadPoint point{.at = chain.oldest - 1, .fill_cache = false};
  for (int i = 0; i < kVersionsMax; ++i) {
    StoredVersion version;
    if (!FindInTree(tree, lookup, point, &version).ok()) return std::nullopt;
    const RecordKind kind = base::TagKind(version.tag);
    if (kind == RecordKind::kPut) return version.time_ms;
    if (kind != RecordKind::kMerge) return 0;
    point.at = base::TagSequence(version.tag) - 1;
  }
  return std::nullopt;
}

Result<bool> Core::FindInTable(const TableFile& file, const LookupKey& lookup,
                               const ReadPoint& point, StoredVersion* version) {
  BASALT_ASSIGN_OR_RETURN(const table::Table* table, file.Open());
  const auto [key, hash] = lookup.In(file.properties());
  return table->Get(key, hash, point.at, point.fill_cache, version);
}

Status Core::FindInTables(const Tree& tree, const LookupKey& lookup, const ReadPoint& point,
                          StoredVersion* version) const {
  Status error;
  // True: it is found there, or the search failed.
  const auto ends_in = [&](const TableFile& file) {
    if (!point.cached_only) {
      const Result<bool> found = FindInTable(file, lookup, point, version);
      if (!found) error = found.error();
      return !found || *found;
    }
    using Answer = table::Table::CachedAnswer;
    const table::Table* const opened = file.OpenedTable();
    Answer answer = Answer::kUnknown;
    if (opened != nullptr) {
      const auto [key, hash] = lookup.In(file.properties());
      answer = opened->GetCached(key, hash, point.at, version);
    }
    if (answer == Answer::kUnknown) error = NotCached();
    return answer != Answer::kAbsent;
  };
  // All of level 0 may have to be asked: the lines where that begins are loaded together.
  if (tree.levels[0].size() > 1) PrefetchAll(tree.levels[0], lookup);
  VisitTables(tree, lookup.tree_key(), ends_in);
  return error;
}

// What was written last, and read again soon, is told by the first record that the active memtable
// has for the key's hash: of that way a processor's window holds more than of the general one's 900
// instructions.
Result<MaybeValue> Core::Get(std::string_view key, const ReadOptions& options) const {
  const uint64_t hash = base::HashShort(key);
  if (options.snapshot == nullptr && options.keyspace == KeyspaceId::kDefault && IsUsable()) {
    const base::QuickEpochGuard inside;
    if (inside) [[likely]] {
      const memtable::Generation& newest = *current_.load(std::memory_order_acquire)->active->table;
      const base::SequenceNumber at = visible();
      const memtable::Record* const first =
          newest.range_deletes().empty() ? newest.First(hash) : nullptr;
      if (first != nullptr) {
        first->FetchBehind();
        if (first->IsPlainPutOf(key) && first->has_short_value() &&
            base::TagSequence(first->tag.load(std::memory_order_acquire)) <= at) {
          return Result<MaybeValue>(std::in_place, std::in_place,
                                    first->PlainShortValue(key.size()));
        }
      }
    }
  }
  return GetSlowly(key, hash, options);
}

// `look(state, point)`: false when a block is not cached and must not be read. What is in memory is
// read inside the epoch, without touching anything that threads share. Only when a block has to be
// read from disk does the call take a reference to the state, and look in that again: all keys are
// read at one moment.
template <class Look>
Status Core::Read(const ReadOptions& options, const Look& look) const {
  BASALT_RETURN_IF_ERROR(CheckUsable());
  ReadPoint point;
  std::shared_ptr<const ReadState> held;
  {
    const base::EpochGuard inside;
    const ReadState& state = *current_.load(std::memory_order_acquire);
    BASALT_RETURN_IF_ERROR(CheckKeyspace(state, options.keyspace));
    point = {.at = visible(), .fill_cache = options.fill_cache, .cached_only = true};
    if (options.snapshot != nullptr) {
      BASALT_RETURN_IF_ERROR(CheckSnapshot(*options.snapshot));
      point.at = options.snapshot->sequence();
      point.now_ms = static_cast<uint64_t>(options.snapshot->time().time_since_epoch().count());
    }
    if (look(state, point)) return {};
    if (options.memory_only) return NotInMemory();
    held = state.shared_from_this();
  }
  point.cached_only = false;
  look(*held, point);
  return {};
}

Result<MaybeValue> Core::GetSlowly(std::string_view key, uint64_t hash,
                                   const ReadOptions& options) const {
  const auto keyspace = static_cast<uint32_t>(options.keyspace);
  Result<MaybeValue> result;
  Status found;
  Status status = Read(options, [&](const ReadState& state, const ReadPoint& point) {
    found = FindValue(state, keyspace, key, hash, point, &*result);
    return !point.cached_only || found.code() != StatusCode::kAborted;
  });
  if (status.ok()) status = std::move(found);
  if (!status.ok()) result = std::move(status);
  return result;  // one name for all that is returned: made in the caller's place
}

Result<std::optional<basalt::Entry>> Core::GetEntry(std::string_view key,
                                                    const ReadOptions& options) const {
  const auto keyspace = static_cast<uint32_t>(options.keyspace);
  const uint64_t hash = base::Hash(key);
  Result<Found> found;
  BASALT_RETURN_IF_ERROR(Read(options, [&](const ReadState& state, const ReadPoint& point) {
    found = Find(state, keyspace, key, hash, point);
    return found || !point.cached_only || found.error().code() != StatusCode::kAborted;
  }));
  if (!found) return found.error();
  if (!found->value) return std::optional<basalt::Entry>();
  return std::optional(basalt::Entry{.value = std::move(*found->value),
                                     .version = found->sequence,
                                     .expiry = base::WallTimeOf(found->expiry_ms)});
}

// The value comes along: where it lies in a block, it is read with the key.
Result<bool> Core::Contains(std::string_view key, const ReadOptions& options) const {
  BASALT_ASSIGN_OR_RETURN(const MaybeValue value, Get(key, options));
  return value.has_value();
}

// One moment for all of them: a keyspace after the other, each from the first key that was not
// answered from memory on.
Status Core::MultiGet(std::span<const KeyspaceKey> keys, std::span<Result<MaybeValue>> results,
                      const ReadOptions& options) const {
  size_t done = 0;
  BASALT_RETURN_IF_ERROR(CheckUsable());
  ReadOptions of_all = options;
  of_all.keyspace = KeyspaceId::kDefault;
  return Read(of_all, [&](const ReadState& state, const ReadPoint& point) {
    for (; done < keys.size(); ++done) {
      Result<MaybeValue>& result = results[done];
      const auto& [keyspace, key] = keys[done];
      if (Status known = CheckKeyspace(state, keyspace); !known.ok()) {
        result = std::move(known);
        continue;
      }
      if (!result) result = MaybeValue();
      Status found =
          FindValue(state, static_cast<uint32_t>(keyspace), key, base::Hash(key), point, &*result);
      if (point.cached_only && found.code() == StatusCode::kAborted) return false;
      if (!found.ok()) result = std::move(found);
    }
    return true;
  });
}

Status Core::MultiGet(std::span<const std::string_view> keys, std::span<Result<MaybeValue>> results,
                      const ReadOptions& options) const {
  const auto keyspace = static_cast<uint32_t>(options.keyspace);
  size_t done = 0;
  return Read(options, [&](const ReadState& state, const ReadPoint& point) {
    done += FindSome(state, keyspace, keys.subspan(done), results.subspan(done), point);
    return done == keys.size();
  });
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
      Result<MaybeValue>& result = results[begin + i];
      if (!result) result = MaybeValue();
      Status found = FindValue(state, keyspace, group[i], hashes[i], point, &*result);
      if (found.ok()) continue;
      if (point.cached_only && found.code() == StatusCode::kAborted) return begin + i;
      result = std::move(found);
    }
  }
  return keys.size();
}

// Each pass asks, for all keys, for the lines that the next one reads, instead of waiting for one
// after the other. The lookups themselves then find them loaded.
void Core::Prefetch(const ReadState& state, uint32_t keyspace,
                    std::span<const std::string_view> keys, const uint64_t* hashes) {
  const base::EpochGuard inside;
  const Tree* const tree = state.version->tree(keyspace);
  for (size_t i = 0; i < keys.size(); ++i) {
    state.active->table->Prefetch(keyspace, hashes[i]);
    for (const auto& sealed : state.sealed) sealed->table->Prefetch(keyspace, hashes[i]);
    if (tree == nullptr) continue;
    const LookupKey key(keyspace, keys[i], hashes[i]);
    VisitTables(*tree, key.tree_key(), [&](const TableFile& file) {
      const table::Table* const table = file.OpenedTable();
      if (table != nullptr) table->Prefetch(key.In(file.properties()).hash);
      return false;
    });
  }

  const auto is_in_memtable = [&](uint64_t hash) {
    const auto knows = [&](const auto& generation) {
      return generation->table->Candidate(keyspace, hash) != nullptr;
    };
    return knows(state.active) || std::ranges::any_of(state.sealed, knows);
  };
  FirstPlace places[kKeysAtOnce];
  for (size_t i = 0; i < keys.size(); ++i) {
    if (is_in_memtable(hashes[i]) || tree == nullptr) continue;
    places[i] = FindFirstPlace(*tree, LookupKey(keyspace, keys[i], hashes[i]));
  }
  for (const FirstPlace& place : places) {
    if (place.table != nullptr) place.table->PrefetchRecord(place.record);
  }
}

Result<uint64_t> Core::ApproximateSize(std::optional<std::string_view> begin,
                                       std::optional<std::string_view> end,
                                       KeyspaceId keyspace) const {
  BASALT_RETURN_IF_ERROR(CheckUsable());
  const std::shared_ptr<const ReadState> state = State();
  BASALT_RETURN_IF_ERROR(CheckKeyspace(*state, keyspace));
  const auto id = static_cast<uint32_t>(keyspace);
  const Tree* const tree = state->version->tree(id);
  uint64_t bytes = 0;
  if (tree == nullptr || (begin && end && *begin >= *end)) return bytes;
  const TreeRange range(id, begin, end);
  for (const TableFiles& level : tree->levels) {
    for (const std::shared_ptr<TableFile>& file : level) {
      const table::TableProperties& properties = file->properties();
      if (range.begin && properties.largest_key < *range.begin) continue;
      if (range.end && properties.smallest_key >= *range.end) continue;
      const bool is_whole = (!range.begin || *range.begin <= properties.smallest_key) &&
                            (!range.end || *range.end > properties.largest_key);
      if (is_whole) {
        bytes += properties.file_bytes;
        continue;
      }
      BASALT_ASSIGN_OR_RETURN(const table::Table* table, file->Open());
      const bool has_tree_keys = properties.keyspace == table::kSharedKeyspaces;
      const std::optional<std::string_view> from = has_tree_keys ? range.begin : begin;
      const std::optional<std::string_view> to = has_tree_keys ? range.end : end;
      size_t first = 0;
      size_t last = table->block_count();
      if (from) {
        BASALT_ASSIGN_OR_RETURN(first, table->FindBlock(*from, base::kNewestTag));
      }
      if (to) {
        BASALT_ASSIGN_OR_RETURN(last, table->FindBlock(*to, base::kNewestTag));
      }
      const size_t blocks = std::min(last + 1, table->block_count()) - std::min(first, last);
      bytes += properties.file_bytes * blocks / table->block_count();
    }
  }
  return bytes;
}

}  // namespace basalt::db

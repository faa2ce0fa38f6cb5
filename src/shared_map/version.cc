#include "shared_map/version.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "shared_map/file_names.h"

namespace basalt::shared_map {
namespace {

/// Bytes of functions up to which lookups hardly wait for a seed: of some 7.6 million keys.
/// Measured with 1 MiB of second-level cache, where half as many would gain less than absent keys
/// lose.
constexpr uint64_t kSeedsCached = uint64_t{2} << 20;

/// Null for those without records.
std::vector<const BaseFile*> Pointers(const std::vector<std::shared_ptr<const BaseFile>>& bases) {
  std::vector<const BaseFile*> pointers;
  pointers.reserve(bases.size());
  for (const auto& base : bases) {
    const bool has_records = base != nullptr && base->figures().records != 0;
    pointers.push_back(has_records ? base.get() : nullptr);
  }
  return pointers;
}

bool HasStarts(const std::shared_ptr<const BaseFile>& base) noexcept {
  return base != nullptr && !base->figures().fixed;
}

uint64_t FunctionBytes(const std::vector<std::shared_ptr<const BaseFile>>& bases) noexcept {
  uint64_t bytes = 0;
  for (const auto& base : bases) bytes += base != nullptr ? base->figures().function_bytes : 0;
  return bytes;
}

template <class T>
void Keep(std::map<uint64_t, std::weak_ptr<T>>* files, uint64_t number,
          const std::shared_ptr<T>& file) {
  std::erase_if(*files, [](const auto& kept) { return kept.second.expired(); });
  (*files)[number] = file;
}

/// What `files` has under `number`, opened by `open` if it has nothing.
template <class T, class Open>
Result<std::shared_ptr<T>> Remembered(std::map<uint64_t, std::weak_ptr<T>>* files, uint64_t number,
                                      const Open& open) {
  if (const auto at = files->find(number); at != files->end()) {
    if (std::shared_ptr<T> present = at->second.lock()) return present;
  }
  Result<std::shared_ptr<T>> opened = open();
  if (opened) Keep(files, number, *opened);
  return opened;
}

}  // namespace

Version::Version(ListFile listed, std::vector<std::shared_ptr<const BaseFile>> bases,
                 std::vector<ChangeSet> change_sets)
    : list_(std::move(listed.list)),
      list_file_(std::move(listed.file)),
      hash_of_(list_.hash_seed()),
      shard_shift_(63 - list_.shard_bits),
      bases_(std::move(bases)),
      base_pointers_(Pointers(bases_)),
      has_starts_(std::ranges::any_of(bases_, HasStarts)),
      waits_for_seeds_(FunctionBytes(bases_) > kSeedsCached),
      change_sets_(std::move(change_sets)),
      newest_index_(&newest().index()),
      compacting_index_(change_sets_.size() > 1 ? &change_sets_[1].index() : nullptr) {}

Found Version::FindInChanges(uint64_t hash, std::string_view key, ReadLimit* limit,
                             RecordRef* record) const noexcept {
  // Whether it has any changes is told after the first one can be found: all ask for the word.
  if (const Found found = newest().Find(hash, key, limit, record); found != Found::kAbsent) {
    return found;
  }
  if (!IsCompacting(hash)) return Found::kAbsent;
  return change_sets_[1].Find(hash, key, record);
}

Found Version::FindChanged(uint64_t hash, std::string_view key, ReadLimit* limit,
                           std::string_view* value) const noexcept {
  RecordRef record;
  const Found found = FindInChanges(hash, key, limit, &record);
  if (found == Found::kCorrupt) return found;
  if (found == Found::kAbsent) return FindInBase(hash, key, value);
  if (!record.is_put()) return Found::kAbsent;
  *value = record.value();
  return Found::kPresent;
}

Status Version::WhyCorrupt(uint64_t hash, std::string_view key, ReadLimit limit) const {
  RecordRef record;
  const BaseFile* const base = BaseOf(hash);
  if (FindInChanges(hash, key, &limit, &record) != Found::kCorrupt && base != nullptr) {
    return base->Damage(base->Slot(hash, key));
  }
  BASALT_RETURN_IF_ERROR(newest().VisibleEnd().status());
  return Status(StatusCode::kCorruption,
                change_sets_.back().segments().front()->path() +
                    " or a later log: a change that the index leads to is not what was written");
}

SharedMapStats Version::GetStats() const {
  SharedMapStats stats;
  stats.version = list_.number;
  stats.shards = list_.shards.size();
  stats.compacting = compacting_index_ != nullptr;
  stats.entries = newest().index().entries().value_or(0);
  const BaseFile* counted = nullptr;  // Shards that share a base stand side by side.
  for (const auto& base : bases_) {
    if (base == nullptr || base.get() == counted) continue;
    counted = base.get();
    const BaseFigures& figures = base->figures();
    stats.base_records += figures.records;
    stats.base_bytes += figures.file_bytes;
    stats.function_bytes += figures.function_bytes;
    if (figures.fixed) ++stats.fixed_shards;
  }
  for (const ChangeSet& set : change_sets_) {
    stats.changes += set.index().changes().value_or(0);
    stats.changed_keys += set.index().keys().value_or(0);
    stats.index_bytes += set.index().bytes();
    for (const auto& segment : set.segments())
      stats.log_capacity_bytes += segment->capacity_bytes();
    stats.log_bytes += set.index().visible_end().value_or(0) * kLogUnit;
  }
  return stats;
}

Result<std::shared_ptr<const BaseFile>> VersionOpener::OpenBase(uint64_t number,
                                                                uint64_t hash_seed) {
  const std::lock_guard guard(mutex_);
  return Remembered(&bases_, number, [&] {
    return BaseFile::Open(fs_, PathOf(NameOf(FileKind::kBase, number)), hash_seed);
  });
}

Result<std::vector<std::shared_ptr<const LogSegment>>> VersionOpener::OpenSegments(
    const ChangeSetEntry& entry) {
  const std::lock_guard guard(mutex_);
  std::vector<std::shared_ptr<const LogSegment>> segments;
  for (const SegmentEntry& segment : entry.segments) {
    BASALT_ASSIGN_OR_RETURN(auto opened, Remembered(&segments_, segment.file, [&] {
                              return LogSegment::Open(
                                  fs_, PathOf(NameOf(FileKind::kLog, segment.file)), segment);
                            }));
    segments.push_back(std::move(opened));
  }
  return segments;
}

void VersionOpener::Remember(uint64_t number, const std::shared_ptr<ChangeIndex>& index) {
  const std::lock_guard guard(mutex_);
  Keep(&indexes_, number, index);
}

Result<ChangeSet> VersionOpener::BuildPrivate(
    std::vector<std::shared_ptr<const LogSegment>> segments, const ChangeSetEntry& entry,
    const VersionFiles& list) {
  ChangeCount count(list, entry);
  BASALT_ASSIGN_OR_RETURN(
      const LogEnd end,
      WalkChanges(segments, entry, 0,
                  [&](Location location, const Change& change) { count.Add(location, change); }));
  ChangeSet set(ChangeIndex::Private(ChangeIndex::CapacityFor(count.keys())), std::move(segments));
  BASALT_RETURN_IF_ERROR(FillIndex(set, entry, end.end, base::SeededHash(list.hash_seed()), count));
  return set;
}

Result<std::shared_ptr<ChangeIndex>> VersionOpener::OpenIndex(uint64_t number) {
  const std::lock_guard guard(mutex_);
  return Remembered(&indexes_, number, [&] {
    return ChangeIndex::Open(fs_, PathOf(NameOf(FileKind::kIndex, number)), boot_id_);
  });
}

Result<ChangeSet> VersionOpener::OpenChangeSet(const ChangeSetEntry& entry,
                                               const VersionFiles& list, Trust trust) {
  BASALT_ASSIGN_OR_RETURN(auto segments, OpenSegments(entry));
  const std::string path = PathOf(NameOf(FileKind::kIndex, entry.index_file));
  auto opened = OpenIndex(entry.index_file);
  if (trust == Trust::kUnknown) {
    // Neither its bytes nor its name was ever synced.
    const bool is_lost = !opened && opened.error().code() == StatusCode::kNotFound;
    if (is_lost || (opened && *opened == nullptr)) {
      return BuildPrivate(std::move(segments), entry, list);
    }
  }
  BASALT_ASSIGN_OR_RETURN(auto index, std::move(opened));
  if (index == nullptr) {
    return Status(
        StatusCode::kCorruption,
        path + ": is damaged; opening the map for writing (SharedMap::Open) makes a new one");
  }
  ChangeSet set(std::move(index), std::move(segments));
  if (trust == Trust::kPublished) return set;
  const std::optional<uint64_t> end = set.index().visible_end();
  if (!end || *end > kLocationMax || !set.index().entries() || !set.index().changes() ||
      !set.index().keys()) {
    return Status(StatusCode::kCorruption, path +
                                               ": its state is damaged; opening the map for "
                                               "writing (SharedMap::Open) makes a new one");
  }
  BASALT_RETURN_IF_ERROR(
      set.VerifyIndex(entry, static_cast<Location>(*end), base::SeededHash(list.hash_seed())));
  return set;
}

Result<std::shared_ptr<const Version>> VersionOpener::Open(ListFile listed, Trust trust) {
  const VersionFiles& list = listed.list;
  std::vector<std::shared_ptr<const BaseFile>> bases;
  bases.reserve(list.shards.size());
  for (const ShardEntry& shard : list.shards) {
    std::shared_ptr<const BaseFile>& base = bases.emplace_back();
    if (shard.base_file == 0) continue;
    BASALT_ASSIGN_OR_RETURN(base, OpenBase(shard.base_file, list.hash_seed()));
  }
  std::vector<ChangeSet> sets;
  for (const ChangeSetEntry& entry : list.change_sets) {
    BASALT_ASSIGN_OR_RETURN(ChangeSet set, OpenChangeSet(entry, list, trust));
    sets.push_back(std::move(set));
  }
  return std::shared_ptr<const Version>(
      std::make_shared<Version>(std::move(listed), std::move(bases), std::move(sets)));
}

Result<std::string> ResolveMap(io::FileSystem* fs, std::string_view path) {
  auto directory = fs->Resolve(path);
  if (directory) {
    BASALT_ASSIGN_OR_RETURN(const bool is_directory, fs->IsDirectory(*directory));
    if (is_directory) return directory;
    BASALT_ASSIGN_OR_RETURN(const bool exists, fs->Exists(*directory));
    if (exists) {
      return Status(StatusCode::kInvalidArgument,
                    std::string(path) + " is a file; a shared map is a directory");
    }
  } else if (directory.error().code() != StatusCode::kNotFound) {
    return directory;
  }
  return Status(StatusCode::kNotFound, "there is no shared map at " + std::string(path) +
                                           ": check the path, or make one (SharedMap::Create)");
}

Result<uint64_t> NewestVersionNumber(io::FileSystem* fs, const std::string& directory) {
  BASALT_ASSIGN_OR_RETURN(const std::vector<std::string> names, fs->List(directory));
  std::optional<uint64_t> newest;
  for (const std::string& name : names) {
    const std::optional<FileName> parsed = ParseFileName(name);
    if (parsed && parsed->kind == FileKind::kVersion) {
      newest = std::max(newest.value_or(0), parsed->number);
    }
  }
  if (newest) return *newest;
  const bool database = std::find(names.begin(), names.end(), "MANIFEST") != names.end();
  return Status(StatusCode::kNotFound,
                directory + (database ? ": is a database, not a shared map"
                                      : ": holds no shared map; check the path, or make one "
                                        "(SharedMap::Create)"));
}

}  // namespace basalt::shared_map

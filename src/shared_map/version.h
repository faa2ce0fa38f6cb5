#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/seeded_hash.h"
#include "shared_map/base_file.h"
#include "shared_map/change_set.h"
#include "shared_map/environment.h"
#include "shared_map/version_files.h"

namespace basalt::shared_map {

/// The files of one version, mapped. Its list never changes; its newest changes grow while it is
/// the map's newest version. Thread-safe.
///
/// A key is looked up in the newest changes, then in those that are being compacted, unless the
/// key's shard has been, then in the shard's base.
class Version {
 public:
  Version(ListFile listed, std::vector<std::shared_ptr<const BaseFile>> bases,
          std::vector<ChangeSet> change_sets);

  const VersionFiles& list() const noexcept { return list_; }
  uint64_t number() const noexcept { return list_.number; }
  /// The newest; then those being compacted, if there are any.
  const std::vector<ChangeSet>& change_sets() const noexcept { return change_sets_; }
  const ChangeSet& newest() const noexcept { return change_sets_.front(); }
  /// One a shard; null: it has no records.
  const std::vector<std::shared_ptr<const BaseFile>>& bases() const noexcept { return bases_; }

  /// Of all keys of the map.
  const base::SeededHash& hash_of() const noexcept { return hash_of_; }
  uint64_t ShardOf(uint64_t hash) const noexcept { return (hash >> 1) >> shard_shift_; }
  /// The place where what is held for the key is read from: prefetching and looking up in steps.
  /// Null: the shard has no records.
  const BaseFile* BaseOf(uint64_t hash) const noexcept { return base_pointers_[ShardOf(hash)]; }

  /// `limit`: of the newest changes.
  [[gnu::always_inline]] Found Find(uint64_t hash, std::string_view key, ReadLimit* limit,
                                    std::string_view* value) const noexcept {
    if (MayBeChanged(hash).any()) return FindChanged(hash, key, limit, value);
    return FindInBase(hash, key, value);
  }
  /// Whether a change decides about the key. kAbsent: the base does.
  Found FindInChanges(uint64_t hash, std::string_view key, ReadLimit* limit,
                      RecordRef* record) const noexcept;
  /// Which changes may have keys of a hash. None: the base decides.
  struct MaybeIn {
    bool newest;
    bool compacting;
    bool any() const noexcept { return newest || compacting; }
  };
  [[gnu::always_inline]] MaybeIn MayBeChanged(uint64_t hash) const noexcept {
    if (!MayHaveChanges()) return {};
    MaybeIn maybe = {.newest = newest_index_->MayHold(hash), .compacting = false};
    if (compacting_index_ != nullptr) {
      maybe.compacting = compacting_index_->MayHold(hash) && IsCompacting(hash);
    }
    return maybe;
  }
  /// Of the newest changes, then of those that are being compacted. Not there: the base decides.
  ChangeSet::Candidate CandidateOf(uint64_t hash, MaybeIn maybe) const noexcept {
    ChangeSet::Candidate candidate = {};
    if (maybe.newest) candidate = newest().CandidateOf(hash);
    if (maybe.compacting && !candidate.is_there) candidate = change_sets_[1].CandidateOf(hash);
    return candidate;
  }
  /// What MayBeChanged reads.
  [[gnu::always_inline]] void PrefetchFilters(uint64_t hash) const noexcept {
    newest_index_->PrefetchFilter(hash);
    if (compacting_index_ != nullptr) compacting_index_->PrefetchFilter(hash);
  }
  /// What CandidateOf reads.
  [[gnu::always_inline]] void PrefetchWords(uint64_t hash, MaybeIn maybe) const noexcept {
    if (maybe.newest) newest_index_->Prefetch(hash);
    if (maybe.compacting) compacting_index_->Prefetch(hash);
  }
  /// Some base has the variable layout.
  bool has_starts() const noexcept { return has_starts_; }
  bool MayHaveChanges() const noexcept {
    return compacting_index_ != nullptr || newest_index_->HasChanges();
  }

  /// What readers know.
  SharedMapStats GetStats() const;

  /// Why Find said kCorrupt.
  Status WhyCorrupt(uint64_t hash, std::string_view key, ReadLimit limit) const;

 private:
  /// Whether the changes that are being compacted count for the key.
  bool IsCompacting(uint64_t hash) const noexcept {
    return compacting_index_ != nullptr && list_.shards[ShardOf(hash)].change_sets > 1;
  }
  Found FindChanged(uint64_t hash, std::string_view key, ReadLimit* limit,
                    std::string_view* value) const noexcept;
  [[gnu::always_inline]] Found FindInBase(uint64_t hash, std::string_view key,
                                          std::string_view* value) const noexcept {
    const BaseFile* const base = BaseOf(hash);
    if (base == nullptr) return Found::kAbsent;
    if (waits_for_seeds_) base->PrefetchNear(hash);
    return base->Find(key, hash, value);
  }

  const VersionFiles list_;
  const std::unique_ptr<io::File> list_file_;  // Marked as in use.
  const base::SeededHash hash_of_;
  const uint32_t shard_shift_;
  const std::vector<std::shared_ptr<const BaseFile>> bases_;
  const std::vector<const BaseFile*> base_pointers_;
  const bool has_starts_;
  // The functions are so large that a lookup waits for its seed.
  const bool waits_for_seeds_;
  const std::vector<ChangeSet> change_sets_;
  const ChangeIndex* const newest_index_;
  const ChangeIndex* const compacting_index_;  // Null: no compaction is under way.
};

/// Opens versions, and keeps no file mapped twice. Thread-safe.
class VersionOpener {
 public:
  /// How far index files can be believed.
  enum class Trust : uint8_t {
    kVerified,   ///< Written since the machine was started; verified against the log.
    kPublished,  ///< The same, and this process has seen it being published.
    kUnknown,  ///< Verified if written since the machine was started; else a private one is built.
  };

  VersionOpener(io::FileSystem* fs, std::string directory, uint64_t boot_id)
      : fs_(fs), directory_(std::move(directory)), boot_id_(boot_id) {}

  /// NotFound: a file is gone, perhaps because a newer version has been published.
  Result<std::shared_ptr<const Version>> Open(ListFile listed, Trust trust);

  Result<std::shared_ptr<const BaseFile>> OpenBase(uint64_t number, uint64_t hash_seed);
  Result<std::vector<std::shared_ptr<const LogSegment>>> OpenSegments(const ChangeSetEntry& entry);
  /// Of a file that this process has made.
  void Remember(uint64_t number, const std::shared_ptr<ChangeIndex>& index);
  std::string PathOf(const std::string& name) const { return io::JoinPath(directory_, name); }

 private:
  Result<ChangeSet> OpenChangeSet(const ChangeSetEntry& entry, const VersionFiles& list,
                                  Trust trust);
  /// Null: it is damaged, or was made before the machine was started.
  Result<std::shared_ptr<ChangeIndex>> OpenIndex(uint64_t number);
  Result<ChangeSet> BuildPrivate(std::vector<std::shared_ptr<const LogSegment>> segments,
                                 const ChangeSetEntry& entry, const VersionFiles& list);

  io::FileSystem* const fs_;
  const std::string directory_;
  const uint64_t boot_id_;
  std::mutex mutex_;  // Covers the rest, and opening.
  std::map<uint64_t, std::weak_ptr<const BaseFile>> bases_;
  std::map<uint64_t, std::weak_ptr<const LogSegment>> segments_;
  std::map<uint64_t, std::weak_ptr<ChangeIndex>> indexes_;
};

/// The directory of the map at `path`, absolute. NotFound: there is nothing.
Result<std::string> ResolveMap(io::FileSystem* fs, std::string_view path);

/// The highest number of a version in the directory. NotFound: there is none.
Result<uint64_t> NewestVersionNumber(io::FileSystem* fs, const std::string& directory);

}  // namespace basalt::shared_map

#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "basalt/shared_map.h"
#include "shared_map/core.h"
#include "shared_map/new_place.h"
#include "shared_map/record_spool.h"

namespace basalt::shared_map {

/// What a SharedMapBuilder does: records go to a spool, by shard; at the end each shard is loaded
/// and becomes a base file, and all of them one version.
class SpooledBuild {
 public:
  /// Makes the directory, or takes the lock of the map that is to be replaced.
  static Result<std::unique_ptr<SpooledBuild>> Create(std::string_view path,
                                                      const SharedMapOptions& options,
                                                      Duplicates duplicates,
                                                      const Environment& environment);
  static std::unique_ptr<SharedMapBuilder> Handle(std::unique_ptr<SpooledBuild> build);
  ~SpooledBuild();
  SpooledBuild(const SpooledBuild&) = delete;
  SpooledBuild& operator=(const SpooledBuild&) = delete;

  Status Add(std::string_view key, std::string_view value);
  uint64_t added() const noexcept { return spool_ == nullptr ? 0 : spool_->records(); }
  Result<std::shared_ptr<Core>> Finish(const SharedMapProgressFunction& on_progress);

 private:
  SpooledBuild(const SharedMapOptions& options, Duplicates duplicates);

  /// FailedPrecondition: it has been finished, or belongs to the parent of this process.
  Status Refusal() const;
  Result<std::vector<ShardEntry>> WriteShards(const SharedMapProgressFunction& on_progress,
                                              uint64_t* entries);

  const SharedMapOptions options_;
  const Duplicates duplicates_;
  const uint64_t fork_count_;
  std::optional<NewPlace> place_;  // Outlives all that has files in it.
  std::shared_ptr<Core> core_;
  uint64_t map_id_ = 0;
  std::unique_ptr<RecordSpool> spool_;
  uint64_t first_file_ = 1;
};

/// InvalidArgument: a field is out of range; the message names it.
Status CheckMapOptions(const SharedMapOptions& options);

}  // namespace basalt::shared_map

#include "shared_map/build.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/fork_count.h"
#include "base/option_value.h"
#include "shared_map/base_writer.h"
#include "shared_map/file_names.h"
#include "shared_map/new_files.h"
#include "shared_map/writer.h"

namespace basalt::shared_map {

Status CheckMapOptions(const SharedMapOptions& options) {
  const auto refuse = [](std::string_view what) {
    return Status(StatusCode::kInvalidArgument, "SharedMapOptions::" + std::string(what));
  };
  constexpr uint64_t kBuildMemoryMin = uint64_t{1} << 20;
  if (options.durability == Durability::kMemory) {
    return refuse("durability is kMemory; a map without files is Create(\":memory:\")");
  }
  BASALT_RETURN_IF_ERROR(base::CheckDurability("SharedMapOptions::durability", options.durability));
  if (options.layout > SharedMapLayout::kVariable) {
    return base::NoSuchValue("SharedMapOptions::layout", options.layout,
                             "kDerived, kFixed or kVariable");
  }
  if (options.build_memory < kBuildMemoryMin) return refuse("build_memory is below 1 MiB");
  if (options.threads > 256) return refuse("threads is above 256");
  if (options.lock_timeout.count() < 0) return refuse("lock_timeout is negative");
  return Status();
}

Result<std::unique_ptr<SpooledBuild>> SpooledBuild::Create(std::string_view path,
                                                           const SharedMapOptions& options,
                                                           Duplicates duplicates,
                                                           const Environment& environment) {
  BASALT_RETURN_IF_ERROR(CheckMapOptions(options));
  if (duplicates > Duplicates::kKeepLast) {
    return base::NoSuchValue("SharedMapBuilder: duplicates", duplicates, "kRefuse or kKeepLast");
  }
  std::unique_ptr<SpooledBuild> build(new SpooledBuild(options, duplicates));
  BASALT_ASSIGN_OR_RETURN(NewPlace place, NewPlace::Take(std::string(path), options, environment));
  const std::string directory = place.directory();
  build->place_.emplace(std::move(place));
  build->core_ = std::make_shared<Core>(directory, environment);
  // Files of a build have numbers that neither the map that is replaced nor a reader knows.
  BASALT_ASSIGN_OR_RETURN(const auto names, environment.fs->List(directory));
  for (const std::string& name : names) {
    const std::optional<FileName> parsed = ParseFileName(name);
    if (!parsed || parsed->kind == FileKind::kVersion) continue;
    build->first_file_ = std::max(build->first_file_, parsed->number + 1);
  }
  const std::string spool = build->core_->PathOf(NameOf(FileKind::kSpool, build->first_file_));
  build->map_id_ = Writer::MapIdFor(*build->core_);
  BASALT_ASSIGN_OR_RETURN(build->spool_, RecordSpool::Create(environment.fs, spool,
                                                             options.build_memory, build->map_id_));
  return build;
}

SpooledBuild::SpooledBuild(const SharedMapOptions& options, Duplicates duplicates)
    : options_(options), duplicates_(duplicates), fork_count_(base::ForkCount()) {}

SpooledBuild::~SpooledBuild() {
  if (base::ForkCount() != fork_count_) {
    // The parent goes on with its files.
    [[maybe_unused]] RecordSpool* const parents = spool_.release();
  }
}

Status SpooledBuild::Refusal() const {
  if (base::ForkCount() != fork_count_) {
    return Status(StatusCode::kFailedPrecondition,
                  "a forked child cannot use its parent's builder");
  }
  if (spool_ != nullptr) return Status();
  return Status(StatusCode::kFailedPrecondition, "the builder has been finished; make another");
}

Status SpooledBuild::Add(std::string_view key, std::string_view value) {
  BASALT_RETURN_IF_ERROR(Refusal());
  return spool_->Add(key, value);
}

Result<std::vector<ShardEntry>> SpooledBuild::WriteShards(
    const SharedMapProgressFunction& on_progress, uint64_t* entries) {
  const Environment& environment = core_->environment();
  const uint32_t bits = RecordSpool::ShardBits(spool_->records(), spool_->bytes());
  std::vector<ShardEntry> shards(size_t{1} << bits);
  NewFiles files(core_.get());
  uint64_t done = 0;
  const auto go_on = [&](uint64_t records_of_shard) {
    return on_progress == nullptr ||
           on_progress({.done_records = std::min(done + records_of_shard, spool_->records()),
                        .total_records = spool_->records()});
  };
  for (size_t shard = 0; shard < shards.size(); ++shard) {
    BASALT_ASSIGN_OR_RETURN(LoadedRecords records, spool_->Load(bits, shard));
    BASALT_RETURN_IF_ERROR(records.RemoveDuplicates(duplicates_ == Duplicates::kKeepLast));
    if (records.size() == 0) continue;
    const uint64_t file = first_file_ + shard;
    shards[shard].base_file = file;
    const std::string path = files.Add(FileKind::kBase, file);
    const BaseWriteOptions options{.layout = options_.layout,
                                   .threads = options_.threads,
                                   .hash_seed = map_id_,
                                   .go_on = go_on};
    BASALT_RETURN_IF_ERROR(
        WriteBaseFile(environment.fs, path, records.pointers(), options).status());
    done += records.size();
    *entries += records.size();
  }
  files.Keep();
  return shards;
}

Result<std::shared_ptr<Core>> SpooledBuild::Finish(const SharedMapProgressFunction& on_progress) {
  BASALT_RETURN_IF_ERROR(Refusal());
  uint64_t entries = 0;
  BASALT_ASSIGN_OR_RETURN(std::vector<ShardEntry> shards, WriteShards(on_progress, &entries));
  spool_.reset();
  BASALT_RETURN_IF_ERROR(
      Writer::Create(core_.get(), options_, &*place_, map_id_, std::move(shards), entries));
  return std::move(core_);
}

}  // namespace basalt::shared_map

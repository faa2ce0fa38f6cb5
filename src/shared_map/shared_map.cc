#include "basalt/shared_map.h"

#include <functional>
#include <utility>

#include "base/check.h"
#include "base/out_of_memory.h"
#include "base/update_function.h"
#include "shared_map/build.h"
#include "shared_map/core.h"
#include "shared_map/environment.h"
#include "shared_map/reader_state.h"
#include "shared_map/writer.h"

namespace basalt {
namespace shared_map {
namespace {

constexpr std::string_view kMemoryPath = ":memory:";

Status RefusePath(std::string_view path) {
  if (!path.empty()) return Status();
  return Status(StatusCode::kInvalidArgument, "the path of a map is empty; name a directory");
}

/// For what finds a map that is there.
Status RefusePathOfNone(std::string_view path) {
  if (path != kMemoryPath) return RefusePath(path);
  return Status(StatusCode::kNotFound,
                ":memory: is a new map for each Create and SharedMapBuilder::Create, and no other "
                "call finds one; name a directory");
}

Status CheckRecord(std::string_view key, std::string_view value) {
  if (key.size() > kMaxKeyBytes) {
    return Status(StatusCode::kInvalidArgument, "write to a shared map: a key of " +
                                                    std::to_string(key.size()) +
                                                    " bytes is too large; at most " +
                                                    std::to_string(kMaxKeyBytes) + " are possible");
  }
  if (value.size() > kMaxValueBytes) {
    return Status(StatusCode::kInvalidArgument,
                  "write to a shared map: a value of " + std::to_string(value.size()) +
                      " bytes is too large; at most " + std::to_string(kMaxValueBytes) +
                      " are possible");
  }
  return Status();
}

Status CollectOperations(const WriteBatch& batch, std::vector<Writer::Operation>* operations) {
  BASALT_RETURN_IF_ERROR(batch.status());
  operations->reserve(batch.count());
  return batch.ForEach([&](const WriteBatch::Record& record) {
    if (record.kind != RecordKind::kPut && record.kind != RecordKind::kDelete) {
      return Status(StatusCode::kUnsupported,
                    "a shared map takes batches of puts and deletes only; others are for a DB");
    }
    if (record.keyspace != KeyspaceId::kDefault ||
        record.ttl.value_or(std::chrono::milliseconds(0)).count() != 0 || record.expiry) {
      return Status(StatusCode::kUnsupported,
                    "a shared map has neither keyspaces nor expiry; leave them out of the batch, "
                    "or use a DB");
    }
    operations->push_back({.kind = record.kind, .key = record.key, .value = record.value});
    return Status();
  });
}

Status ReadOnly(const Core& core) {
  return Status(
      StatusCode::kFailedPrecondition,
      core.directory() + ": is attached for reading; open it with SharedMap::Open to write");
}

}  // namespace

Result<std::unique_ptr<SharedMap>> CreateMap(std::string_view path, const SharedMapOptions& options,
                                             const Environment& environment) {
  return base::OrOutOfMemory([&]() -> Result<std::unique_ptr<SharedMap>> {
    BASALT_RETURN_IF_ERROR(CheckMapOptions(options));
    BASALT_ASSIGN_OR_RETURN(NewPlace place,
                            NewPlace::Take(std::string(path), options, environment));
    auto core = std::make_shared<Core>(place.directory(), environment);
    BASALT_RETURN_IF_ERROR(
        Writer::Create(core.get(), options, &place, Writer::MapIdFor(*core), {ShardEntry{}}, 0));
    return Core::Handle(std::move(core));
  });
}

Result<std::unique_ptr<SharedMap>> OpenMap(std::string_view path, const SharedMapOptions& options,
                                           const Environment& environment) {
  return base::OrOutOfMemory([&]() -> Result<std::unique_ptr<SharedMap>> {
    BASALT_RETURN_IF_ERROR(CheckMapOptions(options));
    BASALT_ASSIGN_OR_RETURN(const std::string directory, ResolveMap(environment.fs, path));
    // Before a lock file is made in somebody's directory.
    BASALT_RETURN_IF_ERROR(NewestVersionNumber(environment.fs, directory).status());
    BASALT_ASSIGN_OR_RETURN(auto lock, LockMap(directory, options, environment));
    auto core = std::make_shared<Core>(directory, environment);
    BASALT_RETURN_IF_ERROR(Writer::Open(core.get(), options, std::move(lock)));
    return Core::Handle(std::move(core));
  });
}

Result<std::unique_ptr<SharedMap>> AttachMap(std::string_view path,
                                             const Environment& environment) {
  return base::OrOutOfMemory([&]() -> Result<std::unique_ptr<SharedMap>> {
    BASALT_ASSIGN_OR_RETURN(auto core, Core::Attach(path, environment));
    return Core::Handle(std::move(core));
  });
}

Result<std::unique_ptr<SharedMapBuilder>> CreateMapBuilder(std::string_view path,
                                                           const SharedMapOptions& options,
                                                           Duplicates duplicates,
                                                           const Environment& environment) {
  return base::OrOutOfMemory([&]() -> Result<std::unique_ptr<SharedMapBuilder>> {
    BASALT_ASSIGN_OR_RETURN(auto build,
                            SpooledBuild::Create(path, options, duplicates, environment));
    return SpooledBuild::Handle(std::move(build));
  });
}

std::unique_ptr<SharedMap> Core::Handle(std::shared_ptr<Core> core) {
  return std::unique_ptr<SharedMap>(new SharedMap(std::move(core)));
}

std::unique_ptr<SharedMapBuilder> SpooledBuild::Handle(std::unique_ptr<SpooledBuild> build) {
  return std::unique_ptr<SharedMapBuilder>(new SharedMapBuilder(std::move(build)));
}

}  // namespace shared_map

using shared_map::Environment;

Result<std::unique_ptr<SharedMap>> SharedMap::Create(std::string_view path,
                                                     const SharedMapOptions& options) {
  BASALT_RETURN_IF_ERROR(shared_map::RefusePath(path));
  const bool in_memory = path == shared_map::kMemoryPath;
  BASALT_ASSIGN_OR_RETURN(const Environment environment,
                          in_memory ? Environment::Memory() : Environment::System());
  return shared_map::CreateMap(in_memory ? "/map" : path, options, environment);
}

Result<std::unique_ptr<SharedMap>> SharedMap::Open(std::string_view path,
                                                   const SharedMapOptions& options) {
  BASALT_RETURN_IF_ERROR(shared_map::RefusePathOfNone(path));
  BASALT_ASSIGN_OR_RETURN(const Environment environment, Environment::System());
  return shared_map::OpenMap(path, options, environment);
}

Result<std::unique_ptr<SharedMap>> SharedMap::Attach(std::string_view path) {
  BASALT_RETURN_IF_ERROR(shared_map::RefusePathOfNone(path));
  BASALT_ASSIGN_OR_RETURN(const Environment environment, Environment::System());
  return shared_map::AttachMap(path, environment);
}

SharedMap::SharedMap(std::shared_ptr<shared_map::Core> core) : core_(std::move(core)) {}

SharedMap::~SharedMap() { static_cast<void>(Close()); }

Status SharedMap::Put(std::string_view key, std::string_view value, const WriteOptions& options) {
  if (core_->writer() == nullptr) return shared_map::ReadOnly(*core_);
  return base::OrOutOfMemory([&]() -> Status {
    BASALT_RETURN_IF_ERROR(shared_map::CheckRecord(key, value));
    const shared_map::Writer::Operation put{.kind = RecordKind::kPut, .key = key, .value = value};
    return core_->writer()->Write(std::span(&put, 1), options);
  });
}

Status SharedMap::Delete(std::string_view key, const WriteOptions& options) {
  if (core_->writer() == nullptr) return shared_map::ReadOnly(*core_);
  return base::OrOutOfMemory([&]() -> Status {
    BASALT_RETURN_IF_ERROR(shared_map::CheckRecord(key, {}));
    const shared_map::Writer::Operation erase{.kind = RecordKind::kDelete, .key = key, .value = {}};
    return core_->writer()->Write(std::span(&erase, 1), options);
  });
}

Status SharedMap::Update(std::string_view key, const UpdateFunction& fn,
                         const WriteOptions& options) {
  if (core_->writer() == nullptr) return shared_map::ReadOnly(*core_);
  BASALT_RETURN_IF_ERROR(shared_map::CheckRecord(key, {}));
  return base::UpdateThatMayThrow(fn, [&](const UpdateFunction& guarded) {
    return base::OrOutOfMemory([&] { return core_->writer()->Update(key, guarded, options); });
  });
}

Status SharedMap::Write(const WriteBatch& batch, const WriteOptions& options) {
  if (core_->writer() == nullptr) return shared_map::ReadOnly(*core_);
  return base::OrOutOfMemory([&]() -> Status {
    std::vector<shared_map::Writer::Operation> operations;
    BASALT_RETURN_IF_ERROR(shared_map::CollectOperations(batch, &operations));
    return core_->writer()->Write(operations, options);
  });
}

Status SharedMap::Sync() {
  if (core_->writer() == nullptr) return shared_map::ReadOnly(*core_);
  return base::OrOutOfMemory([&] { return core_->writer()->Sync(); });
}

Status SharedMap::Compact(const SharedMapProgressFunction& on_progress) {
  if (core_->writer() == nullptr) return shared_map::ReadOnly(*core_);
  return base::OrOutOfMemory([&] {
    return core_->writer()->Compact(on_progress, shared_map::Writer::CompactionReason::kAsked);
  });
}

Status SharedMap::Close() {
  if (core_->writer() == nullptr) return Status();
  return base::OrOutOfMemory([&] { return core_->writer()->Close(); });
}

Result<SharedMap::Reader> SharedMap::NewReader() const {
  return base::OrOutOfMemory([&]() -> Result<Reader> {
    auto state = std::make_unique<shared_map::ReaderState>();
    state->core = core_;
    state->limit.follows = true;
    BASALT_RETURN_IF_ERROR(state->FollowNow());
    return Reader(state.release());
  });
}

Result<SharedMapStats> SharedMap::GetStats() const {
  return base::OrOutOfMemory([&]() -> Result<SharedMapStats> {
    BASALT_ASSIGN_OR_RETURN(const shared_map::Core::Followed followed, core_->Newest());
    SharedMapStats stats = followed.version->GetStats();
    stats.writer_pid = followed.control->writer_pid();
    if (core_->writer() != nullptr) core_->writer()->AddStats(&stats);
    return stats;
  });
}

Result<SharedMapReport> SharedMap::Check(std::string_view path,
                                         const SharedMapProgressFunction& on_progress) {
  BASALT_RETURN_IF_ERROR(shared_map::RefusePathOfNone(path));
  BASALT_ASSIGN_OR_RETURN(const Environment environment, Environment::System());
  return shared_map::CheckMap(path, on_progress, environment);
}

Status SharedMap::Destroy(std::string_view path) {
  BASALT_RETURN_IF_ERROR(shared_map::RefusePathOfNone(path));
  BASALT_ASSIGN_OR_RETURN(const Environment environment, Environment::System());
  return shared_map::DestroyMap(path, environment);
}

SharedMapBuilder::SharedMapBuilder(std::unique_ptr<shared_map::SpooledBuild> build)
    : build_(std::move(build)) {}
SharedMapBuilder::~SharedMapBuilder() = default;

Result<std::unique_ptr<SharedMapBuilder>> SharedMapBuilder::Create(std::string_view path,
                                                                   const SharedMapOptions& options,
                                                                   Duplicates duplicates) {
  BASALT_RETURN_IF_ERROR(shared_map::RefusePath(path));
  const bool in_memory = path == shared_map::kMemoryPath;
  BASALT_ASSIGN_OR_RETURN(const Environment environment,
                          in_memory ? Environment::Memory() : Environment::System());
  return shared_map::CreateMapBuilder(in_memory ? "/map" : path, options, duplicates, environment);
}

Status SharedMapBuilder::Add(std::string_view key, std::string_view value) {
  return base::OrOutOfMemory([&] { return build_->Add(key, value); });
}

uint64_t SharedMapBuilder::added() const noexcept { return build_->added(); }

Result<std::unique_ptr<SharedMap>> SharedMapBuilder::Finish(
    const SharedMapProgressFunction& on_progress) {
  return base::OrOutOfMemory([&]() -> Result<std::unique_ptr<SharedMap>> {
    BASALT_ASSIGN_OR_RETURN(auto core, build_->Finish(on_progress));
    return shared_map::Core::Handle(std::move(core));
  });
}

}  // namespace basalt

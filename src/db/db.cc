#include "basalt/db.h"

#include <new>
#include <utility>

#include "base/check.h"
#include "base/out_of_memory.h"
#include "base/thread_kept.h"
#include "base/update_function.h"
#include "base/visible_iterator.h"
#include "db/core.h"
#include "db/db_iterator.h"
#include "db/environment.h"
#include "io/memory_file_system.h"

namespace basalt::db {
namespace {

constexpr std::string_view kMemoryPath = ":memory:";
constexpr size_t kKeptBatchBytes = size_t{1} << 20;

/// The handle: turns exhausted memory into a Status and passes everything on to the core.
class DatabaseHandle final : public DB {
 public:
  DatabaseHandle() = default;
  DatabaseHandle(const DatabaseHandle&) = delete;
  DatabaseHandle& operator=(const DatabaseHandle&) = delete;
  ~DatabaseHandle() override {
    if (core_ != nullptr) core_->LetGo();
  }
  /// Before any other call.
  void Take(std::shared_ptr<Core> core) noexcept { core_ = std::move(core); }

  Status Put(std::string_view key, std::string_view value, const WriteOptions& options) override {
    return WriteOne(
        [&](WriteBatch* batch) { batch->Put(key, value, options.ttl, options.keyspace); }, options);
  }

  Result<bool> PutIfAbsent(std::string_view key, std::string_view value,
                           const WriteOptions& options) override {
    return base::OrOutOfMemory([&] { return core_->PutIfAbsent(key, value, options); });
  }

  Status Delete(std::string_view key, const WriteOptions& options) override {
    BASALT_RETURN_IF_ERROR(RefuseTtl(options));
    return WriteOne([&](WriteBatch* batch) { batch->Delete(key, options.keyspace); }, options);
  }

  Status DeleteRange(std::string_view begin, std::string_view end,
                     const WriteOptions& options) override {
    BASALT_RETURN_IF_ERROR(RefuseTtl(options));
    return WriteOne([&](WriteBatch* batch) { batch->DeleteRange(begin, end, options.keyspace); },
                    options);
  }

  Status Merge(std::string_view key, MergeOperator op, std::string_view operand,
               const WriteOptions& options) override {
    BASALT_RETURN_IF_ERROR(RefuseTtl(options));
    return WriteOne([&](WriteBatch* batch) { batch->Merge(key, op, operand, options.keyspace); },
                    options);
  }

  Result<KeyspaceId> CreateKeyspace(std::string_view name,
                                    const KeyspaceOptions& options) override {
    return base::OrOutOfMemory([&] { return core_->CreateKeyspace(name, options); });
  }
  Result<KeyspaceId> OpenKeyspace(std::string_view name) const override {
    return base::OrOutOfMemory([&] { return core_->OpenKeyspace(name); });
  }
  Result<std::vector<KeyspaceInfo>> ListKeyspaces() const override {
    return base::OrOutOfMemory([&] { return core_->ListKeyspaces(); });
  }
  Status DropKeyspace(KeyspaceId keyspace) override {
    return base::OrOutOfMemory([&] { return core_->DropKeyspace(keyspace); });
  }

  Status Sync() override {
    return base::OrOutOfMemory([&] { return core_->Sync(); });
  }
  Status Flush() override {
    return base::OrOutOfMemory([&] { return core_->Flush(); });
  }
  Status CompactRange(std::optional<std::string_view> begin, std::optional<std::string_view> end,
                      KeyspaceId keyspace) override {
    return base::OrOutOfMemory([&] { return core_->CompactRange(begin, end, keyspace); });
  }
  Result<uint64_t> ApproximateSize(std::optional<std::string_view> begin,
                                   std::optional<std::string_view> end,
                                   KeyspaceId keyspace) const override {
    return base::OrOutOfMemory([&] { return core_->ApproximateSize(begin, end, keyspace); });
  }
  DBStats GetStats() const override {
    auto stats = base::OrOutOfMemory([&] { return Result(core_->GetStats()); });
    return stats ? std::move(*stats) : DBStats();
  }
  Status Close() override {
    return base::OrOutOfMemory([&] { return core_->Close(); });
  }

 private:
  static Status RefuseTtl(const WriteOptions& options) {
    if (options.ttl.count() == 0) return {};
    return Status(StatusCode::kInvalidArgument,
                  "WriteOptions::ttl: only what puts one key has a time to live; the records of a "
                  "batch name their own");
  }

  template <class Fill>
  Status WriteOne(Fill fill, const WriteOptions& options) {
    return base::OrOutOfMemory([&]() -> Status {
      const base::ThreadKept<WriteBatch> batch;
      batch->Clear();
      fill(batch.get());
      Status written = batch->status();
      if (written.ok()) written = core_->Write(batch->bytes(), batch->count(), options);
      if (batch->byte_size() > kKeptBatchBytes) *batch.get() = WriteBatch();
      return written;
    });
  }

  Result<MaybeValue> DoGet(std::string_view key, const ReadOptions& options) const override {
    try {  // One path shorter than OrOutOfMemory: the result is made in the caller's place.
      return core_->Get(key, options);
    } catch (const std::bad_alloc&) {
      return base::OutOfMemory();
    }
  }

  Status DoMultiGet(std::span<const std::string_view> keys, std::span<Result<MaybeValue>> results,
                    const ReadOptions& options) const override {
    return base::OrOutOfMemory([&] { return core_->MultiGet(keys, results, options); });
  }

  Status DoWrite(const WriteBatch& batch, const WriteOptions& options) override {
    return base::OrOutOfMemory([&]() -> Status {
      BASALT_RETURN_IF_ERROR(batch.status());
      BASALT_RETURN_IF_ERROR(RefuseTtl(options));
      if (options.keyspace != KeyspaceId::kDefault) {
        return Status(StatusCode::kInvalidArgument,
                      "WriteOptions::keyspace: the records of a batch name their own");
      }
      return core_->Write(batch.bytes(), batch.count(), options);
    });
  }

  Status DoUpdate(std::string_view key, const UpdateFunction& fn, KeyspaceId keyspace) override {
    return base::UpdateThatMayThrow(fn, [&](const UpdateFunction& guarded) {
      return base::OrOutOfMemory([&] { return core_->Update(key, guarded, keyspace); });
    });
  }

  std::unique_ptr<Iterator> DoNewIterator(const ScanOptions& options) const override {
    try {
      return NewDBIterator(core_, options);
    } catch (const std::bad_alloc&) {
      return base::NewErrorIterator(base::OutOfMemory());
    }
  }

  Result<Snapshot> DoGetSnapshot() const override {
    return base::OrOutOfMemory([&] { return core_->TakeSnapshot(); });
  }

  std::shared_ptr<Core> core_;
};

Status RefuseMemoryPath(std::string_view path, const char* operation) {
  if (path != kMemoryPath) return {};
  return Status(StatusCode::kInvalidArgument,
                std::string(operation) + " needs the directory of a database, not :memory:");
}

}  // namespace

namespace {

Result<std::unique_ptr<DB>> OpenAs(std::string_view path, const DBOptions& options,
                                   const Environment& environment, Core::Mode mode) {
  return base::OrOutOfMemory([&]() -> Result<std::unique_ptr<DB>> {
    // First, since what is open has jobs, which a handle has to wait for.
    auto handle = std::make_unique<DatabaseHandle>();
    BASALT_ASSIGN_OR_RETURN(std::shared_ptr<Core> core,
                            Core::Open(std::string(path), options, environment, mode));
    handle->Take(std::move(core));
    return std::unique_ptr<DB>(std::move(handle));
  });
}

}  // namespace

Result<std::unique_ptr<DB>> OpenDatabase(std::string_view path, const DBOptions& options,
                                         const Environment& environment) {
  return OpenAs(path, options, environment, Core::Mode::kWrite);
}

Result<std::unique_ptr<DB>> OpenDatabaseReadOnly(std::string_view path, const DBOptions& options,
                                                 const Environment& environment) {
  return OpenAs(path, options, environment, Core::Mode::kReadOnly);
}

}  // namespace basalt::db

namespace basalt {

namespace {

/// `call(environment)`: on this machine.
template <class Call>
auto OnMachine(uint32_t background_threads, const Call& call)
    -> std::invoke_result_t<const Call&, const db::Environment&> {
  return base::OrOutOfMemory([&]() -> std::invoke_result_t<const Call&, const db::Environment&> {
    BASALT_ASSIGN_OR_RETURN(db::Environment environment,
                            db::Environment::System(background_threads));
    return call(std::move(environment));
  });
}

}  // namespace

Result<std::unique_ptr<DB>> DB::Open(std::string_view path, const DBOptions& options) {
  return OnMachine(options.background_threads, [&](db::Environment environment) {
    if (path != db::kMemoryPath) return db::OpenDatabase(path, options, environment);
    environment.owned_fs = io::NewMemoryFileSystem();
    environment.fs = environment.owned_fs.get();
    environment.descriptors = nullptr;
    return db::OpenDatabase("/memory", options, environment);
  });
}

Result<std::unique_ptr<DB>> DB::OpenReadOnly(std::string_view path, const DBOptions& options) {
  return OnMachine(options.background_threads,
                   [&](const db::Environment& environment) -> Result<std::unique_ptr<DB>> {
                     BASALT_RETURN_IF_ERROR(db::RefuseMemoryPath(path, "OpenReadOnly"));
                     return db::OpenDatabaseReadOnly(path, options, environment);
                   });
}

Result<CheckReport> DB::Check(std::string_view path, const ProgressFunction& progress) {
  return OnMachine(0, [&](const db::Environment& environment) -> Result<CheckReport> {
    BASALT_RETURN_IF_ERROR(db::RefuseMemoryPath(path, "Check"));
    return db::CheckDatabase(path, environment, progress);
  });
}

Status DB::Destroy(std::string_view path) {
  return OnMachine(0, [&](const db::Environment& environment) -> Status {
    BASALT_RETURN_IF_ERROR(db::RefuseMemoryPath(path, "Destroy"));
    return db::DestroyDatabase(path, environment);
  });
}

Result<RepairReport> DB::Repair(std::string_view path) {
  return OnMachine(0, [&](const db::Environment& environment) -> Result<RepairReport> {
    BASALT_RETURN_IF_ERROR(db::RefuseMemoryPath(path, "Repair"));
    return db::RepairDatabase(path, environment);
  });
}

}  // namespace basalt

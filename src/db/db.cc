#include "basalt/db.h"

#include <new>
#include <utility>

#include "basalt/transaction.h"
#include "base/check.h"
#include "base/out_of_memory.h"
#include "base/thread_kept.h"
#include "base/update_function.h"
#include "base/visible_iterator.h"
#include "db/change_reader.h"
#include "db/core.h"
#include "db/db_iterator.h"
#include "db/environment.h"
#include "db/file_names.h"
#include "db/served_url.h"
#include "db/transaction_backend.h"
#include "io/file_system.h"
#include "io/memory_file_system.h"
#include "io/posix_file_lock.h"

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
    if (core_ != nullptr) core_->ReleaseHandle();
  }
  /// Before any other call.
  void Take(std::shared_ptr<Core> core) noexcept { core_ = std::move(core); }
  const std::string& path() const noexcept { return core_->path(); }

  Capabilities capabilities() const noexcept override {
    return {.ordered = true,
            .snapshots = true,
            .transactions = true,
            .expiry = true,
            .merges = true,
            .keyspaces = true,
            .durable = true,
            .changes = true};
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
  Status WaitDurable(uint64_t lsn) override {
    return base::OrOutOfMemory([&] { return core_->WaitDurable(lsn); });
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
  template <class Fill>
  Result<Commit> WriteOne(Fill fill, const WriteOptions& options) {
    return base::OrOutOfMemory([&]() -> Result<Commit> {
      const base::ThreadKept<WriteBatch> batch;
      batch->Clear();
      fill(batch.get());
      Result<Commit> written = Commit();
      if (Status fault = batch->status(); fault.ok()) {
        written = core_->Write(*batch.get(), options);
      } else {
        written = std::move(fault);
      }
      if (batch->byte_size() > kKeptBatchBytes) *batch.get() = WriteBatch();
      return written;
    });
  }
  static RecordOptions RecordOptionsOf(const WriteOptions& options) noexcept {
    return {.keyspace = options.keyspace, .ttl = options.ttl, .expiry = options.expiry};
  }

  Result<Commit> DoPut(std::string_view key, std::string_view value,
                       const WriteOptions& options) override {
    return WriteOne([&](WriteBatch* batch) { batch->Put(key, value, RecordOptionsOf(options)); },
                    options);
  }
  Result<std::optional<Commit>> DoPutIfAbsent(std::string_view key, std::string_view value,
                                              const WriteOptions& options) override {
    return base::OrOutOfMemory([&] { return core_->PutIfAbsent(key, value, options); });
  }
  Result<Commit> DoDelete(std::string_view key, const WriteOptions& options) override {
    BASALT_RETURN_IF_ERROR(base::RefuseExpiry(options));
    return WriteOne([&](WriteBatch* batch) { batch->Delete(key, options.keyspace); }, options);
  }
  Result<Commit> DoDeleteRange(std::string_view begin, std::string_view end,
                               const WriteOptions& options) override {
    BASALT_RETURN_IF_ERROR(base::RefuseExpiry(options));
    return WriteOne([&](WriteBatch* batch) { batch->DeleteRange(begin, end, options.keyspace); },
                    options);
  }
  Result<Commit> DoMerge(std::string_view key, MergeOperator op, std::string_view operand,
                         const WriteOptions& options) override {
    return WriteOne(
        [&](WriteBatch* batch) { batch->Merge(key, op, operand, RecordOptionsOf(options)); },
        options);
  }
  Result<KeyspaceId> DoCreateKeyspace(std::string_view name,
                                      const KeyspaceOptions& options) override {
    return base::OrOutOfMemory([&] { return core_->CreateKeyspace(name, options); });
  }

  Result<std::optional<Entry>> DoGetEntry(std::string_view key,
                                          const ReadOptions& options) const override {
    return base::OrOutOfMemory([&] { return core_->GetEntry(key, options); });
  }
  Result<bool> DoContains(std::string_view key, const ReadOptions& options) const override {
    return base::OrOutOfMemory([&] { return core_->Contains(key, options); });
  }
  Status DoMultiGetOfKeyspaces(std::span<const KeyspaceKey> keys,
                               std::span<Result<MaybeValue>> results,
                               const ReadOptions& options) const override {
    return base::OrOutOfMemory([&] { return core_->MultiGet(keys, results, options); });
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

  Result<Commit> DoWrite(const WriteBatch& batch, const WriteOptions& options) override {
    return base::OrOutOfMemory([&]() -> Result<Commit> {
      BASALT_RETURN_IF_ERROR(batch.status());
      BASALT_RETURN_IF_ERROR(base::RefuseExpiry(options));
      if (options.keyspace != KeyspaceId::kDefault) {
        return Status(StatusCode::kInvalidArgument,
                      "WriteOptions::keyspace: the records of a batch name their own");
      }
      return core_->Write(batch, options);
    });
  }

  Result<Commit> DoUpdate(std::string_view key, const UpdateFunction& fn,
                          const WriteOptions& options) override {
    return base::UpdateThatMayThrow(fn, [&](const UpdateFunction& guarded) {
      return base::OrOutOfMemory([&] { return core_->Update(key, guarded, options); });
    });
  }

  Result<Subscription> DoAddListener(CommitListener listener) override {
    return base::OrOutOfMemory([&] { return core_->AddListener(std::move(listener)); });
  }
  Result<std::unique_ptr<ChangeReader>> Changes(uint64_t from_lsn) const override {
    return base::OrOutOfMemory([&] { return NewChangeReader(core_, from_lsn); });
  }
  Result<Transaction> DoBegin(const TransactionOptions& options) override {
    return base::OrOutOfMemory([&] { return NewTransaction(core_, options); });
  }
  std::unique_ptr<Iterator> DoNewIterator(const ReadOptions& options) const override {
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

Status NoDatabaseInMemory() {
  return Status(StatusCode::kNotFound,
                ":memory: is a new database for each Open, which has to create it "
                "(DBOptions::create_if_missing); name a directory");
}

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

Status SetServedUrl(const DB& db, std::string_view url) {
  const auto* const handle = dynamic_cast<const DatabaseHandle*>(&db);
  if (handle == nullptr || handle->path() == kMemoryPath) return {};
  return base::OrOutOfMemory([&]() -> Status {
    const std::string lock = io::JoinPath(handle->path(), kLockName);
    const int error = io::SetPosixLockUrl(lock, url);
    return error == 0 ? Status() : io::ErrnoStatus(error, "write the URL of the server to", lock);
  });
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
  return OnMachine(options.background_threads,
                   [&](db::Environment environment) -> Result<std::unique_ptr<DB>> {
                     if (path != db::kMemoryPath)
                       return db::OpenDatabase(path, options, environment);
                     if (!options.create_if_missing) return db::NoDatabaseInMemory();
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

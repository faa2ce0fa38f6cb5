#include "basalt/memtable.h"

#include <new>
#include <string>
#include <utility>

#include "basalt/transaction.h"
#include "base/check.h"
#include "base/out_of_memory.h"
#include "base/update_function.h"
#include "base/visible_iterator.h"
#include "memtable/store.h"
#include "memtable/transaction_backend.h"

namespace basalt {
namespace {

Status OutOfMemory() noexcept {
  return Status(StatusCode::kResourceExhausted, "use a memtable: the system has no memory left",
                SubCode::kMemory);
}

/// Turns exhausted memory into a Status.
template <class Operation>
auto Guarded(const Operation& operation) -> decltype(operation()) {
  try {
    return operation();
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

}  // namespace

Result<std::unique_ptr<MemTable>> MemTable::Create(const MemTableOptions& options) {
  return Guarded([&]() -> Result<std::unique_ptr<MemTable>> {
    auto core = memtable::StoreCore::Create(options);
    if (!core) return core.error();
    return std::unique_ptr<MemTable>(new MemTable(std::move(*core)));
  });
}

MemTable::MemTable(std::shared_ptr<memtable::StoreCore> core) : core_(std::move(core)) {}
MemTable::~MemTable() { core_->ReleaseHandle(); }

Status MemTable::Seal() {
  return Guarded([&] { return core_->Seal(); });
}

void MemTable::WaitForBackgroundWork() { core_->WorkIfMemoryAllows(); }

Status MemTable::Compact() {
  return Guarded([&] { return core_->Compact(); });
}

MemTableStats MemTable::GetStats() const { return core_->GetStats(); }

Result<MaybeValue> MemTable::DoGet(std::string_view key, const ReadOptions& options) const {
  return Guarded([&] { return core_->Get(key, options); });
}

Status MemTable::DoMultiGet(std::span<const std::string_view> keys,
                            std::span<Result<MaybeValue>> results,
                            const ReadOptions& options) const {
  return Guarded([&] { return core_->MultiGet(keys, results, options); });
}

Capabilities MemTable::capabilities() const noexcept {
  return {.ordered = true,
          .snapshots = true,
          .transactions = true,
          .expiry = true,
          .merges = true,
          .keyspaces = true};
}

Status MemTable::Sync() { return {}; }

Status MemTable::WaitDurable(uint64_t lsn) {
  if (lsn == 0) return {};
  return base::ErrorThatSays(StatusCode::kInvalidArgument, [&] {
    return "WaitDurable: a memtable has no log, and so no record " + std::to_string(lsn);
  });
}

Result<KeyspaceId> MemTable::OpenKeyspace(std::string_view name) const {
  return Guarded([&] { return core_->OpenKeyspace(name); });
}

Result<std::vector<KeyspaceInfo>> MemTable::ListKeyspaces() const {
  return Guarded([&] { return Result(core_->ListKeyspaces()); });
}

Status MemTable::DropKeyspace(KeyspaceId keyspace) {
  return Guarded([&] { return core_->DropKeyspace(keyspace); });
}

Result<KeyspaceId> MemTable::DoCreateKeyspace(std::string_view name,
                                              const KeyspaceOptions& options) {
  return Guarded([&] { return core_->CreateKeyspace(name, options); });
}

Result<Transaction> MemTable::DoBegin(const TransactionOptions& options) {
  return Guarded([&] { return memtable::NewTransaction(core_, options); });
}

Result<std::optional<Entry>> MemTable::DoGetEntry(std::string_view key,
                                                  const ReadOptions& options) const {
  return Guarded([&] { return core_->GetEntry(key, options); });
}

Result<bool> MemTable::DoContains(std::string_view key, const ReadOptions& options) const {
  return Guarded([&] { return core_->Contains(key, options); });
}

Status MemTable::DoMultiGetOfKeyspaces(std::span<const KeyspaceKey> keys,
                                       std::span<Result<MaybeValue>> results,
                                       const ReadOptions& options) const {
  return Guarded([&] { return core_->MultiGet(keys, results, options); });
}

Result<Commit> MemTable::DoPut(std::string_view key, std::string_view value,
                               const WriteOptions& options) {
  return Guarded([&] { return core_->Put(key, value, options); });
}

Result<std::optional<Commit>> MemTable::DoPutIfAbsent(std::string_view key, std::string_view value,
                                                      const WriteOptions& options) {
  return Guarded([&]() -> Result<std::optional<Commit>> {
    bool was_there = false;
    const auto put_if_absent = [&](EntryUpdate& entry) {
      was_there = entry.exists();
      if (!was_there) entry.Set(std::string(value));
      return Status();
    };
    BASALT_ASSIGN_OR_RETURN(const Commit commit, core_->Update(key, put_if_absent, options));
    if (was_there) return std::optional<Commit>();
    return std::optional(commit);
  });
}

Result<Commit> MemTable::DoDelete(std::string_view key, const WriteOptions& options) {
  return Guarded([&]() -> Result<Commit> {
    BASALT_RETURN_IF_ERROR(base::RefuseExpiry(options));
    return core_->Delete(key, options);
  });
}

Result<Commit> MemTable::DoDeleteRange(std::string_view begin, std::string_view end,
                                       const WriteOptions& options) {
  return Guarded([&]() -> Result<Commit> {
    BASALT_RETURN_IF_ERROR(base::RefuseExpiry(options));
    WriteBatch batch;
    batch.DeleteRange(begin, end, options.keyspace);
    return core_->Write(batch, options);
  });
}

Result<Commit> MemTable::DoMerge(std::string_view key, MergeOperator op, std::string_view operand,
                                 const WriteOptions& options) {
  return Guarded([&]() -> Result<Commit> {
    BASALT_RETURN_IF_ERROR(base::RefuseExpiry(options));
    return core_->Merge(key, op, operand, options);
  });
}

Result<Commit> MemTable::DoWrite(const WriteBatch& batch, const WriteOptions& options) {
  return Guarded([&]() -> Result<Commit> {
    BASALT_RETURN_IF_ERROR(base::RefuseExpiry(options));
    if (options.keyspace != KeyspaceId::kDefault) {
      return Status(StatusCode::kInvalidArgument,
                    "WriteOptions::keyspace: the records of a batch name their own");
    }
    return core_->Write(batch, options);
  });
}

Result<Commit> MemTable::DoUpdate(std::string_view key, const UpdateFunction& fn,
                                  const WriteOptions& options) {
  return base::UpdateThatMayThrow(fn, [&](const UpdateFunction& guarded) {
    return Guarded([&] { return core_->Update(key, guarded, options); });
  });
}

std::unique_ptr<Iterator> MemTable::DoNewIterator(const ReadOptions& options) const {
  try {
    return core_->NewIterator(options);
  } catch (const std::bad_alloc&) {
    return base::NewErrorIterator(OutOfMemory());
  }
}

Result<Snapshot> MemTable::DoGetSnapshot() const {
  return Guarded([&] { return core_->TakeSnapshot(); });
}

}  // namespace basalt

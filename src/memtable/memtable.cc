#include "basalt/memtable.h"

#include <new>
#include <utility>

#include "base/update_function.h"
#include "base/visible_iterator.h"
#include "memtable/store.h"

namespace basalt {
namespace {

Status OutOfMemory() noexcept {
  return Status(StatusCode::kResourceExhausted, "use a memtable: the system has no memory left");
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
MemTable::~MemTable() { core_->LetGo(); }

Status MemTable::Put(std::string_view key, std::string_view value, KeyspaceId keyspace) {
  return Guarded([&] {
    return core_->Write({.kind = RecordKind::kPut,
                         .keyspace = static_cast<uint32_t>(keyspace),
                         .key = key,
                         .value = value,
                         .time_ms = 0,
                         .is_of_several = false});
  });
}

Status MemTable::Delete(std::string_view key, KeyspaceId keyspace) {
  return Guarded([&] {
    return core_->Write({.kind = RecordKind::kDelete,
                         .keyspace = static_cast<uint32_t>(keyspace),
                         .key = key,
                         .value = {},
                         .time_ms = 0,
                         .is_of_several = false});
  });
}

Status MemTable::DeleteRange(std::string_view begin, std::string_view end, KeyspaceId keyspace) {
  return Guarded([&] {
    WriteBatch batch;
    batch.DeleteRange(begin, end, keyspace);
    return core_->Write(batch);
  });
}

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

Status MemTable::DoWrite(const WriteBatch& batch, const WriteOptions& options) {
  if (options.keyspace != KeyspaceId::kDefault || options.ttl.count() != 0) {
    return Status(
        StatusCode::kInvalidArgument,
        "WriteOptions::keyspace and ttl: only what puts one key has them; the records of a "
        "batch name their own keyspace");
  }
  return Guarded([&] { return core_->Write(batch); });
}

Status MemTable::DoUpdate(std::string_view key, const UpdateFunction& fn, KeyspaceId keyspace) {
  return base::UpdateThatMayThrow(fn, [&](const UpdateFunction& guarded) {
    return Guarded([&] { return core_->Update(key, guarded, static_cast<uint32_t>(keyspace)); });
  });
}

std::unique_ptr<Iterator> MemTable::DoNewIterator(const ScanOptions& options) const {
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

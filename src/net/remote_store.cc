#include <new>
#include <utility>

#include "basalt/client.h"
#include "basalt/transaction.h"
#include "base/check.h"
#include "base/out_of_memory.h"
#include "base/update_function.h"
#include "base/visible_iterator.h"
#include "net/client.h"
#include "net/remote_reads.h"
#include "net/remote_writes.h"
#include "net/transaction_backend.h"

namespace basalt::net {
namespace {

using Repeat = Client::Repeat;

RecordOptions RecordOptionsOf(const WriteOptions& options) noexcept {
  return {.keyspace = options.keyspace, .ttl = options.ttl, .expiry = options.expiry};
}

bool IsConditionBroken(const Result<Commit>& written) {
  return !written && written.error().code() == StatusCode::kAborted &&
         written.error().sub_code() == SubCode::kCondition;
}

template <class Option>
void AddOption(const std::optional<Option>& option, Request* request) {
  if (!option) {
    request->Add("-");
  } else if constexpr (std::is_enum_v<Option>) {
    request->Add(static_cast<uint64_t>(*option));
  } else {
    request->Add(std::to_string(option->count()));
  }
}

KeyspaceInfo KeyspaceFrom(AnswerReader& answer) {
  KeyspaceInfo info;
  info.id = static_cast<KeyspaceId>(answer.Integer());
  info.name = answer.Bytes();
  if (const int64_t level = answer.Integer(); level >= 0) {
    info.options.durability = static_cast<Durability>(level);
  }
  if (const int64_t ttl_ms = answer.Integer(); ttl_ms >= 0) {
    info.options.default_ttl = std::chrono::milliseconds(ttl_ms);
  }
  return info;
}

/// Reads, computes, and writes if nobody else has meanwhile.
Result<Commit> UpdateRemote(Client& client, std::string_view key, const UpdateFunction& fn,
                            const WriteOptions& options) {
  while (true) {
    BASALT_ASSIGN_OR_RETURN(const std::optional<Entry> present,
                            ReadEntry(client, key, {.keyspace = options.keyspace}));
    std::optional<std::string_view> value;
    if (present) value = present->value.view();
    EntryUpdate update(value, present ? present->version : 0,
                       present ? present->expiry : std::nullopt);
    BASALT_RETURN_IF_ERROR(fn(update));
    const std::optional<base::UpdatedRecord> changed = base::RecordOf(update, options);
    if (!changed) return Commit();
    WriteBatch batch;
    if (present) {
      batch.RequireUnchanged(key, present->version, options.keyspace);
    } else {
      batch.RequireAbsent(key, options.keyspace);
    }
    if (changed->value) {
      batch.Put(key, *changed->value, changed->options);
    } else {
      batch.Delete(key, options.keyspace);
    }
    Result<Commit> written = WriteRemote(client, batch, options);
    if (!IsConditionBroken(written)) return written;
  }
}

/// Writes the batch that `fill` makes.
template <class Fill>
Result<Commit> WriteOne(Client& client, const WriteOptions& options, const Fill& fill) {
  return base::OrOutOfMemory([&]() -> Result<Commit> {
    WriteBatch batch;
    fill(&batch);
    return WriteRemote(client, batch, options);
  });
}

}  // namespace

RemoteStore::RemoteStore(std::shared_ptr<Client> client) noexcept : client_(std::move(client)) {}
RemoteStore::~RemoteStore() = default;

Result<std::unique_ptr<RemoteStore>> RemoteStore::Connect(std::string_view url,
                                                          const RemoteOptions& options) {
  return base::OrOutOfMemory([&]() -> Result<std::unique_ptr<RemoteStore>> {
    BASALT_ASSIGN_OR_RETURN(Address address, ParseServerUrl(url));
    BASALT_ASSIGN_OR_RETURN(std::shared_ptr<Client> client,
                            Client::Connect(std::move(address), options));
    return std::unique_ptr<RemoteStore>(new RemoteStore(std::move(client)));
  });
}

Capabilities RemoteStore::capabilities() const noexcept { return client_->facts().capabilities; }
std::string RemoteStore::address() const { return client_->name(); }

Result<std::string> RemoteStore::Info() const {
  return base::OrOutOfMemory([&]() -> Result<std::string> {
    std::string info;
    BASALT_RETURN_IF_ERROR(client_->Call(Request("INFO"), Repeat::kAllowed,
                                         [&](AnswerReader& answer) { info = answer.Bytes(); }));
    return info;
  });
}

// Durability

Status RemoteStore::Sync() {
  return base::OrOutOfMemory([&] {
    return client_->Call(Request("BASALT.SYNC"), Repeat::kAllowed,
                         [](AnswerReader& answer) { answer.Simple(); });
  });
}

Status RemoteStore::WaitDurable(uint64_t lsn) {
  return base::OrOutOfMemory([&] {
    Request request("BASALT.SYNC");
    request.Add(lsn);
    return client_->Call(request, Repeat::kAllowed, [](AnswerReader& answer) { answer.Simple(); });
  });
}

// Keyspaces

Result<KeyspaceId> RemoteStore::OpenKeyspace(std::string_view name) const {
  return base::OrOutOfMemory([&]() -> Result<KeyspaceId> {
    Request request("BASALT.KEYSPACE");
    request.Add("OPEN").Add(name);
    int64_t id = 0;
    BASALT_RETURN_IF_ERROR(client_->Call(request, Repeat::kAllowed,
                                         [&](AnswerReader& answer) { id = answer.Integer(); }));
    return static_cast<KeyspaceId>(id);
  });
}

Result<std::vector<KeyspaceInfo>> RemoteStore::ListKeyspaces() const {
  return base::OrOutOfMemory([&]() -> Result<std::vector<KeyspaceInfo>> {
    Request request("BASALT.KEYSPACE");
    request.Add("LIST");
    std::vector<KeyspaceInfo> all;
    BASALT_RETURN_IF_ERROR(client_->Call(request, Repeat::kAllowed, [&](AnswerReader& answer) {
      all.clear();
      const uint64_t count = answer.Array() / 4;
      for (uint64_t i = 0; i < count && answer.ok(); ++i) all.push_back(KeyspaceFrom(answer));
    }));
    return all;
  });
}

Status RemoteStore::DropKeyspace(KeyspaceId keyspace) {
  return base::OrOutOfMemory([&] {
    Request request("BASALT.KEYSPACE");
    request.Add("DROP").Add(static_cast<uint64_t>(keyspace));
    return client_->Call(request, Repeat::kForbidden,
                         [](AnswerReader& answer) { answer.Simple(); });
  });
}

Result<KeyspaceId> RemoteStore::DoCreateKeyspace(std::string_view name,
                                                 const KeyspaceOptions& options) {
  return base::OrOutOfMemory([&]() -> Result<KeyspaceId> {
    Request request("BASALT.KEYSPACE");
    request.Add("CREATE").Add(name);
    AddOption(options.durability, &request);
    AddOption(options.default_ttl, &request);
    AddOption(options.compression, &request);
    int64_t id = 0;
    BASALT_RETURN_IF_ERROR(client_->Call(request, Repeat::kForbidden,
                                         [&](AnswerReader& answer) { id = answer.Integer(); }));
    return static_cast<KeyspaceId>(id);
  });
}

// Reads

Result<MaybeValue> RemoteStore::DoGet(std::string_view key, const ReadOptions& options) const {
  return base::OrOutOfMemory([&] { return ReadValue(*client_, key, options); });
}

Result<std::optional<Entry>> RemoteStore::DoGetEntry(std::string_view key,
                                                     const ReadOptions& options) const {
  return base::OrOutOfMemory([&] { return ReadEntry(*client_, key, options); });
}

Result<bool> RemoteStore::DoContains(std::string_view key, const ReadOptions& options) const {
  return base::OrOutOfMemory([&]() -> Result<bool> {
    if (options.memory_only) return MustWait(*client_);
    BASALT_ASSIGN_OR_RETURN(const uint64_t snapshot, SnapshotIdOf(*client_, options.snapshot));
    Request request("BASALT.CONTAINS");
    request.Add(snapshot).Add(static_cast<uint64_t>(options.keyspace)).Add(key);
    bool is_there = false;
    BASALT_RETURN_IF_ERROR(client_->Call(request, Repeat::kAllowed, [&](AnswerReader& answer) {
      is_there = answer.Integer() != 0;
    }));
    return is_there;
  });
}

Status RemoteStore::DoMultiGet(std::span<const std::string_view> keys,
                               std::span<Result<MaybeValue>> results,
                               const ReadOptions& options) const {
  return base::OrOutOfMemory([&] { return ReadValues(client_, keys, results, options); });
}

Status RemoteStore::DoMultiGetOfKeyspaces(std::span<const KeyspaceKey> keys,
                                          std::span<Result<MaybeValue>> results,
                                          const ReadOptions& options) const {
  return base::OrOutOfMemory([&] { return ReadValues(client_, keys, results, options); });
}

std::unique_ptr<Iterator> RemoteStore::DoNewIterator(const ReadOptions& options) const {
  try {
    return NewRemoteIterator(client_, options);
  } catch (const std::bad_alloc&) {
    return base::NewErrorIterator(base::OutOfMemory());
  }
}

Result<Snapshot> RemoteStore::DoGetSnapshot() const {
  return base::OrOutOfMemory([&] { return TakeSnapshot(client_, std::nullopt); });
}

// Writes

Result<Commit> RemoteStore::DoPut(std::string_view key, std::string_view value,
                                  const WriteOptions& options) {
  return WriteOne(*client_, options,
                  [&](WriteBatch* batch) { batch->Put(key, value, RecordOptionsOf(options)); });
}

Result<std::optional<Commit>> RemoteStore::DoPutIfAbsent(std::string_view key,
                                                         std::string_view value,
                                                         const WriteOptions& options) {
  Result<Commit> written = WriteOne(*client_, options, [&](WriteBatch* batch) {
    batch->RequireAbsent(key, options.keyspace);
    batch->Put(key, value, RecordOptionsOf(options));
  });
  if (IsConditionBroken(written)) return std::optional<Commit>();
  if (!written) return written.error();
  return std::optional(*written);
}

Result<Commit> RemoteStore::DoDelete(std::string_view key, const WriteOptions& options) {
  BASALT_RETURN_IF_ERROR(base::RefuseExpiry(options));
  return WriteOne(*client_, options,
                  [&](WriteBatch* batch) { batch->Delete(key, options.keyspace); });
}

Result<Commit> RemoteStore::DoDeleteRange(std::string_view begin, std::string_view end,
                                          const WriteOptions& options) {
  BASALT_RETURN_IF_ERROR(base::RefuseExpiry(options));
  return WriteOne(*client_, options,
                  [&](WriteBatch* batch) { batch->DeleteRange(begin, end, options.keyspace); });
}

Result<Commit> RemoteStore::DoMerge(std::string_view key, MergeOperator op,
                                    std::string_view operand, const WriteOptions& options) {
  return WriteOne(*client_, options, [&](WriteBatch* batch) {
    batch->Merge(key, op, operand, RecordOptionsOf(options));
  });
}

Result<Commit> RemoteStore::DoWrite(const WriteBatch& batch, const WriteOptions& options) {
  BASALT_RETURN_IF_ERROR(base::RefuseExpiry(options));
  if (options.keyspace != KeyspaceId::kDefault) {
    return Status(StatusCode::kInvalidArgument,
                  "WriteOptions::keyspace: the records of a batch name their own");
  }
  return base::OrOutOfMemory([&] { return WriteRemote(*client_, batch, options); });
}

Result<Commit> RemoteStore::DoUpdate(std::string_view key, const UpdateFunction& fn,
                                     const WriteOptions& options) {
  return base::UpdateThatMayThrow(fn, [&](const UpdateFunction& guarded) {
    return base::OrOutOfMemory([&] { return UpdateRemote(*client_, key, guarded, options); });
  });
}

Result<Transaction> RemoteStore::DoBegin(const TransactionOptions& options) {
  return base::OrOutOfMemory([&] { return Result<Transaction>(NewTransaction(client_, options)); });
}

}  // namespace basalt::net

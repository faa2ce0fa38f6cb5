// Stores of the C API: open and close, reads, writes.

#include "basalt/store.h"

#include <new>
#include <vector>

#include "basalt/json.h"
#include "c_api/call.h"
#include "c_api/handles.h"
#include "c_api/options.h"

namespace basalt::c_api {

Status Inherited() {
  return Status(StatusCode::kFailedPrecondition,
                "the handle was made before fork(), by the parent process: make one in the child",
                SubCode::kForked);
}

Status Closed() {
  return Status(StatusCode::kFailedPrecondition, "the store is closed", SubCode::kClosed);
}

namespace {

Status GiveDb(Result<std::unique_ptr<DB>> opened, basalt_store** store) {
  if (!opened) return std::move(opened).error();
  auto* db = opened->get();
  *store = new basalt_store{.store = *std::move(opened), .db = db};
  return {};
}

Status OpenDb(const char* path, const basalt_db_options* options, basalt_store** store,
              Result<std::unique_ptr<DB>> (*open)(std::string_view, const DBOptions&)) {
  BASALT_C_REQUIRE(store != nullptr, "store");
  *store = nullptr;
  BASALT_C_REQUIRE(path != nullptr, "path");
  DBOptions db_options;
  BASALT_C_RETURN_IF_ERROR(ToDbOptions(options, &db_options));
  return GiveDb(open(path, db_options), store);
}

Status CheckDatabase(const basalt_store* store, const char* call) {
  BASALT_C_RETURN_IF_ERROR(CheckStore(store));
  if (store->db != nullptr) return {};
  return Status(StatusCode::kUnsupported, std::string(call) + ": a memtable has no tables on disk");
}

/// Ok, and the options of a read.
Status PrepareRead(const basalt_store* store, const void* key, size_t key_size,
                   const basalt_read_options* options, ReadOptions* to) {
  BASALT_C_RETURN_IF_ERROR(CheckStore(store));
  BASALT_C_REQUIRE(IsBytes(key, key_size), "key");
  return options == nullptr ? Status() : ToReadOptions(*options, to);
}

Status PrepareWrite(const basalt_store* store, const void* key, size_t key_size, const void* value,
                    size_t value_size, const basalt_write_options* options, WriteOptions* to) {
  BASALT_C_RETURN_IF_ERROR(CheckStore(store));
  BASALT_C_REQUIRE(IsBytes(key, key_size), "key");
  BASALT_C_REQUIRE(IsBytes(value, value_size), "value");
  return options == nullptr ? Status() : ToWriteOptions(*options, to);
}

std::optional<std::string_view> Bound(const void* bytes, size_t size) {
  if (bytes == nullptr) return std::nullopt;
  return ViewOf(bytes, size);
}

}  // namespace
}  // namespace basalt::c_api

using namespace basalt;         // NOLINT(google-*)
using namespace basalt::c_api;  // NOLINT(google-*)

int basalt_open(const char* path, const basalt_db_options* options, basalt_store** store,
                basalt_error* error) {
  return Call(error, [&] { return OpenDb(path, options, store, &DB::Open); });
}

int basalt_open_read_only(const char* path, const basalt_db_options* options, basalt_store** store,
                          basalt_error* error) {
  return Call(error, [&] { return OpenDb(path, options, store, &DB::OpenReadOnly); });
}

int basalt_memtable_create(const basalt_memtable_options* options, basalt_store** store,
                           basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(store != nullptr, "store");
    *store = nullptr;
    MemTableOptions memtable_options;
    BASALT_C_RETURN_IF_ERROR(ToMemTableOptions(options, &memtable_options));
    Result<std::unique_ptr<MemTable>> made = MemTable::Create(memtable_options);
    if (!made) return made.error();
    auto* memtable = made->get();
    *store = new basalt_store{.store = *std::move(made), .memtable = memtable};
    return {};
  });
}

int basalt_close(basalt_store* store, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(store != nullptr, "store");
    if (store->origin.IsInherited()) return Inherited();
    if (store->db != nullptr) return store->db->Close();
    store->closed->store(true, std::memory_order_relaxed);
    return {};
  });
}

void basalt_store_free(basalt_store* store) {
  // A graph or corpus may hold the store for longer.
  if (store != nullptr && store->store.use_count() > 1) basalt_close(store, nullptr);
  delete store;
}

int basalt_sync(basalt_store* store, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_RETURN_IF_ERROR(CheckStore(store));
    return store->store->Sync();
  });
}

int basalt_wait_durable(basalt_store* store, uint64_t lsn, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_RETURN_IF_ERROR(CheckStore(store));
    return store->store->WaitDurable(lsn);
  });
}

int basalt_flush(basalt_store* store, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_RETURN_IF_ERROR(CheckDatabase(store, "flush"));
    return store->db->Flush();
  });
}

int basalt_compact(basalt_store* store, uint32_t keyspace, const void* begin, size_t begin_size,
                   const void* end, size_t end_size, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_RETURN_IF_ERROR(CheckStore(store));
    BASALT_C_REQUIRE(IsBytes(begin, begin_size), "begin");
    BASALT_C_REQUIRE(IsBytes(end, end_size), "end");
    if (store->memtable != nullptr) {
      if (begin != nullptr || end != nullptr || keyspace != 0) {
        return Status(StatusCode::kUnsupported, "compact: a memtable is compacted as a whole");
      }
      return store->memtable->Compact();
    }
    return store->db->CompactRange(Bound(begin, begin_size), Bound(end, end_size),
                                   static_cast<KeyspaceId>(keyspace));
  });
}

int basalt_approximate_size(const basalt_store* store, uint32_t keyspace, const void* begin,
                            size_t begin_size, const void* end, size_t end_size, uint64_t* bytes,
                            basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(bytes != nullptr, "bytes");
    *bytes = 0;
    BASALT_C_RETURN_IF_ERROR(CheckDatabase(store, "approximate_size"));
    BASALT_C_REQUIRE(IsBytes(begin, begin_size), "begin");
    BASALT_C_REQUIRE(IsBytes(end, end_size), "end");
    Result<uint64_t> size = store->db->ApproximateSize(
        Bound(begin, begin_size), Bound(end, end_size), static_cast<KeyspaceId>(keyspace));
    if (!size) return size.error();
    *bytes = *size;
    return {};
  });
}

int basalt_stats(const basalt_store* store, char** json, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(json != nullptr, "json");
    *json = nullptr;
    BASALT_C_RETURN_IF_ERROR(CheckStore(store));
    *json = CopyForCaller(store->db != nullptr ? ToJson(store->db->GetStats())
                                               : ToJson(store->memtable->GetStats()));
    return {};
  });
}

// Reads.

int basalt_get(const basalt_store* store, const void* key, size_t key_size,
               const basalt_read_options* options, basalt_value* value, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(value != nullptr, "value");
    GiveNothing(value);
    ReadOptions read;
    BASALT_C_RETURN_IF_ERROR(PrepareRead(store, key, key_size, options, &read));
    Result<MaybeValue> found = store->store->Get(ViewOf(key, key_size), read);
    if (!found) [[unlikely]]
      return std::move(found).error();
    Give(std::move(*found), value);
    return {};
  });
}

int basalt_get_entry(const basalt_store* store, const void* key, size_t key_size,
                     const basalt_read_options* options, basalt_entry* entry, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(entry != nullptr, "entry");
    entry->version = 0;
    entry->expiry_ms = 0;
    GiveNothing(&entry->value);
    ReadOptions read;
    BASALT_C_RETURN_IF_ERROR(PrepareRead(store, key, key_size, options, &read));
    Result<std::optional<Entry>> found = store->store->GetEntry(ViewOf(key, key_size), read);
    if (!found) return found.error();
    if (!*found) return {};
    entry->version = (*found)->version;
    if ((*found)->expiry) entry->expiry_ms = (*found)->expiry->time_since_epoch().count();
    Give(MaybeValue(std::move((*found)->value)), &entry->value);
    return {};
  });
}

int basalt_contains(const basalt_store* store, const void* key, size_t key_size,
                    const basalt_read_options* options, bool* found, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(found != nullptr, "found");
    *found = false;
    ReadOptions read;
    BASALT_C_RETURN_IF_ERROR(PrepareRead(store, key, key_size, options, &read));
    Result<bool> contains = store->store->Contains(ViewOf(key, key_size), read);
    if (!contains) return contains.error();
    *found = *contains;
    return {};
  });
}

int basalt_multi_get(const basalt_store* store, size_t count, const void* const* keys,
                     const size_t* key_sizes, const basalt_read_options* options,
                     basalt_value* values, int32_t* codes, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(values != nullptr || count == 0, "values");
    for (size_t i = 0; i < count; ++i) GiveNothing(&values[i]);
    if (codes != nullptr) std::fill_n(codes, count, int32_t{BASALT_INVALID_ARGUMENT});
    ReadOptions read;
    BASALT_C_RETURN_IF_ERROR(PrepareRead(store, nullptr, 0, options, &read));
    BASALT_C_REQUIRE((keys != nullptr && key_sizes != nullptr) || count == 0, "keys");
    std::vector<std::string_view> views(count);
    for (size_t i = 0; i < count; ++i) {
      BASALT_C_REQUIRE(IsBytes(keys[i], key_sizes[i]), "a key");
      views[i] = ViewOf(keys[i], key_sizes[i]);
    }
    std::vector<Result<MaybeValue>> results(count);
    BASALT_C_RETURN_IF_ERROR(store->store->MultiGet(views, results, read));
    Status first;
    for (size_t i = 0; i < count; ++i) {
      if (codes != nullptr) codes[i] = static_cast<int32_t>(results[i].code());
      if (results[i]) {
        Give(std::move(*results[i]), &values[i]);
      } else if (first.ok()) {
        first = results[i].error();
      }
    }
    return first;
  });
}

int basalt_snapshot_create(const basalt_store* store, basalt_snapshot** snapshot,
                           basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(snapshot != nullptr, "snapshot");
    *snapshot = nullptr;
    BASALT_C_RETURN_IF_ERROR(CheckStore(store));
    Result<Snapshot> taken = store->store->GetSnapshot();
    if (!taken) return taken.error();
    *snapshot = new basalt_snapshot{*std::move(taken)};
    return {};
  });
}

uint64_t basalt_snapshot_sequence(const basalt_snapshot* snapshot) {
  return snapshot == nullptr ? 0 : snapshot->snapshot.sequence();
}

void basalt_snapshot_free(basalt_snapshot* snapshot) { delete snapshot; }

int basalt_iterator_create(const basalt_store* store, const basalt_read_options* options,
                           basalt_iterator** iterator, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(iterator != nullptr, "iterator");
    *iterator = nullptr;
    ReadOptions read;
    BASALT_C_RETURN_IF_ERROR(PrepareRead(store, nullptr, 0, options, &read));
    std::unique_ptr<Iterator> made = store->store->NewIterator(read);
    // An argument that it refuses is told here, not at the end of a walk.
    BASALT_C_RETURN_IF_ERROR(made->status());
    *iterator = new basalt_iterator{std::move(made)};
    return {};
  });
}

// Writes.

int basalt_put(basalt_store* store, const void* key, size_t key_size, const void* value,
               size_t value_size, const basalt_write_options* options, basalt_commit* commit,
               basalt_error* error) {
  return Call(error, [&]() -> Status {
    GiveNoCommit(commit);
    WriteOptions write;
    BASALT_C_RETURN_IF_ERROR(
        PrepareWrite(store, key, key_size, value, value_size, options, &write));
    return GiveCommit(store->store->Put(ViewOf(key, key_size), ViewOf(value, value_size), write),
                      commit);
  });
}

int basalt_put_if_absent(basalt_store* store, const void* key, size_t key_size, const void* value,
                         size_t value_size, const basalt_write_options* options, bool* created,
                         basalt_commit* commit, basalt_error* error) {
  return Call(error, [&]() -> Status {
    GiveNoCommit(commit);
    if (created != nullptr) *created = false;
    WriteOptions write;
    BASALT_C_RETURN_IF_ERROR(
        PrepareWrite(store, key, key_size, value, value_size, options, &write));
    Result<std::optional<Commit>> written =
        store->store->PutIfAbsent(ViewOf(key, key_size), ViewOf(value, value_size), write);
    if (!written) return written.error();
    if (created != nullptr) *created = written->has_value();
    if (*written) return GiveCommit(**written, commit);
    return {};
  });
}

int basalt_delete(basalt_store* store, const void* key, size_t key_size,
                  const basalt_write_options* options, basalt_commit* commit, basalt_error* error) {
  return Call(error, [&]() -> Status {
    GiveNoCommit(commit);
    WriteOptions write;
    BASALT_C_RETURN_IF_ERROR(PrepareWrite(store, key, key_size, nullptr, 0, options, &write));
    return GiveCommit(store->store->Delete(ViewOf(key, key_size), write), commit);
  });
}

int basalt_delete_range(basalt_store* store, const void* begin, size_t begin_size, const void* end,
                        size_t end_size, const basalt_write_options* options, basalt_commit* commit,
                        basalt_error* error) {
  return Call(error, [&]() -> Status {
    GiveNoCommit(commit);
    WriteOptions write;
    BASALT_C_RETURN_IF_ERROR(
        PrepareWrite(store, begin, begin_size, end, end_size, options, &write));
    return GiveCommit(
        store->store->DeleteRange(ViewOf(begin, begin_size), ViewOf(end, end_size), write), commit);
  });
}

int basalt_merge(basalt_store* store, const void* key, size_t key_size, int merge_operator,
                 const void* operand, size_t operand_size, const basalt_write_options* options,
                 basalt_commit* commit, basalt_error* error) {
  return Call(error, [&]() -> Status {
    GiveNoCommit(commit);
    WriteOptions write;
    MergeOperator op = MergeOperator::kAdd;
    BASALT_C_RETURN_IF_ERROR(
        PrepareWrite(store, key, key_size, operand, operand_size, options, &write));
    BASALT_C_RETURN_IF_ERROR(ToMergeOperator(merge_operator, &op));
    return GiveCommit(
        store->store->Merge(ViewOf(key, key_size), op, ViewOf(operand, operand_size), write),
        commit);
  });
}

int basalt_write(basalt_store* store, const basalt_batch* batch,
                 const basalt_write_options* options, basalt_commit* commit, basalt_error* error) {
  return Call(error, [&]() -> Status {
    GiveNoCommit(commit);
    WriteOptions write;
    BASALT_C_RETURN_IF_ERROR(PrepareWrite(store, nullptr, 0, nullptr, 0, options, &write));
    BASALT_C_REQUIRE(batch != nullptr, "batch");
    return GiveCommit(store->store->Write(batch->batch, write), commit);
  });
}

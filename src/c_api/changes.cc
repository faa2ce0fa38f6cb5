#include "basalt/changes.h"

#include "c_api/call.h"
#include "c_api/handles.h"

namespace basalt::c_api {
namespace {

/// The records of `batch`, which must outlive them.
Status CollectChanges(const CommittedBatch& batch, std::vector<basalt_change>* changes) {
  uint64_t sequence = batch.first_sequence();
  return batch.ForEach([&](const WriteBatch::Record& record) -> Status {
    const bool is_merge = record.kind == RecordKind::kMerge;
    changes->push_back(
        {.key = record.key.data(),
         .key_size = record.key.size(),
         .value = record.value.data(),
         .value_size = record.value.size(),
         .expiry_ms = record.expiry ? int64_t{record.expiry->time_since_epoch().count()} : 0,
         .sequence = sequence++,
         .lsn = batch.commit().lsn,
         .keyspace = static_cast<uint32_t>(record.keyspace),
         .kind = static_cast<int32_t>(record.kind),
         .merge_operator = is_merge ? static_cast<int32_t>(record.merge_operator) : 0});
    return {};
  });
}

}  // namespace
}  // namespace basalt::c_api

using namespace basalt;         // NOLINT(google-*)
using namespace basalt::c_api;  // NOLINT(google-*)

int basalt_changes(const basalt_store* store, uint64_t from_lsn, basalt_change_reader** reader,
                   basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(reader != nullptr, "reader");
    *reader = nullptr;
    BASALT_C_RETURN_IF_ERROR(CheckStore(store));
    Result<std::unique_ptr<ChangeReader>> changes = store->store->Changes(from_lsn);
    if (!changes) return changes.error();
    *reader = new basalt_change_reader{.reader = *std::move(changes)};
    return {};
  });
}

int basalt_change_reader_next(basalt_change_reader* reader, const basalt_change** changes,
                              size_t* count, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(changes != nullptr, "changes");
    *changes = nullptr;
    BASALT_C_REQUIRE(count != nullptr, "count");
    *count = 0;
    BASALT_C_REQUIRE(reader != nullptr, "reader");
    if (reader->origin.IsInherited()) return Inherited();
    reader->changes.clear();
    Result<bool> next = reader->reader->Next();
    if (!next) return next.error();
    if (!*next) return {};
    BASALT_C_RETURN_IF_ERROR(CollectChanges(reader->reader->batch(), &reader->changes));
    *changes = reader->changes.data();
    *count = reader->changes.size();
    return {};
  });
}

void basalt_change_reader_free(basalt_change_reader* reader) { delete reader; }

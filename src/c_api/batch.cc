#include "basalt/write_batch.h"
#include "c_api/call.h"
#include "c_api/handles.h"
#include "c_api/options.h"

namespace basalt::c_api {
namespace {

/// Ok, and the options of a record that is added.
Status PrepareRecord(const basalt_batch* batch, const void* key, size_t key_size, const void* value,
                     size_t value_size, const basalt_record_options* options, RecordOptions* to) {
  BASALT_C_REQUIRE(batch != nullptr, "batch");
  BASALT_C_REQUIRE(IsBytes(key, key_size), "key");
  BASALT_C_REQUIRE(IsBytes(value, value_size), "value");
  return options == nullptr ? Status() : ToRecordOptions(options, to);
}

/// As of a record without options.
Status PrepareCondition(const basalt_batch* batch, const void* key, size_t key_size) {
  RecordOptions none;
  return PrepareRecord(batch, key, key_size, nullptr, 0, nullptr, &none);
}

Status RefuseExpiry(const RecordOptions& options, const char* call) {
  if (!options.ttl && !options.expiry) return {};
  return Status(StatusCode::kInvalidArgument,
                std::string(call) + ": ttl_ms and expiry_ms are for records that are put");
}

}  // namespace
}  // namespace basalt::c_api

using namespace basalt;         // NOLINT(google-*)
using namespace basalt::c_api;  // NOLINT(google-*)

int basalt_batch_create(basalt_batch** batch, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(batch != nullptr, "batch");
    *batch = nullptr;
    *batch = new basalt_batch;
    return {};
  });
}

void basalt_batch_free(basalt_batch* batch) { delete batch; }

int basalt_batch_put(basalt_batch* batch, const void* key, size_t key_size, const void* value,
                     size_t value_size, const basalt_record_options* options, basalt_error* error) {
  return Call(error, [&]() -> Status {
    RecordOptions record;
    BASALT_C_RETURN_IF_ERROR(
        PrepareRecord(batch, key, key_size, value, value_size, options, &record));
    batch->batch.Put(ViewOf(key, key_size), ViewOf(value, value_size), record);
    return batch->batch.status();
  });
}

int basalt_batch_delete(basalt_batch* batch, const void* key, size_t key_size,
                        const basalt_record_options* options, basalt_error* error) {
  return Call(error, [&]() -> Status {
    RecordOptions record;
    BASALT_C_RETURN_IF_ERROR(PrepareRecord(batch, key, key_size, nullptr, 0, options, &record));
    BASALT_C_RETURN_IF_ERROR(RefuseExpiry(record, "delete"));
    batch->batch.Delete(ViewOf(key, key_size), record.keyspace);
    return batch->batch.status();
  });
}

int basalt_batch_delete_range(basalt_batch* batch, const void* begin, size_t begin_size,
                              const void* end, size_t end_size,
                              const basalt_record_options* options, basalt_error* error) {
  return Call(error, [&]() -> Status {
    RecordOptions record;
    BASALT_C_RETURN_IF_ERROR(
        PrepareRecord(batch, begin, begin_size, end, end_size, options, &record));
    BASALT_C_RETURN_IF_ERROR(RefuseExpiry(record, "delete_range"));
    batch->batch.DeleteRange(ViewOf(begin, begin_size), ViewOf(end, end_size), record.keyspace);
    return batch->batch.status();
  });
}

int basalt_batch_merge(basalt_batch* batch, const void* key, size_t key_size, int merge_operator,
                       const void* operand, size_t operand_size,
                       const basalt_record_options* options, basalt_error* error) {
  return Call(error, [&]() -> Status {
    RecordOptions record;
    MergeOperator op = MergeOperator::kAdd;
    BASALT_C_RETURN_IF_ERROR(
        PrepareRecord(batch, key, key_size, operand, operand_size, options, &record));
    BASALT_C_RETURN_IF_ERROR(ToMergeOperator(merge_operator, &op));
    batch->batch.Merge(ViewOf(key, key_size), op, ViewOf(operand, operand_size), record);
    return batch->batch.status();
  });
}

int basalt_batch_require_absent(basalt_batch* batch, const void* key, size_t key_size,
                                uint32_t keyspace, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_RETURN_IF_ERROR(PrepareCondition(batch, key, key_size));
    batch->batch.RequireAbsent(ViewOf(key, key_size), static_cast<KeyspaceId>(keyspace));
    return batch->batch.status();
  });
}

int basalt_batch_require_present(basalt_batch* batch, const void* key, size_t key_size,
                                 uint32_t keyspace, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_RETURN_IF_ERROR(PrepareCondition(batch, key, key_size));
    batch->batch.RequirePresent(ViewOf(key, key_size), static_cast<KeyspaceId>(keyspace));
    return batch->batch.status();
  });
}

int basalt_batch_require_unchanged(basalt_batch* batch, const void* key, size_t key_size,
                                   uint64_t version, uint32_t keyspace, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_RETURN_IF_ERROR(PrepareCondition(batch, key, key_size));
    batch->batch.RequireUnchanged(ViewOf(key, key_size), version,
                                  static_cast<KeyspaceId>(keyspace));
    return batch->batch.status();
  });
}

int basalt_batch_append(basalt_batch* batch, const basalt_batch* other, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(batch != nullptr, "batch");
    BASALT_C_REQUIRE(other != nullptr, "other");
    batch->batch.Append(other->batch);
    return batch->batch.status();
  });
}

void basalt_batch_clear(basalt_batch* batch) {
  if (batch != nullptr) batch->batch.Clear();
}

size_t basalt_batch_count(const basalt_batch* batch) {
  return batch == nullptr ? 0 : batch->batch.count();
}

size_t basalt_batch_bytes(const basalt_batch* batch) {
  return batch == nullptr ? 0 : batch->batch.byte_size();
}

#include "db/log_record.h"

#include <algorithm>

#include "base/batch_cursor.h"
#include "base/batch_time.h"
#include "base/check.h"

namespace basalt::db {
namespace {

Status UnsupportedKind(RecordKind kind, const std::string& where) {
  return Status(StatusCode::kUnsupported,
                where + ": record kind " + std::to_string(static_cast<int>(kind)) +
                    " is not built yet; this version has put, delete, range delete and merge");
}

bool IsApplicable(RecordKind kind) noexcept { return kind != RecordKind::kBlobReference; }

}  // namespace

Result<LogForm> ToLogForm(std::string_view batch, const LogFormRules& rules, std::string* buffer) {
  LogForm form{.bytes = batch, .durability = Durability::kMemory, .is_logged = true};
  bool has_times = false;
  bool is_first = true;
  uint32_t last_keyspace = 0;
  base::BatchCursor cursor(batch);
  while (cursor.Next()) {
    if (!IsApplicable(cursor.kind())) return UnsupportedKind(cursor.kind(), "the batch");
    form.deletes += cursor.kind() == RecordKind::kDelete ? 1 : 0;
    form.range_deletes += cursor.kind() == RecordKind::kDeleteRange ? 1 : 0;
    form.has_merges = form.has_merges || cursor.kind() == RecordKind::kMerge;
    form.deletes_only = form.deletes_only && (cursor.kind() == RecordKind::kDelete ||
                                              cursor.kind() == RecordKind::kDeleteRange);
    has_times = has_times || base::NeedsTime(cursor, rules.default_ttl);
    if (!is_first && cursor.keyspace() == last_keyspace) continue;
    last_keyspace = cursor.keyspace();
    if (!rules.keyspaces.Contains(last_keyspace)) {
      return Status(StatusCode::kNotFound,
                    "there is no keyspace " + std::to_string(last_keyspace) +
                        "; it was never created (CreateKeyspace), or it was dropped",
                    SubCode::kKeyspace);
    }
    const Durability durability = rules.keyspaces.DurabilityOf(last_keyspace, rules.durability);
    const bool is_logged = durability != Durability::kMemory;
    if (!is_first && is_logged != form.is_logged) {
      return Status(StatusCode::kInvalidArgument,
                    "the batch writes to keyspaces with a log and without one (kMemory): write two "
                    "batches");
    }
    is_first = false;
    form.is_logged = is_logged;
    form.durability = std::max(form.durability, durability);
  }
  form.needs_time = has_times && rules.now_ms == 0;
  if (!has_times || form.needs_time) return form;

  buffer->clear();
  cursor = base::BatchCursor(batch);
  while (cursor.Next()) {
    base::AppendBatchRecord({.kind = cursor.kind(),
                             .keyspace = cursor.keyspace(),
                             .time_ms = base::KeptTime(cursor, rules.default_ttl, rules.now_ms),
                             .key = cursor.key(),
                             .value = cursor.value()},
                            buffer);
  }
  form.bytes = *buffer;
  return form;
}

Status CheckLogRecord(const wal::RecordView& record, const std::string& path,
                      uint32_t next_keyspace_id) {
  const std::string where = "the log of " + path + ", LSN " + std::to_string(record.lsn);
  auto batch = WriteBatch::Parse(record.payload);
  if (!batch) {
    return Status(batch.error().code(), where + ": " + std::string(batch.error().message()));
  }
  if (batch->count() != record.count) {
    return Status(StatusCode::kCorruption,
                  where + ": the record says " + std::to_string(record.count) +
                      " operations, but has " + std::to_string(batch->count()));
  }
  base::BatchCursor cursor(record.payload);
  while (cursor.Next()) {
    if (!IsApplicable(cursor.kind())) return UnsupportedKind(cursor.kind(), where);
    if (cursor.keyspace() >= next_keyspace_id) {
      return Status(StatusCode::kCorruption, where + ": keyspace " +
                                                 std::to_string(cursor.keyspace()) +
                                                 " was never made, says the manifest");
    }
  }
  return {};
}

}  // namespace basalt::db

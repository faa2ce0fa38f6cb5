#include "db/log_record.h"

#include "base/batch_cursor.h"
#include "base/check.h"

namespace basalt::db {

Status CheckRecordsApplicable(std::string_view batch, const std::string& where) {
  base::BatchCursor cursor(batch);
  while (cursor.Next()) {
    if (cursor.kind() != RecordKind::kPut && cursor.kind() != RecordKind::kDelete) {
      return Status(StatusCode::kUnsupported,
                    where + ": record kind " + std::to_string(static_cast<int>(cursor.kind())) +
                        " is not built yet; this version has put and delete");
    }
    if (cursor.time_ms() != 0) {
      return Status(StatusCode::kUnsupported, where + ": expiry (ttl) is not built yet");
    }
    if (cursor.keyspace() != 0) {
      return Status(StatusCode::kNotFound,
                    where + ": there is no keyspace " + std::to_string(cursor.keyspace()));
    }
  }
  return {};
}

Status CheckLogRecord(const wal::RecordView& record, const std::string& path) {
  const std::string where = "the log of " + path + ", LSN " + std::to_string(record.lsn);
  auto batch = WriteBatch::Parse(record.payload);
  if (!batch)
    return Status(batch.error().code(), where + ": " + std::string(batch.error().message()));
  if (batch->count() != record.count) {
    return Status(StatusCode::kCorruption,
                  where + ": the record says " + std::to_string(record.count) +
                      " operations, but has " + std::to_string(batch->count()));
  }
  return CheckRecordsApplicable(record.payload, where);
}

}  // namespace basalt::db

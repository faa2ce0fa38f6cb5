#include "base/batch_records.h"

#include <chrono>
#include <cstdint>

#include "base/batch_cursor.h"
#include "base/check.h"

namespace basalt {

Status base::ForEachRecord(
    std::string_view bytes,
    const std::function<Status(const WriteBatch::Record&, size_t end)>& visit) {
  base::BatchCursor cursor(bytes);
  while (cursor.Next()) {
    const bool is_merge = cursor.kind() == RecordKind::kMerge;
    const std::chrono::milliseconds time(static_cast<int64_t>(cursor.time_ms()));
    WriteBatch::Record record{.kind = cursor.kind(),
                              .keyspace = static_cast<KeyspaceId>(cursor.keyspace()),
                              .key = cursor.key(),
                              .value = is_merge ? cursor.value().substr(1) : cursor.value()};
    if (is_merge) record.merge_operator = static_cast<MergeOperator>(cursor.value()[0]);
    if (cursor.never_expires()) {
      record.ttl = std::chrono::milliseconds(0);
    } else if (cursor.time_is_expiry()) {
      record.expiry = WallTime(time);
    } else if (time.count() != 0) {
      record.ttl = time;
    }
    BASALT_RETURN_IF_ERROR(visit(record, static_cast<size_t>(cursor.next() - bytes.data())));
  }
  return {};
}

}  // namespace basalt

#include "memtable/batch_form.h"

#include <string>

#include "base/batch_cursor.h"
#include "base/batch_time.h"
#include "base/check.h"

namespace basalt::memtable {
namespace {

void AppendWithTimes(const WriteBatch& batch, const Keyspaces& keyspaces, uint64_t now_ms,
                     std::string* out) {
  out->clear();
  base::BatchCursor record(batch.bytes());
  while (record.Next()) {
    const auto default_ttl = keyspaces.DefaultTtl(record.keyspace());
    base::AppendBatchRecord({.kind = record.kind(),
                             .keyspace = record.keyspace(),
                             .time_ms = base::KeptTime(record, default_ttl, now_ms),
                             .key = record.key(),
                             .value = record.value()},
                            out);
  }
}

}  // namespace

Result<BatchForm> ToForm(const WriteBatch& batch, const Keyspaces& keyspaces,
                         io::ExpiryClock* clock, std::string* buffer) {
  BatchForm form{.bytes = batch.bytes(),
                 .count = batch.count(),
                 .has_range_deletes = batch.Has(RecordKind::kDeleteRange),
                 .only_deletes = !batch.Has(RecordKind::kPut) && !batch.Has(RecordKind::kMerge)};
  if (batch.has_only_plain_puts()) return form;
  bool needs_times = false;
  base::BatchCursor record(batch.bytes());
  while (record.Next()) {
    if (record.kind() == RecordKind::kBlobReference) [[unlikely]] {
      return Status(StatusCode::kUnsupported,
                    "write to a memtable: the batch has a record of kind 5, a blob reference; only "
                    "put, delete, range delete and merge are supported");
    }
    std::chrono::milliseconds default_ttl(0);
    if (record.keyspace() != 0) {
      if (!keyspaces.Contains(record.keyspace())) return NoSuchKeyspace(record.keyspace());
      form.keyspaces_number = keyspaces.number();
      default_ttl = keyspaces.DefaultTtl(record.keyspace());
    }
    if (!base::NeedsTime(record, default_ttl)) continue;
    needs_times = true;
    form.has_expiring = form.has_expiring || record.kind() == RecordKind::kPut;
  }
  if (!needs_times) return form;
  AppendWithTimes(batch, keyspaces, clock->NowMs(), buffer);
  form.bytes = *buffer;
  return form;
}

}  // namespace basalt::memtable

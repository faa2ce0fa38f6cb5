#include "wal/log_scan.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "base/batch_cursor.h"

namespace basalt::wal {
namespace {

/// Whether what is said to be a record can be one that was written, by all but its checksum.
bool IsShapedAsWritten(const Record& record, uint64_t* work) {
  if (record.type == LogRecordType::kClose) return record.payload.empty();
  if (record.type != LogRecordType::kBatch) return false;
  std::string_view rest = record.payload;
  uint32_t operations = 0;
  for (; !rest.empty() && operations < record.count; ++operations) {
    const size_t size = base::BatchRecordBytes(rest);
    if (size == 0) return false;
    *work += kWalkWork;
    rest.remove_prefix(size);
  }
  return rest.empty() && operations == record.count;
}

/// The next offset from `from` on, below `limit`, where a valid record lies that may follow the
/// last run: its LSN is above the run's, but not by more records than fit between.
std::optional<uint64_t> FindRecord(std::string_view file, const FileHeader& header, uint64_t from,
                                   uint64_t limit, FileScan* scan) {
  const RecordRun& run = scan->runs.back();
  const RecordLayout layout = LayoutOf(header);
  for (uint64_t offset = from; offset < limit; offset += layout.alignment) {
    const std::optional<Record> record = PeekRecord(file, offset, header);
    if (!record) continue;
    const bool is_close = record->type == LogRecordType::kClose;
    const uint64_t missed_max = (offset - run.end) / layout.record_bytes_min;
    if (record->lsn < run.last_lsn + (is_close ? 0 : 1)) continue;
    if (record->lsn - run.last_lsn > missed_max + 1) continue;
    if (IsShapedAsWritten(*record, &scan->search_work)) {
      if (ReadRecord(file, offset, header)) return offset;
      scan->search_work += record->framed_bytes;
    }
    if (scan->search_work > kSearchWorkMax * file.size()) {
      scan->search_given_up_at = offset;
      break;
    }
  }
  return {};
}

}  // namespace

uint64_t NonZeroEnd(std::string_view bytes) noexcept {
  uint64_t end = bytes.size();
  while (end % sizeof(uint64_t) != 0 && bytes[end - 1] == '\0') --end;
  if (end % sizeof(uint64_t) != 0) return end;
  while (end > 0 && base::Load<uint64_t>(bytes.data() + end - sizeof(uint64_t)) == 0) {
    end -= sizeof(uint64_t);
  }
  while (end > 0 && bytes[end - 1] == '\0') --end;
  return end;
}

Result<FileScan> ScanFile(std::string_view file, const FileHeader& header, std::string_view path) {
  FileScan scan;
  scan.running_hash = header.file_id;
  scan.runs.push_back({.first_lsn = header.first_lsn,
                       .last_lsn = header.first_lsn - 1,
                       .begin = kRecordsOffset,
                       .batches_end = kRecordsOffset,
                       .last_sequence = 0,
                       .end = kRecordsOffset});
  const uint64_t limit = NonZeroEnd(file);
  uint64_t offset = kRecordsOffset;
  while (offset < limit) {
    RecordRun& run = scan.runs.back();
    const std::optional<Record> record = ReadRecord(file, offset, header);
    if (record && record->type != LogRecordType::kBatch && record->type != LogRecordType::kClose) {
      return Status(StatusCode::kUnsupported,
                    "read log " + std::string(path) + " at offset " + std::to_string(offset) +
                        ": a record of type " +
                        std::to_string(static_cast<uint32_t>(record->type)) +
                        ", which this version does not know: use the newer program that wrote it");
    }
    const bool is_close = record && record->type == LogRecordType::kClose;
    const bool is_next =
        record && offset == run.end && record->lsn == run.last_lsn + (is_close ? 0 : 1);
    if (!record || (!is_next && offset == run.end)) {
      // A length that is damaged may reach far.
      if (const auto wrong = PeekRecord(file, offset, header)) {
        scan.search_work += wrong->framed_bytes;
      }
      const std::optional<uint64_t> found =
          FindRecord(file, header, offset + LayoutOf(header).alignment, limit, &scan);
      if (!found) break;
      offset = *found;
      continue;
    }
    const uint64_t end = offset + record->framed_bytes;
    scan.durable_lsn = std::max(scan.durable_lsn, record->durable_lsn);
    if (is_next) {
      run.end = end;
      if (!is_close) {
        run.last_lsn = record->lsn;
        run.batches_end = end;
        run.last_sequence = std::max(run.last_sequence, record->last_sequence());
        if (scan.runs.size() == 1) {
          scan.running_hash = ExtendRunningHash(scan.running_hash, record->checksum);
        }
      }
    } else if (is_close && record->lsn == run.last_lsn) {
      // No record is missing before it, and it holds none: the log ends before the damage.
    } else {  // The first one behind damage.
      const Lsn first = is_close ? record->lsn + 1 : record->lsn;
      scan.runs.push_back({.first_lsn = first,
                           .last_lsn = record->lsn,
                           .begin = offset,
                           .batches_end = is_close ? offset : end,
                           .last_sequence = is_close ? 0 : record->last_sequence(),
                           .end = end});
    }
    offset = end;
  }
  return scan;
}

}  // namespace basalt::wal

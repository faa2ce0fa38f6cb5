#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "basalt/write_batch.h"
#include "tools/basalt/inspection.h"
#include "wal/log_format.h"
#include "wal/log_scan.h"

namespace basalt::tools {
namespace {

std::string_view KindName(RecordKind kind) {
  switch (kind) {
    case RecordKind::kPut:
      return "put";
    case RecordKind::kDelete:
      return "delete";
    case RecordKind::kDeleteRange:
      return "delete_range";
    case RecordKind::kMerge:
      return "merge";
    case RecordKind::kBlobReference:
      return "blob_reference";
  }
  return "unknown";
}

std::string_view OperatorName(MergeOperator merge_operator) {
  switch (merge_operator) {
    case MergeOperator::kAdd:
      return "add";
    case MergeOperator::kMin:
      return "min";
    case MergeOperator::kMax:
      return "max";
    case MergeOperator::kAppend:
      return "append";
  }
  return "unknown";
}

Document HeaderDocument(const wal::FileHeader& header) {
  return {{"magic", BytesValue({header.magic, sizeof header.magic})},
          {"version", header.version},
          {"required_features", header.required_features},
          {"optional_features", header.optional_features},
          {"file_id", HexValue(header.file_id)},
          {"file_number", header.file_number},
          {"first_lsn", header.first_lsn},
          {"durable_lsn", header.durable_lsn},
          {"previous_file_id", HexValue(header.previous_file_id)},
          {"previous_last_lsn", header.previous_last_lsn},
          {"previous_length", header.previous_length},
          {"previous_running_hash", HexValue(header.previous_running_hash)},
          {"database_id", HexValue(header.database_id)},
          {"checksum", HexValue(header.checksum)}};
}

/// Shows the header, and returns its intact copy, or the first one if there is none. Empty if
/// records cannot be read.
std::optional<wal::FileHeader> InspectHeader(std::string_view bytes, Inspection& inspection) {
  const std::string_view first_bytes = bytes.substr(0, wal::kRecordsOffset);
  const auto decoded = wal::DecodeFileHeader(first_bytes, inspection.path());
  if (decoded && decoded->has_value()) {
    inspection.Show("header", HeaderDocument(**decoded));
    const std::string written = wal::EncodeFileHeader(**decoded);
    if (first_bytes != written) {
      const auto [ours, theirs] =
          std::mismatch(first_bytes.begin(), first_bytes.end(), written.begin());
      inspection.Find(static_cast<uint64_t>(ours - first_bytes.begin()),
                      inspection.path() +
                          ": one of the two copies of the header is damaged; the other is sound");
    }
    return *decoded;
  }
  if (bytes.size() >= sizeof(wal::FileHeader)) {
    wal::FileHeader raw;
    std::memcpy(&raw, bytes.data(), sizeof raw);
    inspection.Show("header", HeaderDocument(raw));
  }
  inspection.Find(0, decoded ? Status(StatusCode::kCorruption,
                                      inspection.path() +
                                          ": neither copy of the header is sound, and without its "
                                          "file id no record can be checked")
                             : decoded.error());
  return std::nullopt;
}

Document OperationDocument(const WriteBatch::Record& record) {
  Document document{{"kind", KindName(record.kind)}};
  if (record.kind == RecordKind::kMerge) document["operator"] = OperatorName(record.merge_operator);
  ShowKey("key", record.key, document);
  if (record.kind == RecordKind::kDeleteRange) ShowKey("end", record.value, document);
  document["key_bytes"] = record.key.size();
  if (record.kind != RecordKind::kDelete) document["value_bytes"] = record.value.size();
  if (record.keyspace != KeyspaceId::kDefault) {
    document["keyspace"] = static_cast<uint32_t>(record.keyspace);
  }
  if (record.ttl) document["time_ms"] = record.ttl->count();
  return document;
}

/// Walks the records of a log and shows the first of them.
class LogRecords {
 public:
  LogRecords(std::string_view bytes, const wal::FileHeader& header, Inspection& inspection)
      : bytes_(bytes), header_(header), inspection_(inspection) {}

  void AddRun(const wal::RecordRun& run) {
    uint64_t offset = run.begin;
    while (offset < run.end) {
      const std::optional<wal::Record> record = wal::ReadRecord(bytes_, offset, header_);
      if (!record) return;  // The file has changed under the scan.
      Add(offset, *record);
      offset += record->framed_bytes;
    }
  }
  void Show() {
    inspection_.Show("record_count", count_);
    inspection_.Show("operation_count", operations_);
    inspection_.Show("records", std::move(shown_));
  }

 private:
  void Add(uint64_t offset, const wal::Record& record) {
    ++count_;
    const bool is_close = record.type == wal::LogRecordType::kClose;
    Document document{{"offset", offset},
                      {"type", is_close ? "close" : "batch"},
                      {"lsn", record.lsn},
                      {"durable_lsn", record.durable_lsn},
                      {"first_sequence", record.first_sequence},
                      {"count", record.count},
                      {"payload_bytes", record.payload.size()}};
    if (!is_close) {
      document["operations"] = Operations(offset, record);
    }
    if (shown_.size() < inspection_.limit()) shown_.push_back(std::move(document));
  }

  boost::json::array Operations(uint64_t offset, const wal::Record& record) {
    boost::json::array shown;
    const auto fault = [&](StatusCode code, std::string_view what) {
      inspection_.Find(offset, Status(code, inspection_.path() + ": record with LSN " +
                                                std::to_string(record.lsn) + " at offset " +
                                                std::to_string(offset) + ": " + std::string(what)));
    };
    const Result<WriteBatch> batch = WriteBatch::Parse(record.payload);
    if (!batch) {
      fault(batch.error().code(), batch.error().message());
      return shown;
    }
    operations_ += batch->count();
    if (batch->count() != record.count) {
      fault(StatusCode::kCorruption, "it names " + std::to_string(record.count) +
                                         " operations and has " + std::to_string(batch->count()));
    }
    if (shown_.size() >= inspection_.limit()) return shown;
    const Status walked = batch->ForEach([&](const WriteBatch::Record& operation) {
      if (shown.size() < inspection_.limit()) shown.push_back(OperationDocument(operation));
      return Status();
    });
    if (!walked.ok()) fault(walked.code(), walked.message());
    return shown;
  }

  std::string_view bytes_;
  const wal::FileHeader& header_;
  Inspection& inspection_;
  uint64_t count_ = 0;
  uint64_t operations_ = 0;
  boost::json::array shown_;
};

/// Damage that records follow is told; what follows the last record may be the tail that a crash
/// has torn, unless something in the file says that more was durable.
void FindDamage(std::string_view bytes, const wal::FileScan& scan, Inspection& inspection) {
  for (size_t i = 1; i < scan.runs.size(); ++i) {
    const wal::RecordRun& before = scan.runs[i - 1];
    const wal::RecordRun& after = scan.runs[i];
    inspection.Find(
        before.end,
        inspection.path() + ": from offset " + std::to_string(before.end) + " to " +
            std::to_string(after.begin) + " the records with LSN " +
            std::to_string(before.last_lsn + 1) + " to " + std::to_string(after.first_lsn - 1) +
            " are damaged or missing; `basalt check` shows whether acknowledged writes are lost");
  }
  const wal::RecordRun& last = scan.runs.back();
  if (scan.search_given_up_at != 0) {
    inspection.Find(last.end, inspection.path() + ": damaged at offset " +
                                  std::to_string(last.end) + "; from offset " +
                                  std::to_string(scan.search_given_up_at) +
                                  " on nothing was searched, as the bytes look too much like "
                                  "records");
  }
  const uint64_t tail_end = wal::NonZeroEnd(bytes);
  inspection.Show("records_end", last.end);
  inspection.Show("torn_tail_bytes", tail_end > last.end ? tail_end - last.end : 0);
  inspection.Show("closed", last.is_closed());
  if (last.last_lsn < scan.durable_lsn) {
    inspection.Find(last.end, inspection.path() + ": the log ends at LSN " +
                                  std::to_string(last.last_lsn) + ", offset " +
                                  std::to_string(last.end) + ", though LSN " +
                                  std::to_string(scan.durable_lsn) + " was durable");
  }
}

}  // namespace

void InspectLog(std::string_view bytes, Inspection& inspection) {
  const std::optional<wal::FileHeader> header = InspectHeader(bytes, inspection);
  if (!header) return;
  const Result<wal::FileScan> scan = wal::ScanFile(bytes, *header, inspection.path());
  if (!scan) return inspection.Find(wal::kRecordsOffset, scan.error());
  inspection.Show("first_lsn", scan->runs.front().first_lsn);
  inspection.Show("last_lsn", scan->runs.back().last_lsn);
  inspection.Show("durable_lsn", scan->durable_lsn);
  FindDamage(bytes, *scan, inspection);
  LogRecords records(bytes, *header, inspection);
  for (const wal::RecordRun& run : scan->runs) records.AddRun(run);
  records.Show();
}

}  // namespace basalt::tools

#include "tools/basalt/transfer.h"

#include <map>
#include <string_view>
#include <vector>

#include "basalt/store.h"
#include "tools/basalt/figures.h"
#include "tools/basalt/keyspace.h"
#include "tools/basalt/line_reader.h"
#include "tools/basalt/open_store.h"
#include "tools/basalt/progress.h"
#include "tools/basalt/text_format.h"

namespace basalt::tools {
namespace {

/// A batch is written when it has so many bytes, however few its records.
constexpr size_t kBatchBytes = 1 << 20;

/// Gathers records into batches, writes them, and counts what is in the database. What has expired
/// is left out. The first failed write stays: nothing is written after it.
class BatchWriter {
 public:
  BatchWriter(Store& store, const LoadOptions& options)
      : store_(store), options_(options), batch_bytes_max_(BatchBytesMax(store)) {}

  Status Add(const Record& record) {
    if (HasExpired(record)) {
      ++expired_;
      return {};
    }
    constexpr size_t kRecordOverheadMax = 64;
    const size_t record_bytes = record.key.size() + record.value.size() + kRecordOverheadMax;
    if (batch_.byte_size() + record_bytes > batch_bytes_max_) {
      if (Status written = Write(); !written.ok()) return written;
    }
    const Result<KeyspaceId> keyspace = KeyspaceOf(record);
    if (!keyspace) return keyspace.error();
    batch_.Put(record.key, record.value, {.keyspace = *keyspace, .expiry = record.expiry});
    bytes_pending_ += record.key.size() + record.value.size();
    if (batch_.count() < options_.batch_records && batch_.byte_size() < kBatchBytes) return {};
    return Write();
  }

  /// Writes what was gathered.
  Status Write() {
    if (batch_.empty() || !status_.ok()) return status_;
    status_ = store_.Write(batch_, options_.write);
    if (!status_.ok()) return status_;
    records_ += batch_.count();
    bytes_ += bytes_pending_;
    bytes_pending_ = 0;
    batch_.Clear();
    return {};
  }

  uint64_t records() const noexcept { return records_; }
  /// Of keys and values.
  uint64_t bytes() const noexcept { return bytes_; }
  uint64_t expired() const noexcept { return expired_; }

 private:
  /// Makes it when it is not there.
  Result<KeyspaceId> KeyspaceOf(const Record& record) {
    const std::string& name = options_.keyspace ? *options_.keyspace : record.keyspace;
    const auto known = keyspaces_.find(name);
    if (known != keyspaces_.end()) return known->second;
    const Result<KeyspaceId> found = FindOrMakeKeyspace(store_, name);
    if (found) keyspaces_.emplace(name, *found);
    return found;
  }

  Store& store_;
  std::map<std::string, KeyspaceId> keyspaces_;
  const LoadOptions& options_;
  const uint64_t batch_bytes_max_;  // the store takes no larger ones
  WriteBatch batch_;
  Status status_;
  uint64_t bytes_pending_ = 0;
  uint64_t records_ = 0;
  uint64_t bytes_ = 0;
  uint64_t expired_ = 0;
};

Result<Record> ParseLine(const LoadOptions& options, std::string_view line,
                         const LineReader& input) {
  const RecordFormat format = options.json ? RecordFormat::kJson : RecordFormat::kText;
  Result<Record> record = ParseRecord(format, line);
  std::string fault;
  if (!record) {
    fault = record.error().message();
  } else if (record->key.size() > kMaxKeyBytes) {
    fault = "the key has " + FormatCount(record->key.size()) + " bytes; the largest has " +
            FormatCount(kMaxKeyBytes);
  } else if (options.keyspace && !record->keyspace.empty()) {
    fault = "the line names the keyspace " + ToText(record->keyspace) +
            " of its record: leave out --keyspace";
  } else {
    return record;
  }
  return Status(StatusCode::kInvalidArgument, input.position() + ": " + fault);
}

/// Adds line after line until the end or the first fault, which it returns.
Status AddLines(const LoadOptions& options, LineReader& input, BatchWriter& writer,
                Progress& progress) {
  std::string_view line;
  while (true) {
    const Result<bool> more = input.Next(line);
    if (!more) return more.error();
    if (!*more) return {};
    if (line.empty() || line == "\r") continue;
    const Result<Record> record = ParseLine(options, line, input);
    if (!record) return record.error();
    if (Status added = writer.Add(*record); !added.ok()) return added;
    progress.Update(input.consumed_bytes(), writer.records());
  }
}

/// Goes behind what says how much was loaded.
std::string ExpiredText(const BatchWriter& writer) {
  if (writer.expired() == 0) return {};
  return "; left out " + FormatCount(writer.expired()) +
         (writer.expired() == 1 ? " that has expired" : " that have expired");
}

std::string Summary(const BatchWriter& writer, double seconds) {
  return "loaded " + FormatCount(writer.records()) + " records, " + FormatBytes(writer.bytes()) +
         " of keys and values, in " + FormatSeconds(seconds) + " (" +
         FormatCount(PerSecond(writer.records(), seconds)) + " records/s)" + ExpiredText(writer);
}

/// All records of a keyspace, also behind those whose merges do not fit.
class RecordWalk {
 public:
  RecordWalk(const Store& store, KeyspaceId keyspace, const Snapshot& snapshot)
      : keys_(store.NewIterator(
            {.snapshot = &snapshot, .keyspace = keyspace, .fill_cache = false, .keys_only = true})),
        records_(
            store.NewIterator({.snapshot = &snapshot, .keyspace = keyspace, .fill_cache = false})) {
  }

  /// Gives each record to `print` until that gives false; Ok then, and at the end. The first that
  /// does not fit ends it too, unless they are to be skipped.
  template <class Print>
  Status Run(bool skip_bad, const Print& print) {
    std::string behind;  // The first key behind what was printed or skipped.
    for (records_->SeekToFirst();; records_->Seek(behind)) {
      for (; records_->Valid(); records_->Next()) {
        if (!print(*records_)) return {};
        behind.assign(records_->key()).push_back('\0');
      }
      const Status& status = records_->status();
      if (!skip_bad || status.code() != StatusCode::kFailedPrecondition) return status;
      Complain(status.message());
      ++skipped_;
      // The keys are read without values, so that nothing keeps them from being told.
      keys_->Seek(behind);
      if (!keys_->Valid()) return keys_->status();
      behind.assign(keys_->key()).push_back('\0');
    }
  }
  uint64_t skipped() const noexcept { return skipped_; }

 private:
  const std::unique_ptr<Iterator> keys_;
  const std::unique_ptr<Iterator> records_;
  uint64_t skipped_ = 0;
};

}  // namespace

ExitCode Load(const LoadOptions& options, Output& out) {
  Result<LineReader> input = LineReader::Open(options.file);
  if (!input) return Report(input.error());
  const Result<std::unique_ptr<Store>> store =
      OpenStoreToWrite(options.path, {.memory_budget = options.memory_budget});
  if (!store) return Report(store.error());
  // Also where no record comes.
  if (Status made = FindOrMakeKeyspace(**store, options.keyspace).status(); !made.ok()) {
    return Report(made);
  }

  BatchWriter writer(**store, options);
  Status stopped;
  double seconds = 0;
  {
    Progress progress(ProgressStyleForStderr(options.progress), "loading", input->total_bytes());
    stopped = AddLines(options, *input, writer, progress);
    const Status written = writer.Write();
    if (stopped.ok()) stopped = written;
    const Status closed = CloseStore(store->get());
    if (stopped.ok()) stopped = closed;
    seconds = progress.seconds();
  }
  if (stopped.ok()) {
    out.Write(Summary(writer, seconds) + "\n");
    return ExitCode::kOk;
  }
  const ExitCode code = Report(stopped);
  Complain(FormatCount(writer.records()) +
           " records before that are loaded; nothing that follows is in " + options.path +
           ExpiredText(writer));
  return code;
}

namespace {

/// The keyspaces that a dump is of.
Result<std::vector<KeyspaceInfo>> KeyspacesOf(const DumpOptions& options, const Store& store) {
  if (!options.all_keyspaces) {
    const Result<KeyspaceId> keyspace = FindKeyspace(store, options.keyspace);
    if (!keyspace) return keyspace.error();
    return std::vector{KeyspaceInfo{.id = *keyspace, .name = {}}};
  }
  return store.ListKeyspaces();
}

}  // namespace

ExitCode Dump(const DumpOptions& options, Output& out) {
  const Result<std::unique_ptr<Store>> store = OpenStoreToRead(options.path, options.access);
  if (!store) return Report(store.error());
  const Result<std::vector<KeyspaceInfo>> keyspaces = KeyspacesOf(options, **store);
  if (!keyspaces) return Report(keyspaces.error());
  if (!options.keyspace && !options.all_keyspaces) {
    if (Status told = TellOfOtherKeyspaces(**store); !told.ok()) return Report(told);
  }
  const Result<Snapshot> snapshot = (*store)->GetSnapshot();
  if (!snapshot) return Report(snapshot.error());
  const RecordFormat format = options.json ? RecordFormat::kJson : RecordFormat::kText;
  std::string line;
  uint64_t skipped = 0;
  Status walked;
  for (const KeyspaceInfo& keyspace : *keyspaces) {
    RecordWalk walk(**store, keyspace.id, *snapshot);
    walked = walk.Run(options.skip_bad, [&](const Iterator& record) {
      line.clear();
      AppendRecord(format, record.key(), record.value(), line,
                   {.expiry = record.expiry(), .keyspace = keyspace.name});
      return out.Write(line);
    });
    skipped += walk.skipped();
    if (!walked.ok()) break;
  }
  if (skipped > 0) Complain(FormatCount(skipped) + " records are left out");
  const ExitCode code = Report(walked);
  if (walked.code() == StatusCode::kFailedPrecondition) {
    Complain("the records after it are not printed; --skip-bad skips such records");
  }
  return walked.ok() && skipped > 0 ? ExitCode::kCorruption : code;
}

}  // namespace basalt::tools

#include "tools/basalt/map_keys.h"

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "basalt/shared_map.h"
#include "basalt/write_batch.h"
#include "tools/basalt/figures.h"
#include "tools/basalt/map_arguments.h"
#include "tools/basalt/map_json.h"
#include "tools/basalt/record_printer.h"
#include "tools/basalt/text_format.h"

namespace basalt::tools {
namespace {

using MaybeView = SharedMap::MaybeView;

Result<std::string> KeyOf(const std::string& argument, bool base64) {
  Result<std::string> key = MeantBytes(argument, base64);
  if (!key || key->size() <= kMaxKeyBytes) return key;
  return Status(StatusCode::kInvalidArgument, "the key has " + FormatCount(key->size()) +
                                                  " bytes; the largest has " +
                                                  FormatCount(kMaxKeyBytes));
}

/// The bytes of all keys that a command line names.
Result<std::vector<std::string>> KeysOf(const std::string& first,
                                        const std::vector<std::string>& more, bool base64) {
  std::vector<std::string> keys;
  keys.reserve(1 + more.size());
  Result<std::string> key = KeyOf(first, base64);
  if (!key) return key.error();
  keys.push_back(std::move(*key));
  for (const std::string& argument : more) {
    key = KeyOf(argument, base64);
    if (!key) return key.error();
    keys.push_back(std::move(*key));
  }
  return keys;
}

/// Prints one value by itself, or records.
class ValuePrinter {
 public:
  ValuePrinter(OutputFormat format, bool alone, Output& out) : format_(format), out_(out) {
    const bool is_bytes = format == OutputFormat::kTable || format == OutputFormat::kRaw;
    if (!alone || !is_bytes) {
      records_.emplace(format, RecordPrinter::Columns::kKeyAndValue, out);
    }
  }

  void Print(std::string_view key, std::string_view value) {
    if (records_) {
      records_->Print(key, value);
      return;
    }
    out_.Write(value);
    if (format_ != OutputFormat::kRaw) out_.Write("\n");
  }

 private:
  OutputFormat format_;
  Output& out_;
  std::optional<RecordPrinter> records_;
};

ExitCode PrintAll(const MapGetOptions& options, const std::vector<std::string>& keys,
                  std::span<const Result<MaybeView>> results, Output& out) {
  ExitCode code = ExitCode::kOk;
  std::optional<ValuePrinter> printer;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!results[i]) return ReportMap(results[i].error());
    const MaybeView& value = *results[i];
    if (!value) {
      Complain("no key " + KeyText(keys[i]) + " in " + options.map);
      code = ExitCode::kAbsent;
      continue;
    }
    if (!printer) printer.emplace(options.output, keys.size() == 1, out);
    printer->Print(keys[i], value->view());
  }
  return code;
}

/// The map at `path`, to be written; a new one where there is none.
Result<std::unique_ptr<SharedMap>> OpenOrCreate(const std::string& path) {
  Result<std::unique_ptr<SharedMap>> map = SharedMap::Open(path);
  if (map || map.error().code() != StatusCode::kNotFound) return map;
  return SharedMap::Create(path);
}

Result<std::string> ValueOf(const MapPutOptions& options) {
  Result<std::string> value = options.value == "-" ? ReadValueFromStandardInput()
                                                   : MeantBytes(options.value, options.base64);
  if (!value || !options.json) return value;
  Result<std::string> compact = CompactJson(*value);
  if (compact) return compact;
  return Status(StatusCode::kInvalidArgument,
                "the value is " + std::string(compact.error().message()));
}

class RecordWriter {
 public:
  RecordWriter(bool csv, Output& out) : csv_(csv), out_(out) {
    if (csv_) out_.Write("key,value\n");
  }

  /// Cancelled: the output has no reader any more.
  Status Write(std::string_view key, std::string_view value) {
    line_.clear();
    if (csv_) {
      AppendCsvCell(key, line_);
      AppendCsvCell(value, line_ += ',');
      line_ += '\n';
    } else {
      AppendRecord(RecordFormat::kJson, key, value, line_);
    }
    if (out_.Write(line_)) return {};
    return {StatusCode::kCancelled, "standard output takes no more"};
  }

 private:
  bool csv_;
  Output& out_;
  std::string line_;
};

}  // namespace

ExitCode MapGet(const MapGetOptions& options, Output& out) {
  const Result<std::vector<std::string>> keys =
      KeysOf(options.first_key, options.more_keys, options.base64);
  if (!keys) return ReportMap(keys.error());
  const Status is_map = CheckMapPath(options.map, "`basalt get " + options.map + " KEY` reads it");
  if (!is_map.ok()) return ReportMap(is_map);
  const Result<std::unique_ptr<SharedMap>> map = SharedMap::Attach(options.map);
  if (!map) return ReportMapThatIsThere(map.error());
  Result<SharedMap::Reader> reader = (*map)->NewReader();
  if (!reader) return ReportMap(reader.error());
  const std::vector<std::string_view> views(keys->begin(), keys->end());
  std::vector<Result<MaybeView>> results(views.size());
  if (Status status = reader->MultiGet(views, results); !status.ok()) return ReportMap(status);
  return PrintAll(options, *keys, results, out);
}

ExitCode MapPut(const MapPutOptions& options, Output& /*out*/) {
  const Result<std::string> key = KeyOf(options.key, options.base64);
  if (!key) return ReportMap(key.error());
  const Status is_map =
      CheckMapPath(options.map, "`basalt put " + options.map + " KEY VALUE` writes to it");
  if (!is_map.ok()) return ReportMap(is_map);
  const Result<std::string> value = ValueOf(options);
  if (!value) return ReportMap(value.error());
  WriteBatch batch;  // Knows what is too large, before there is a map.
  batch.Put(*key, *value);
  if (!batch.status().ok()) return ReportMap(batch.status());
  const Result<std::unique_ptr<SharedMap>> map = OpenOrCreate(options.map);
  if (!map) return ReportMap(map.error());
  Status status = (*map)->Write(batch, options.write);
  if (status.ok()) status = (*map)->Close();
  return ReportMap(status);
}

ExitCode MapDelete(const MapDeleteOptions& options, Output& /*out*/) {
  const Result<std::vector<std::string>> keys =
      KeysOf(options.first_key, options.more_keys, options.base64);
  if (!keys) return ReportMap(keys.error());
  const Status is_map =
      CheckMapPath(options.map, "`basalt del " + options.map + " KEY` writes to it");
  if (!is_map.ok()) return ReportMap(is_map);
  WriteBatch batch;
  for (const std::string& key : *keys) batch.Delete(key);
  if (!batch.status().ok()) return ReportMap(batch.status());
  const Result<std::unique_ptr<SharedMap>> map = SharedMap::Open(options.map);
  if (!map) return ReportMapThatIsThere(map.error());
  Status status = (*map)->Write(batch, options.write);
  if (status.ok()) status = (*map)->Close();
  return ReportMap(status);
}

ExitCode MapExport(const MapExportOptions& options, Output& out) {
  const Status is_map =
      CheckMapPath(options.map, "`basalt dump " + options.map + "` prints what is in it");
  if (!is_map.ok()) return ReportMap(is_map);
  const Result<std::unique_ptr<SharedMap>> map = SharedMap::Attach(options.map);
  if (!map) return ReportMapThatIsThere(map.error());
  Result<SharedMap::Reader> reader = (*map)->NewReader();
  if (!reader) return ReportMap(reader.error());
  Result<SharedMap::Reader> snapshot = reader->GetSnapshot();
  if (!snapshot) return ReportMap(snapshot.error());
  RecordWriter writer(options.csv, out);
  const Status scanned = snapshot->ParallelScan(
      1, [&](std::string_view key, std::string_view value) { return writer.Write(key, value); });
  // The program reports what keeps standard output from being written.
  return scanned.code() == StatusCode::kCancelled ? ExitCode::kOk : ReportMap(scanned);
}

}  // namespace basalt::tools

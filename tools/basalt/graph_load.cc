// basalt graph load and add: what puts nodes and edges.

#include <optional>
#include <string_view>
#include <utility>

#include "tools/basalt/figures.h"
#include "tools/basalt/graph.h"
#include "tools/basalt/graph_csv.h"
#include "tools/basalt/graph_json.h"
#include "tools/basalt/line_reader.h"
#include "tools/basalt/map_csv.h"
#include "tools/basalt/open_graph.h"
#include "tools/basalt/progress.h"
#include "tools/basalt/text_format.h"

namespace basalt::tools {
namespace {

/// A batch ends after so many bytes of input, too: the smallest databases take no larger one.
constexpr uint64_t kBatchInputBytes = 64 << 10;

/// The items of a file, one by one.
class GraphFile {
 public:
  static Result<GraphFile> Open(const std::string& path, GraphFileFormat format) {
    GraphFile file;
    if (format == GraphFileFormat::kNdjson) {
      Result<LineReader> lines = LineReader::Open(path);
      if (!lines) return lines.error();
      file.lines_.emplace(*std::move(lines));
      return file;
    }
    Result<CsvReader> rows = CsvReader::Open(path);
    if (!rows) return rows.error();
    file.rows_.emplace(*std::move(rows));
    const Result<bool> has_header = file.NextRow();
    if (!has_header) return has_header.error();
    if (!*has_header) return Status(StatusCode::kInvalidArgument, path + " has no header");
    Result<GraphCsvColumns> columns = GraphCsvColumns::Parse(file.rows_->cells());
    if (!columns) return file.At(columns.error());
    file.columns_.emplace(*std::move(columns));
    return file;
  }

  /// False: there are no more.
  Result<bool> Next(GraphItem* item) {
    Result<bool> has_next = lines_ ? NextLine() : NextRow();
    if (!has_next || !*has_next) return has_next;
    Result<GraphItem> parsed = lines_ ? ParseGraphItem(line_) : columns_->Read(rows_->cells());
    if (!parsed) return At(parsed.error());
    *item = *std::move(parsed);
    return true;
  }

  /// "<file>:<line>" of the item.
  std::string position() const { return lines_ ? lines_->position() : rows_->position(); }
  uint64_t consumed_bytes() const {
    return lines_ ? lines_->consumed_bytes() : rows_->consumed_bytes();
  }
  uint64_t total_bytes() const { return lines_ ? lines_->total_bytes() : rows_->total_bytes(); }

 private:
  Status At(const Status& status) const {
    return Status(status.code(), position() + ": " + std::string(status.message()));
  }

  Result<bool> NextLine() {
    do {
      const Result<bool> has_line = lines_->Next(line_);
      if (!has_line || !*has_line) return has_line;
    } while (line_.empty() || line_ == "\r");
    return true;
  }

  Result<bool> NextRow() {
    const Result<CsvReader::Step> step = rows_->Next();
    if (!step) return step.error();
    if (*step == CsvReader::Step::kBadRow) {
      return At(Status(StatusCode::kInvalidArgument, rows_->fault()));
    }
    return *step == CsvReader::Step::kRow;
  }

  std::optional<LineReader> lines_{};
  std::string_view line_;
  std::optional<CsvReader> rows_{};
  std::optional<GraphCsvColumns> columns_{};
};

/// How often a batch is put anew after others have changed its nodes.
constexpr int kTriesMax = 32;

/// Puts items in batches of many.
class FileLoader {
 public:
  FileLoader(Graph* graph, const GraphLoadOptions& options)
      : loader_(graph, options.make_nodes), options_(options) {}

  Status LoadFile(const std::string& path, GraphFileFormat format) {
    Result<GraphFile> file = GraphFile::Open(path, format);
    if (!file) return file.error();
    Progress progress(ProgressStyleForStderr(options_.progress), "loading " + path,
                      file->total_bytes());
    uint64_t batch_begin = 0;
    for (bool has_more = true; has_more;) {
      GraphItem item;
      const Result<bool> next = file->Next(&item);
      if (!next) {
        const Status put = PutBatch();
        return put.ok() ? next.error() : put;
      }
      has_more = *next;
      if (has_more) {
        items_.push_back(std::move(item));
        positions_.push_back(file->position());
      }
      const bool is_full = items_.size() >= options_.batch_items ||
                           file->consumed_bytes() - batch_begin >= kBatchInputBytes;
      if (has_more && !is_full) continue;
      batch_begin = file->consumed_bytes();
      const Status put = PutBatch();
      if (!put.ok()) return put;
      progress.Update(file->consumed_bytes(), nodes_ + edges_);
    }
    return Status();
  }

  uint64_t nodes() const { return nodes_; }
  uint64_t edges() const { return edges_; }

 private:
  /// The items up to the first that cannot be put are put, too.
  Status PutBatch() {
    Status done(StatusCode::kAborted, {});
    Status fault;
    size_t count = 0;
    for (int i = 0; i < kTriesMax && done.code() == StatusCode::kAborted; ++i) {
      fault = Status();
      for (count = 0; count < items_.size() && fault.ok(); ++count) fault = PutItem(count);
      if (!fault.ok()) --count;
      done = loader_.Commit().status();
    }
    if (done.ok()) CountPut(count);
    items_.clear();
    positions_.clear();
    return done.ok() ? fault : done;
  }

  Status PutItem(size_t i) {
    const auto* const node = std::get_if<GraphNodeItem>(&items_[i]);
    const auto* const edge = std::get_if<GraphEdgeItem>(&items_[i]);
    Status put = node != nullptr ? loader_.PutNode(node->id, node->content)
                                 : loader_.PutEdge(edge->name(), edge->content);
    if (put.ok()) return put;
    return Status(put.code(), positions_[i] + ": " + std::string(put.message()));
  }

  void CountPut(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      ++(std::holds_alternative<GraphNodeItem>(items_[i]) ? nodes_ : edges_);
    }
  }

  GraphLoader loader_;
  const GraphLoadOptions& options_;
  std::vector<GraphItem> items_;
  std::vector<std::string> positions_;
  uint64_t nodes_ = 0;
  uint64_t edges_ = 0;
};

std::string LoadedText(const FileLoader& loader) {
  return FormatCount(loader.nodes()) + " nodes and " + FormatCount(loader.edges()) + " edges";
}

}  // namespace

ExitCode GraphLoad(const GraphLoadOptions& options, Output& out) {
  const Result<OpenGraph> open =
      OpenGraphToWrite(options.path, options.graph, options.memory_budget);
  if (!open) return Report(open.error());
  FileLoader loader(open->graph.get(), options);
  const Progress clock(ProgressStyle::kSilent, "", 0);
  std::vector<std::string> inputs = options.inputs;
  if (inputs.empty()) inputs.emplace_back("-");
  for (const std::string& input : inputs) {
    const GraphFileFormat by_name =
        input.ends_with(".csv") ? GraphFileFormat::kCsv : GraphFileFormat::kNdjson;
    const Status loaded = loader.LoadFile(input, options.format.value_or(by_name));
    if (loaded.ok()) continue;
    if (loader.nodes() + loader.edges() > 0) {
      Complain(LoadedText(loader) + " before it were loaded");
    }
    (void)ReportPlainly(loaded);
    // An edge whose ends are absent is a fault of the input.
    return loaded.code() == StatusCode::kNotFound ? ExitCode::kUsage : ExitCodeFor(loaded.code());
  }
  if (const Status synced = open->store->Sync(); !synced.ok()) return Report(synced);
  const double seconds = clock.seconds();
  out.Write("loaded " + LoadedText(loader) + " in " + FormatSeconds(seconds) + " (" +
            FormatCount(PerSecond(loader.nodes() + loader.edges(), seconds)) + " a second)\n");
  return ExitCode::kOk;
}

ExitCode GraphAdd(const GraphAddOptions& options, Output& out) {
  Properties properties;
  for (const std::string& assignment : options.set) {
    const size_t equals = assignment.find('=');
    if (equals == std::string::npos) {
      return ReportPlainly(Status(StatusCode::kInvalidArgument,
                                  "--set needs NAME=VALUE, not " + KeyText(assignment)));
    }
    properties[assignment.substr(0, equals)] =
        ParsePropertyArgument(std::string_view(assignment).substr(equals + 1));
  }
  const Result<OpenGraph> open = OpenGraphToWrite(options.path, options.graph);
  if (!open) return Report(open.error());
  if (!options.type || !options.to) {
    const Status put =
        open->graph->PutNode(options.id, {.labels = options.labels, .properties = properties})
            .status();
    if (put.ok()) out.Write("put node " + ToText(options.id) + "\n");
    return Report(put);
  }
  const Status put = open->graph->PutEdge({.from = options.id,
                                           .type = *options.type,
                                           .to = *options.to,
                                           .discriminator = options.discriminator},
                                          {.weight = options.weight, .properties = properties});
  if (put.code() == StatusCode::kNotFound) {
    (void)ReportPlainly(put);
    return ExitCode::kAbsent;
  }
  if (put.ok()) {
    out.Write("put edge " + ToText(options.id) + " -[" + ToText(*options.type) + "]-> " +
              ToText(*options.to) + "\n");
  }
  return Report(put);
}

}  // namespace basalt::tools

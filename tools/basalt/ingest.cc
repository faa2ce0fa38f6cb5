#include <boost/json.hpp>
#include <filesystem>
#include <string_view>
#include <utility>

#include "tools/basalt/figures.h"
#include "tools/basalt/line_reader.h"
#include "tools/basalt/open_corpus.h"
#include "tools/basalt/open_store.h"
#include "tools/basalt/progress.h"
#include "tools/basalt/retrieval.h"

namespace basalt::tools {
namespace {

namespace fs = std::filesystem;

/// What has come of the documents so far.
struct Ingested {
  uint64_t documents = 0;
  uint64_t passages = 0;
  uint64_t bytes_of_files_done = 0;
};

/// A heading of Markdown before any other text; else nothing.
std::string FirstHeading(std::string_view text) {
  text = WithoutByteOrderMark(text);
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || text.substr(begin, 2) != "# ") return {};
  std::string_view line = text.substr(begin + 2);
  line = line.substr(0, line.find('\n'));
  const size_t first = line.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return std::string(line.substr(first, line.find_last_not_of(" \r#") + 1 - first));
}

/// The whole file as a document. Its text is the file's bytes, so that spans are offsets into it.
Result<basalt::Document> ReadDocument(const std::string& file, Progress& progress, uint64_t done) {
  Result<LineReader> input = LineReader::Open(file, ByteOrderMark::kKeep);
  if (!input) return input.error();
  basalt::Document document{.source = file};
  std::string_view line;
  while (true) {
    const Result<bool> more = input->Next(line);
    if (!more) return more.error();
    if (!*more) break;
    document.text.append(line);
    if (document.text.size() < input->consumed_bytes()) document.text += '\n';
    progress.Update(done + input->consumed_bytes(), 0);
  }
  document.title = FirstHeading(document.text);
  if (document.title.empty()) document.title = fs::path(file).stem().string();
  return document;
}

/// A member of a document in JSON. Nothing: it is absent, or no string.
std::optional<std::string> StringMember(const boost::json::object& object, std::string_view name) {
  const boost::json::value* member = object.if_contains(name);
  if (member == nullptr || !member->is_string()) return std::nullopt;
  return std::string(member->get_string());
}

Result<basalt::Document> ParseDocument(std::string_view line) {
  const auto fault = [](const std::string& what) {
    return Status(StatusCode::kInvalidArgument, what);
  };
  boost::json::error_code error;
  const boost::json::value value = boost::json::parse(line, error);
  if (error) return fault("not JSON: " + error.message());
  if (!value.is_object()) return fault("not an object of JSON");
  const boost::json::object& object = value.get_object();
  const auto source = StringMember(object, "source");
  const auto text = StringMember(object, "text");
  if (!source) return fault("\"source\" is not a string");
  if (!text) return fault("\"text\" is not a string");
  const auto title = StringMember(object, "title");
  if (!title && object.contains("title")) return fault("\"title\" is not a string");
  return basalt::Document{.source = *source, .title = title.value_or(""), .text = *text};
}

Status Add(Corpus& corpus, const basalt::Document& document, const std::string& position,
           Ingested* ingested) {
  const Result<IngestResult> added = corpus.IngestText(document);
  if (!added) {
    return Status(added.error().code(), position + ": " + std::string(added.error().message()));
  }
  ++ingested->documents;
  ingested->passages += added->passages;
  return {};
}

Status AddLines(Corpus& corpus, const std::string& file, Progress& progress, Ingested* ingested) {
  Result<LineReader> input = LineReader::Open(file);
  if (!input) return input.error();
  std::string_view line;
  while (true) {
    const Result<bool> more = input->Next(line);
    if (!more) return more.error();
    if (!*more) return {};
    if (line.empty() || line == "\r") continue;
    const Result<basalt::Document> document = ParseDocument(line);
    if (!document) {
      return Status(StatusCode::kInvalidArgument,
                    input->position() + ": " + std::string(document.error().message()));
    }
    if (Status s = Add(corpus, *document, input->position(), ingested); !s.ok()) return s;
    progress.Update(ingested->bytes_of_files_done + input->consumed_bytes(), ingested->documents);
  }
}

uint64_t BytesOf(const std::string& file) {
  std::error_code error;
  const uintmax_t bytes = file == "-" ? 0 : fs::file_size(file, error);
  return error ? 0 : static_cast<uint64_t>(bytes);
}

Status AddFiles(Corpus& corpus, const IngestOptions& options, Progress& progress,
                Ingested* ingested) {
  for (const std::string& file : options.files) {
    if (options.json || file.ends_with(".ndjson") || file.ends_with(".jsonl")) {
      if (Status s = AddLines(corpus, file, progress, ingested); !s.ok()) return s;
    } else {
      const Result<basalt::Document> document =
          ReadDocument(file, progress, ingested->bytes_of_files_done);
      if (!document) return document.error();
      if (Status s = Add(corpus, *document, file, ingested); !s.ok()) return s;
    }
    ingested->bytes_of_files_done += BytesOf(file);
    progress.Update(ingested->bytes_of_files_done, ingested->documents);
  }
  return {};
}

std::string Counts(const Ingested& ingested) {
  return FormatCount(ingested.documents) + " documents, " + FormatCount(ingested.passages) +
         " passages";
}

}  // namespace

ExitCode Ingest(const IngestOptions& options, Output& out) {
  const Result<std::unique_ptr<Store>> store =
      OpenStoreToWrite(options.path, {.memory_budget = options.memory_budget});
  if (!store) return Report(store.error());
  Result<OpenedCorpus> opened =
      OpenCorpus(store->get(), options.corpus, CorpusUse::kIngest, options.stemmer);
  if (!opened) return Report(opened.error());
  uint64_t total_bytes = 0;
  for (const std::string& file : options.files) total_bytes += BytesOf(file);
  Ingested ingested;
  Status stopped;
  double seconds = 0;
  {
    Progress progress(ProgressStyleForStderr(options.progress), "ingesting", total_bytes);
    stopped = AddFiles(*opened->corpus, options, progress, &ingested);
    *opened = {};
    const Status closed = CloseStore(store->get());
    if (stopped.ok()) stopped = closed;
    seconds = progress.seconds();
  }
  if (stopped.ok()) {
    out.Write("ingested " + Counts(ingested) + ", in " + FormatSeconds(seconds) + " (" +
              FormatCount(PerSecond(ingested.passages, seconds)) + " passages/s)\n");
    return ExitCode::kOk;
  }
  const ExitCode code = Report(stopped);
  Complain(Counts(ingested) + " before that are in " + options.path + "; nothing that follows is");
  return code;
}

ExitCode Forget(const ForgetOptions& options, Output& out) {
  const Result<std::unique_ptr<Store>> store =
      OpenStoreToWrite(options.path, {.create_if_missing = false});
  if (!store) return Report(store.error());
  Result<OpenedCorpus> opened = OpenCorpus(store->get(), options.corpus, CorpusUse::kForget);
  if (!opened) return Report(opened.error());
  uint64_t forgotten = 0;
  for (const std::string& source : options.sources) {
    const Result<bool> was_there = opened->corpus->Forget(source);
    if (!was_there) return Report(was_there.error());
    forgotten += *was_there ? 1 : 0;
  }
  *opened = {};
  if (Status closed = CloseStore(store->get()); !closed.ok()) return Report(closed);
  out.Write("forgot " + FormatCount(forgotten) + " documents\n");
  return forgotten == options.sources.size() ? ExitCode::kOk : ExitCode::kAbsent;
}

}  // namespace basalt::tools

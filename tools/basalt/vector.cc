#include "tools/basalt/vector.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/vector_index.h"
#include "base/random.h"
#include "tools/basalt/document.h"
#include "tools/basalt/figures.h"
#include "tools/basalt/open_store.h"
#include "tools/basalt/progress.h"

namespace basalt::tools {
namespace {

constexpr size_t kBatchVectors = 256;

std::string_view MetricName(VectorMetric metric) {
  switch (metric) {
    case VectorMetric::kL2:
      return "l2";
    case VectorMetric::kInnerProduct:
      return "ip";
    case VectorMetric::kCosine:
      return "cosine";
    case VectorMetric::kHamming:
      break;
  }
  return "hamming";
}

boost::json::object AttributesDocument(const Attributes& attributes) {
  boost::json::object object;
  for (const auto& [name, value] : attributes) {
    std::visit(
        [&object, &key = name]<class T>(const T& one) {
          if constexpr (std::is_same_v<T, std::string>) {
            object[key] = BytesValue(one);
          } else {
            object[key] = one;
          }
        },
        value);
  }
  return object;
}

/// An index, and the database that it is in.
struct OpenIndex {
  std::unique_ptr<Store> store;
  std::unique_ptr<VectorIndex> index;
};

Result<OpenIndex> OpenIn(Result<std::unique_ptr<Store>> store, const std::string& name,
                         bool progress) {
  if (!store) return store.error();
  VectorIndexOptions options;
  Progress bar(ProgressStyleForStderr(progress), "opening " + name, 0);
  bar.BeginStage("opening " + name, ProgressUnit::kKeys, 0, 0);
  options.on_progress = [&bar](uint64_t read, uint64_t) { bar.Update(read, 0); };
  Result<std::unique_ptr<VectorIndex>> index = VectorIndex::Open(store->get(), name, options);
  if (!index) return index.error();
  return OpenIndex{*std::move(store), *std::move(index)};
}

Status ImportInto(VectorIndex* index, const VectorImportOptions& options, uint64_t* count) {
  Result<VectorFile> file = VectorFile::Open(
      options.input, options.format.value_or(FormatOfFile(options.input)), options.id_prefix);
  if (!file) return file.error();
  Progress progress(ProgressStyleForStderr(options.progress), "importing", file->total_bytes());
  std::vector<VectorItem> items;
  bool has_more = true;
  while (has_more) {
    VectorItem item;
    const Result<bool> next = file->Next(&item);
    if (!next) return next.error();
    has_more = *next;
    if (has_more) items.push_back(std::move(item));
    if (items.empty() || (has_more && items.size() < kBatchVectors)) continue;
    if (Result<Commit> added = index->AddBatch(items); !added) {
      return Status(added.code(), options.input + ": " + std::string(added.error().message()));
    }
    *count += items.size();
    items.clear();
    progress.Update(file->consumed_bytes(), *count);
  }
  return Status();
}

Result<std::vector<float>> QueryOf(const VectorIndex& index,
                                   const VectorSearchVerbOptions& options) {
  if (options.vector) return ParseVectorText(*options.vector);
  const auto item = index.Get(options.id.value_or(""));
  if (!item) return item.error();
  if (!*item) {
    return Status(StatusCode::kNotFound, "there is no vector '" + options.id.value_or("") + "'");
  }
  return (*item)->vector;
}

void PrintHits(const VectorSearchResult& result, OutputFormat format, Output& out) {
  for (const VectorHit& hit : result.hits) {
    const Document document = {{"id", BytesValue(hit.id)},
                               {"distance", hit.distance},
                               {"score", hit.score},
                               {"attributes", AttributesDocument(hit.attributes)}};
    if (format == OutputFormat::kJson) {
      out.Write(JsonLine(document));
    } else {
      out.Write(FormatDecimal(hit.distance, 6) + "\t" + LeafText(document.at("id")) + "\t" +
                boost::json::serialize(document.at("attributes")) + "\n");
    }
  }
}

/// `count` vectors, each as likely as any other.
Result<std::vector<VectorItem>> SampleOf(const VectorIndex& index, uint64_t count) {
  base::Random random(1);
  std::vector<VectorItem> sample;
  uint64_t seen = 0;
  const Status status = index.ForEach([&](const VectorItem& item) {
    ++seen;
    if (sample.size() < count) {
      sample.push_back(item);
    } else if (const uint64_t place = random.Below(seen); place < count) {
      sample[place] = item;
    }
    return Status();
  });
  if (!status.ok()) return status;
  return sample;
}

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

struct RecallFigures {
  uint64_t found = 0;
  uint64_t wanted = 0;
  double seconds = 0;
  double exact_seconds = 0;
};

Status MeasureOne(const VectorIndex& index, const VectorItem& query,
                  const VectorRecallOptions& options, RecallFigures* figures) {
  VectorSearchOptions search;
  search.k = options.k + 1;  // The vector itself is no finding.
  search.recall = options.recall;
  const auto begin = std::chrono::steady_clock::now();
  const auto fast = index.Search(query.vector, search);
  figures->seconds += SecondsSince(begin);
  search.exact = true;
  const auto exact_begin = std::chrono::steady_clock::now();
  const auto exact = index.Search(query.vector, search);
  figures->exact_seconds += SecondsSince(exact_begin);
  if (!fast) return fast.error();
  if (!exact) return exact.error();
  if (exact->hits.empty()) return Status();
  // Any vector that is no farther than the last of the true nearest is as good as it.
  const float bound = exact->hits.back().distance;
  const auto is_found = [&](const VectorHit& hit) {
    return hit.id != query.id && hit.distance <= bound;
  };
  const auto is_other = [&](const VectorHit& hit) { return hit.id != query.id; };
  const auto wanted = static_cast<uint64_t>(std::ranges::count_if(exact->hits, is_other));
  figures->wanted += wanted;
  figures->found +=
      std::min(wanted, static_cast<uint64_t>(std::ranges::count_if(fast->hits, is_found)));
  return Status();
}

/// A document for people, or as it is asked for.
void PrintDocument(const Document& document, OutputFormat format, Output& out) {
  if (format != OutputFormat::kTable) {
    out.Write(Rendered(format, document));
    return;
  }
  for (const auto& member : document) {
    out.Write(Row(Left(member.key(), 24), LeafText(member.value())));
  }
}

}  // namespace

ExitCode VectorCreate(const VectorCreateOptions& options, Output& out) {
  const Result<std::unique_ptr<Store>> store = OpenStoreToWrite(options.path, {});
  if (!store) return Report(store.error());
  const auto index = VectorIndex::Create(
      store->get(), options.name,
      {.dimension = options.dimension, .metric = options.metric, .model = options.model});
  if (!index) return Report(index.error());
  out.Write("created " + options.name + ": dimension " + std::to_string(options.dimension) + ", " +
            std::string(MetricName(options.metric)) + "\n");
  return ExitCode::kOk;
}

ExitCode VectorImport(const VectorImportOptions& options, Output& out) {
  const auto begin = std::chrono::steady_clock::now();
  const Result<OpenIndex> open = OpenIn(
      OpenStoreToWrite(options.path, {.create_if_missing = false}), options.name, options.progress);
  if (!open) return Report(open.error());
  uint64_t count = 0;
  Status status = ImportInto(open->index.get(), options, &count);
  if (status.ok()) status = open->index->Compact();
  if (status.ok()) status = open->index->SaveCheckpoint();
  if (!status.ok()) {
    if (count != 0) Complain(FormatCount(count) + " vectors before it were imported");
    return Report(status);
  }
  const double seconds = SecondsSince(begin);
  out.Write("imported " + FormatCount(count) + " vectors in " + FormatSeconds(seconds) + " (" +
            FormatCount(PerSecond(count, seconds)) + " a second)\n");
  return ExitCode::kOk;
}

ExitCode VectorSearchVerb(const VectorSearchVerbOptions& options, Output& out) {
  VectorSearchOptions search;
  search.k = options.k;
  search.max_distance = options.max_distance;
  search.recall = options.recall;
  search.exact = options.exact;
  search.with_attributes = true;
  if (!options.filter.empty()) {
    Result<VectorFilter> filter = VectorFilter::Parse(options.filter);
    if (!filter) return Report(filter.error());
    search.filter = *std::move(filter);
  }
  const Result<OpenIndex> open =
      OpenIn(OpenStoreToRead(options.path, options.access), options.name, false);
  if (!open) return Report(open.error());
  const Result<std::vector<float>> query = QueryOf(*open->index, options);
  if (!query) {
    (void)Report(query.error());
    return query.code() == StatusCode::kNotFound ? ExitCode::kAbsent : ExitCodeFor(query.code());
  }
  const Result<VectorSearchResult> found = open->index->Search(*query, search);
  if (!found) return Report(found.error());
  PrintHits(*found, options.output, out);
  if (options.explain) {
    Complain("searched by " + std::string(VectorSearchPathName(found->plan.path)) + ": " +
             FormatCount(found->plan.codes_compared) + " codes and " +
             FormatCount(found->plan.vectors_compared) + " vectors compared");
  }
  return ExitCode::kOk;
}

ExitCode VectorRecall(const VectorRecallOptions& options, Output& out) {
  const Result<OpenIndex> open =
      OpenIn(OpenStoreToRead(options.path, options.access), options.name, options.progress);
  if (!open) return Report(open.error());
  const Result<std::vector<VectorItem>> sample = SampleOf(*open->index, options.queries);
  if (!sample) return Report(sample.error());
  Progress progress(ProgressStyleForStderr(options.progress), "searching", 0);
  progress.BeginStage("searching", ProgressUnit::kCalls, 0, sample->size());
  RecallFigures figures;
  uint64_t done = 0;
  for (const VectorItem& query : *sample) {
    const Status status = MeasureOne(*open->index, query, options, &figures);
    if (!status.ok()) return Report(status);
    progress.Update(++done, 0);
  }
  const auto per_query_us = [&](double seconds) {
    return DecimalValue(seconds * 1e6 / static_cast<double>(std::max<size_t>(sample->size(), 1)),
                        1);
  };
  PrintDocument(
      {{"queries", sample->size()},
       {"k", options.k},
       {"recall", DecimalValue(figures.wanted == 0 ? 1
                                                   : static_cast<double>(figures.found) /
                                                         static_cast<double>(figures.wanted),
                               4)},
       {"search_us", per_query_us(figures.seconds)},
       {"exact_search_us", per_query_us(figures.exact_seconds)}},
      options.output, out);
  return ExitCode::kOk;
}

ExitCode VectorStat(const VectorStatOptions& options, Output& out) {
  const Result<OpenIndex> open =
      OpenIn(OpenStoreToRead(options.path, options.access), options.name, false);
  if (!open) return Report(open.error());
  const VectorIndex& index = *open->index;
  const VectorIndexStats stats = index.Stats();
  PrintDocument({{"dimension", index.dimension()},
                 {"metric", MetricName(index.metric())},
                 {"model", BytesValue(index.model())},
                 {"vectors", stats.vectors},
                 {"linked", stats.linked},
                 {"removed", stats.removed},
                 {"unreadable", stats.unreadable},
                 {"memory_bytes", stats.memory_bytes},
                 {"from_checkpoint", stats.from_checkpoint}},
                options.output, out);
  return ExitCode::kOk;
}

}  // namespace basalt::tools

#include "tools/basalt/map_bench.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <latch>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "base/hash.h"
#include "base/random.h"
#include "tools/basalt/document.h"
#include "tools/basalt/document_line.h"
#include "tools/basalt/figures.h"
#include "tools/basalt/map_arguments.h"
#include "tools/basalt/progress.h"
#include "tools/basalt/workload.h"
#include "tools/workload/compressible_values.h"
#include "tools/workload/number_key.h"

namespace basalt::tools {
namespace {

using workload::NumberKey;

using Clock = std::chrono::steady_clock;
using MaybeView = SharedMap::MaybeView;

/// A record of its own says that a bench has made a map, and may replace it.
constexpr std::string_view kMapMarkerKey = "basalt map bench";
constexpr std::string_view kMarkerValue =
    "`basalt map bench` has made this map and may replace it.";

constexpr size_t kBatchKeys = 64;
/// A thread makes at most so many keys before the clock runs, and goes round them.
constexpr uint64_t kKeysMax = 1 << 20;

/// One kind of lookups.
struct Lookups {
  std::string_view name;
  bool present;       ///< Keys that are there, or others.
  size_t batch_keys;  ///< Keys of a call; the last may have fewer.
};
constexpr std::array<Lookups, 3> kLookups = {{
    {"get", true, 1},
    {"getmissing", false, 1},
    {"multiget64", true, kBatchKeys},
}};

/// How one kind went.
struct Figures {
  std::string_view name;
  uint32_t threads = 1;
  WorkloadCounts counts;  ///< Latencies are of a run of their own.
};

/// The compiler must load what is there.
void Touch(std::string_view value) noexcept {
  if (value.empty()) return;
  asm volatile("" : : "r"(value.front()), "r"(value.back()));
}

/// What one thread looks up.
class LookupThread {
 public:
  LookupThread(SharedMap::Reader reader, const Lookups& lookups, const MapBenchOptions& options,
               uint64_t seed, uint64_t count)
      : reader_(std::move(reader)), batch_keys_(lookups.batch_keys), count_(count) {
    base::Random random(seed);
    const uint64_t first = lookups.present ? 0 : options.num;
    const uint64_t keys =
        base::RoundUp(std::min(std::max(count, uint64_t{1}), kKeysMax), kBatchKeys);
    for (uint64_t i = 0; i < keys; ++i) keys_.emplace_back(first + random.Below(options.num));
    results_.resize(batch_keys_);
    batch_.resize(batch_keys_);
  }

  /// All lookups, timed as one.
  Status Run(WorkloadCounts& counts) {
    counts.begin = Clock::now();
    for (uint64_t done = 0; done < count_; done += batch_keys_) {
      if (Status status = Call(done, counts); !status.ok()) return status;
    }
    counts.end = Clock::now();
    return {};
  }

  /// The same, each call timed.
  Status RunTimed(base::Histogram& latency_ns) {
    WorkloadCounts not_reported;
    for (uint64_t done = 0; done < count_; done += batch_keys_) {
      const Clock::time_point begin = Clock::now();
      if (Status status = Call(done, not_reported); !status.ok()) return status;
      const std::chrono::nanoseconds took = Clock::now() - begin;
      latency_ns.Record(static_cast<uint64_t>(took.count()));
    }
    return {};
  }

 private:
  Status Call(uint64_t done, WorkloadCounts& counts) {
    const NumberKey* const keys = &keys_[done % keys_.size()];
    if (batch_keys_ == 1) return Take(reader_.Get(keys->view()), counts);
    const size_t batch = std::min<uint64_t>(batch_keys_, count_ - done);
    for (size_t i = 0; i < batch; ++i) batch_[i] = keys[i].view();
    Status status =
        reader_.MultiGet(std::span(batch_).first(batch), std::span(results_).first(batch));
    for (size_t i = 0; i < batch && status.ok(); ++i) status = Take(results_[i], counts);
    return status;
  }

  static Status Take(const Result<MaybeView>& result, WorkloadCounts& counts) {
    if (!result) return result.error();
    ++counts.operations;
    ++counts.lookups;
    if (!*result) return {};
    const std::string_view value = (*result)->view();
    Touch(value);
    ++counts.found;
    counts.bytes += NumberKey::kBytes + value.size();
    return {};
  }

  SharedMap::Reader reader_;
  size_t batch_keys_;
  uint64_t count_;
  std::vector<NumberKey> keys_;
  std::vector<std::string_view> batch_;
  std::vector<Result<MaybeView>> results_;
};

/// Runs one kind of lookups on all threads, which begin together, first untimed and then timed.
Result<Figures> RunLookups(const SharedMap& map, const Lookups& lookups,
                           const MapBenchOptions& options) {
  struct End {
    WorkloadCounts counts;
    Status status;
  };
  const uint64_t reads = options.reads == 0 ? options.num : options.reads;
  std::vector<End> ends(options.threads);
  std::latch ready(options.threads);
  std::latch run(options.threads);
  const auto work = [&](uint64_t thread) {
    End& end = ends[thread];
    std::optional<LookupThread> mine;
    try {
      const uint64_t count =
          reads * (thread + 1) / options.threads - reads * thread / options.threads;
      Result<SharedMap::Reader> reader = map.NewReader();
      end.status = reader.status();
      if (reader) {
        mine.emplace(std::move(*reader), lookups, options,
                     base::Hash(lookups.name, options.seed + thread), count);
      }
    } catch (const std::bad_alloc&) {
      end.status = Status(StatusCode::kResourceExhausted, "out of memory for keys");
    }
    ready.arrive_and_wait();
    if (mine) end.status = mine->Run(end.counts);
    run.arrive_and_wait();
    if (mine && end.status.ok()) end.status = mine->RunTimed(end.counts.latency_ns);
  };
  {
    std::vector<std::jthread> threads;
    for (uint64_t i = 0; i < options.threads; ++i) threads.emplace_back(work, i);
  }
  Figures figures{.name = lookups.name, .threads = options.threads, .counts = {}};
  for (const End& end : ends) {
    if (!end.status.ok()) return end.status;
    figures.counts.Merge(end.counts);
  }
  return figures;
}

/// AlreadyExists: there is a map that no bench has made.
Status CheckMayReplace(const std::string& path) {
  if (path == ":memory:") return {};
  Status is_map = CheckMapPath(path, "`basalt bench " + path + "` measures databases");
  if (!is_map.ok()) return is_map;
  const Result<std::unique_ptr<SharedMap>> map = SharedMap::Attach(path);
  if (!map) return map.error().code() == StatusCode::kNotFound ? Status() : map.error();
  Result<SharedMap::Reader> reader = (*map)->NewReader();
  if (!reader) return reader.error();
  const Result<MaybeView> marker = reader->Get(kMapMarkerKey);
  if (!marker) return marker.error();
  if (*marker && **marker == kMarkerValue) return {};
  return {StatusCode::kAlreadyExists,
          path + " holds a map that `basalt map bench` has not made: name another directory"};
}

struct BuiltMap {
  std::unique_ptr<SharedMap> map;
  SharedMapStats stats;
  Figures figures;
};

Result<BuiltMap> BuildMap(const MapBenchOptions& options) {
  Progress progress(ProgressStyleForStderr(options.progress), "", 0);
  BuiltMap built{.map = {}, .stats = {}, .figures = {.name = "build", .counts = {}}};
  WorkloadCounts& counts = built.figures.counts;
  const workload::CompressibleValues values(options.seed, options.value_bytes);
  counts.begin = Clock::now();
  const Result<std::unique_ptr<SharedMapBuilder>> builder =
      SharedMapBuilder::Create(options.map, {.overwrite = true, .layout = options.layout});
  if (!builder) return builder.error();
  progress.BeginStage("adding", ProgressUnit::kKeys, 0, options.num);
  for (uint64_t i = 0; i < options.num; ++i) {
    const NumberKey key(i);
    Status added = (*builder)->Add(key.view(), values.At(i));
    if (!added.ok()) return added;
    if (i % 1024 == 0) progress.Update(i, 0);
  }
  Status marked = (*builder)->Add(kMapMarkerKey, kMarkerValue);
  if (!marked.ok()) return marked;
  progress.BeginStage("building", ProgressUnit::kKeys, 0, options.num);
  Result<std::unique_ptr<SharedMap>> map = (*builder)->Finish([&](const SharedMapProgress& at) {
    progress.set_total_bytes(at.total_records);
    progress.Update(at.done_records, 0);
    return true;
  });
  if (!map) return map.error();
  counts.end = Clock::now();
  counts.operations = options.num;
  counts.bytes = options.num * (NumberKey::kBytes + options.value_bytes);
  Result<SharedMapStats> stats = (*map)->GetStats();
  if (!stats) return stats.error();
  built.stats = std::move(*stats);
  built.map = std::move(*map);
  return built;
}

/// The names are the columns of csv.
Document FiguresDocument(const Figures& figures, const MapBenchOptions& options,
                         const SharedMapStats& stats) {
  const WorkloadCounts& counts = figures.counts;
  const auto operations = static_cast<double>(counts.operations);
  const double seconds = counts.seconds();
  return {{"workload", figures.name},
          {"threads", figures.threads},
          {"operations", counts.operations},
          {"seconds", DecimalValue(seconds, 6)},
          {"ops_per_s", DecimalValue(seconds > 0 ? operations / seconds : 0, 1)},
          {"mb_per_s",
           DecimalValue(seconds > 0 ? static_cast<double>(counts.bytes) / 1e6 / seconds : 0, 3)},
          {"ns_per_op",
           DecimalValue(operations > 0 ? 1e9 * seconds * figures.threads / operations : 0, 2)},
          {"timed_calls", counts.latency_ns.count()},
          {"p50_ns", counts.latency_ns.Percentile(50)},
          {"p99_ns", counts.latency_ns.Percentile(99)},
          {"p999_ns", counts.latency_ns.Percentile(99.9)},
          {"max_ns", counts.latency_ns.max()},
          {"lookups", counts.lookups},
          {"found", counts.found},
          {"num", options.num},
          {"value_bytes", options.value_bytes},
          {"layout", LayoutText(stats)},
          {"base_bytes", stats.base_bytes},
          {"function_bytes", stats.function_bytes},
          {"seed", options.seed}};
}

/// Prints figures, a line each, as they come.
class MapReport {
 public:
  MapReport(const MapBenchOptions& options, const SharedMapStats& stats, Output& out)
      : options_(options), stats_(stats), out_(out) {
    if (options_.output == OutputFormat::kTable) out_.Write(Heading());
  }

  void Add(const Figures& figures) {
    const Document document = FiguresDocument(figures, options_, stats_);
    switch (options_.output) {
      case OutputFormat::kTable:
        out_.Write(TableLine(document));
        break;
      case OutputFormat::kCsv:
        if (!std::exchange(has_names_, true)) out_.Write(CsvNameLine(document));
        out_.Write(CsvLine(document));
        break;
      case OutputFormat::kJson:
        out_.Write(JsonLine(document));
        break;
      case OutputFormat::kRaw:
        out_.Write(RawLine(document));
        break;
    }
  }

 private:
  std::string Heading() const {
    return FormatCount(options_.num) + " records, values of " + FormatCount(options_.value_bytes) +
           " bytes, layout " + LayoutText(stats_) + ", " + FormatBytes(stats_.base_bytes) + ", " +
           std::to_string(options_.threads) + (options_.threads == 1 ? " thread" : " threads") +
           "; times in ns\n\n" + Left("workload", 12) + Right("ops/s", 14) + Right("MB/s", 10) +
           Right("ns/op", 11) + Right("p50", 9) + Right("p99", 9) + Right("p99.9", 10) +
           Right("max", 12) + "  found\n";
  }

  static std::string TableLine(const Document& document) {
    const auto number = [&](const char* name) { return document.at(name).to_number<double>(); };
    const auto whole = [&](const char* name) {
      return FormatCount(static_cast<uint64_t>(std::llround(number(name))));
    };
    const bool is_timed = number("timed_calls") > 0;
    const auto latency = [&](const char* name, size_t width) {
      return Right(is_timed ? whole(name) : "-", width);
    };
    std::string line = Left(LeafText(document.at("workload")), 12) + Right(whole("ops_per_s"), 14) +
                       Right(FormatDecimal(number("mb_per_s"), 1), 10) +
                       Right(FormatDecimal(number("ns_per_op"), 1), 11);
    line += latency("p50_ns", 9) + latency("p99_ns", 9) + latency("p999_ns", 10) +
            latency("max_ns", 12);
    if (number("lookups") > 0) line += "  " + whole("found") + " of " + whole("lookups");
    return line + "\n";
  }

  const MapBenchOptions& options_;
  const SharedMapStats& stats_;
  Output& out_;
  bool has_names_ = false;
};

Status RunBench(const MapBenchOptions& options, Output& out) {
  if (Status refused = CheckMayReplace(options.map); !refused.ok()) return refused;
  const Result<BuiltMap> built = BuildMap(options);
  if (!built) return built.error();
  MapReport report(options, built->stats, out);
  report.Add(built->figures);
  for (const Lookups& lookups : kLookups) {
    if (Status written = out.Flush(); !written.ok()) return written;
    const Result<Figures> figures = RunLookups(*built->map, lookups, options);
    if (!figures) return figures.error();
    report.Add(*figures);
  }
  return built->map->Close();
}

}  // namespace

ExitCode MapBench(const MapBenchOptions& options, Output& out) {
  return ReportMap(RunBench(options, out));
}

}  // namespace basalt::tools

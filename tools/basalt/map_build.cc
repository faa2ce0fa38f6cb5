#include "tools/basalt/map_build.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/basalt/figures.h"
#include "tools/basalt/map_arguments.h"
#include "tools/basalt/map_json.h"
#include "tools/basalt/progress.h"

namespace basalt::tools {
namespace {

/// The number of skipped lines that are shown.
constexpr size_t kShownMax = 10;

Result<std::unique_ptr<RecordSource>> OpenSource(const MapBuildOptions& options) {
  if (options.range.path.empty()) {
    return options.csv ? OpenCsv(options.input, options.columns) : OpenJsonLines(options.input);
  }
  DatabaseRange range = options.range;
  for (std::optional<std::string>* bound : {&range.prefix, &range.from, &range.to}) {
    if (!bound->has_value()) continue;
    Result<std::string> bytes = MeantBytes(**bound, options.base64);
    if (!bytes) return bytes.error();
    *bound = std::move(*bytes);
  }
  return OpenDatabaseRange(range);
}

/// One run of `map build`.
class Build {
 public:
  explicit Build(const MapBuildOptions& options) : options_(options) {}

  /// Ok: the map is there, whole and durable, and closed.
  Status Run() {
    Result<std::unique_ptr<RecordSource>> source = OpenSource(options_);
    if (!source) return source.error();
    Result<std::unique_ptr<SharedMapBuilder>> builder =
        SharedMapBuilder::Create(options_.map, options_.open, options_.duplicates);
    if (!builder) return builder.error();
    Progress progress(ProgressStyleForStderr(options_.progress), "reading", 0);
    progress.BeginStage("reading", (*source)->unit(), 0, (*source)->total());
    if (Status added = AddAll(**source, **builder, progress); !added.ok()) return added;
    if (Status finished = Finish(**builder, progress); !finished.ok()) return finished;
    seconds_ = progress.seconds();
    return {};
  }

  /// Of the bad lines, what is wrong with the first few.
  const std::vector<std::string>& shown_faults() const noexcept { return shown_faults_; }
  uint64_t bad_lines() const noexcept { return bad_lines_; }

  /// Only after Run.
  std::string Summary() const {
    std::string text = "built " + options_.map + ": " + FormatCount(stats_.entries) +
                       (stats_.entries == 1 ? " record, " : " records, ") +
                       FormatBytes(stats_.base_bytes) + ", in " + FormatSeconds(seconds_) + " (" +
                       FormatCount(PerSecond(added_, seconds_)) + " records/s), layout " +
                       LayoutText(stats_);
    if (added_ > stats_.entries) {
      text += "; " + FormatCount(added_ - stats_.entries) + " replaced by later ones of their keys";
    }
    if (bad_lines_ > 0) {
      text += "; " + FormatCount(bad_lines_) + (bad_lines_ == 1 ? " bad line" : " bad lines") +
              " skipped";
    }
    return text + "\n";
  }

 private:
  Status AddAll(RecordSource& source, SharedMapBuilder& builder, Progress& progress) {
    while (true) {
      const Result<RecordSource::Step> step = source.Next();
      if (!step) return step.error();
      if (*step == RecordSource::Step::kEnd) break;
      const Status done = *step == RecordSource::Step::kRecord ? Add(source, builder)
                                                               : Fault(source, source.fault());
      if (!done.ok()) return done;
      progress.Update(source.done(), source.unit() == ProgressUnit::kKeys ? 0 : builder.added());
    }
    added_ = builder.added();
    return {};
  }

  Status Add(const RecordSource& source, SharedMapBuilder& builder) {
    if (!options_.json) return builder.Add(source.key(), source.value());
    const Result<std::string> compact = CompactJson(source.value());
    if (compact) return builder.Add(source.key(), *compact);
    return Fault(source, "the value is " + std::string(compact.error().message()));
  }

  /// Ok: the build goes on without that line.
  Status Fault(const RecordSource& source, const std::string& fault) {
    std::string text = source.position() + ": " + fault;
    if (!options_.skip_bad_lines) return {StatusCode::kInvalidArgument, std::move(text)};
    if (++bad_lines_ <= kShownMax) shown_faults_.push_back(std::move(text));
    return {};
  }

  Status Finish(SharedMapBuilder& builder, Progress& progress) {
    progress.BeginStage("building", ProgressUnit::kKeys, 0, added_);
    const Result<std::unique_ptr<SharedMap>> map = builder.Finish([&](const SharedMapProgress& at) {
      progress.set_total_bytes(at.total_records);
      progress.Update(at.done_records, 0);
      return true;
    });
    if (!map) return map.error();
    const Result<SharedMapStats> stats = (*map)->GetStats();
    if (!stats) return stats.error();
    stats_ = *stats;
    return (*map)->Close();
  }

  const MapBuildOptions& options_;
  std::vector<std::string> shown_faults_;
  uint64_t bad_lines_ = 0;
  uint64_t added_ = 0;
  SharedMapStats stats_;
  double seconds_ = 0;
};

}  // namespace

ExitCode MapBuild(const MapBuildOptions& options, Output& out) {
  const Status is_free = CheckMapPath(
      options.map, "name another directory; `--db " + options.map + "` builds one from it",
      StatusCode::kAlreadyExists);
  if (!is_free.ok()) return ReportPlainly(is_free);
  Build build(options);
  const Status built = build.Run();
  for (const std::string& fault : build.shown_faults()) Complain("skipped " + fault);
  if (build.bad_lines() > build.shown_faults().size()) {
    Complain("skipped " + FormatCount(build.bad_lines() - build.shown_faults().size()) +
             " more bad lines");
  }
  if (built.ok()) out.Write(build.Summary());
  const ExitCode code = ReportPlainly(built);
  if (built.code() == StatusCode::kAlreadyExists && !options.open.overwrite) {
    Complain("--overwrite replaces a map that is there, when all of the new one is built");
  }
  return code;
}

}  // namespace basalt::tools

#include "tools/basalt/map_check.h"

#include <memory>
#include <string_view>
#include <utility>

#include "basalt/shared_map.h"
#include "tools/basalt/document.h"
#include "tools/basalt/figures.h"
#include "tools/basalt/map_arguments.h"
#include "tools/basalt/progress.h"

namespace basalt::tools {
namespace {

std::string BitsAKey(const SharedMapStats& stats) {
  if (stats.base_records == 0) return "";
  const double bits =
      8 * static_cast<double>(stats.function_bytes) / static_cast<double>(stats.base_records);
  return "  (" + FormatDecimal(bits, 2) + " bits a key)";
}

std::string StatTable(const SharedMapStats& stats) {
  const auto row = [](std::string_view name, const std::string& value,
                      const std::string& remark = "") {
    return "  " + Left(name, 26) + Right(value, 14) + remark + "\n";
  };
  const std::string writer = stats.writer_pid == 0 ? "none" : std::to_string(stats.writer_pid);
  return "map\n" + row("entries", FormatCount(stats.entries)) +
         row("version", FormatCount(stats.version)) + row("writer_pid", writer) + "\nbase\n" +
         row("base_records", FormatCount(stats.base_records)) +
         row("base_bytes", FormatBytes(stats.base_bytes)) +
         row("function_bytes", FormatBytes(stats.function_bytes), BitsAKey(stats)) +
         row("shards", FormatCount(stats.shards)) + row("layout", LayoutText(stats)) +
         "\nchanges\n" + row("changes", FormatCount(stats.changes)) +
         row("log_bytes", FormatBytes(stats.log_bytes)) +
         row("log_capacity_bytes", FormatBytes(stats.log_capacity_bytes)) +
         row("index_bytes", FormatBytes(stats.index_bytes)) +
         row("compacting", stats.compacting ? "yes" : "no");
}

/// Without what only a writer's handle knows.
Document StatDocument(const SharedMapStats& stats) {
  return {{"entries", stats.entries},
          {"version", stats.version},
          {"writer_pid", stats.writer_pid},
          {"shards", stats.shards},
          {"fixed_shards", stats.fixed_shards},
          {"base_records", stats.base_records},
          {"base_bytes", stats.base_bytes},
          {"function_bytes", stats.function_bytes},
          {"changes", stats.changes},
          {"log_bytes", stats.log_bytes},
          {"log_capacity_bytes", stats.log_capacity_bytes},
          {"index_bytes", stats.index_bytes},
          {"compacting", stats.compacting}};
}

std::string CheckTable(const SharedMapReport& report, double seconds) {
  std::string text = Row("records", FormatCount(report.records)) +
                     Row("bytes", FormatBytes(report.bytes)) +
                     Row("read in", FormatSeconds(seconds));
  for (const std::string& problem : report.problems) text += "PROBLEM " + problem + "\n";
  if (report.ok()) return text + "No faults found.\n";
  return text + FormatCount(report.problems.size()) +
         " found. Build the map again, or restore its files from a copy.\n";
}

Document CheckDocument(const SharedMapReport& report) {
  boost::json::array problems;
  for (const std::string& problem : report.problems) problems.push_back(BytesValue(problem));
  return {{"records", report.records}, {"bytes", report.bytes}, {"problems", std::move(problems)}};
}

}  // namespace

ExitCode MapStat(const MapStatOptions& options, Output& out) {
  const Status is_map =
      CheckMapPath(options.map, "`basalt stat " + options.map + "` shows its figures");
  if (!is_map.ok()) return ReportMap(is_map);
  const Result<std::unique_ptr<SharedMap>> map = SharedMap::Attach(options.map);
  if (!map) return ReportMapThatIsThere(map.error());
  const Result<SharedMapStats> stats = (*map)->GetStats();
  if (!stats) return ReportMap(stats.error());
  out.Write(options.output == OutputFormat::kTable
                ? StatTable(*stats)
                : Rendered(options.output, StatDocument(*stats)));
  return ExitCode::kOk;
}

ExitCode MapCheck(const MapCheckOptions& options, Output& out) {
  const Status is_map = CheckMapPath(options.map, "`basalt check " + options.map + "` checks it");
  if (!is_map.ok()) return ReportMap(is_map);
  Result<SharedMapReport> report;
  double seconds = 0;
  {
    Progress progress(ProgressStyleForStderr(options.progress), "checking", 0);
    progress.BeginStage("checking", ProgressUnit::kKeys, 0, 0);
    report = SharedMap::Check(options.map, [&](const SharedMapProgress& at) {
      progress.set_total_bytes(at.total_records);
      progress.Update(at.done_records, 0);
      return true;
    });
    seconds = progress.seconds();
  }
  // Corruption that keeps it from looking says all there is to say.
  if (report.status().code() == StatusCode::kCorruption) return ReportPlainly(report.error());
  if (!report) return ReportMapThatIsThere(report.error());
  out.Write(options.output == OutputFormat::kTable
                ? CheckTable(*report, seconds)
                : Rendered(options.output, CheckDocument(*report)));
  return report->ok() ? ExitCode::kOk : ExitCode::kCorruption;
}

}  // namespace basalt::tools

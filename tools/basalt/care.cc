#include "tools/basalt/care.h"

#include <cstdint>
#include <string_view>
#include <vector>

#include "basalt/db.h"
#include "tools/basalt/figures.h"
#include "tools/basalt/progress.h"
#include "tools/basalt/text_format.h"

namespace basalt::tools {
namespace {

enum class Unit : uint8_t { kCount, kBytes, kMicroseconds };

struct Figure {
  std::string_view name;  // As in DBStats.
  uint64_t value;
  Unit unit = Unit::kCount;
};

std::vector<Figure> FiguresOf(const DBStats& stats) {
  return {
      {"last_sequence", stats.last_sequence},
      {"last_lsn", stats.last_lsn},
      {"durable_lsn", stats.durable_lsn},
      {"flushed_lsn", stats.flushed_lsn},
      {"oldest_snapshot", stats.oldest_snapshot},
      {"snapshots", stats.snapshots},
      {"memory_budget", stats.memory_budget, Unit::kBytes},
      {"memtable_bytes", stats.memtable_bytes, Unit::kBytes},
      {"cache_bytes", stats.cache_bytes, Unit::kBytes},
      {"cache_capacity", stats.cache_capacity, Unit::kBytes},
      {"cache_hits", stats.cache_hits},
      {"cache_misses", stats.cache_misses},
      {"table_metadata_bytes", stats.table_metadata_bytes, Unit::kBytes},
      {"log_bytes", stats.log_bytes, Unit::kBytes},
      {"writes", stats.writes},
      {"records_written", stats.records_written},
      {"bytes_written", stats.bytes_written, Unit::kBytes},
      {"log_bytes_written", stats.log_bytes_written, Unit::kBytes},
      {"syncs", stats.syncs},
      {"flushes", stats.flushes},
      {"flush_bytes", stats.flush_bytes, Unit::kBytes},
      {"compactions", stats.compactions},
      {"compaction_bytes_read", stats.compaction_bytes_read, Unit::kBytes},
      {"compaction_bytes_written", stats.compaction_bytes_written, Unit::kBytes},
      {"write_waits", stats.write_waits},
      {"write_wait_us", stats.write_wait_us, Unit::kMicroseconds},
      {"background_errors", stats.background_errors},
      {"recovered_records", stats.recovered_records},
      {"log_tail_bytes_cut", stats.log_tail_bytes_cut, Unit::kBytes},
  };
}

std::string Readable(const Figure& figure) {
  switch (figure.unit) {
    case Unit::kBytes:
      return FormatBytes(figure.value);
    case Unit::kMicroseconds:
      return FormatSeconds(static_cast<double>(figure.value) / 1e6);
    case Unit::kCount:
      break;
  }
  return FormatCount(figure.value);
}

std::string StatTable(const DBStats& stats) {
  std::string text = "level   tables         bytes       records       deletes\n";
  for (size_t level = 0; level < stats.levels.size(); ++level) {
    const LevelStats& of = stats.levels[level];
    text += Left("L" + std::to_string(level), 6) + Right(FormatCount(of.tables), 8) +
            Right(FormatBytes(of.bytes), 14) + Right(FormatCount(of.records), 14) +
            Right(FormatCount(of.deletes), 14) + "\n";
  }
  text += "\n";
  for (const Figure& figure : FiguresOf(stats)) text += Row(figure.name, Readable(figure));
  if (!stats.background_error.empty()) text += "background_error  " + stats.background_error + "\n";
  return text;
}

std::string StatJson(const DBStats& stats) {
  std::string text = "{";
  for (const Figure& figure : FiguresOf(stats)) {
    text += "\"" + std::string(figure.name) + "\":" + std::to_string(figure.value) + ",";
  }
  text += "\"background_error\":";
  AppendJson(stats.background_error, text);
  text += ",\"levels\":[";
  for (const LevelStats& level : stats.levels) {
    if (&level != stats.levels.data()) text += ",";
    text += "{\"tables\":" + std::to_string(level.tables) +
            ",\"bytes\":" + std::to_string(level.bytes) +
            ",\"records\":" + std::to_string(level.records) +
            ",\"deletes\":" + std::to_string(level.deletes) + "}";
  }
  return text + "]}\n";
}

std::string CheckSummary(const CheckReport& report, double seconds) {
  std::string text =
      Row("files", FormatCount(report.files)) + Row("bytes", FormatBytes(report.bytes)) +
      Row("tables", FormatCount(report.tables)) + Row("blocks", FormatCount(report.blocks)) +
      Row("records in tables", FormatCount(report.records)) +
      Row("records in the log", FormatCount(report.log_records)) +
      Row("read in", FormatSeconds(seconds));
  if (report.torn_tail_bytes > 0) {
    text += "The log ends in " + FormatBytes(report.torn_tail_bytes) +
            " that were never acknowledged, as after a crash: no fault, the next open cuts them.\n";
  }
  return text;
}

/// Most messages name file and offset already.
std::string FindingLine(const FileFinding& finding) {
  const bool names_file = finding.status.message().find(finding.file) != std::string_view::npos;
  const std::string place = finding.file + ", offset " + std::to_string(finding.offset) + ": ";
  return "FINDING " + (names_file ? "" : place) + finding.status.ToString() + "\n";
}

}  // namespace

ExitCode Check(const CheckOptions& options, Output& out) {
  Result<CheckReport> report;
  double seconds = 0;
  {
    Progress progress(ProgressStyleForStderr(options.progress), "checking", 0);
    report = DB::Check(options.path, [&](uint64_t done_bytes, uint64_t total_bytes) {
      progress.set_total_bytes(total_bytes);
      progress.Update(done_bytes, 0);
      return true;
    });
    seconds = progress.seconds();
  }
  if (!report) return Report(report.error());
  out.Write(CheckSummary(*report, seconds));
  for (const FileFinding& finding : report->findings) out.Write(FindingLine(finding));
  if (report->ok()) {
    out.Write("No faults found.\n");
    return ExitCode::kOk;
  }
  out.Write(
      FormatCount(report->findings.size()) +
      " found. `basalt repair` mends a gap in the log and says what that costs; any other file "
      "must come back from a copy.\n");
  return ExitCode::kCorruption;
}

ExitCode Repair(const RepairOptions& options, Output& out) {
  const Result<RepairReport> report = DB::Repair(options.path);
  if (!report) return Report(report.error());
  out.Write("kept  the log up to record " + FormatCount(report->last_lsn_kept) + "\n");
  if (report->first_lsn_lost == 0) {
    out.Write("lost  nothing\n");
  } else {
    out.Write("lost  log records " + FormatCount(report->first_lsn_lost) + " to " +
              FormatCount(report->last_lsn_lost) + "\n");
  }
  for (const std::string& file : report->moved_to_lost) out.Write("moved " + file + "\n");
  if (report->moved_to_lost.empty()) out.Write("moved nothing\n");
  return ExitCode::kOk;
}

ExitCode Stat(const StatOptions& options, Output& out) {
  const Result<std::unique_ptr<DB>> db = DB::Open(options.path, {.create_if_missing = false});
  if (!db) return Report(db.error());
  const DBStats stats = (*db)->GetStats();
  out.Write(options.json ? StatJson(stats) : StatTable(stats));
  return ExitCode::kOk;
}

}  // namespace basalt::tools

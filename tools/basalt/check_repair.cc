#include "tools/basalt/check_repair.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/db.h"
#include "tools/basalt/document.h"
#include "tools/basalt/figures.h"
#include "tools/basalt/progress.h"

namespace basalt::tools {
namespace {

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

/// The others are of files that could not be read, which says nothing about what they hold.
bool IsDamage(const FileFinding& finding) {
  return finding.status.code() == StatusCode::kCorruption;
}

ExitCode ExitCodeOf(const CheckReport& report) {
  if (report.ok()) return ExitCode::kOk;
  if (std::ranges::any_of(report.findings, IsDamage)) return ExitCode::kCorruption;
  return ExitCodeFor(report.findings.front().status.code());
}

std::string CheckTable(const CheckReport& report, double seconds) {
  std::string text = CheckSummary(report, seconds);
  for (const FileFinding& finding : report.findings) text += FindingLine(finding);
  if (report.ok()) return text + "No faults found.\n";
  if (std::ranges::none_of(report.findings, IsDamage)) {
    return text + FormatCount(report.findings.size()) +
           " found. The files that could not be read may be whole: remove the cause, then check "
           "again.\n";
  }
  return text + FormatCount(report.findings.size()) +
         " found. `basalt repair` mends a gap in the log and says what that costs; any other file "
         "must come back from a copy.\n";
}

boost::json::array FindingsArray(const std::vector<FileFinding>& findings) {
  boost::json::array array;
  for (const FileFinding& finding : findings) {
    array.push_back(Document{{"file", BytesValue(finding.file)},
                             {"offset", finding.offset},
                             {"status", BytesValue(finding.status.ToString())}});
  }
  return array;
}

Document CheckDocument(const CheckReport& report) {
  return {{"files", report.files},
          {"bytes", report.bytes},
          {"tables", report.tables},
          {"blocks", report.blocks},
          {"records", report.records},
          {"log_records", report.log_records},
          {"torn_tail_bytes", report.torn_tail_bytes},
          {"findings", FindingsArray(report.findings)}};
}

std::string RepairTable(const RepairReport& report) {
  std::string text = "kept  the log up to record " + FormatCount(report.last_lsn_kept) + "\n";
  if (report.first_lsn_lost == 0) {
    text += "lost  nothing of the log\n";
  } else {
    text += "lost  log records " + FormatCount(report.first_lsn_lost) + " to " +
            FormatCount(report.last_lsn_lost) + "\n";
  }
  for (const std::string& file : report.moved_to_lost) text += "moved " + file + "\n";
  if (report.moved_to_lost.empty()) text += "moved nothing\n";
  for (const FileFinding& finding : report.findings) text += FindingLine(finding);
  if (report.ok()) return text;
  return text + FormatCount(report.findings.size()) +
         " found that no repair can mend: the database opens when they are back.\n";
}

Document RepairDocument(const RepairReport& report) {
  boost::json::array moved;
  for (const std::string& file : report.moved_to_lost) moved.push_back(BytesValue(file));
  return {{"last_lsn_kept", report.last_lsn_kept},
          {"first_lsn_lost", report.first_lsn_lost},
          {"last_lsn_lost", report.last_lsn_lost},
          {"moved_to_lost", std::move(moved)},
          {"findings", FindingsArray(report.findings)}};
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
  out.Write(options.output == OutputFormat::kTable
                ? CheckTable(*report, seconds)
                : Rendered(options.output, CheckDocument(*report)));
  return ExitCodeOf(*report);
}

ExitCode Repair(const RepairOptions& options, Output& out) {
  const Result<RepairReport> report = DB::Repair(options.path);
  if (!report) return Report(report.error());
  out.Write(options.output == OutputFormat::kTable
                ? RepairTable(*report)
                : Rendered(options.output, RepairDocument(*report)));
  return report->ok() ? ExitCode::kOk : ExitCode::kCorruption;
}

}  // namespace basalt::tools

#include "tools/basalt/stat.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/client.h"
#include "basalt/db.h"
#include "net/address.h"
#include "tools/basalt/document.h"
#include "tools/basalt/figures.h"

namespace basalt::tools {
namespace {

enum class Unit : uint8_t {
  kCount,
  kBytes,
  kShareOfBudget,  ///< Bytes, of which the share of the memory budget is told.
  kMicroseconds,
};

struct Figure {
  std::string_view name;  ///< As in DBStats.
  uint64_t value;
  Unit unit = Unit::kCount;
};

/// Figures that belong together. A person is not shown those of `zeros_hidden` that are zero.
struct FigureGroup {
  std::string_view title;
  std::vector<Figure> figures;
  bool zeros_hidden = false;
};

std::vector<FigureGroup> GroupsOf(const DBStats& stats) {
  return {
      {"records",
       {{"last_sequence", stats.last_sequence},
        {"last_lsn", stats.last_lsn},
        {"durable_lsn", stats.durable_lsn},
        {"flushed_lsn", stats.flushed_lsn},
        {"oldest_snapshot", stats.oldest_snapshot},
        {"snapshots", stats.snapshots},
        {"keyspaces", stats.keyspaces}}},
      {"compaction",
       {{"compaction_debt", stats.compaction_debt, Unit::kBytes},
        {"compactions_running", stats.compactions_running},
        {"range_deletes", stats.range_deletes}}},
      {"memory",
       {{"memory_budget", stats.memory_budget, Unit::kBytes},
        {"memtable_bytes", stats.memtable_bytes, Unit::kShareOfBudget},
        {"cache_bytes", stats.cache_bytes, Unit::kShareOfBudget},
        {"cache_capacity", stats.cache_capacity, Unit::kShareOfBudget},
        {"cache_hits", stats.cache_hits},
        {"cache_misses", stats.cache_misses},
        {"table_metadata_bytes", stats.table_metadata_bytes, Unit::kShareOfBudget},
        {"tables_in_parts", stats.tables_in_parts}}},
      {"log",
       {{"log_bytes", stats.log_bytes, Unit::kBytes},
        {"recovered_records", stats.recovered_records},
        {"log_tail_bytes_cut", stats.log_tail_bytes_cut, Unit::kBytes}}},
      {"waits of writers since it was opened",
       {{"write_waits", stats.write_waits},
        {"write_wait_us", stats.write_wait_us, Unit::kMicroseconds},
        {"write_delays", stats.write_delays},
        {"write_delay_us", stats.write_delay_us, Unit::kMicroseconds}}},
      {"work since it was opened",
       {{"writes", stats.writes},
        {"records_written", stats.records_written},
        {"bytes_written", stats.bytes_written, Unit::kBytes},
        {"log_bytes_written", stats.log_bytes_written, Unit::kBytes},
        {"syncs", stats.syncs},
        {"flushes", stats.flushes},
        {"flush_bytes", stats.flush_bytes, Unit::kBytes},
        {"compactions", stats.compactions},
        {"compaction_bytes_read", stats.compaction_bytes_read, Unit::kBytes},
        {"compaction_bytes_written", stats.compaction_bytes_written, Unit::kBytes},
        {"background_errors", stats.background_errors}},
       /*zeros_hidden=*/true},
  };
}

std::string Readable(const Figure& figure, uint64_t memory_budget) {
  switch (figure.unit) {
    case Unit::kBytes:
      return FormatBytes(figure.value);
    case Unit::kShareOfBudget: {
      const double share =
          100 * static_cast<double>(figure.value) / static_cast<double>(memory_budget);
      return FormatBytes(figure.value) + Right(FormatDecimal(share, 1) + " %", 9);
    }
    case Unit::kMicroseconds:
      return FormatSeconds(static_cast<double>(figure.value) / 1e6);
    case Unit::kCount:
      break;
  }
  return FormatCount(figure.value);
}

/// A row whose amount ends where the amounts of all rows end, with or without a share behind it.
std::string FigureRow(const Figure& figure, uint64_t memory_budget) {
  const size_t share_width = figure.unit == Unit::kShareOfBudget ? 9 : 0;
  return "  " + Left(figure.name, 26) + Right(Readable(figure, memory_budget), 14 + share_width) +
         "\n";
}

std::string GroupRows(const FigureGroup& group, uint64_t memory_budget) {
  std::string rows;
  for (const Figure& figure : group.figures) {
    if (figure.value != 0 || !group.zeros_hidden) rows += FigureRow(figure, memory_budget);
  }
  return "\n" + std::string(group.title) + "\n" + (rows.empty() ? "  none\n" : rows);
}

std::string LevelRow(std::string_view name, const LevelStats& level) {
  return Left(name, 7) + Right(FormatCount(level.tables), 8) + Right(FormatBytes(level.bytes), 14) +
         Right(FormatCount(level.records), 16) + Right(FormatCount(level.deletes), 16) + "\n";
}

std::string StatTable(const DBStats& stats) {
  std::string text = "level    tables         bytes         records         deletes\n";
  LevelStats all;
  for (size_t level = 0; level < stats.levels.size(); ++level) {
    const LevelStats& of = stats.levels[level];
    text += LevelRow("L" + std::to_string(level), of);
    all.tables += of.tables;
    all.bytes += of.bytes;
    all.records += of.records;
    all.deletes += of.deletes;
  }
  text += LevelRow("all", all);
  for (const FigureGroup& group : GroupsOf(stats)) text += GroupRows(group, stats.memory_budget);
  if (!stats.background_error.empty()) {
    text += "\nThe last flush or compaction failed: " + stats.background_error + "\n";
  }
  return text;
}

Document StatDocument(const DBStats& stats) {
  Document document;
  for (const FigureGroup& group : GroupsOf(stats)) {
    for (const Figure& figure : group.figures) document[figure.name] = figure.value;
  }
  document["background_error"] = BytesValue(stats.background_error);
  boost::json::array levels;
  for (const LevelStats& level : stats.levels) {
    levels.push_back(Document{{"tables", level.tables},
                              {"bytes", level.bytes},
                              {"records", level.records},
                              {"deletes", level.deletes}});
  }
  document["levels"] = std::move(levels);
  return document;
}

/// The lines "name:value" of a server's INFO.
Document InfoDocument(std::string_view info) {
  Document document;
  while (!info.empty()) {
    const std::string_view line = info.substr(0, info.find("\r\n"));
    info.remove_prefix(std::min(line.size() + 2, info.size()));
    const size_t colon = line.find(':');
    if (line.starts_with('#') || colon == std::string_view::npos) continue;
    document[line.substr(0, colon)] = BytesValue(line.substr(colon + 1));
  }
  return document;
}

ExitCode StatOfServer(const StatOptions& options, Output& out) {
  const auto store = net::RemoteStore::Connect(options.path);
  if (!store) return Report(store.error());
  const Result<std::string> info = (*store)->Info();
  if (!info) return Report(info.error());
  out.Write(options.output == OutputFormat::kTable ? *info
                                                   : Rendered(options.output, InfoDocument(*info)));
  return ExitCode::kOk;
}

}  // namespace

ExitCode Stat(const StatOptions& options, Output& out) {
  if (net::IsServerUrl(options.path)) return StatOfServer(options, out);
  const Result<std::unique_ptr<DB>> db = OpenToRead(options.path, options.access);
  if (!db) return Report(db.error());
  const DBStats stats = (*db)->GetStats();
  out.Write(options.output == OutputFormat::kTable ? StatTable(stats)
                                                   : Rendered(options.output, StatDocument(stats)));
  return ExitCode::kOk;
}

}  // namespace basalt::tools

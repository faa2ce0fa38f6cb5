#include "tools/basalt/compact.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <future>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "basalt/db.h"
#include "base/base64.h"
#include "tools/basalt/figures.h"
#include "tools/basalt/open_database.h"
#include "tools/basalt/progress.h"

namespace basalt::tools {
namespace {

constexpr auto kShownInterval = std::chrono::milliseconds(100);

LevelStats AllLevels(const DBStats& stats) {
  LevelStats all;
  for (const LevelStats& level : stats.levels) {
    all.tables += level.tables;
    all.bytes += level.bytes;
    all.records += level.records;
    all.deletes += level.deletes;
  }
  return all;
}

std::string Described(const LevelStats& levels) {
  return FormatCount(levels.records) + " records in " + FormatCount(levels.tables) +
         (levels.tables == 1 ? " table, " : " tables, ") + FormatBytes(levels.bytes);
}

/// Bytes of the table files in a directory, finished or not. A file may go while they are counted.
uint64_t TableFileBytes(const std::string& directory) {
  uint64_t bytes = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().extension() != ".tbl") continue;
    std::error_code gone;
    const uintmax_t size = it->file_size(gone);
    if (!gone) bytes += size;
  }
  return bytes;
}

/// How far a compaction has come. Its counters move when a part of it ends, so that in between the
/// files tell what it has written; it writes at most what it reads.
class CompactionProgress {
 public:
  CompactionProgress(const DB& db, const std::string& directory, Progress& progress)
      : db_(db),
        directory_(directory),
        progress_(progress),
        written_before_(db.GetStats().compaction_bytes_written) {}

  void Update() {
    const uint64_t in_files = TableFileBytes(directory_);
    const DBStats stats = db_.GetStats();
    const uint64_t in_levels = AllLevels(stats).bytes;
    const uint64_t finished = stats.compaction_bytes_written - written_before_;
    const uint64_t unfinished = in_files - std::min(in_files, in_levels);
    progress_.set_total_bytes(finished + in_levels);
    progress_.Update(finished + unfinished, 0);
  }

 private:
  const DB& db_;
  const std::string& directory_;
  Progress& progress_;
  uint64_t written_before_;
};

Status CompactKeyspaces(DB& db, std::optional<std::string_view> from,
                        std::optional<std::string_view> to) {
  const Result<std::vector<KeyspaceInfo>> keyspaces = db.ListKeyspaces();
  if (!keyspaces) return keyspaces.error();
  for (const KeyspaceInfo& keyspace : *keyspaces) {
    if (Status compacted = db.CompactRange(from, to, keyspace.id); !compacted.ok()) {
      return compacted;
    }
  }
  return {};
}

/// Compacts on a thread of its own, and shows meanwhile how far it has come.
Status CompactWithProgress(DB& db, const CompactOptions& options,
                           std::optional<std::string_view> from, std::optional<std::string_view> to,
                           Progress& progress) {
  CompactionProgress shown(db, options.path, progress);
  std::future<Status> compacted =
      std::async(std::launch::async, [&] { return CompactKeyspaces(db, from, to); });
  while (compacted.wait_for(kShownInterval) != std::future_status::ready) shown.Update();
  return compacted.get();
}

/// Decodes the bounds in place.
Status DecodeBounds(std::optional<std::string>& from, std::optional<std::string>& to) {
  for (std::optional<std::string>* bound : {&from, &to}) {
    if (!bound->has_value()) continue;
    Result<std::string> bytes = base::DecodeBase64(**bound);
    if (!bytes) {
      return {StatusCode::kInvalidArgument,
              "bound '" + **bound + "' is " + std::string(bytes.error().message())};
    }
    *bound = std::move(*bytes);
  }
  return {};
}

Status CheckBounds(const std::optional<std::string>& from, const std::optional<std::string>& to) {
  if (!to || from.value_or("") < *to) return {};
  return {StatusCode::kInvalidArgument,
          "no key lies from --from up to --to: the first must be below the second; without --to "
          "there is no end"};
}

}  // namespace

ExitCode Compact(const CompactOptions& options, Output& out) {
  std::optional<std::string> from = options.from;
  std::optional<std::string> to = options.to;
  Status failed = options.base64 ? DecodeBounds(from, to) : Status();
  if (failed.ok()) failed = CheckBounds(from, to);
  if (!failed.ok()) return Report(failed);
  const Result<std::unique_ptr<DB>> db = OpenToWrite(
      options.path, {.create_if_missing = false, .memory_budget = options.memory_budget});
  if (!db) return Report(db.error());
  // Replayed records are in memory; only records in tables are counted.
  if (failed = (*db)->Flush(); !failed.ok()) return Report(failed);
  const LevelStats before = AllLevels((*db)->GetStats());
  double seconds = 0;
  {
    Progress progress(ProgressStyleForStderr(options.progress), "compacting", before.bytes);
    failed = CompactWithProgress(**db, options, from, to, progress);
    seconds = progress.seconds();
  }
  const LevelStats after = AllLevels((*db)->GetStats());
  if (failed.ok()) failed = (*db)->Close();
  if (!failed.ok()) return Report(failed);
  out.Write("before " + Described(before) + "\nafter  " + Described(after) + "\ntook   " +
            FormatSeconds(seconds) + "\n");
  return ExitCode::kOk;
}

}  // namespace basalt::tools

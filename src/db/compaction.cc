#include <algorithm>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/merging_iterator.h"
#include "db/compaction_plan.h"
#include "db/edit.h"
#include "table/concatenating_iterator.h"

// Compaction: several jobs may run at once, on tables and key ranges of their own. A job reads its
// tables, writes what survives, and installs that in one edit; cancelled or failed, it leaves
// nothing behind.

namespace basalt::db {
namespace {

constexpr size_t kLevel0Tables = 8;
constexpr uint64_t kTablesOfBase = 4;
constexpr uint64_t kTablesOfJob = 16;
constexpr size_t kRunningMax = 8;

std::string_view NameOf(CompactionReason reason) noexcept {
  switch (reason) {
    case CompactionReason::kSize:
      return "size";
    case CompactionReason::kTombstones:
      return "deletes";
    case CompactionReason::kExpired:
      return "expiry";
    case CompactionReason::kAge:
      return "age";
    case CompactionReason::kManual:
      return "CompactRange";
  }
  return "unknown";
}

bool HasTablesBelow(const Tree& tree, size_t level) noexcept {
  for (size_t below = level + 1; below < Tree::kLevels; ++below) {
    if (!tree.levels[below].empty()) return true;
  }
  return false;
}

bool HasMergesAbove(const Tree& tree, const CompactionJob& job) {
  for (size_t level = 0; level < job.output_level; ++level) {
    for (const std::shared_ptr<TableFile>& file : tree.levels[level]) {
      if (file->properties().merges > 0 &&
          std::ranges::find(job.inputs[level], file) == job.inputs[level].end()) {
        return true;
      }
    }
  }
  return false;
}

Result<std::unique_ptr<base::RecordIterator>> NewSource(const CompactionJob& job) {
  std::vector<std::unique_ptr<base::RecordIterator>> children;
  for (const std::shared_ptr<TableFile>& file : job.inputs[0]) {
    BASALT_ASSIGN_OR_RETURN(const table::Table* table, file->Open());
    children.push_back(table->NewIterator(/*fill_cache=*/false));
  }
  for (size_t level = 1; level < Tree::kLevels; ++level) {
    std::vector<std::shared_ptr<const table::Table>> sorted;
    for (const std::shared_ptr<TableFile>& file : job.inputs[level]) {
      BASALT_ASSIGN_OR_RETURN(const table::Table* table, file->Open());
      sorted.push_back(table->shared_from_this());
    }
    if (sorted.empty()) continue;
    children.push_back(table::NewConcatenatingIterator(std::move(sorted), /*fill_cache=*/false));
  }
  return base::NewMergingIterator(std::move(children));
}

}  // namespace

bool Core::Ending() const noexcept {
  return closed_.load(std::memory_order_acquire) || handle_gone_.load(std::memory_order_acquire);
}

CompactionLimits Core::Limits() const {
  CompactionLimits limits;
  limits.level0_tables = kLevel0Tables;
  limits.base_bytes = kTablesOfBase * std::max(memtable_bytes_, table_bytes_);
  limits.job_bytes_max = kTablesOfJob * table_bytes_;
  limits.now_ms = WallMillis();
  limits.oldest_needed = snapshots_.empty() ? visible() : *snapshots_.begin();
  return limits;
}

std::optional<CompactionJob> Core::PickJob() const {
  if (mode_ == Mode::kReadOnly || Ending() || disk_is_full_ || manual_compactions_ > 0 ||
      running_.size() >= kRunningMax)
    return std::nullopt;
  return PickCompaction(*state_->version, Limits(), running_);
}

void Core::ScheduleCompaction() {
  if (compaction_scheduled_ || !PickJob()) return;
  compaction_scheduled_ = Schedule(&Core::CompactionTask);
}

void Core::Begin(const CompactionJob& job) {
  for (const TableFiles& level : job.inputs) {
    for (const std::shared_ptr<TableFile>& file : level) file->busy = true;
  }
  running_.push_back(&job);
}

void Core::End(const CompactionJob& job) {
  for (const TableFiles& level : job.inputs) {
    for (const std::shared_ptr<TableFile>& file : level) file->busy = false;
  }
  std::erase(running_, &job);
  changed_.notify_all();
}

void Core::CompactionTask() {
  std::optional<CompactionJob> job;
  {
    const std::scoped_lock lock(mutex_);
    compaction_scheduled_ = false;
    job = PickJob();
    if (!job) return;
    Begin(*job);
    ScheduleCompaction();  // another one may run beside it
  }
  const Status compacted = RunCompaction(*job);
  const std::scoped_lock lock(mutex_);
  End(*job);
  if (compacted.ok()) ScheduleCompaction();
}

Status Core::CompactRange(std::optional<std::string_view> begin,
                          std::optional<std::string_view> end, KeyspaceId keyspace) {
  BASALT_RETURN_IF_ERROR(CheckWritable());
  BASALT_RETURN_IF_ERROR(CheckKeyspace(*State(), keyspace));
  BASALT_RETURN_IF_ERROR(Flush());
  std::optional<CompactionJob> job;
  {
    std::unique_lock lock(mutex_);
    ++manual_compactions_;
    bool is_busy = false;
    WaitUntil(lock, [&] {
      if (closed_.load(std::memory_order_acquire)) return true;
      const Tree* const tree = state_->version->tree(static_cast<uint32_t>(keyspace));
      if (tree == nullptr) return true;
      is_busy = false;
      job = PickRange(*tree, begin, end, &is_busy, Limits(), running_);
      return !is_busy;
    });
    if (job) Begin(*job);
    --manual_compactions_;
  }
  BASALT_RETURN_IF_ERROR(CheckUsable());
  const Status compacted = job ? RunCompaction(*job) : Status();
  const std::scoped_lock lock(mutex_);
  if (job) End(*job);
  ScheduleCompaction();
  return compacted;
}

Status Core::RunCompaction(const CompactionJob& job) {
  const uint64_t start = environment_.clock->MonotonicMicros();
  NewTables outputs;
  Status compacted;
  try {
    compacted = job.is_move() ? MoveTable(job) : MergeTables(job, &outputs);
  } catch (const std::bad_alloc&) {
    compacted = Status(StatusCode::kResourceExhausted, "out of memory while compacting tables");
  }
  const uint64_t duration = environment_.clock->MonotonicMicros() - start;
  const uint64_t bytes_in = job.is_move() ? 0 : job.input_bytes();
  {
    const std::scoped_lock lock(mutex_);
    if (compacted.ok()) {
      ++counters_.compactions;
      counters_.compaction_bytes_read += bytes_in;
      counters_.compaction_bytes_written += outputs.bytes;
    } else if (compacted.code() != StatusCode::kCancelled) {
      if (compacted.code() == StatusCode::kResourceExhausted) disk_is_full_ = true;
      ++counters_.background_errors;
      background_error_ = compacted;
    }
  }
  const std::string detail = "tables were merged into level " + std::to_string(job.output_level) +
                             ", for " + std::string(NameOf(job.reason));
  Notify({.kind = compacted.ok() ? Event::Kind::kCompaction : Event::Kind::kBackgroundError,
          .bytes_in = bytes_in,
          .bytes_out = outputs.bytes,
          .duration_us = duration,
          .detail = detail,
          .status = compacted});
  return compacted;
}

Status Core::MoveTable(const CompactionJob& job) {
  Edit edit;
  for (const TableFiles& level : job.inputs) {
    for (const std::shared_ptr<TableFile>& file : level) {
      edit.removed.push_back(file);
      edit.added.push_back({.keyspace = job.keyspace, .level = job.output_level, .file = file});
    }
  }
  return Install(edit);
}

Status Core::MergeTables(const CompactionJob& job, NewTables* outputs) {
  // In this order: every range delete up to the number is in the version that is loaded then.
  const base::SequenceNumber flushed = flushed_sequence_.load(std::memory_order_acquire);
  const std::shared_ptr<const ReadState> state = State();
  const Tree* const tree = state->version->tree(job.keyspace);
  if (tree == nullptr) return {};  // the keyspace was dropped
  BASALT_ASSIGN_OR_RETURN(const auto source, NewSource(job));
  SurvivingRecords::Rules rules;
  rules.boundaries = RetainedBoundaries();
  rules.range_deletes = {&tree->range_deletes};
  rules.now_ms = WallMillis();
  rules.has_merges_above = HasMerges(*state, nullptr) || HasMergesAbove(*tree, job);
  rules.is_bottom = [&](std::string_view key) {
    for (size_t level = job.output_level + 1; level < Tree::kLevels; ++level) {
      if (tree->Find(level, key) != nullptr) return false;
    }
    return true;
  };
  outputs->keyspace = job.keyspace;
  outputs->at_last_level = !HasTablesBelow(*tree, job.output_level);
  outputs->may_cut = true;
  outputs->ranges_applied = std::min(rules.boundaries.front(), flushed);
  source->SeekToFirst();
  BASALT_RETURN_IF_ERROR(WriteTables(source.get(), std::move(rules), outputs));
  Edit edit;
  for (const std::shared_ptr<TableFile>& file : outputs->files) {
    edit.added.push_back({.keyspace = job.keyspace, .level = job.output_level, .file = file});
  }
  for (const TableFiles& level : job.inputs) {
    edit.removed.insert(edit.removed.end(), level.begin(), level.end());
  }
  return Install(edit);
}

}  // namespace basalt::db

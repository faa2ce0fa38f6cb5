#include <algorithm>
#include <chrono>
#include <cstdio>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/counted.h"
#include "base/out_of_memory.h"
#include "db/compaction_plan.h"
#include "db/compaction_source.h"
#include "db/edit.h"
#include "db/tree_key.h"
#include "io/file_system.h"

// Compaction: several jobs may run at once, on tables and key ranges of their own. A job reads its
// tables, writes what survives, and puts that in their place.
//
// It does so piece by piece, in key order, so that merging a whole level does not take the space of
// two. Where the merge has passed the end of some of its inputs in the output level, the open table
// ends there too, and one edit puts all that is finished in the place of those inputs:
//
//   level 0       [-----------------------]         stay until the last piece, and what lies above
//                    [-------------------------]    the output level too
//   output level  [ new ][ new ][   old   ][  old ]
//                              ^ where the merge is
//
// Between two pieces the version is one like any other. Keys behind the merge are twice there: in
// the inputs above the output level as they were, and in outputs as what has become of them. A
// reader meets the inputs first, where he finds what he would have found before the job began; what
// they do not hold he finds in outputs, from which nothing is missing that the inputs do not
// decide. A delete that was dropped for having nothing below it lies above nothing. Range deletes
// stay in the version as long as an input needs them. For merges alone it is not so: an operand
// counts as often as it is there. A job that has some above its output level therefore installs all
// at once.
//
// A job that fails or is cancelled leaves what it has installed, in a version that is as good as
// before, and removes the rest. The next job that reads both copies of a version keeps one
// (surviving_records.h).
//
// Other jobs leave alone what a running one reads or has installed (TableFile::busy). A flush,
// however, may drop a table that lies under a range delete, and forget the range delete, just
// before a job takes the table. So an edit is refused (Aborted) if an input of its job has gone:
// the records that the job copied from it may be deleted.

namespace basalt::db {
namespace {

constexpr uint64_t kTablesOfJob = 16;
// A manifest is written for each piece, which replaces at least so many tables, and this part of
// the job.
constexpr uint64_t kTablesOfPiece = 2;
constexpr uint64_t kPiecesMax = 64;
constexpr size_t kRunningMax = 8;
constexpr uint64_t kRetryMs = 10'000;  // after one that found no memory, or no descriptor
// What a compaction reads, at 5 ns a byte, while an iterator spends its time on one more table:
// some 0.3 us for a seek, 1 us where 50 records are read.
constexpr uint64_t kScanCostBytes = 128;

std::string_view NameOf(CompactionReason reason) noexcept {
  switch (reason) {
    case CompactionReason::kSize:
      return "size";
    case CompactionReason::kTombstones:
      return "deletes";
    case CompactionReason::kExpired:
      return "expiry";
    case CompactionReason::kSnapshots:
      return "released snapshots";
    case CompactionReason::kScans:
      return "scans";
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

}  // namespace

bool Core::Ending() const noexcept {
  return closed_.load(std::memory_order_acquire) || handle_gone_.load(std::memory_order_acquire);
}

CompactionLimits Core::Limits() const {
  CompactionLimits limits;
  limits.base_bytes = base_bytes_;
  limits.job_bytes_max = kTablesOfJob * table_bytes_;
  limits.now_ms = ExpiredForAllMs();
  limits.keyspaces = state_->keyspaces.get();
  // While the log is replayed nobody reads, and nothing is compacted.
  if (queue_ != nullptr) limits.boundaries = BoundariesLocked();
  return limits;
}

std::optional<CompactionJob> Core::PickJob() const {
  if (mode_ == Mode::kReadOnly || Ending() || disk_is_full_ || manual_compactions_ > 0 ||
      running_.size() >= kRunningMax)
    return std::nullopt;
  return PickCompaction(*state_->version, Limits(), running_);
}

void Core::ScheduleCompaction() noexcept {
  if (compaction_scheduled_) return;
  static_cast<void>(base::OrOutOfMemory([&] {
    if (PickJob()) compaction_scheduled_ = Schedule(&Core::CompactionTask);
    if (!compaction_scheduled_) SetTimer();
    return Status();
  }));
}

void Core::CountScan(const Tree& tree, size_t saved) {
  if (saved == 0) return;
  const TableFiles& level0 = tree.levels[0];
  TableFile& oldest = *level0.back();
  const uint64_t before = oldest.scan_cost();
  const uint64_t cost = kScanCostBytes * saved;
  oldest.AddScanCost(cost);
  // The plan is asked four times while the cost grows by as much as the tables have.
  uint64_t step = 1;
  for (const auto& table : level0) step += table->properties().file_bytes / 4;
  if (before / step == (before + cost) / step) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock) ScheduleCompaction();
}

// The timer runs while nobody looks: where a job is scheduled, its end asks again. It counts the
// executor's time, the tables' moments are wall time, and the two may drift apart, by any amount
// when the machine sleeps. So it is at most an hour late.
void Core::SetTimer() {
  if (mode_ == Mode::kReadOnly || Ending()) return;
  const uint64_t now_ms = WallMillis();
  const uint64_t due_ms = NextDueMs(*state_->version, now_ms);
  constexpr uint64_t kReaderMs = 100;  // until a reader may have opened its files
  if (obsolete_->has_waiting()) return LookAgainIn(now_ms, kReaderMs);
  if (due_ms == 0) return CancelTimer();
  constexpr uint64_t kHourMs = 3'600'000;
  LookAgainIn(now_ms, std::min(due_ms - now_ms, kHourMs));
}

void Core::LookAgainIn(uint64_t now_ms, uint64_t delay_ms) {
  if (Ending()) return;
  // One that comes sooner, or has just come, sets the next.
  if (timer_ != base::Executor::Timer::kNone && timer_ms_ <= now_ms + delay_ms) return;
  CancelTimer();
  if (timer_ != base::Executor::Timer::kNone) return;
  jobs_->Begin();
  try {
    timer_ = environment_.executor->ScheduleAfter(std::chrono::milliseconds(delay_ms),
                                                  JobOf(&Core::TimerTask));
  } catch (const std::bad_alloc&) {
    timer_ = base::Executor::Timer::kNone;  // the next flush or job looks again
  }
  timer_ms_ = now_ms + delay_ms;
  if (timer_ == base::Executor::Timer::kNone) jobs_->End();
}

void Core::CancelTimer() {
  if (timer_ == base::Executor::Timer::kNone || !environment_.executor->Cancel(timer_)) return;
  timer_ = base::Executor::Timer::kNone;
  jobs_->End();
}

void Core::TimerTask() {
  obsolete_->RemoveWaiting();
  const std::scoped_lock lock(mutex_);
  timer_ = base::Executor::Timer::kNone;
  ScheduleCompaction();
}

void Core::Begin(CompactionJob* job) {
  running_.reserve(running_.size() + 1);
  for (const TableFiles& level : job->inputs) {
    for (const std::shared_ptr<TableFile>& file : level) file->busy = true;
  }
  for (const std::shared_ptr<TableFile>& file : job->inputs[job->output_level]) {
    job->replaceable_bytes += file->properties().file_bytes;
  }
  running_.push_back(job);
}

void Core::End(const CompactionJob& job) {
  for (const TableFiles& level : job.inputs) {
    for (const std::shared_ptr<TableFile>& file : level) file->busy = false;
  }
  for (const std::shared_ptr<TableFile>& file : job.outputs) file->busy = false;
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
    Begin(&*job);
    // Paid for: one that fails has to be paid for anew.
    if (job->reason == CompactionReason::kScans) job->inputs[0].back()->ForgetScanCost();
    ScheduleCompaction();  // another one may run beside it
  }
  const Status compacted = RunCompaction(&*job);
  {
    const std::scoped_lock lock(mutex_);
    End(*job);
    if (compacted.ok() || compacted.code() == StatusCode::kAborted) ScheduleCompaction();
    const bool is_exhausted = compacted.code() == StatusCode::kResourceExhausted;
    if (is_exhausted && !io::IsDiskFull(compacted)) LookAgainIn(WallMillis(), kRetryMs);
  }
  if (!compacted.ok()) DropWhatIsCovered(*job);
  for (TableFiles& level : job->inputs) LetGoOf(&level);
}

// Removing a file may take milliseconds, and a writer may be waiting for a flush.
void Core::LetGoOf(TableFiles* tables) {
  for (std::shared_ptr<TableFile>& file : *tables) {
    file.reset();
    if (!Ending()) FlushSealed();
  }
  tables->clear();
}

Status Core::CompactRange(std::optional<std::string_view> begin,
                          std::optional<std::string_view> end, KeyspaceId keyspace) {
  BASALT_RETURN_IF_ERROR(CheckWritable());
  BASALT_RETURN_IF_ERROR(CheckKeyspace(*State(), keyspace));
  BASALT_RETURN_IF_ERROR(Flush());
  Status compacted(StatusCode::kAborted, "not begun");
  while (compacted.code() == StatusCode::kAborted) {
    compacted = CompactOnce(begin, end, keyspace);
  }
  return compacted;
}

Status Core::CompactOnce(std::optional<std::string_view> begin, std::optional<std::string_view> end,
                         KeyspaceId keyspace) {
  std::optional<CompactionJob> job;
  {
    std::unique_lock lock(mutex_);
    const base::Counted waits(&manual_compactions_);
    bool is_busy = false;
    WaitUntil(lock, [&] {
      if (closed_.load(std::memory_order_acquire)) return true;
      const Tree* const tree = state_->version->tree(static_cast<uint32_t>(keyspace));
      if (tree == nullptr) return true;
      is_busy = false;
      const TreeRange range(static_cast<uint32_t>(keyspace), begin, end);
      job = PickRange(*tree, range.begin, range.end, &is_busy, Limits(), running_);
      return !is_busy;
    });
    if (job) Begin(&*job);
  }
  // What was begun is ended, also when the database is closed meanwhile, which waits for it.
  const Status compacted = job ? RunCompaction(&*job) : CheckUsable();
  {
    const std::scoped_lock lock(mutex_);
    if (job) End(*job);
    ScheduleCompaction();
  }
  if (job && !compacted.ok()) DropWhatIsCovered(*job);
  return compacted;
}

// On a full disk this may be all that gives back room: no job is begun there.
void Core::DropWhatIsCovered(const CompactionJob& job) {
  if (Ending()) return;
  const std::shared_ptr<const ReadState> state = State();
  const Tree* const tree = state->version->tree(job.keyspace);
  if (tree == nullptr || tree->range_deletes.empty()) return;
  const auto install = [&] { return Install({.without_covered = job.keyspace}); };
  // The manifest needs room, too. What fails is tried again with the next edit.
  if (!io::IsDiskFull(install())) return;
  {
    const io::ReserveFile::Loan loan(reserve_.get());
    static_cast<void>(install());
  }
  static_cast<void>(FillReserve(LogAhead()));
}

Status Core::RunCompaction(CompactionJob* job) {
  const uint64_t start = environment_.clock->MonotonicMicros();
  const uint64_t bytes_in = job->is_move() ? 0 : job->input_bytes();
  NewTables outputs;
  const Status compacted = base::OrOutOfMemory(
      [&] { return job->is_move() ? MoveTable(*job) : MergeTables(job, &outputs); },
      "out of memory while compacting tables");
  const uint64_t duration = environment_.clock->MonotonicMicros() - start;
  {
    const std::scoped_lock lock(mutex_);
    if (compacted.ok()) {
      ++counters_.compactions;
      counters_.compaction_bytes_read += bytes_in;
      counters_.compaction_bytes_written += outputs.bytes;
      background_error_ = flush_error_;
    } else if (compacted.code() != StatusCode::kCancelled &&
               compacted.code() != StatusCode::kAborted) {
      if (io::IsDiskFull(compacted)) disk_is_full_ = true;
      ++counters_.background_errors;
      background_error_ = compacted;
    }
  }
  char detail[64];
  const std::string_view reason = NameOf(job->reason);
  const int size =
      std::snprintf(detail, sizeof detail, "tables were merged into level %zu, for %.*s",
                    job->output_level, static_cast<int>(reason.size()), reason.data());
  Notify({.kind = compacted.ok() ? Event::Kind::kCompaction : Event::Kind::kBackgroundError,
          .bytes_in = bytes_in,
          .bytes_out = outputs.bytes,
          .duration_us = duration,
          .detail = {detail, std::min(static_cast<size_t>(size), sizeof detail - 1)},
          .status = compacted});
  return compacted;
}

Status Core::MoveTable(const CompactionJob& job) {
  Edit edit;
  edit.job = &job;
  for (const TableFiles& level : job.inputs) {
    for (const std::shared_ptr<TableFile>& file : level) {
      edit.removed.push_back(file);
      edit.added.push_back({.keyspace = job.keyspace, .level = job.output_level, .file = file});
    }
  }
  return Install(edit);
}

Status Core::MergeTables(CompactionJob* job, NewTables* outputs) {
  // In this order: every range delete up to the number is in the version that is loaded then.
  const base::SequenceNumber flushed = flushed_sequence_.load(std::memory_order_acquire);
  Merge merge;
  merge.job = job;
  merge.in_pieces = job->may_install_pieces();
  merge.smallest_key = job->smallest_key();
  merge.largest_key = job->largest_key();
  merge.piece_bytes = std::max(kTablesOfPiece * table_bytes_, job->input_bytes() / kPiecesMax);
  base::SurvivingRecords::Rules rules;
  Tree tree;  // what the job asks about, so that it does not hold the tables that it gives back
  {
    const std::shared_ptr<const ReadState> state = State();
    const Tree* const present = state->version->tree(job->keyspace);
    if (present == nullptr) return {};  // the keyspace was dropped
    rules.has_merges_above = HasMerges(*state, nullptr) || HasMergesAbove(*present, *job);
    tree.keyspace = present->keyspace;
    tree.range_deletes = present->range_deletes;
    for (size_t level = job->output_level + 1; level < Tree::kLevels; ++level) {
      tree.levels[level] = present->levels[level];
    }
    tree.IndexLevels();
  }
  RetainForReaders(&rules);
  rules.cover_of = CoverOf(tree.range_deletes);
  rules.is_bottom = [&](std::string_view key) {
    for (size_t level = job->output_level + 1; level < Tree::kLevels; ++level) {
      if (tree.Find(level, key) != nullptr) return false;
    }
    return true;
  };
  rules.expiry_below = [&](std::string_view key, const base::SurvivingRecords::Chain& chain) {
    return ExpiryBelow(tree, key, chain);
  };
  outputs->tree = job->keyspace;
  outputs->at_last_level = !HasTablesBelow(tree, job->output_level);
  outputs->merge = &merge;
  outputs->ranges_applied = std::min(rules.boundaries.front(), flushed);
  BASALT_ASSIGN_OR_RETURN(const CompactionSource source, NewCompactionSource(*job));
  merge.replaced = source.output_level;
  source.records->SeekToFirst();
  BASALT_RETURN_IF_ERROR(WriteTables(source.records.get(), std::move(rules), outputs));
  TableFiles replaced;
  for (const TableFiles& level : job->inputs) {
    replaced.insert(replaced.end(), level.begin(), level.end());
  }
  return InstallOutputs(*job, replaced, outputs);
}

// Tables in the output level end at about table_bytes_. Where a piece is due at the end of an
// input, a table ends there too, if it has at least half of that, and waits for this end where it
// is near.
Status Core::EndTable(std::string_view key, NewTables* outputs) {
  Merge& merge = *outputs->merge;
  const uint64_t open_bytes = outputs->builder == nullptr ? 0 : outputs->builder->file_bytes();
  const bool has_passed = merge.in_pieces && merge.Pass(key);
  if (has_passed && merge.passed_bytes >= merge.piece_bytes &&
      (open_bytes == 0 || open_bytes >= table_bytes_ / 2)) {
    if (open_bytes > 0) BASALT_RETURN_IF_ERROR(FinishTable(key, outputs));
    return InstallPiece(outputs);
  }
  if (open_bytes < table_bytes_) return {};
  const bool waits = merge.in_pieces && open_bytes < 2 * table_bytes_ && merge.IsDueAtNextEnd() &&
                     merge.replaced->bytes_left() < table_bytes_ / 2;
  return waits ? Status() : FinishTable(key, outputs);
}

bool Core::Merge::Pass(std::string_view key) {
  const TableFiles& inputs = job->inputs[job->output_level];
  const size_t passed_before = passed;
  while (passed < inputs.size() && inputs[passed]->properties().largest_key < key) {
    passed_bytes += inputs[passed++]->properties().file_bytes;
  }
  return passed > passed_before;
}

bool Core::Merge::IsDueAtNextEnd() const {
  const TableFiles& inputs = job->inputs[job->output_level];
  return passed < inputs.size() &&
         passed_bytes + inputs[passed]->properties().file_bytes >= piece_bytes;
}

Status Core::InstallPiece(NewTables* outputs) {
  Merge& merge = *outputs->merge;
  CompactionJob& job = *merge.job;
  TableFiles& inputs = job.inputs[job.output_level];
  const auto end = inputs.begin() + static_cast<ptrdiff_t>(std::exchange(merge.passed, 0));
  merge.passed_bytes = 0;
  TableFiles passed(inputs.begin(), end);
  TableFiles installed = outputs->files;
  // A table has just been synced, and a manifest is about to be: a writer may be waiting for a
  // flush.
  FlushSealed();
  {
    const std::scoped_lock lock(mutex_);
    job.outputs.reserve(job.outputs.size() + installed.size());
  }
  for (const std::shared_ptr<TableFile>& file : installed) file->busy = true;
  BASALT_RETURN_IF_ERROR(InstallOutputs(job, passed, outputs));
  {
    const std::scoped_lock lock(mutex_);
    inputs.erase(inputs.begin(), end);
    job.outputs.insert(job.outputs.end(), installed.begin(), installed.end());
  }
  FlushSealed();
  LetGoOf(&passed);
  return {};
}

Status Core::InstallOutputs(const CompactionJob& job, const TableFiles& replaced,
                            NewTables* outputs) {
  Edit edit;
  edit.job = &job;
  edit.removed = replaced;
  for (const std::shared_ptr<TableFile>& file : outputs->files) {
    edit.added.push_back({.keyspace = job.keyspace, .level = job.output_level, .file = file});
  }
  Status installed = Install(edit);
  // They are in the version, wait for the next manifest, or are gone already.
  outputs->files.clear();
  return installed;
}

}  // namespace basalt::db

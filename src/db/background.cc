#include <algorithm>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/fork_generation.h"
#include "base/merging_iterator.h"
#include "base/random.h"
#include "base/retention.h"
#include "db/core.h"
#include "db/file_names.h"
#include "table/concatenating_iterator.h"
#include "table/table_builder.h"

// Flush: the sealed memtable becomes one table of level 0, in the order of the log. Compaction: all
// tables of level 0 and those of level 1 that overlap them become new disjoint tables of level 1.
// One of each runs at a time; a compaction flushes what is sealed meanwhile, so that writers wait
// for nothing but the flush, also with a single background thread.

namespace basalt::db {
namespace {

constexpr size_t kLevel0Trigger = 4;
constexpr uint64_t kRecordsBetweenPauses = 1024;

/// Whose job this thread is running.
thread_local const Core* job_of = nullptr;

}  // namespace

/// Tables being written: finished ones, and the one that is open.
struct Core::NewTables {
  TableFiles files;
  uint64_t bytes = 0;
  std::string path;
  uint64_t number = 0;
  std::unique_ptr<io::File> file;
  std::unique_ptr<table::TableBuilder> builder;
};

struct Core::Compaction {
  TableFiles level0;
  TableFiles level1;
};

/// What Install changes.
struct Core::Edit {
  size_t level = 0;  ///< Of the added tables.
  TableFiles added;
  TableFiles removed;
  std::shared_ptr<Generation> flushed;  ///< Now in tables; null: none.
};

std::shared_ptr<Generation> Core::NewGeneration() const {
  auto generation = std::make_shared<Generation>();
  memtable::GenerationOptions options;
  options.budget_bytes = memtable_bytes_;
  generation->table = memtable::Generation::Create(options);
  return generation;
}

void Core::PublishState(std::shared_ptr<const ReadState> state) {
  const std::scoped_lock lock(mutex_);
  state_.swap(state);
  changed_.notify_all();
}  // the old state dies after the lock is released

void Core::PublishVersion(std::shared_ptr<const Version> version,
                          const std::shared_ptr<Generation>& flushed) {
  std::shared_ptr<const ReadState> old;  // dies after the lock is released
  const std::scoped_lock lock(mutex_);
  auto sealed = state_->sealed == flushed ? nullptr : state_->sealed;
  old = std::exchange(state_, std::make_shared<const ReadState>(ReadState{
                                  state_->active, std::move(sealed), std::move(version)}));
  changed_.notify_all();
}

void Core::Seal() {
  auto active = NewGeneration();
  std::shared_ptr<const ReadState> old;
  const std::scoped_lock lock(mutex_);
  BASALT_CHECK(state_->sealed == nullptr);
  auto next = std::make_shared<const ReadState>(
      ReadState{std::move(active), state_->active, state_->version});
  state_->active->sealed = true;
  old = std::exchange(state_, std::move(next));
  log_->Rotate();
}

bool Core::Schedule(void (Core::*job)()) {
  jobs_->Begin();
  try {
    environment_.executor->Schedule([self = shared_from_this(), jobs = jobs_, job]() mutable {
      const Core* const outer = std::exchange(job_of, self.get());
      ((*self).*job)();
      job_of = outer;
      // Whoever waits for this job's end may count on its reference being gone.
      self.reset();
      jobs->End();
    });
  } catch (const std::bad_alloc&) {
    jobs_->End();
    return false;
  }
  return true;
}

void Core::LetGo() {
  if (fork_generation_ != base::ForkGeneration() || job_of == this) return;
  handle_gone_.store(true, std::memory_order_release);
  jobs_->WaitForAll(environment_.executor);
}

bool Core::Ending() const noexcept {
  return closed_.load(std::memory_order_acquire) || handle_gone_.load(std::memory_order_acquire);
}

void Core::ScheduleFlush() {
  if (flush_scheduled_ || flushing_ || state_->sealed == nullptr) return;
  flush_scheduled_ = Schedule(&Core::FlushJob);
}

void Core::ScheduleCompaction() {
  if (compaction_scheduled_ || compacting_ || Ending()) return;
  if (state_->version->level(0).size() < kLevel0Trigger) return;
  compaction_scheduled_ = Schedule(&Core::CompactionJob);
}

void Core::Notify(const Event& event) const {
  if (!options_.on_event) return;
  const std::scoped_lock lock(event_mutex_);
  options_.on_event(event);
}

// Flush

void Core::FlushJob() {
  {
    const std::scoped_lock lock(mutex_);
    flush_scheduled_ = false;
  }
  FlushSealed();
}

void Core::FlushSealed() {
  std::unique_lock lock(mutex_);
  if (flushing_ || state_->sealed == nullptr) return;
  flushing_ = true;
  const std::shared_ptr<Generation> generation = state_->sealed;
  WaitUntil(lock, [&] { return generation->in_flight.load(std::memory_order_acquire) == 0; });
  lock.unlock();

  Status flushed;
  try {
    flushed = FlushGeneration(generation);
  } catch (const std::bad_alloc&) {
    flushed = Status(StatusCode::kResourceExhausted, "out of memory while flushing a memtable");
  }

  if (!flushed.ok()) Notify({.kind = Event::Kind::kBackgroundError, .status = flushed});
  lock.lock();
  flushing_ = false;
  ++flush_attempts_;
  flush_error_ = flushed;
  background_error_ = flushed;
  if (!flushed.ok()) ++counters_.background_errors;
  ScheduleCompaction();
  changed_.notify_all();
}

Status Core::FlushGeneration(const std::shared_ptr<Generation>& generation) {
  if (generation->table->empty()) {  // every write to it failed
    const std::scoped_lock install(install_mutex_);
    PublishVersion(State()->version, generation);
    return {};
  }
  const uint64_t start = environment_.clock->MonotonicMicros();
  Edit edit{.level = 0, .added = {}, .removed = {}, .flushed = generation};
  NewTables outputs;
  const auto source = generation->table->NewIterator(0, base::kMaxSequence);
  source->SeekToFirst();
  BASALT_RETURN_IF_ERROR(WriteTables(source.get(), /*compaction=*/false, &outputs));
  edit.added = outputs.files;
  BASALT_RETURN_IF_ERROR(Install(edit));

  const uint64_t duration = environment_.clock->MonotonicMicros() - start;
  {
    const std::scoped_lock lock(mutex_);
    ++counters_.flushes;
    counters_.flush_bytes += outputs.bytes;
  }
  const wal::Lsn lsn = generation->last_lsn.load(std::memory_order_relaxed);
  if (log_ != nullptr && lsn != 0) {
    log_->SetFlushed(lsn);
    // A log file that cannot be removed now is removed after a later flush, or at Open.
    static_cast<void>(log_->RemoveObsolete(lsn));
  }
  Notify({.kind = Event::Kind::kFlush,
          .bytes_in = generation->table->memory_bytes(),
          .bytes_out = outputs.bytes,
          .duration_us = duration,
          .detail = "a memtable was written to level 0"});
  return {};
}

Status Core::WaitForFlushOf(const std::shared_ptr<Generation>& generation) {
  std::unique_lock lock(mutex_);
  const uint64_t attempts = flush_attempts_;
  ScheduleFlush();
  WaitUntil(lock, [&] { return state_->sealed != generation || flush_attempts_ != attempts; });
  return state_->sealed != generation ? Status() : flush_error_;
}

Status Core::Flush() {
  BASALT_RETURN_IF_ERROR(CheckUsable());
  std::shared_ptr<Generation> target;
  while (true) {
    std::shared_ptr<Generation> blocking;
    {
      const std::scoped_lock commit(commit_mutex_);
      BASALT_RETURN_IF_ERROR(CheckUsable());
      const std::shared_ptr<const ReadState> state = State();
      if (target == nullptr) target = state->active;
      if (state->active == target && state->sealed == nullptr) {
        if (target->table->empty() && target->in_flight == 0) return {};
        Seal();
        blocking = target;
      } else if (state->sealed != nullptr) {
        blocking = state->sealed;
      } else {
        return {};  // somebody else sealed and flushed it
      }
    }
    BASALT_RETURN_IF_ERROR(WaitForFlushOf(blocking));
    if (blocking == target) return {};
  }
}

Status Core::FlushThrough(wal::Lsn lsn) {
  while (flushed_lsn_.load(std::memory_order_acquire) < lsn) {
    std::shared_ptr<Generation> target;
    {
      const std::scoped_lock commit(commit_mutex_);
      std::shared_ptr<const ReadState> state = State();
      if (state->sealed == nullptr) {
        if (state->active->last_lsn == 0 && state->active->in_flight == 0) return {};
        Seal();
        state = State();
      }
      target = state->sealed;
    }
    BASALT_RETURN_IF_ERROR(WaitForFlushOf(target));
  }
  return {};
}

// Compaction

Core::Compaction Core::PickCompaction(const Version& version, std::optional<std::string_view> begin,
                                      std::optional<std::string_view> end) {
  Compaction compaction{version.level(0), {}};
  for (const std::shared_ptr<TableFile>& file : compaction.level0) {
    const table::TableProperties& properties = file->properties();
    if (begin) begin = std::min(*begin, std::string_view(properties.smallest_key));
    if (end) end = std::max(*end, std::string_view(properties.largest_key));
  }
  compaction.level1 = version.OverlappingLevel1(begin, end);
  return compaction;
}

void Core::CompactionJob() {
  Compaction compaction;
  {
    const std::scoped_lock lock(mutex_);
    compaction_scheduled_ = false;
    if (compacting_ || Ending()) return;
    const TableFiles& level0 = state_->version->level(0);
    if (level0.size() < kLevel0Trigger) return;
    compacting_ = true;
    compaction = PickCompaction(*state_->version, level0.front()->properties().smallest_key,
                                level0.front()->properties().largest_key);
  }
  const Status compacted = RunCompaction(compaction);
  const std::scoped_lock lock(mutex_);
  compacting_ = false;
  if (compacted.ok()) ScheduleCompaction();
  changed_.notify_all();
}

Status Core::CompactRange(std::optional<std::string_view> begin,
                          std::optional<std::string_view> end) {
  BASALT_RETURN_IF_ERROR(Flush());
  {
    std::unique_lock lock(mutex_);
    WaitUntil(lock, [&] { return !compacting_; });
    BASALT_RETURN_IF_ERROR(CheckUsable());
    compacting_ = true;
  }
  const Compaction compaction = PickCompaction(*State()->version, begin, end);
  const bool nothing = compaction.level0.empty() && compaction.level1.empty();
  const Status compacted = nothing ? Status() : RunCompaction(compaction);
  const std::scoped_lock lock(mutex_);
  compacting_ = false;
  ScheduleCompaction();
  changed_.notify_all();
  return compacted;
}

Status Core::RunCompaction(const Compaction& compaction) {
  const uint64_t start = environment_.clock->MonotonicMicros();
  uint64_t bytes_in = 0;
  NewTables outputs;
  const auto run = [&]() -> Status {
    std::vector<std::unique_ptr<base::RecordIterator>> children;
    for (const std::shared_ptr<TableFile>& file : compaction.level0) {
      BASALT_ASSIGN_OR_RETURN(const table::Table* table, file->Open());
      children.push_back(table->NewIterator(/*fill_cache=*/false));
      bytes_in += file->properties().file_bytes;
    }
    std::vector<std::shared_ptr<const table::Table>> sorted;
    for (const std::shared_ptr<TableFile>& file : compaction.level1) {
      BASALT_ASSIGN_OR_RETURN(const table::Table* table, file->Open());
      sorted.push_back(table->shared_from_this());
      bytes_in += file->properties().file_bytes;
    }
    if (!sorted.empty()) {
      children.push_back(table::NewConcatenatingIterator(std::move(sorted), /*fill_cache=*/false));
    }
    const auto source = base::NewMergingIterator(std::move(children));
    source->SeekToFirst();
    BASALT_RETURN_IF_ERROR(WriteTables(source.get(), /*compaction=*/true, &outputs));
    Edit edit{.level = 1, .added = outputs.files, .removed = compaction.level0, .flushed = nullptr};
    edit.removed.insert(edit.removed.end(), compaction.level1.begin(), compaction.level1.end());
    return Install(edit);
  };
  Status compacted;
  try {
    compacted = run();
  } catch (const std::bad_alloc&) {
    compacted = Status(StatusCode::kResourceExhausted, "out of memory while compacting tables");
  }
  const uint64_t duration = environment_.clock->MonotonicMicros() - start;
  {
    const std::scoped_lock lock(mutex_);
    if (compacted.ok()) {
      ++counters_.compactions;
      counters_.compaction_bytes_read += bytes_in;
      counters_.compaction_bytes_written += outputs.bytes;
    } else if (compacted.code() != StatusCode::kCancelled) {
      ++counters_.background_errors;
      background_error_ = compacted;
    }
  }
  Notify({.kind = compacted.ok() ? Event::Kind::kCompaction : Event::Kind::kBackgroundError,
          .bytes_in = bytes_in,
          .bytes_out = outputs.bytes,
          .duration_us = duration,
          .detail = "level 0 and what it overlaps were merged into level 1",
          .status = compacted});
  return compacted;
}

// Tables

std::vector<base::SequenceNumber> Core::RetainedBoundaries() const {
  if (queue_ == nullptr) return {base::kMaxSequence};  // recovery: nobody reads yet
  const std::scoped_lock lock(mutex_);
  std::vector<base::SequenceNumber> boundaries(snapshots_.begin(), snapshots_.end());
  boundaries.push_back(visible());
  boundaries.erase(std::unique(boundaries.begin(), boundaries.end()), boundaries.end());
  return boundaries;
}

Status Core::WriteTables(base::RecordIterator* source, bool compaction, NewTables* outputs) {
  base::Retention retention(RetainedBoundaries(), /*at_bottom=*/compaction);
  const auto write = [&]() -> Status {
    std::string last_key;
    uint64_t seen = 0;
    for (; source->Valid(); source->Next()) {
      if (compaction && ++seen % kRecordsBetweenPauses == 0) {
        if (Ending()) {
          return Status(StatusCode::kCancelled, "the database is being closed");
        }
        FlushSealed();
      }
      if (!retention.Keep(source->key(), source->tag())) continue;
      // A table of level 1 ends where the key changes, so that one key's versions stay together.
      if (compaction && outputs->builder != nullptr &&
          outputs->builder->file_bytes() >= table_bytes_ && source->key() != last_key) {
        BASALT_RETURN_IF_ERROR(FinishTable(outputs));
      }
      if (outputs->builder == nullptr) BASALT_RETURN_IF_ERROR(StartTable(outputs));
      BASALT_RETURN_IF_ERROR(outputs->builder->Add(source->key(), source->tag(), source->value()));
      if (compaction) last_key.assign(source->key());
    }
    BASALT_RETURN_IF_ERROR(source->status());
    return outputs->builder == nullptr ? Status() : FinishTable(outputs);
  };
  Status written = write();
  if (!written.ok()) {
    // Partial outputs go at once: on a full disk they are what keeps it full.
    for (const std::shared_ptr<TableFile>& file : outputs->files) file->MarkObsolete();
    outputs->files.clear();
    if (outputs->file != nullptr) {
      outputs->builder.reset();
      outputs->file.reset();
      static_cast<void>(environment_.fs->RemoveFile(outputs->path));
    }
  }
  return written;
}

Status Core::StartTable(NewTables* outputs) {
  {
    const std::scoped_lock lock(mutex_);
    outputs->number = next_table_number_++;
  }
  outputs->path = io::JoinPath(path_, TableFileName(outputs->number));
  BASALT_ASSIGN_OR_RETURN(outputs->file,
                          environment_.fs->Open(outputs->path, io::OpenMode::kCreate));
  outputs->builder = std::make_unique<table::TableBuilder>(outputs->file.get(), base::RandomSeed(),
                                                           0, options_.compression);
  return {};
}

Status Core::FinishTable(NewTables* outputs) {
  BASALT_RETURN_IF_ERROR(outputs->builder->Finish());
  auto finished = std::make_shared<TableFile>(environment_.fs, outputs->path, outputs->number,
                                              outputs->builder->properties(), cache_);
  outputs->builder.reset();
  outputs->file.reset();
  outputs->bytes += finished->properties().file_bytes;
  outputs->files.push_back(finished);
  // Nothing is installed that cannot be opened.
  return finished->Open().status();
}

Status Core::Install(const Edit& edit) {
  const std::scoped_lock install(install_mutex_);
  const std::shared_ptr<const Version> present = State()->version;
  TableFiles levels[Version::kLevels];
  for (size_t level = 0; level < Version::kLevels; ++level) {
    if (level == edit.level) levels[level] = edit.added;
    for (const std::shared_ptr<TableFile>& file : present->level(level)) {
      if (std::find(edit.removed.begin(), edit.removed.end(), file) == edit.removed.end()) {
        levels[level].push_back(file);
      }
    }
  }
  std::sort(levels[1].begin(), levels[1].end(), [](const auto& a, const auto& b) {
    return a->properties().smallest_key < b->properties().smallest_key;
  });
  auto version = std::make_shared<const Version>(std::move(levels[0]), std::move(levels[1]));

  Manifest next = manifest_;
  for (size_t level = 0; level < Version::kLevels; ++level) {
    for (const std::shared_ptr<TableFile>& file : version->level(level)) {
      next.tables.push_back({file->number(), static_cast<uint32_t>(level), file->properties()});
      next.last_sequence = std::max(next.last_sequence, file->properties().largest_sequence);
    }
  }
  if (edit.flushed != nullptr) {
    next.flushed_lsn = std::max(next.flushed_lsn, edit.flushed->last_lsn.load());
  }
  if (log_ != nullptr) next.durable_lsn = std::max(next.durable_lsn, log_->durable_lsn());
  next.durable_lsn = std::max(next.durable_lsn, next.flushed_lsn);
  next.wall_ms = std::max(next.wall_ms, environment_.clock->WallMillis());
  {
    const std::scoped_lock lock(mutex_);
    next.next_table_number = next_table_number_;
  }
  if (Status written = WriteManifest(environment_.fs, path_, next); !written.ok()) {
    // The manifest on disk may be the new one: what it names has to stay until one is written
    // again.
    orphans_.insert(orphans_.end(), edit.added.begin(), edit.added.end());
    return written;
  }
  next.tables.clear();
  manifest_ = next;
  flushed_lsn_.store(next.flushed_lsn, std::memory_order_release);

  PublishVersion(std::move(version), edit.flushed);
  for (const std::shared_ptr<TableFile>& file : edit.removed) file->MarkObsolete();
  for (const std::shared_ptr<TableFile>& file : orphans_) file->MarkObsolete();
  orphans_.clear();
  return {};
}

}  // namespace basalt::db

#include <algorithm>
#include <utility>

#include "base/arena.h"
#include "base/batch_cursor.h"
#include "base/check.h"
#include "base/fork_count.h"
#include "base/option_value.h"
#include "base/random.h"
#include "db/core.h"
#include "db/directory_lock.h"
#include "db/file_names.h"
#include "db/log_record.h"
#include "db/memory_limit.h"

// Opens a database. The steps: take the lock; read the manifest or write the first one; check that
// all files that it names exist; judge the log. Then replay the log above the flushed LSN into
// memtables, and flush each full one if the disk has room. At last remove the files that the
// manifest does not name, and start a new log.

namespace basalt::db {
namespace {

constexpr uint64_t kMinMemoryBudget = uint64_t{1} << 20;
constexpr uint64_t kMaxMemtablesBytes = uint64_t{64} << 20;
constexpr uint64_t kMinTableBytes = uint64_t{2} << 20;
constexpr uint64_t kMaxTableBytes = uint64_t{16} << 20;
constexpr uint64_t kTableShare = 8;  // of the budget
/// Of the base level, but for memtables so large that four of them are more.
constexpr uint64_t kMaxBaseBytes = 4 * kMaxTableBytes;
/// What table metadata take of the budget at most, in eighths, but for what no table can do
/// without. What finds no room is read in parts. A byte of a filter is worth many of blocks, so
/// that blocks are left little: an eighth at least.
constexpr uint64_t kMetadataEighths = 5;
/// Up to which part of it point indexes are kept; tables beyond that have filters.
constexpr uint64_t kPointIndexShare = 4;

uint64_t DerivedBudget(const DBOptions& options) {
  if (options.memory_budget != 0) return options.memory_budget;
  return std::max(kMinMemoryBudget, MemoryLimit() / 4);
}

/// All memtables together: a quarter of the budget, at most 64 MiB.
uint64_t MemtablesBytes(uint64_t memory_budget) {
  return std::min(kMaxMemtablesBytes, memory_budget / 4);
}

/// What is kept of a table while it is written, and its index and filter, which come and go with
/// it, are the largest pieces of memory that no budget counts. They are as large as the table.
uint64_t TableBytes(uint64_t memory_budget) {
  return std::clamp(memory_budget / kTableShare, kMinTableBytes, kMaxTableBytes);
}

/// The least that a level below level 0 aims at: as much as a round of level 0 brings, so that a
/// round rewrites one to ten times its own size there. Where memtables are large that is more than
/// levels need to be told apart.
uint64_t BaseBytes(uint64_t memtable_bytes) {
  return std::min(kLevel0Tables * memtable_bytes, std::max(4 * memtable_bytes, kMaxBaseBytes));
}

Status CheckOptions(const DBOptions& options) {
  if (options.memory_budget != 0 && options.memory_budget < kMinMemoryBudget) {
    return Status(StatusCode::kInvalidArgument,
                  "DBOptions::memory_budget is " + std::to_string(options.memory_budget) +
                      " bytes; the minimum is " + std::to_string(kMinMemoryBudget) +
                      ", and 0 means a quarter of the memory");
  }
  BASALT_RETURN_IF_ERROR(base::CheckDurability("DBOptions::durability", options.durability));
  if (options.compression > Compression::kLz4ThenZstd) {
    return base::NoSuchValue("DBOptions::compression", options.compression,
                             "kNone, kLz4 or kLz4ThenZstd");
  }
  if (options.default_ttl.count() < 0) {
    return Status(StatusCode::kInvalidArgument,
                  "DBOptions::default_ttl is negative: give a positive one, or zero for none");
  }
  if (options.background_threads > 64) {
    return Status(StatusCode::kInvalidArgument, "DBOptions::background_threads is " +
                                                    std::to_string(options.background_threads) +
                                                    "; the maximum is 64, and 0 means the default");
  }
  return {};
}

}  // namespace

Core::Core(std::string path, const DBOptions& options, const Environment& environment, Mode mode)
    : path_(std::move(path)),
      options_(options),
      environment_(environment),
      mode_(mode),
      fork_count_(base::ForkCount()),
      memory_budget_(DerivedBudget(options)),
      memtable_bytes_(environment.memtable_bytes != 0 ? environment.memtable_bytes
                                                      : MemtablesBytes(memory_budget_) / 2),
      table_bytes_(environment.table_bytes != 0 ? environment.table_bytes
                                                : TableBytes(memory_budget_)),
      base_bytes_(BaseBytes(memtable_bytes_)) {
  // What one memtable gives back the next one takes.
  base::ChunkPool::Process()->KeepMore(static_cast<int64_t>(2 * memtable_bytes_));
}

Result<std::shared_ptr<Core>> Core::Open(std::string path, const DBOptions& options,
                                         const Environment& environment, Mode mode) {
  BASALT_RETURN_IF_ERROR(CheckOptions(options));
  if (path.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  "the database path is empty: name a directory, or \":memory:\"");
  }
  std::shared_ptr<Core> core(new Core(std::move(path), options, environment, mode), [](Core* core) {
    if (!core->IsInherited()) delete core;
  });
  BASALT_ASSIGN_OR_RETURN(core->cache_,
                          Cache::Create({.capacity_bytes = core->memory_budget_ -
                                                           MemtablesBytes(core->memory_budget_)}));
  core->metadata_ = std::make_shared<table::MetadataBudget>(
      core->memory_budget_ / 8 * kMetadataEighths, core->memory_budget_ / kPointIndexShare);
  if (mode == Mode::kReadOnly) {
    BASALT_RETURN_IF_ERROR(core->FindDirectory());
  } else {
    if (environment.descriptors != nullptr) core->spare_descriptors_.emplace();
    BASALT_ASSIGN_OR_RETURN(core->lock_,
                            LockToOpen(environment.fs, &core->path_, options.create_if_missing));
    core->obsolete_ =
        std::make_shared<ObsoleteFiles>(environment.fs, core->path_, environment.clock);
  }
  core->reserve_ =
      std::make_unique<io::ReserveFile>(environment.fs, io::JoinPath(core->path_, kReserveName),
                                        /*is_wanted=*/environment.owned_fs == nullptr);
  if (mode == Mode::kReadOnly) {
    BASALT_RETURN_IF_ERROR(core->LoadForReading());
    return core;
  }
  Status loaded = core->Load();
  // A torn tail is kept in lost/, for which a full disk may have no room.
  if (loaded.code() == StatusCode::kResourceExhausted && core->reserve_->Release()) {
    loaded = core->Load();
  }
  if (!loaded.ok()) return loaded;
  return core;
}

// What becomes later of the working directory, or of links, leads nowhere else.
Status Core::FindDirectory() {
  BASALT_ASSIGN_OR_RETURN(const bool exists, environment_.fs->Exists(path_));
  if (exists) {
    BASALT_ASSIGN_OR_RETURN(path_, environment_.fs->Resolve(path_));
  }
  return {};
}

// May be called again when it has failed. A process that was killed may have put the manifest in
// its place without syncing the directory. Until that name is durable a power cut may bring the
// manifest before back, so that none of the files that only that one names may go.
Status Core::Load() {
  BASALT_RETURN_IF_ERROR(environment_.fs->SyncDirectory(path_));
  BASALT_RETURN_IF_ERROR(LoadManifest());
  return ReplayLog();
}

Status Core::LoadManifest() {
  io::FileSystem* const fs = environment_.fs;
  auto read = ReadManifest(fs, path_);
  if (!read && read.error().code() != StatusCode::kNotFound) return read.error();
  if (!read) {
    // The directory itself must be durable before anything in it can be.
    BASALT_RETURN_IF_ERROR(fs->SyncDirectory(io::ParentDirectory(path_)));
    manifest_.database_id = base::RandomSeed();
    manifest_.wall_ms = environment_.clock->WallMillis();
    BASALT_RETURN_IF_ERROR(WriteManifest(fs, path_, manifest_));
  } else {
    manifest_ = std::move(*read);
  }
  BASALT_ASSIGN_OR_RETURN(manifest_bytes_, fs->FileSize(io::JoinPath(path_, kManifestName)));
  BASALT_RETURN_IF_ERROR(TakeManifest());
  return ListTables();
}

// What manifest_ says becomes the state; its tables and range deletes are then known from there.
Status Core::TakeManifest() {
  next_table_number_ = manifest_.next_table_number;
  flushed_lsn_ = manifest_.flushed_lsn;
  commit_.last_sequence = manifest_.last_sequence;

  time_.Raise(manifest_.wall_ms);
  flushed_sequence_ = manifest_.last_sequence;
  auto version = VersionOf(manifest_, environment_.fs, path_, TableResources());
  BASALT_RETURN_IF_ERROR(version->CheckOrder());
  auto state = std::make_shared<ReadState>();
  state->active = NewGeneration();
  state->version = std::move(version);
  state->keyspaces = std::make_shared<const Keyspaces>(manifest_.keyspaces);
  manifest_.tables.clear();
  manifest_.range_deletes.clear();
  manifest_.dropped_keyspaces.clear();
  PublishState(std::move(state));
  return {};
}

// Whoever has the database open may go on writing, replace the manifest and remove what the old one
// named. The mark makes it keep files while they are opened here: first those that the manifest
// names, then those of the log, in which at that time all is that no table of the manifest holds.
// From then on they are there, whatever becomes of their names, and it does not matter how long it
// takes to read them.
//
// Where a directory cannot be marked, or the mark came to be too old, the manifest must not have
// been replaced meanwhile. Then, and where a file has vanished for another reason, as when the
// database was destroyed and made again, all is done again.
Status Core::LoadForReading() {
  constexpr int kAttempts = 100;
  for (int attempt = 1;; ++attempt) {
    std::string manifest;
    Status loaded = TryLoadForReading(&manifest);
    if (loaded.ok() || manifest.empty() || attempt == kAttempts) return loaded;
    const auto present = ReadManifestBytes(environment_.fs, path_);
    if (present && *present == manifest && loaded.code() != StatusCode::kNotFound) return loaded;
  }
}

Status Core::TryLoadForReading(std::string* manifest) {
  io::FileSystem* const fs = environment_.fs;
  constexpr uint64_t kTrustedUs = ObsoleteFiles::kPatienceMs * 1000 / 2;
  const uint64_t start_us = environment_.clock->MonotonicMicros();
  auto mark = fs->MarkDirectory(path_);
  auto read = ReadManifestBytes(fs, path_);
  if (!read) {
    if (read.error().code() != StatusCode::kNotFound) return read.error();
    return Status(StatusCode::kNotFound, "there is no database at " + path_ +
                                             ": check the path; OpenReadOnly does not create one");
  }
  *manifest = std::move(*read);
  BASALT_ASSIGN_OR_RETURN(manifest_, DecodeManifest(*manifest, io::JoinPath(path_, kManifestName)));
  commit_.last_sequence = 0;
  BASALT_RETURN_IF_ERROR(TakeManifest());
  BASALT_RETURN_IF_ERROR(PinTables());
  BASALT_ASSIGN_OR_RETURN(const wal::PinnedLog log, wal::PinLog(fs, path_));
  if (!mark || environment_.clock->MonotonicMicros() - start_us > kTrustedUs) {
    BASALT_ASSIGN_OR_RETURN(const std::string present, ReadManifestBytes(fs, path_));
    if (present != *manifest) {
      return Status(StatusCode::kAborted,
                    "the database " + path_ + " was changed while it was being opened");
    }
  }
  if (mark) mark->reset();
  const auto replay = [this](const wal::RecordView& record) { return ReplayRecord(record); };
  BASALT_ASSIGN_OR_RETURN(const wal::RecoveryResult recovered,
                          wal::RecoverPinned(log, path_, manifest_.ClaimsOfLog(), replay));
  counters_.recovered_records = recovered.records;
  queue_ = std::make_unique<CommitQueue>(commit_.last_sequence);
  return {};
}

Status Core::PinTables() const {
  const std::shared_ptr<const Version> version = State()->version;
  for (const auto& tree : version->trees()) {
    for (const TableFiles& level : tree->levels) {
      for (const std::shared_ptr<TableFile>& file : level) BASALT_RETURN_IF_ERROR(file->Pin());
    }
  }
  return {};
}

// Misses what should be there, and notes what an interrupted flush or compaction has left.
Status Core::ListTables() {
  const std::shared_ptr<const Version> version = State()->version;
  BASALT_ASSIGN_OR_RETURN(const std::vector<std::string> names, environment_.fs->List(path_));
  if (const TableFiles missing = version->MissingFrom(names); !missing.empty()) {
    return missing.front()->NotThere();
  }
  BASALT_ASSIGN_OR_RETURN(unnamed_, UnnamedFiles::Find(environment_.fs, path_, names, *version));
  next_table_number_ = std::max(next_table_number_, unnamed_.next_table_number());
  return {};
}

Status Core::RemoveUnnamed(base::SequenceNumber last_sequence) {
  BASALT_ASSIGN_OR_RETURN(const std::vector<std::string> moved, unnamed_.Remove(last_sequence));
  if (moved.empty()) return {};
  const std::string detail =
      "tables with newer records than the log and what the MANIFEST names were moved to lost/, " +
      std::to_string(moved.size()) + " from " + moved.front() +
      " on: if the MANIFEST is an older one, put them and the right one back";
  Notify({.kind = Event::Kind::kTablesMovedToLost, .detail = detail});
  return {};
}

Status Core::ReplayRecord(const wal::RecordView& record) {
  BASALT_RETURN_IF_ERROR(CheckLogRecord(record, path_, manifest_.next_keyspace_id));
  std::shared_ptr<LoggedGeneration> generation = State()->active;
  auto reservation = generation->table->Reserve(record.payload, record.count);
  if (!reservation && reservation.error().code() == StatusCode::kResourceExhausted) {
    Seal();
    if (mode_ == Mode::kWrite) {
      BASALT_RETURN_IF_ERROR(
          FlushReplayed(std::max(commit_.last_sequence, record.greatest_sequence)));
    }
    generation = State()->active;
    reservation = generation->table->Reserve(record.payload, record.count);
  }
  if (!reservation) return reservation.error();
  generation->table->Insert(std::move(*reservation), record.first_sequence);
  base::BatchCursor cursor(record.payload);
  for (base::SequenceNumber sequence = record.first_sequence; cursor.Next(); ++sequence) {
    if (cursor.kind() == RecordKind::kMerge) generation->has_merges = true;
    if (cursor.kind() != RecordKind::kDeleteRange) continue;
    memtable::RangeDelete* const range = generation->table->PrepareRangeDelete(
        cursor.keyspace(), cursor.key(), cursor.value(), false, /*within_limit=*/false);
    if (range == nullptr) return Status(StatusCode::kResourceExhausted, "out of memory");
    generation->table->Finish(range, sequence);
  }
  generation->table->FlattenRangeDeletes(nullptr);
  const base::SequenceNumber last = record.first_sequence + record.count - 1;
  generation->last_lsn = record.lsn;
  generation->last_sequence = last;
  commit_.last_sequence = std::max(commit_.last_sequence, last);
  return {};
}

// The oldest first. Those for which the disk has no room stay in memory, as in the run before:
// whoever wants to make room has to open the database first.
Status Core::FlushReplayed(base::SequenceNumber last_sequence) {
  BASALT_RETURN_IF_ERROR(RemoveUnnamed(last_sequence));  // a full disk may need their room
  for (auto state = State(); !state->sealed.empty(); state = State()) {
    Status flushed = FlushGeneration(state->sealed.back());
    if (flushed.code() == StatusCode::kResourceExhausted) return {};
    if (!flushed.ok()) return flushed;
  }
  return {};
}

Status Core::ReplayLog() {
  const uint64_t start = environment_.clock->MonotonicMicros();
  const auto replay = [this](const wal::RecordView& record) { return ReplayRecord(record); };
  BASALT_ASSIGN_OR_RETURN(const wal::RecoveryResult recovered,
                          wal::Recover(environment_.fs, path_, manifest_.ClaimsOfLog(),
                                       wal::RecoveryMode::kOpen, replay));
  BASALT_RETURN_IF_ERROR(RemoveUnnamed(commit_.last_sequence));
  counters_.recovered_records = recovered.records;
  counters_.log_tail_bytes_cut = recovered.tail_bytes_cut;
  if (recovered.tail_bytes_cut > 0) {
    const std::string detail = "the log's torn tail was cut from " + recovered.tail_file +
                               " at offset " + std::to_string(recovered.tail_offset) +
                               " and kept in lost/";
    Notify(
        {.kind = Event::Kind::kLogTailCut, .bytes_in = recovered.tail_bytes_cut, .detail = detail});
  }
  if (recovered.records > 0) {
    Notify({.kind = Event::Kind::kRecovery,
            .bytes_in = recovered.log_bytes,
            .duration_us = environment_.clock->MonotonicMicros() - start,
            .detail = "the log was replayed"});
  }
  return StartLog(recovered);
}

Status Core::StartLog(const wal::RecoveryResult& recovered) {
  wal::LogOptions log_options;
  log_options.preallocate_bytes = LogStep();
  // The log dies with this object and calls back only from its own functions.
  log_options.flush_through = [this](wal::Lsn lsn) { return FlushThrough(lsn); };
  log_options.before_growth = [this](uint64_t bytes) { return BeforeLogGrows(bytes); };
  log_options.remove_file = [this](const std::string& path) { return obsolete_->Remove(path); };
  BASALT_ASSIGN_OR_RETURN(
      log_, wal::Log::Start(environment_.fs, path_, recovered.start, std::move(log_options)));
  // Not before: while there is none the log is being replayed, which Load may do once more.
  queue_ = std::make_unique<CommitQueue>(commit_.last_sequence);
  const wal::Lsn flushed = flushed_lsn_.load(std::memory_order_relaxed);
  log_->SetFlushed(flushed);
  // What cannot be removed now is removed after a later flush.
  static_cast<void>(log_->RemoveObsolete(flushed, options_.log_keep_bytes));

  // What was replayed but not known durable may lie in pages whose sync once failed: syncing the
  // old files again would prove nothing, so that it goes to tables.
  if (recovered.start.durable_lsn + 1 < recovered.start.next_lsn &&
      !State()->active->table->empty()) {
    const std::scoped_lock commit(commit_.lock);
    Seal();
  }
  FillReserve(LogAhead());
  const std::scoped_lock lock(mutex_);
  ScheduleFlush();
  ScheduleCompaction();
  return {};
}

}  // namespace basalt::db

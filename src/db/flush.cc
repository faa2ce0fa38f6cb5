#include <algorithm>
#include <map>
#include <new>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/out_of_memory.h"
#include "base/visible_iterator.h"
#include "db/edit.h"
#include "db/tree_iterator.h"
#include "db/tree_key.h"

// Flush: the oldest sealed memtable becomes a table of level 0 for the default keyspace, and one
// for all others (tree_key.h), in the order of the log. One flush runs at a time; a compaction
// flushes what is sealed meanwhile, so that writers wait for nothing but the flush, also with a
// single background thread.

namespace basalt::db {

std::shared_ptr<LoggedGeneration> Core::NewGeneration() const {
  auto generation = std::make_shared<LoggedGeneration>();
  memtable::GenerationOptions options;
  options.budget_bytes = memtable_bytes_;
  generation->table = memtable::Generation::Create(options);
  return generation;
}

bool Core::HasMerges(const ReadState& state, const LoggedGeneration* than) noexcept {
  if (state.active.get() == than) return false;
  if (state.active->has_merges.load(std::memory_order_relaxed)) return true;
  for (const auto& sealed : state.sealed) {
    if (sealed.get() == than) return false;
    if (sealed->has_merges.load(std::memory_order_relaxed)) return true;
  }
  return false;
}

bool Core::HasUnlogged(const ReadState& state) noexcept {
  const auto has_some = [](const std::shared_ptr<LoggedGeneration>& generation) {
    return generation->has_unlogged.load(std::memory_order_relaxed);
  };
  return has_some(state.active) || std::ranges::any_of(state.sealed, has_some);
}

bool Core::CanSeal(const ReadState& state) const noexcept { return state.sealed.empty(); }

void Core::Seal() {
  auto next = std::make_shared<ReadState>();
  next->active = NewGeneration();
  std::shared_ptr<const ReadState> old;
  {
    const std::scoped_lock lock(mutex_);
    next->sealed = state_->sealed;
    next->sealed.insert(next->sealed.begin(), state_->active);
    next->version = state_->version;
    next->keyspaces = state_->keyspaces;
    state_->active->sealed = true;
    state_->active->RaiseLastLsn(std::exchange(commit_.active_lsn, 0));
    if (commit_.active_sequence != 0) {
      state_->active->last_sequence = std::exchange(commit_.active_sequence, 0);
    }
    old = Replace(std::move(next));
    flush_pace_.Begin(memtable_bytes_);
    if (log_ != nullptr) log_->Rotate();
  }
  Retire(std::move(old));
}

void Core::FlushDeletes() {
  constexpr uint64_t kDeletesMin = base::View::kManyHidden / 4;
  if (!CheckWritable().ok()) return;
  const std::unique_lock commit(commit_.lock, std::try_to_lock);
  if (!commit) return;
  const std::shared_ptr<const ReadState> state = State();
  if (state->active->deletes.load(std::memory_order_relaxed) < kDeletesMin) return;
  if (!CanSeal(*state)) return;
  try {
    Seal();
  } catch (const std::bad_alloc&) {
    return;
  }
  const std::scoped_lock lock(mutex_);
  ScheduleFlush();
}

void Core::ScheduleFlush() noexcept {
  if (flush_scheduled_ || flushing_ || state_->sealed.empty()) return;
  flush_scheduled_ = Schedule(&Core::FlushJob);
}

void Core::FlushJob() {
  {
    const std::scoped_lock lock(mutex_);
    flush_scheduled_ = false;
  }
  FlushSealed();
}

void Core::FlushSealed() {
  std::unique_lock lock(mutex_);
  if (flushing_ || state_->sealed.empty()) return;
  flushing_ = true;
  const std::shared_ptr<LoggedGeneration> generation = state_->sealed.back();
  WaitUntil(lock, [&] { return generation->in_flight.empty(); });
  lock.unlock();

  const Status flushed = FlushGeneration(generation);
  obsolete_->RemoveWaiting();
  if (FillReserve(LogAhead()) && flushed.ok()) {
    disk_is_full_.store(false, std::memory_order_relaxed);
  }
  // Between two flushes of a load it is soon needed again.
  if (flushed.ok() && log_->live_bytes() <= LogAhead()) TrimReserve();
  if (!flushed.ok()) Notify({.kind = Event::Kind::kBackgroundError, .status = flushed});
  lock.lock();
  EndFlush(generation.get(), flushed);
}

// A memtable whose tables are installed is flushed, whatever failed afterwards. One that is not
// keeps those behind it from being flushed: whoever waits for one of them has to be told.
void Core::EndFlush(const LoggedGeneration* generation, const Status& flushed) {
  flushing_ = false;
  flush_error_ = flushed;
  background_error_ = flushed;
  if (!flushed.ok()) {
    ++counters_.background_errors;
    flush_pace_.End();
  }
  if (IsAmong(state_->sealed, generation)) {
    for (const std::shared_ptr<LoggedGeneration>& waiting : state_->sealed) {
      ++waiting->failed_flushes;
      waiting->flush_error = flushed;
    }
  } else {
    ScheduleFlush();
  }
  ScheduleCompaction();
  changed_.notify_all();
}

Status Core::FlushGeneration(const std::shared_ptr<LoggedGeneration>& generation) {
  return base::OrOutOfMemory(
      [&] {
        Status flushed = TryFlush(generation);
        if (!io::IsDiskFull(flushed)) return flushed;
        const io::ReserveFile::Loan loan(reserve_.get());
        return TryFlush(generation);
      },
      "out of memory while flushing a memtable");
}

Status Core::TryFlush(const std::shared_ptr<LoggedGeneration>& generation) {
  Edit edit;
  edit.flushed = generation;
  if (generation->table->empty()) {  // every write to it failed
    const std::scoped_lock install(install_mutex_);
    return DropEmpty(generation);
  }
  const uint64_t start = environment_.clock->MonotonicMicros();
  uint64_t bytes_out = 0;
  Status written =
      base::OrOutOfMemory([&] { return FlushKeyspaces(*generation, &edit, &bytes_out); });
  if (!written.ok()) {
    for (const Edit::Addition& addition : edit.added) addition.file->MarkObsolete();
    return written;
  }
  BASALT_RETURN_IF_ERROR(Install(edit));

  const uint64_t duration = environment_.clock->MonotonicMicros() - start;
  {
    const std::scoped_lock lock(mutex_);
    ++counters_.flushes;
    counters_.flush_bytes += bytes_out;
  }
  const wal::Lsn lsn = generation->last_lsn.load(std::memory_order_relaxed);
  if (log_ != nullptr && lsn != 0) {
    log_->SetFlushed(lsn);
    // A log file that cannot be removed now is removed after a later flush, or at Open.
    static_cast<void>(
        base::OrOutOfMemory([&] { return log_->RemoveObsolete(lsn, options_.log_keep_bytes); }));
  }
  Notify({.kind = Event::Kind::kFlush,
          .bytes_in = generation->table->memory_bytes(),
          .bytes_out = bytes_out,
          .duration_us = duration,
          .detail = "a memtable was written to level 0"});
  return {};
}

Status Core::FlushKeyspaces(const LoggedGeneration& generation, Edit* edit, uint64_t* bytes_out) {
  std::set<uint32_t> all;
  generation.table->AddKeyspacesTo(&all);
  const std::shared_ptr<const Keyspaces> present = State()->keyspaces;
  for (const memtable::RangeDelete& range : generation.table->range_deletes()) {
    const base::SequenceNumber sequence = range.sequence.load(std::memory_order_relaxed);
    if (!present->Contains(range.keyspace)) continue;
    edit->range_deletes.push_back({range.keyspace, {sequence, range.begin, range.end}});
  }
  std::map<uint32_t, std::vector<uint32_t>> keyspaces;  // by tree
  for (const uint32_t keyspace : all) {
    if (present->Contains(keyspace)) keyspaces[TreeOf(keyspace)].push_back(keyspace);
  }
  uint64_t flushed = 0;
  for (auto& [tree, of_tree] : keyspaces) {
    NewTables outputs;
    outputs.tree = tree;
    outputs.flushed_before = flushed;
    outputs.flushed_in_all = generation.table->record_count();
    BASALT_RETURN_IF_ERROR(FlushTree(generation, std::move(of_tree), *edit, &outputs));
    edit->added.reserve(edit->added.size() + outputs.files.size());
    for (std::shared_ptr<TableFile>& file : outputs.files) {
      edit->added.push_back({.keyspace = tree, .level = 0, .file = std::move(file)});
    }
    outputs.files.clear();
    *bytes_out += outputs.bytes;
    flushed = outputs.flushed_before;
  }
  return {};
}

Status Core::FlushTree(const LoggedGeneration& generation, std::vector<uint32_t> keyspaces,
                       const Edit& edit, NewTables* outputs) {
  std::vector<RangeDelete> ranges;
  for (const ManifestRangeDelete& added : edit.range_deletes) {
    if (TreeOf(added.keyspace) == outputs->tree) ranges.push_back(InTree(added));
  }
  const RangeDeletes range_deletes(std::move(ranges), outputs->tree == kSharedTree);
  base::SurvivingRecords::Rules rules;
  RetainForReaders(&rules);
  rules.cover_of = CoverOf(range_deletes);
  // While the log is replayed, what it still holds is above, and not known yet.
  rules.has_merges_above = queue_ == nullptr || HasMerges(*State(), &generation);
  const std::shared_ptr<const ReadState> state = State();
  const Tree* const below = state->version->tree(outputs->tree);
  rules.expiry_below = [this, below](std::string_view key,
                                     const base::SurvivingRecords::Chain& chain) {
    return below == nullptr ? 0 : ExpiryBelow(*below, key, chain);
  };
  outputs->ranges_applied =
      std::min(rules.boundaries.front(), generation.last_sequence.load(std::memory_order_relaxed));
  const auto source = NewTreeIterator(*generation.table, std::move(keyspaces));
  source->SeekToFirst();
  return WriteTables(source.get(), std::move(rules), outputs);
}

Status Core::DropEmpty(const std::shared_ptr<LoggedGeneration>& generation) {
  std::shared_ptr<const ReadState> old;
  {
    const std::scoped_lock lock(mutex_);
    auto state = std::make_shared<ReadState>(*state_);
    std::erase(state->sealed, generation);
    old = Replace(std::move(state));
  }
  Retire(std::move(old));
  return {};
}

// An attempt that began before the call may fail because of what no longer holds, such as a disk
// that was full. The next one decides.
Status Core::WaitForFlushOf(const std::shared_ptr<LoggedGeneration>& generation) {
  std::unique_lock lock(mutex_);
  const auto is_sealed = [&] { return IsAmong(state_->sealed, generation.get()); };
  for (int attempts = flushing_ ? 2 : 1; attempts > 0; --attempts) {
    const uint64_t failed = generation->failed_flushes;
    ScheduleFlush();
    // Else nobody would end the wait.
    if (is_sealed() && !flush_scheduled_ && !flushing_) return base::OutOfMemory();
    WaitUntil(lock, [&] { return !is_sealed() || generation->failed_flushes != failed; });
    if (!is_sealed()) return {};
  }
  return generation->flush_error;
}

Status Core::Flush() {
  BASALT_RETURN_IF_ERROR(CheckWritable());
  std::shared_ptr<LoggedGeneration> target;
  while (true) {
    std::shared_ptr<LoggedGeneration> blocking;
    {
      const std::scoped_lock commit(commit_.lock);
      BASALT_RETURN_IF_ERROR(CheckUsable());
      const std::shared_ptr<const ReadState> state = State();
      if (target == nullptr) target = state->active;
      if (state->active == target && !CanSeal(*state)) {
        blocking = state->sealed.back();
      } else if (state->active == target) {
        if (target->table->empty() && target->in_flight.empty()) return {};
        Seal();
        blocking = target;
      } else if (IsAmong(state->sealed, target.get())) {
        blocking = target;
      } else {
        return {};  // somebody else sealed it, and it is flushed
      }
    }
    BASALT_RETURN_IF_ERROR(WaitForFlushOf(blocking));
    if (blocking == target) return {};
  }
}

Status Core::FlushThrough(wal::Lsn lsn) {
  while (flushed_lsn_.load(std::memory_order_acquire) < lsn) {
    std::shared_ptr<LoggedGeneration> target;
    {
      const std::scoped_lock commit(commit_.lock);
      std::shared_ptr<const ReadState> state = State();
      if (state->sealed.empty()) {
        const bool is_new = commit_.active_lsn == 0 && state->active->last_lsn == 0;
        if (is_new && state->active->in_flight.empty()) return {};
        Seal();
        state = State();
      }
      target = state->sealed.back();
    }
    BASALT_RETURN_IF_ERROR(WaitForFlushOf(target));
  }
  return {};
}

}  // namespace basalt::db

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "base/counted.h"
#include "base/out_of_memory.h"
#include "wal/log.h"
#include "wal/log_parts.h"

// Syncs, and what they allow: forgetting and removing files.

namespace basalt::wal {
namespace {

constexpr std::chrono::milliseconds kPatienceMax{1};

}  // namespace

Status Log::Sync(Lsn lsn) {
  Lock lock(mutex_);
  return SyncLocked(lock, lsn);
}

Status Log::SyncLocked(Lock& lock, Lsn lsn) {
  const base::Counted counted(&syncing_);
  bool has_gathered = false;
  for (;;) {
    lsn = std::min(lsn, last_lsn());  // Those above failed to be written.
    if (lsn <= durable_lsn()) return {};
    if (lsn > written_lsn_) {
      WaitForProgress(lock);
      continue;
    }
    Lsn target = written_lsn_;
    if (const Lsn blocked = BlockedThrough(lsn, &target); blocked > 0) {
      BASALT_RETURN_IF_ERROR(FlushBlocked(lock, blocked));
    } else if (round_ == nullptr && !has_gathered && ++gathered_ < sharers_) {
      has_gathered = true;
      GatherSharers(lock);
    } else if (round_ == nullptr) {
      BASALT_RETURN_IF_ERROR(LeadSyncRound(lock, target));
    } else {
      // Without the lock, which all who wait would take when the round ends, one by one.
      const std::shared_ptr<SyncRound> round = round_;
      lock.unlock();
      round->done.wait(0, std::memory_order_acquire);
      if (lsn <= round->target) return round->status;
      lock.lock();
    }
  }
}

Lsn Log::BlockedThrough(Lsn lsn, Lsn* target) const {
  const Lsn durable = durable_lsn();
  Lsn blocked = durable < start_.next_lsn - 1 ? start_.next_lsn - 1 : 0;
  for (const auto& file : files_) {
    if (!file->sync_failed || file->last_lsn <= durable) continue;
    if (file->header.first_lsn > lsn) {
      *target = file->header.first_lsn - 1;
      break;
    }
    blocked = file->last_lsn;
  }
  return blocked;
}

Status Log::FlushBlocked(Lock& lock, Lsn blocked) {
  if (!options_.flush_through) {
    return Status(
        StatusCode::kFailedPrecondition,
        "sync log in " + directory_ + ": the records up to LSN " + std::to_string(blocked) +
            " are in a file whose sync failed or is unknown, and they cannot be flushed to "
            "tables; open the log again");
  }
  lock.unlock();
  Status status = options_.flush_through(blocked);
  lock.lock();
  if (status.ok()) RaiseFlushed(blocked);
  return status;
}

// Who shared the last round is about to come with its next record: whoever began a round at once
// would sync its own record alone, and the others half as often. The last one to come leads; should
// one stay away, who has waited long enough does.
void Log::GatherSharers(Lock& lock) {
  const uint64_t rounds = rounds_;
  round_done_.wait_for(lock, patience_, [&] { return rounds_ != rounds; });
}

Status Log::LeadSyncRound(Lock& lock, Lsn target) {
  struct Unsynced {
    std::shared_ptr<LogFile> file;
    uint64_t end;
  };
  const auto round = std::make_shared<SyncRound>();
  round->target = target;
  std::vector<Unsynced> unsynced;
  bool sync_directory = false;
  for (const auto& file : files_) {
    if (!file->NeedsSync() || file->header.first_lsn > target + 1) continue;
    unsynced.push_back({file, file->written_end});
    sync_directory |= !file->entry_durable;
  }
  std::vector<std::shared_ptr<io::File>> handles;  // SetFlushed may drop the files' own.
  for (const Unsynced& each : unsynced) handles.push_back(each.file->handle);
  round_ = round;
  ++rounds_;
  gathered_ = 0;
  lock.unlock();

  const auto start = std::chrono::steady_clock::now();
  Status status;
  size_t synced = 0;
  for (; synced < handles.size() && status.ok(); ++synced) {
    status = base::OrOutOfMemory([&] { return handles[synced]->Sync(); });
  }
  if (!status.ok()) --synced;
  const bool file_failed = !status.ok();
  if (status.ok() && sync_directory) {
    status = base::OrOutOfMemory([&] { return fs_->SyncDirectory(directory_); });
  }
  handles.clear();
  const std::chrono::nanoseconds duration = std::chrono::steady_clock::now() - start;

  lock.lock();
  sharers_ = syncing_.load(std::memory_order_relaxed);
  patience_ = std::min<std::chrono::nanoseconds>(duration / 4, kPatienceMax);
  syncs_.fetch_add(1, std::memory_order_relaxed);
  for (size_t i = 0; i < synced; ++i) unsynced[i].file->synced_end = unsynced[i].end;
  for (size_t i = 0; i < unsynced.size(); ++i) {
    LogFile& file = *unsynced[i].file;
    if (status.ok()) {
      file.entry_durable = true;
    } else if (file_failed ? i == synced : !file.entry_durable) {
      file.sync_failed = true;
    }
  }
  if (status.ok()) {
    if (durable_lsn() < target) durable_lsn_.store(target, std::memory_order_release);
  } else {
    status = base::OrOutOfMemory([&] {
      return Status(status.code(), "sync log records up to LSN " + std::to_string(target) +
                                       " (applied, but a power cut may lose them until the next "
                                       "successful sync): " +
                                       std::string(status.message()));
    });
  }
  DropUselessHandles(0);
  round->status = status;
  round->done.store(1, std::memory_order_release);
  round->done.notify_all();
  round_ = nullptr;
  round_done_.notify_all();
  return status;
}

void Log::SetFlushed(Lsn lsn) {
  const Lock lock(mutex_);
  RaiseFlushed(lsn);
}

void Log::RaiseFlushed(Lsn lsn) {
  BASALT_CHECK(lsn <= written_lsn_);
  if (durable_lsn() < lsn) durable_lsn_.store(lsn, std::memory_order_release);
  DropUselessHandles(lsn);
}

void Log::DropUselessHandles(Lsn flushed) {
  for (const auto& file : files_) {
    if (file == current_ || file->handle == nullptr) continue;
    const bool is_synced =
        !file->sync_failed && file->entry_durable && file->synced_end == file->written_end;
    if (is_synced || file->last_lsn <= flushed) file->handle.reset();
  }
}

Status Log::RemoveObsolete(Lsn lsn, uint64_t keep_bytes) {
  std::vector<std::shared_ptr<LogFile>> obsolete;
  std::shared_ptr<io::File> ended;  // an open file would keep its space
  {
    const Lock lock(mutex_);
    obsolete_lsn_ = std::max(obsolete_lsn_, lsn);
    auto kept = std::find_if(files_.begin(), files_.end(),
                             [&](const auto& file) { return !IsObsolete(*file); });
    while (kept != files_.begin() && (*std::prev(kept))->written_end <= keep_bytes) {
      --kept;
      keep_bytes -= (*kept)->written_end;
    }
    obsolete.assign(files_.begin(), kept);
    files_.erase(files_.begin(), kept);
    if (!obsolete.empty() && obsolete.back() == current_) ended = std::move(current_->handle);
  }
  ended.reset();
  Status status;
  std::erase_if(obsolete, [&](const std::shared_ptr<LogFile>& file) {
    Status removed = base::OrOutOfMemory([&] {
      return options_.remove_file ? options_.remove_file(file->path) : fs_->RemoveFile(file->path);
    });
    if (removed.ok() || removed.code() == StatusCode::kNotFound) return true;
    if (status.ok()) status = std::move(removed);
    return false;
  });
  if (!obsolete.empty()) {
    const Lock lock(mutex_);
    // One more, which NewFileFor may count on. Without memory the next opening removes them.
    files_.reserve(files_.size() + obsolete.size() + 1);
    files_.insert(files_.begin(), obsolete.begin(), obsolete.end());
  }
  return status;
}

}  // namespace basalt::wal

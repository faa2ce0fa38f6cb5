#include "db/obsolete_files.h"

#include <utility>

#include "base/out_of_memory.h"

namespace basalt::db {

ObsoleteFiles::ObsoleteFiles(io::FileSystem* fs, std::string directory, io::Clock* clock)
    : fs_(fs), directory_(std::move(directory)), clock_(clock) {}

// Where directories cannot be marked, readers compare manifests instead: nothing waits for them.
bool ObsoleteFiles::IsInUse() const {
  const auto marked = fs_->IsMarked(directory_);
  if (marked) return *marked;
  return marked.error().code() == StatusCode::kResourceExhausted;  // The question has no answer.
}

Status ObsoleteFiles::Remove(const std::string& path) {
  const std::scoped_lock lock(mutex_);
  if (has_ended_) return {};
  if (!IsInUse()) return fs_->RemoveFile(path);
  waiting_.push_back({path, NowMs()});
  waiting_count_.store(waiting_.size(), std::memory_order_relaxed);
  return {};
}

// A file whose removal fails is removed by the next opening.
void ObsoleteFiles::RemoveWaitingLocked() {
  if (waiting_.empty()) return;
  const bool is_in_use = IsInUse();
  const uint64_t now_ms = NowMs();
  std::erase_if(waiting_, [&](const Waiting& file) {
    if (is_in_use && now_ms - file.since_ms < kPatienceMs) return false;
    static_cast<void>(fs_->RemoveFile(file.path));
    return true;
  });
  waiting_count_.store(waiting_.size(), std::memory_order_relaxed);
}

void ObsoleteFiles::RemoveWaiting() noexcept {
  const std::scoped_lock lock(mutex_);
  static_cast<void>(base::OrOutOfMemory([&] {
    RemoveWaitingLocked();
    return Status();
  }));
}

void ObsoleteFiles::End() noexcept {
  RemoveWaiting();
  const std::scoped_lock lock(mutex_);
  has_ended_ = true;
}

}  // namespace basalt::db

#include "io/descriptor_pool.h"

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <utility>

#include "base/fork_count.h"
#include "io/retry_interrupted.h"

namespace basalt::io {

// The state counts the reads under way, with a bit for an open file. A read adds itself first, and
// takes itself back where the bit is not set. So the file can be closed by a change from the bare
// bit to nothing, which fails while anybody reads.
class PooledFile final : public File {
 public:
  PooledFile(DescriptorPool* pool, FileSystem* fs, std::string path,
             DescriptorPool::Closing closing)
      : File(std::move(path)), pool_(pool), fs_(fs), closing_(closing) {}
  ~PooledFile() override {
    if (fork_count_ != base::ForkCount()) return;  // the pool does not know it
    // Also when the file is closed: the pool, which has just closed it, may not be done with it.
    pool_->Remove(this);
  }
  PooledFile(const PooledFile&) = delete;
  PooledFile& operator=(const PooledFile&) = delete;

  /// Opens the file, for a read that has begun. Gives an errno.
  int OpenFor() const {
    const std::scoped_lock lock(mutex_);
    if (Begin()) return 0;
    pool_->TakePlace();
    std::unique_ptr<File> opened;
    int error = ENOMEM;
    try {
      error = RetryInterrupted([&] { return fs_->DoOpen(path(), OpenMode::kRead, &opened); });
    } catch (const std::bad_alloc&) {
      opened.reset();
    }
    if (error != 0) {
      pool_->GiveBackPlace();
      return error;
    }
    // Whoever closed it has done so by now: that was under the pool's mutex, as TakePlace is.
    file_ = std::move(opened);
    state_.fetch_add(kOpen + 1, std::memory_order_release);
    pool_->Add(const_cast<PooledFile*>(this));
    return 0;
  }

 private:
  friend class DescriptorPool;
  static constexpr uint32_t kOpen = uint32_t{1} << 31;

  /// While it lives, the file is open.
  class Reading {
   public:
    explicit Reading(const PooledFile& file) : file_(file) {
      if (file.Begin()) return;
      error_ = file.OpenFor();
      // It was there when it was opened first.
      if (error_ == ENOENT) error_ = ESTALE;
    }
    ~Reading() {
      if (error_ == 0) file_.End();
    }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

    int error() const noexcept { return error_; }
    const File& open_file() const noexcept { return *file_.file_; }

   private:
    const PooledFile& file_;
    int error_ = 0;
  };

  /// Whether it is open, and then stays so until End.
  bool Begin() const noexcept {
    if ((state_.fetch_add(1, std::memory_order_acquire) & kOpen) == 0) {
      End();
      return false;
    }
    if (!was_read_.load(std::memory_order_relaxed)) {
      was_read_.store(true, std::memory_order_relaxed);
    }
    return true;
  }
  bool IsOpen() const noexcept { return (state_.load(std::memory_order_acquire) & kOpen) != 0; }
  void End() const noexcept { state_.fetch_sub(1, std::memory_order_release); }

  /// Under the pool's mutex: what is to be destroyed outside it; null: it is being read.
  std::unique_ptr<File> TakeUnread() noexcept {
    uint32_t bare = kOpen;
    if (!state_.compare_exchange_strong(bare, 0, std::memory_order_acquire)) return nullptr;
    return std::move(file_);
  }

  int DoRead(uint64_t offset, std::span<char> out, size_t* done) const override {
    const Reading reading(*this);
    if (reading.error() != 0) return reading.error();
    return reading.open_file().DoRead(offset, out, done);
  }
  void DoWillRead(uint64_t offset, uint64_t size) const noexcept override {
    if (!Begin()) return;  // it is a hint, and not worth a descriptor
    file_->DoWillRead(offset, size);
    End();
  }
  int DoSize(uint64_t* size) const override {
    const Reading reading(*this);
    if (reading.error() != 0) return reading.error();
    return reading.open_file().DoSize(size);
  }

  // It is only read, and by no mapping.
  int DoWrite(uint64_t, std::span<const std::string_view>, size_t*) override { return EBADF; }
  int DoSync() override { return EBADF; }
  int DoTruncate(uint64_t) override { return EBADF; }
  int DoAllocate(uint64_t) override { return EBADF; }
  int DoMap(uint64_t, std::unique_ptr<Mapping>*) const override { return EBADF; }
  int DoMapForWriting(uint64_t, std::unique_ptr<WritableMapping>*) override { return EBADF; }
  int DoMarkInUse() override { return EBADF; }
  int DoIsInUse(bool*) const override { return EBADF; }

  DescriptorPool* const pool_;
  FileSystem* const fs_;
  const DescriptorPool::Closing closing_;
  const uint64_t fork_count_ = base::ForkCount();
  mutable std::atomic<uint32_t> state_{0};
  mutable std::atomic<bool> was_read_{false};
  mutable std::mutex mutex_;  // held while it is opened
  mutable std::unique_ptr<File> file_;
  // Its entry, which is in a queue of the pool while it is open: to move it takes no memory.
  DescriptorPool::Queue own_{this};
  const DescriptorPool::Queue::iterator entry_ = own_.begin();
};

DescriptorPool* DescriptorPool::Process() {
  static DescriptorPool* const pool = [] {
    auto* made = new DescriptorPool(0);
    // Another thread may have been changing it: a child begins with an empty one. Its parent's
    // files, which it does not use, stay as they are.
    pthread_atfork(nullptr, nullptr, [] { std::construct_at(Process(), 0); });
    return made;
  }();
  return pool;
}

namespace {

// As the library is loaded, so that no fork finds another thread making it.
[[maybe_unused]] const DescriptorPool* const kMadeEarly = DescriptorPool::Process();

}  // namespace

Result<std::unique_ptr<File>> DescriptorPool::Open(FileSystem* fs, std::string_view path,
                                                   Closing closing) {
  auto file = std::make_unique<PooledFile>(this, fs, std::string(path), closing);
  const int error = file->OpenFor();
  if (error != 0) return ErrnoStatus(error, "open", path);
  file->End();
  return file;
}

bool DescriptorPool::CloseOne() noexcept {
  std::unique_ptr<File> closed;
  const std::scoped_lock lock(mutex_);
  closed = TakeNext();
  return closed != nullptr;
}

size_t DescriptorPool::open_files() const noexcept {
  const std::scoped_lock lock(mutex_);
  return taken_;
}

size_t DescriptorPool::Capacity() const noexcept {
  return capacity_ != 0 ? capacity_ : std::max(kCapacityMin, DescriptorLimit() / 2);
}

void DescriptorPool::TakePlace() noexcept {
  const size_t capacity = Capacity();
  bool is_first = true;
  while (true) {
    std::unique_ptr<File> closed;  // goes after the lock
    const std::scoped_lock lock(mutex_);
    taken_ += std::exchange(is_first, false) ? 1 : 0;
    if (taken_ <= capacity) return;
    closed = TakeNext();
    if (closed == nullptr) return;
  }
}

void DescriptorPool::GiveBackPlace() noexcept {
  const std::scoped_lock lock(mutex_);
  --taken_;
}

void DescriptorPool::Add(PooledFile* file) noexcept {
  const std::scoped_lock lock(mutex_);
  Queue& queue = queues_[static_cast<size_t>(file->closing_)];
  queue.splice(queue.end(), file->own_);
}

void DescriptorPool::Remove(PooledFile* file) noexcept {
  const std::scoped_lock lock(mutex_);
  if (!file->IsOpen()) return;
  file->own_.splice(file->own_.end(), queues_[static_cast<size_t>(file->closing_)], file->entry_);
  --taken_;
}

std::unique_ptr<File> DescriptorPool::TakeNext() noexcept {
  for (Queue& queue : queues_) {
    // Each loses its second chance by the first look at the latest.
    for (size_t left = 2 * queue.size(); left > 0; --left) {
      PooledFile* const file = queue.front();
      queue.splice(queue.end(), queue, queue.begin());
      if (file->was_read_.exchange(false, std::memory_order_relaxed)) continue;
      std::unique_ptr<File> taken = file->TakeUnread();
      if (taken == nullptr) continue;
      file->own_.splice(file->own_.end(), queue, file->entry_);
      --taken_;
      return taken;
    }
  }
  return nullptr;
}

void RaiseDescriptorLimit() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);  // where it is refused, the pool closes more files
}

size_t DescriptorLimit() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return DescriptorPool::kCapacityMin;
  return limit.rlim_cur == RLIM_INFINITY ? std::numeric_limits<size_t>::max()
                                         : static_cast<size_t>(limit.rlim_cur);
}

}  // namespace basalt::io

#include "io/reserve_file.h"

#include <optional>
#include <utility>

#include "base/check.h"
#include "base/out_of_memory.h"

namespace basalt::io {

ReserveFile::ReserveFile(FileSystem* fs, std::string path, bool is_wanted)
    : fs_(fs), path_(std::move(path)), is_wanted_(is_wanted) {}

ReserveFile::Loan::Loan(ReserveFile* reserve) noexcept : reserve_(reserve) {
  const std::scoped_lock lock(reserve_->mutex_);
  ++reserve_->loans_;
  reserve_->ReleaseLocked();
}

ReserveFile::Loan::~Loan() {
  const std::scoped_lock lock(reserve_->mutex_);
  --reserve_->loans_;
}

bool ReserveFile::Fill(uint64_t bytes) noexcept {
  const std::scoped_lock lock(mutex_);
  if (!is_wanted_ || bytes <= bytes_) return true;
  if (loans_ > 0) return false;
  const auto grown = base::OrOutOfMemory([&] { return Grow(bytes); });
  // What else fails, for want of a descriptor say, tells nothing of the disk's room.
  return grown ? *grown : !IsDiskFull(grown.error());
}

bool ReserveFile::Has(uint64_t bytes) noexcept {
  const std::scoped_lock lock(mutex_);
  return !is_wanted_ || bytes <= bytes_;
}

bool ReserveFile::IsLent() noexcept {
  const std::scoped_lock lock(mutex_);
  return loans_ > 0;
}

Result<bool> ReserveFile::Grow(uint64_t bytes) {
  BASALT_ASSIGN_OR_RETURN(const bool exists, fs_->Exists(path_));
  BASALT_ASSIGN_OR_RETURN(const auto file,
                          fs_->Open(path_, exists ? OpenMode::kReadWrite : OpenMode::kCreate));
  BASALT_ASSIGN_OR_RETURN(uint64_t before, file->Size());
  if (before > bytes) {
    BASALT_RETURN_IF_ERROR(file->Truncate(bytes));
    before = bytes;
  }
  // To ask for more than there is would take all of it for a moment, from whoever else writes to
  // the disk. One byte more tells whether anything can be allocated here at all.
  const std::optional<uint64_t> free = fs_->FreeBytes(path_);
  const bool has_room = !free || *free >= bytes - before;
  const uint64_t asked = has_room ? bytes : before + 1;
  const Status allocated = file->Allocate(asked);
  if (allocated.ok()) {
    BASALT_ASSIGN_OR_RETURN(bytes_, file->Size());
    // Nothing was allocated, nor can it be: to be asked about no more.
    if (bytes_ < asked) {
      bytes_ = UINT64_MAX;
      static_cast<void>(fs_->RemoveFile(path_));
      return true;
    }
    if (has_room) return true;
  }
  // What was allocated all the same must not be taken away from the log. A file that was copied
  // may have no space of its own.
  const bool had_space = before > 0 && file->Truncate(before).ok() && file->Allocate(before).ok();
  if (!had_space) static_cast<void>(fs_->RemoveFile(path_));
  bytes_ = had_space ? before : 0;
  if (allocated.ok() || IsDiskFull(allocated)) return false;
  return allocated;
}

void ReserveFile::Trim(const std::function<uint64_t()>& needed) noexcept {
  const std::scoped_lock lock(mutex_);
  if (bytes_ == 0 || bytes_ == UINT64_MAX) return;
  const uint64_t bytes = needed();
  if (bytes >= bytes_) return;
  const auto cut = [&]() -> Status {
    BASALT_ASSIGN_OR_RETURN(const auto file, fs_->Open(path_, OpenMode::kReadWrite));
    return file->Truncate(bytes);
  };
  // After an error it is looked at anew before it is filled.
  bytes_ = base::OrOutOfMemory(cut).ok() ? bytes : 0;
}

bool ReserveFile::Release() noexcept {
  const std::scoped_lock lock(mutex_);
  return ReleaseLocked();
}

bool ReserveFile::ReleaseLocked() noexcept {
  if (bytes_ == UINT64_MAX) return false;
  bytes_ = 0;
  return is_wanted_ && base::OrOutOfMemory([&] { return fs_->RemoveFile(path_); }).ok();
}

}  // namespace basalt::io

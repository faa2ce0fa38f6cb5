#include "db/reserve_file.h"

#include <utility>

#include "base/check.h"
#include "base/out_of_memory.h"

namespace basalt::db {

ReserveFile::ReserveFile(io::FileSystem* fs, std::string path, uint64_t bytes)
    : fs_(fs), path_(std::move(path)), bytes_(bytes) {}

bool ReserveFile::Fill() noexcept {
  const std::scoped_lock lock(mutex_);
  if (is_there_ || bytes_ == 0) return true;
  const auto made = base::OrOutOfMemory([&]() -> Result<Made> { return Make(); });
  if (!made) {  // no memory: there is none this time
    static_cast<void>(Remove());
    return true;
  }
  is_there_ = *made == Made::kYes;
  if (!is_there_) static_cast<void>(Remove());
  return *made != Made::kNoRoom;
}

Status ReserveFile::Remove() noexcept {
  return base::OrOutOfMemory([&] { return fs_->RemoveFile(path_); });
}

ReserveFile::Made ReserveFile::Make() {
  if (const auto size = fs_->FileSize(path_); size && *size == bytes_) return Made::kYes;
  static_cast<void>(fs_->RemoveFile(path_));  // of a run with another budget
  const auto file = fs_->Open(path_, io::OpenMode::kCreate);
  // Twice the size at first: what is left of the disk must not be taken away from the log.
  if (!file || !(*file)->Allocate(2 * bytes_).ok()) return Made::kNoRoom;
  const auto size = (*file)->Size();
  if (!size || *size != 2 * bytes_) return Made::kUnsupported;
  return (*file)->Truncate(bytes_).ok() ? Made::kYes : Made::kNoRoom;
}

bool ReserveFile::Release() noexcept {
  const std::scoped_lock lock(mutex_);
  is_there_ = false;
  return bytes_ != 0 && Remove().ok();
}

}  // namespace basalt::db

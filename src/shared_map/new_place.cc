#include "shared_map/new_place.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/fork_count.h"
#include "base/out_of_memory.h"
#include "shared_map/core.h"
#include "shared_map/file_names.h"

namespace basalt::shared_map {
namespace {

/// Whether a directory that is there may become a map.
Status CheckPlace(const std::string& path, const SharedMapOptions& options, io::FileSystem* fs) {
  BASALT_ASSIGN_OR_RETURN(const bool is_directory, fs->IsDirectory(path));
  if (!is_directory) {
    return Status(StatusCode::kAlreadyExists, path + ": is a file; name another path");
  }
  BASALT_ASSIGN_OR_RETURN(const auto names, fs->List(path));
  const auto foreign = std::ranges::find_if(names, [](const std::string& name) {
    return !IsMapFileName(name) && name != io::kLostAndFound;
  });
  if (foreign != names.end()) {
    return Status(StatusCode::kAlreadyExists,
                  path + ": holds " + *foreign +
                      ", which is not a file of a shared map; name another directory");
  }
  if (NewestVersionNumber(fs, path) && !options.overwrite) {
    return Status(StatusCode::kAlreadyExists,
                  path +
                      ": is a shared map already; open it (SharedMap::Open), or set "
                      "SharedMapOptions::overwrite");
  }
  return Status();
}

}  // namespace

Result<std::unique_ptr<io::FileLock>> LockMap(const std::string& path,
                                              const SharedMapOptions& options,
                                              const Environment& environment) {
  using std::chrono::milliseconds;
  constexpr milliseconds kPause(5);
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    auto lock = environment.fs->Lock(io::JoinPath(path, kLockName));
    if (lock || lock.error().code() != StatusCode::kBusy) return lock;
    // The greatest timeouts go beyond what the clock counts.
    const auto waited = std::chrono::steady_clock::now() - begin;
    if (std::chrono::duration_cast<milliseconds>(waited) >= options.lock_timeout) return lock;
    std::this_thread::sleep_for(kPause);
  }
}

NewPlace::NewPlace(io::FileSystem* fs) : fs_(fs), fork_count_(base::ForkCount()) {}

NewPlace::NewPlace(NewPlace&& other) noexcept
    : fs_(other.fs_),
      fork_count_(other.fork_count_),
      directory_(std::move(other.directory_)),
      made_directory_(std::exchange(other.made_directory_, false)),
      is_checked_(other.is_checked_),
      had_map_(other.had_map_),
      lock_(std::move(other.lock_)) {}

NewPlace::~NewPlace() {
  if (had_map_ || base::ForkCount() != fork_count_) return;
  static_cast<void>(base::OrOutOfMemory([this] { return GiveUp(); }));
}

Result<NewPlace> NewPlace::Take(const std::string& path, const SharedMapOptions& options,
                                const Environment& environment) {
  io::FileSystem* const fs = environment.fs;
  NewPlace place(fs);
  place.directory_ = path;
  const Status made = fs->CreateDirectory(path);
  place.made_directory_ = made.ok();
  if (!made.ok() && made.code() != StatusCode::kAlreadyExists) return made;
  BASALT_ASSIGN_OR_RETURN(place.directory_, fs->Resolve(path));
  // Before a lock file is made in somebody's directory.
  if (!made.ok()) BASALT_RETURN_IF_ERROR(CheckPlace(place.directory_, options, fs));
  // Also of a directory that is there: the process that made it may have been killed before it
  // synced the name. Others may have made it where this process cannot read, which is no error.
  const Status synced = fs->SyncDirectory(io::ParentDirectory(place.directory_));
  if (made.ok()) BASALT_RETURN_IF_ERROR(synced);
  BASALT_ASSIGN_OR_RETURN(place.lock_, LockMap(place.directory_, options, environment));
  // Whoever had the lock meanwhile may have made a map.
  BASALT_RETURN_IF_ERROR(CheckPlace(place.directory_, options, fs));
  place.is_checked_ = true;
  place.had_map_ = NewestVersionNumber(fs, place.directory_).has_value();
  return place;
}

// A version goes first: without one the rest is no map.
Status NewPlace::GiveUp() {
  if (lock_ == nullptr) return made_directory_ ? fs_->RemoveDirectory(directory_) : Status();
  BASALT_ASSIGN_OR_RETURN(std::vector<std::string> names, fs_->List(directory_));
  std::ranges::partition(names, [](const std::string& name) {
    const std::optional<FileName> parsed = ParseFileName(name);
    return parsed && parsed->kind == FileKind::kVersion;
  });
  const auto is_others = [](const std::string& name) {
    return name != kLockName && name != io::kLostAndFound;
  };
  if (!is_checked_ && std::ranges::any_of(names, is_others)) return Status();
  for (const std::string& name : names) {
    if (!IsMapFileName(name) || name == kLockName) continue;
    BASALT_RETURN_IF_ERROR(fs_->RemoveFile(io::JoinPath(directory_, name)));
  }
  BASALT_RETURN_IF_ERROR(fs_->RemoveFile(io::JoinPath(directory_, kLockName)));
  lock_.reset();
  return made_directory_ ? fs_->RemoveDirectory(directory_) : Status();
}

}  // namespace basalt::shared_map

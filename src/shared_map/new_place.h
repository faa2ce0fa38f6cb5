#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "basalt/shared_map.h"
#include "io/file_system.h"
#include "shared_map/environment.h"

namespace basalt::shared_map {

/// A locked directory that becomes a map, or that holds the map which options.overwrite replaces.
/// If no map was there and none is made, the files of the attempt are removed, and so is the
/// directory if it was made for it. A forked child removes nothing.
class NewPlace {
 public:
  /// AlreadyExists: a map that is not to be replaced, or somebody else's files; Busy: locked.
  static Result<NewPlace> Take(const std::string& path, const SharedMapOptions& options,
                               const Environment& environment);
  NewPlace(NewPlace&& other) noexcept;
  NewPlace& operator=(NewPlace&&) = delete;
  ~NewPlace();

  /// As Core wants it.
  const std::string& directory() const noexcept { return directory_; }
  /// The map is made: gives its lock to whoever writes to it.
  std::unique_ptr<io::FileLock> Keep() noexcept {
    made_directory_ = false;
    return std::move(lock_);
  }

 private:
  explicit NewPlace(io::FileSystem* fs);

  Status GiveUp();

  io::FileSystem* fs_;
  uint64_t fork_count_;
  std::string directory_;
  bool made_directory_ = false;
  bool is_checked_ = false;  // Under the lock.
  bool had_map_ = false;
  std::unique_ptr<io::FileLock> lock_;  // Null: no file of ours is there.
};

/// The lock of a map's directory, waiting as long as options.lock_timeout.
Result<std::unique_ptr<io::FileLock>> LockMap(const std::string& path,
                                              const SharedMapOptions& options,
                                              const Environment& environment);

}  // namespace basalt::shared_map

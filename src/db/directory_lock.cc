#include "db/directory_lock.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "db/file_names.h"

namespace basalt::db {
namespace {

using Names = std::vector<std::string>;

bool Holds(const Names& names, std::string_view name) {
  return std::ranges::binary_search(names, name);
}

Status NoDatabase(const std::string& path, std::string_view advice) {
  return Status(StatusCode::kNotFound,
                "there is no database at " + path + ": check the path" + std::string(advice));
}

/// What a directory without a manifest is: empty (or an interrupted creation), or something else.
Status CheckNewDirectory(const std::string& path, const Names& names) {
  for (const std::string& name : names) {
    if (IsDatabaseFileName(name) || name == io::kLostAndFound) continue;
    return Status(StatusCode::kInvalidArgument,
                  "the directory " + path + " is not a Basalt database and not empty (it holds " +
                      name + "): name an empty or absent directory");
  }
  for (const std::string& name : names) {
    if (name.ends_with(".tbl") || name.ends_with(".log")) {
      return Status(StatusCode::kCorruption,
                    "the directory " + path + " holds " + name +
                        " but no MANIFEST: restore it from a backup, or remove the directory "
                        "if it was being destroyed");
    }
  }
  return {};
}

Status CheckNames(const std::string& path, const Names& names, bool create) {
  if (Holds(names, kManifestName)) return {};
  BASALT_RETURN_IF_ERROR(CheckNewDirectory(path, names));
  if (create) return {};
  return Status(StatusCode::kNotFound, "the directory " + path + " holds no database");
}

/// Sees to it that there is a directory whose lock file may be made. What is found in it may change
/// until the lock is held.
Status PrepareDirectory(io::FileSystem* fs, const std::string& path, bool create) {
  const auto names = fs->List(path);
  if (names) {
    const bool is_ours = Holds(*names, kManifestName) ||
                         (!names->empty() && std::ranges::all_of(*names, IsDatabaseFileName));
    return is_ours ? Status() : CheckNames(path, *names, create);
  }
  if (names.error().code() == StatusCode::kNotFound) {
    if (!create) {
      return NoDatabase(path, ", or let Open create it (DBOptions::create_if_missing)");
    }
    Status made = fs->CreateDirectory(path);
    return made.code() == StatusCode::kAlreadyExists ? Status() : made;
  }
  // Without a descriptor or memory a missing directory fails like this, too.
  BASALT_ASSIGN_OR_RETURN(const bool exists, fs->Exists(path));
  if (!exists) return names.error();
  BASALT_ASSIGN_OR_RETURN(const bool is_directory, fs->IsDirectory(path));
  if (is_directory) return names.error();
  return Status(StatusCode::kInvalidArgument,
                path + " is a file; a Basalt database is a directory");
}

/// Takes the lock of a directory that PrepareDirectory has passed.
Result<std::unique_ptr<io::FileLock>> LockPrepared(io::FileSystem* fs, std::string* path,
                                                   bool create) {
  BASALT_ASSIGN_OR_RETURN(*path, fs->Resolve(*path));
  BASALT_ASSIGN_OR_RETURN(auto lock, fs->Lock(io::JoinPath(*path, kLockName)));
  BASALT_ASSIGN_OR_RETURN(const Names names, fs->List(*path));
  BASALT_RETURN_IF_ERROR(CheckNames(*path, names, create));
  return lock;
}

}  // namespace

Result<std::unique_ptr<io::FileLock>> LockToOpen(io::FileSystem* fs, std::string* path,
                                                 bool create) {
  while (true) {
    BASALT_RETURN_IF_ERROR(PrepareDirectory(fs, *path, create));
    auto lock = LockPrepared(fs, path, create);
    if (lock || lock.error().code() != StatusCode::kNotFound || !create) return lock;
    // Another process may have destroyed the database meanwhile, and the directory with it.
    BASALT_ASSIGN_OR_RETURN(const bool exists, fs->Exists(*path));
    if (exists) return lock;
  }
}

Result<std::unique_ptr<io::FileLock>> LockExisting(io::FileSystem* fs, const std::string& path) {
  const std::string manifest = io::JoinPath(path, kManifestName);
  const std::string lock_file = io::JoinPath(path, kLockName);
  BASALT_ASSIGN_OR_RETURN(const bool has_manifest, fs->Exists(manifest));
  if (!has_manifest) {
    // Whoever makes or removes a database holds the lock while the manifest is not there.
    BASALT_ASSIGN_OR_RETURN(const bool has_lock, fs->Exists(lock_file));
    if (!has_lock) return NoDatabase(path, "");
  }
  auto lock = fs->Lock(lock_file);
  if (!lock) {
    // The directory was removed meanwhile.
    if (lock.error().code() == StatusCode::kNotFound) return NoDatabase(path, "");
    return lock;
  }
  BASALT_ASSIGN_OR_RETURN(const bool is_there, fs->Exists(manifest));
  if (!is_there) return NoDatabase(path, "");
  return lock;
}

}  // namespace basalt::db

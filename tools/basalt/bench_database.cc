#include "tools/basalt/bench_database.h"

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "db/file_names.h"
#include "io/file_system.h"

namespace basalt::tools {
namespace {

constexpr std::string_view kMarkerName = "BENCH";

Status Remove(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (!error) return {};
  return {StatusCode::kIoError, "cannot remove " + path + ": " + error.message()};
}

}  // namespace

std::string BenchDatabase::Marker() const { return io::JoinPath(path_, kMarkerName); }

Status BenchDatabase::Claim(bool replace) {
  if (in_memory()) return {};
  io::FileSystem* const fs = io::FileSystem::Posix();
  const Result<bool> holds_database = fs->Exists(io::JoinPath(path_, db::kManifestName));
  if (!holds_database) return holds_database.error();
  const Result<bool> is_marked = fs->Exists(Marker());
  if (!is_marked) return is_marked.error();
  if (!*holds_database || *is_marked) return {};
  if (replace) return RemoveFiles();
  return {StatusCode::kAlreadyExists,
          path_ +
              " holds a database that `basalt bench` has not made: name another directory, or "
              "give --replace-database, which removes all that is in it"};
}

Status BenchDatabase::Open() {
  if (db_ != nullptr) return {};
  Result<std::unique_ptr<DB>> opened = DB::Open(path_, options_);
  if (!opened) return opened.error();
  db_ = std::move(*opened);
  if (in_memory()) return {};
  return io::ReplaceFile(io::FileSystem::Posix(), Marker(),
                         "`basalt bench` has made this database and may replace it.\n");
}

Status BenchDatabase::OpenEmpty() {
  if (Status closed = Close(); !closed.ok()) return closed;
  if (!in_memory()) {
    if (Status removed = RemoveFiles(); !removed.ok()) return removed;
  }
  return Open();
}

Status BenchDatabase::Close() {
  if (db_ == nullptr) return {};
  const Status closed = db_->Close();
  db_.reset();
  return closed;
}

/// Nothing but what a database consists of, and only where there is one. The manifest goes last: as
/// long as it is there, so is the marker, up to the last moment.
Status BenchDatabase::RemoveFiles() const {
  io::FileSystem* const fs = io::FileSystem::Posix();
  const Result<bool> holds_database = fs->Exists(io::JoinPath(path_, db::kManifestName));
  if (!holds_database) return holds_database.error();
  if (!*holds_database) return Remove(Marker());
  const auto lock = fs->Lock(io::JoinPath(path_, db::kLockName));
  if (!lock) return lock.error();
  const Result<std::vector<std::string>> names = fs->List(path_);
  if (!names) return names.error();
  for (const std::string& name : *names) {
    if (!db::IsDatabaseFileName(name) || name == db::kLockName || name == db::kManifestName) {
      continue;
    }
    if (Status removed = Remove(io::JoinPath(path_, name)); !removed.ok()) return removed;
  }
  for (const std::string_view name : {kMarkerName, db::kManifestName}) {
    if (Status removed = Remove(io::JoinPath(path_, name)); !removed.ok()) return removed;
  }
  return {};
}

}  // namespace basalt::tools

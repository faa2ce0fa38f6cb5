#include "tools/basalt/open_database.h"

#include <utility>

#include "io/file_system.h"
#include "tools/basalt/exit_code.h"

namespace basalt::tools {
namespace {

/// Whether a process has the database open to write.
bool IsOpenElsewhere(const std::string& path) {
  const auto lock = io::FileSystem::Posix()->Open(io::JoinPath(path, "LOCK"), io::OpenMode::kRead);
  return lock && (*lock)->IsInUse().value_or(false);
}

Status RefuseMemory(const std::string& path) {
  if (path != ":memory:") return {};
  return {StatusCode::kInvalidArgument,
          "a database in memory ends with this command: name a directory"};
}

}  // namespace

Result<std::unique_ptr<DB>> OpenAsItIs(const std::string& path, uint64_t memory_budget) {
  if (Status refused = RefuseMemory(path); !refused.ok()) return refused;
  const bool is_live = IsOpenElsewhere(path);
  Result<std::unique_ptr<DB>> db = DB::OpenReadOnly(path, {.memory_budget = memory_budget});
  if (db && is_live) {
    Complain(path + " is open in another process: it is read as it is at this moment");
  }
  return db;
}

Result<std::unique_ptr<DB>> OpenToRead(const std::string& path, const ReadAccess& access) {
  if (Status refused = RefuseMemory(path); !refused.ok()) return refused;
  if (access.read_only || IsOpenElsewhere(path)) return OpenAsItIs(path, access.memory_budget);
  Result<std::unique_ptr<DB>> db =
      DB::Open(path, {.create_if_missing = false, .memory_budget = access.memory_budget});
  const StatusCode code = db.status().code();
  if (code == StatusCode::kBusy) return OpenAsItIs(path, access.memory_budget);
  if (code != StatusCode::kIoError && code != StatusCode::kResourceExhausted) return db;
  Result<std::unique_ptr<DB>> as_it_is = OpenAsItIs(path, access.memory_budget);
  return as_it_is ? std::move(as_it_is) : std::move(db);
}

Result<std::unique_ptr<DB>> OpenToWrite(const std::string& path, const DBOptions& options) {
  if (Status refused = RefuseMemory(path); !refused.ok()) return refused;
  Result<std::unique_ptr<DB>> db = DB::Open(path, options);
  if (!options.create_if_missing || db.status().code() != StatusCode::kNotFound) return db;
  // Not that of a database that is not there, which is made.
  return Status(StatusCode::kIoError, db.error().message());
}

}  // namespace basalt::tools

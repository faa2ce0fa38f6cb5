#include "tools/basalt/open_database.h"

#include <utility>

namespace basalt::tools {

Result<std::unique_ptr<DB>> OpenToRead(const std::string& path) {
  Result<std::unique_ptr<DB>> db = DB::Open(path, {.create_if_missing = false});
  const StatusCode code = db.status().code();
  if (code != StatusCode::kIoError && code != StatusCode::kResourceExhausted) return db;
  Result<std::unique_ptr<DB>> read_only = DB::OpenReadOnly(path);
  return read_only ? std::move(read_only) : std::move(db);
}

Result<std::unique_ptr<DB>> OpenToWrite(const std::string& path, const DBOptions& options) {
  if (path == ":memory:") {
    return Status(StatusCode::kInvalidArgument,
                  "a database in memory ends with this command: name a directory");
  }
  Result<std::unique_ptr<DB>> db = DB::Open(path, options);
  if (!options.create_if_missing || db.status().code() != StatusCode::kNotFound) return db;
  // Not that of a database that is not there, which is made.
  return Status(StatusCode::kIoError, db.error().message());
}

}  // namespace basalt::tools

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "basalt/db.h"

namespace basalt::tools {

// All of these: InvalidArgument for ":memory:", which would end with the command.

/// How a verb that only reads opens a database.
struct ReadAccess {
  bool read_only = false;      ///< Take no lock and write nothing.
  uint64_t memory_budget = 0;  ///< DBOptions::memory_budget.
};

/// Opens a database to read what it holds at this moment (DB::OpenReadOnly). Says on stderr that it
/// does where another process has the database open.
Result<std::unique_ptr<DB>> OpenAsItIs(const std::string& path, uint64_t memory_budget = 0);

/// Opens a database for a verb that only reads. One that another process has open is read as it is,
/// and so is one that cannot be written, on a read-only medium or a full disk say.
Result<std::unique_ptr<DB>> OpenToRead(const std::string& path, const ReadAccess& access);

/// Opens a database for a verb that writes records.
Result<std::unique_ptr<DB>> OpenToWrite(const std::string& path, const DBOptions& options);

}  // namespace basalt::tools

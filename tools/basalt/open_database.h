#pragma once

#include <memory>
#include <string>

#include "basalt/db.h"

namespace basalt::tools {

/// Opens a database for a verb that only reads. One that cannot be written, on a read-only medium
/// or a full disk say, is read as it is (DB::OpenReadOnly).
Result<std::unique_ptr<DB>> OpenToRead(const std::string& path);

/// Opens a database for a verb that writes records. InvalidArgument: ":memory:", which would end
/// with the command.
Result<std::unique_ptr<DB>> OpenToWrite(const std::string& path, const DBOptions& options);

}  // namespace basalt::tools

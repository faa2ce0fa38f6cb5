#pragma once

#include <cstdint>
#include <memory>

#include "basalt/changes.h"
#include "basalt/status.h"

namespace basalt::db {

class Core;

/// A reader of the database's committed batches, from log record `from_lsn` on.
Result<std::unique_ptr<ChangeReader>> NewChangeReader(const std::shared_ptr<Core>& core,
                                                      uint64_t from_lsn);

}  // namespace basalt::db

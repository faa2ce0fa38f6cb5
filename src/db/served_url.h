#pragma once

#include <string_view>

#include "basalt/db.h"
#include "basalt/status.h"

namespace basalt::db {

/// Says in the lock file of an open database where this process serves it, so that others that
/// try to open it are told. Empty: nowhere any more. A database in memory has no lock file, and
/// nothing is done.
Status SetServedUrl(const DB& db, std::string_view url);

}  // namespace basalt::db

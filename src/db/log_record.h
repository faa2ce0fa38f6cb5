#pragma once

#include <string>
#include <string_view>

#include "basalt/status.h"
#include "basalt/write_batch.h"
#include "wal/recovery.h"

namespace basalt::db {

/// Whether this version can apply a batch: Unsupported names a record kind or expiry that it does
/// not have, NotFound a keyspace. `where` says whose batch it is.
Status CheckRecordsApplicable(std::string_view batch, const std::string& where);

/// A record as it came from the log of the database at `path`: well formed, complete, applicable.
Status CheckLogRecord(const wal::RecordView& record, const std::string& path);

}  // namespace basalt::db

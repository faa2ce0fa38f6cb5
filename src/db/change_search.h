#pragma once

#include <optional>
#include <string>

#include "basalt/status.h"
#include "base/internal_key.h"
#include "transaction/read_set.h"

namespace basalt::db {

struct ReadState;

/// The first thing in `reads` that was written above sequence `from` and up to `to`, as NameOfKey
/// names it; nothing: there is none. Memtables are searched by key; of tables only those that have
/// a later record than `from`, which may read from disk. `state` holds all writes up to `to`, and
/// versions that a reader at `from` could see have not been dropped.
Result<std::optional<std::string>> FindChange(const ReadState& state,
                                              const transaction::ReadSet& reads,
                                              base::SequenceNumber from, base::SequenceNumber to);

}  // namespace basalt::db

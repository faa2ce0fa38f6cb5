#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/record_iterator.h"
#include "db/version.h"
#include "memtable/generation.h"

namespace basalt::db {

/// All records of a table under their tree keys. The table is opened; the file must outlive it.
Result<std::unique_ptr<base::RecordIterator>> NewTreeIterator(const TableFile& file,
                                                              bool fill_cache);

/// All records of a memtable in one tree, under their tree keys: those of `keyspaces`, which
/// ascend. Only goes forward: SeekToFirst and Next.
std::unique_ptr<base::RecordIterator> NewTreeIterator(const memtable::Generation& memtable,
                                                      std::vector<uint32_t> keyspaces);

/// The records of one keyspace among those of its tree, under their keys as users know them.
/// Gives `source` itself back for the default keyspace.
std::unique_ptr<base::RecordIterator> NewKeyspaceIterator(
    std::unique_ptr<base::RecordIterator> source, uint32_t keyspace);

}  // namespace basalt::db

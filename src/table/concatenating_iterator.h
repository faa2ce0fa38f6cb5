#pragma once

#include <memory>
#include <vector>

#include "base/record_iterator.h"
#include "table/table.h"

namespace basalt::table {

/// All records of a sorted run: tables in key order, whose records do not overlap (every record of
/// one sorts before every record of the next; versions of one key may lie in neighbours). Works
/// from the tables' smallest and largest keys and has one of them open at a time.
std::unique_ptr<base::RecordIterator> NewConcatenatingIterator(
    std::vector<std::shared_ptr<const Table>> tables, bool fill_cache);

}  // namespace basalt::table

#pragma once

#include <string>

#include "basalt/cache.h"
#include "basalt/db.h"
#include "basalt/memtable.h"
#include "basalt/shared_map.h"
#include "basalt/stats.h"

// Statistics and reports as JSON text. Read ToJson first.

namespace basalt {

/// Statistics and reports as JSON objects. The members have the names of the struct's fields. A
/// Status becomes the text of ToString(). Bytes that are not UTF-8 become U+FFFD. Throws
/// std::bad_alloc.
std::string ToJson(const DBStats& stats);
std::string ToJson(const MemTableStats& stats);
std::string ToJson(const CacheStats& stats);
std::string ToJson(const SharedMapStats& stats);
std::string ToJson(const CheckReport& report);
std::string ToJson(const RepairReport& report);
std::string ToJson(const SharedMapReport& report);

}  // namespace basalt

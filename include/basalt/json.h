#pragma once

#include <string>

#include "basalt/cache.h"
#include "basalt/db.h"
#include "basalt/memtable.h"
#include "basalt/shared_map.h"
#include "basalt/stats.h"

namespace basalt {

/// Figures and reports as a JSON object, whose members have the names of the struct's fields; a
/// Status is the text of ToString(), and bytes that are no UTF-8 stand as U+FFFD. Throws
/// std::bad_alloc.
std::string ToJson(const DBStats& stats);
std::string ToJson(const MemTableStats& stats);
std::string ToJson(const CacheStats& stats);
std::string ToJson(const SharedMapStats& stats);
std::string ToJson(const CheckReport& report);
std::string ToJson(const RepairReport& report);
std::string ToJson(const SharedMapReport& report);

}  // namespace basalt

#pragma once

#include <string>
#include <vector>

#include "bench/report.h"

namespace basalt::bench {

/// What the database is to reach beside its peers: one line a gate, "met" or "missed", what is
/// wanted, and what was found. Gates without figures are left out.
std::string GateLines(const Report& report, const std::vector<const Subject*>& subjects);

}  // namespace basalt::bench

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace basalt::bench {

struct SustainedSettings {
  std::string directory;
  uint64_t memory_budget = 0;
  uint32_t keyspaces = 1;  ///< 1: the default one.
  double minutes = 10;
  uint32_t threads = 1;
};

/// What there is at the end of a second.
struct LoadSample {
  uint64_t puts = 0;  ///< Of this second.
  uint64_t level0_tables = 0;
  uint64_t tables = 0;
  uint64_t debt_bytes = 0;
  uint64_t table_bytes = 0;
};

/// A load of puts that does not end: new random keys of 16 digits, as fast as the database takes
/// them.
std::vector<LoadSample> MeasureSustained(const SustainedSettings& settings);

/// Whether level 0 and the debt stood still in the second half of the run: the mean of its last
/// quarter against that of the quarter before. For people; `is_flat` gives the answer.
std::string SustainedText(const SustainedSettings& settings, const std::vector<LoadSample>& samples,
                          bool* is_flat);
std::string SustainedJson(const SustainedSettings& settings,
                          const std::vector<LoadSample>& samples);

}  // namespace basalt::bench

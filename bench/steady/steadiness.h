#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/histogram.h"

namespace basalt::bench {

struct SteadinessSettings {
  std::string directory;
  uint64_t memory_budget = 0;
  /// Bytes of keys and values over the budget.
  double data_over_budget = 4;
  double minutes = 30;
};

/// One second of overwriting.
struct Second {
  uint64_t puts = 0;
  uint64_t longest_ns = 0;  ///< Of the puts that began in it.
  // As seen from outside, at its end.
  uint64_t disk_bytes = 0;
  uint64_t anonymous_bytes = 0;  ///< Without what the empty database's process had.
  uint64_t file_bytes = 0;       ///< Resident pages of files: the log's mapping and the program.
  double other_cpu_seconds = 0;  ///< Processor time of everybody else.
  // As the database says, at its end; times and counts are of this second.
  uint64_t memtable_bytes = 0;
  uint64_t cache_bytes = 0;
  uint64_t table_metadata_bytes = 0;
  uint64_t log_bytes = 0;
  uint64_t table_bytes = 0;
  uint64_t level0_tables = 0;
  uint64_t level0_bytes = 0;
  uint64_t compaction_debt = 0;
  uint64_t flushes = 0;
  uint64_t compactions = 0;
  uint64_t write_wait_us = 0;
  uint64_t write_delay_us = 0;
};

/// One put that took long.
struct Pause {
  double at_seconds = 0;  ///< When it began.
  uint64_t ns = 0;
  /// Of it, at most: how long the thread was ready but other threads had the processors.
  uint64_t processor_wait_ns = 0;
  /// How long one of the processors meanwhile let nobody run.
  uint64_t standstill_ns = 0;
};

struct Steadiness {
  uint64_t keys = 0;
  uint64_t live_bytes = 0;
  uint64_t empty_anonymous_bytes = 0;
  uint64_t settled_disk_bytes = 0;  ///< When all is flushed and nothing is left to do.
  double load_seconds = 0;
  std::vector<Second> seconds;
  std::vector<Pause> pauses;  ///< The longest, longest first.
  bool knows_standstills = false;
  base::Histogram put_ns;
};

/// Loads a database in a process of its own, overwrites keys at random with one thread, and watches
/// that process. Prints a line a minute.
Steadiness MeasureSteadiness(const SteadinessSettings& settings);

/// For people: percentiles, the longest pauses and the gates.
std::string SteadinessText(const SteadinessSettings& settings, const Steadiness& measured);
/// An object with the settings and, under "series", an array of numbers for each member of Second.
std::string SteadinessJson(const SteadinessSettings& settings, const Steadiness& measured);

}  // namespace basalt::bench

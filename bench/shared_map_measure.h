#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bench/shared_map_records.h"
#include "bench/shared_map_subject.h"

namespace basalt::bench {

/// One figure of one subject in one round.
struct SharedMapFigure {
  std::string benchmark;  ///< As bench/README.md lists them, with its metrics.
  std::string metric;
  std::string unit;
  double value;
};
using SharedMapFigures = std::vector<SharedMapFigure>;

struct SharedMapPlan {
  uint64_t keys = 0;
  uint64_t operations = 0;  ///< Of each pass.
  int passes = 3;
  double slice_seconds = 3;  ///< Of reads beside a writer.
  uint64_t seed = 1;
};

/// Runs `measure` in a child process, whose memory nothing before it has stirred, in a new
/// directory below `directory`, which is removed with what it holds. Made while this process has
/// one thread only.
SharedMapFigures RunInChild(const std::string& directory,
                            const std::function<SharedMapFigures(const std::string&)>& measure);

/// Build, space, and all kinds of reads. `with_floor`: and what a chain of memory accesses costs,
/// in the same process.
SharedMapFigures MeasureMap(SharedMapSubject* subject, const SharedMapPlan& plan,
                            const std::string& directory, bool with_floor);
/// What a lookup costs as keys of ours are overwritten without being folded into the base.
SharedMapFigures MeasureChanges(const SharedMapPlan& plan, const std::string& directory);
/// How fast ours is read while another process overwrites keys at full speed.
SharedMapFigures MeasureBesideWriter(const SharedMapPlan& plan, const std::string& directory);

/// Processor time of the calling thread.
double ThreadSeconds();

/// Keys in the order in which they are asked for, one behind the other, so that reading them costs
/// next to nothing. (Keys made just before they are used would not do: the processor could not
/// begin a lookup before the one in front of it has ended, since a key's bytes are loaded in other
/// pieces than they were stored in, which has to wait until they are in the cache.)
using SharedMapRequests = std::span<const RecordKey>;
std::vector<RecordKey> RandomHits(uint64_t keys, uint64_t count, uint64_t seed);
std::vector<RecordKey> RandomMisses(uint64_t keys, uint64_t count, uint64_t seed);

/// Each kind of read: nanoseconds of the thread's processor time for each, which on a quiet machine
/// is wall time.
double DependentNs(SharedMapSubject* subject, uint64_t operations, uint64_t first_number);
double IndependentNs(SharedMapSubject* subject, SharedMapRequests requests);
double MissNs(SharedMapSubject* subject, SharedMapRequests requests);
/// 64 keys a call, with a copy of each value; a key. What is left of a last batch does not count.
double BatchNs(SharedMapSubject* subject, SharedMapRequests requests);
/// Reads everything once.
void ReadAll(SharedMapSubject* subject, uint64_t keys);

}  // namespace basalt::bench

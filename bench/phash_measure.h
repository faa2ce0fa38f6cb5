#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace basalt::bench {

/// One figure of one subject in one round.
struct PhashFigure {
  std::string metric;
  double value;
};
using PhashFigures = std::vector<PhashFigure>;

/// The keys of every subject: splitmix64 from `seed` on. bench/phash_peers makes the same.
std::vector<uint64_t> PhashKeys(uint64_t count, uint64_t seed);

/// Builds and queries one subject in this process, which nothing else has stirred: its memory is
/// measured. bits, build_ns and memory_bytes are a key, the others a query.
PhashFigures MeasureFunction(std::string_view subject, uint64_t keys, uint32_t threads,
                             uint64_t seed);
PhashFigures MeasureSet(std::string_view subject, uint64_t keys, uint64_t seed);

/// {"bits":2.09,"build_ns":45.1,...} and back.
std::string ToLine(const PhashFigures& figures);
PhashFigures FromLine(std::string_view line);

}  // namespace basalt::bench

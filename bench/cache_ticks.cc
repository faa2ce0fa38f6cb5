#include "bench/cache_ticks.h"

#include <algorithm>
#include <thread>
#include <vector>

namespace basalt::bench {

double NanosecondsPerTick() {
  static const double kNanoseconds = [] {
    using std::chrono::steady_clock;
    const auto start = steady_clock::now();
    const uint64_t ticks = TicksBefore();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const uint64_t passed = TicksAfter() - ticks;
    const std::chrono::duration<double, std::nano> elapsed = steady_clock::now() - start;
    return elapsed.count() / static_cast<double>(passed);
  }();
  return kNanoseconds;
}

double TimingCostNs() {
  constexpr size_t kSamples = 10'001;
  std::vector<uint64_t> samples(kSamples);
  for (uint64_t& sample : samples) {
    const uint64_t before = TicksBefore();
    sample = TicksAfter() - before;
  }
  std::nth_element(samples.begin(), samples.begin() + kSamples / 2, samples.end());
  return static_cast<double>(samples[kSamples / 2]) * NanosecondsPerTick();
}

}  // namespace basalt::bench

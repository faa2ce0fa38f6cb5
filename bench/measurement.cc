#include "bench/measurement.h"

#include <chrono>
#include <latch>
#include <thread>
#include <vector>

#include "bench/cpu_time.h"

namespace basalt::bench {
namespace {

using std::chrono::steady_clock;

void RunPart(uint32_t first, uint32_t last, const std::function<void(uint32_t)>& operation,
             base::Histogram* call_ns) {
  auto before = steady_clock::now();
  for (uint32_t i = first; i < last; ++i) {
    operation(i);
    const auto after = steady_clock::now();
    call_ns->Record(static_cast<uint64_t>((after - before).count()));
    before = after;
  }
}

}  // namespace

Measurement Measure(const Plan& plan, const std::function<void(uint32_t)>& operation) {
  Measurement measurement;
  measurement.operations = uint64_t{plan.calls} * plan.operations_per_call;
  std::vector<base::Histogram> call_ns(plan.threads);
  std::latch ready(plan.threads - 1);
  std::latch released(1);
  const auto part_begin = [&plan](uint32_t part) {
    return static_cast<uint32_t>(uint64_t{plan.calls} * part / plan.threads);
  };
  std::vector<std::thread> others;
  for (uint32_t part = 1; part < plan.threads; ++part) {
    others.emplace_back([&, part] {
      ready.count_down();
      released.wait();
      RunPart(part_begin(part), part_begin(part + 1), operation, &call_ns[part]);
    });
  }
  ready.wait();
  const double cpu_before = CpuSeconds();
  const auto start = steady_clock::now();
  released.count_down();
  RunPart(0, part_begin(1), operation, &call_ns[0]);
  for (std::thread& thread : others) thread.join();
  measurement.seconds = std::chrono::duration<double>(steady_clock::now() - start).count();
  measurement.cpu_seconds = CpuSeconds() - cpu_before;
  for (const base::Histogram& part : call_ns) measurement.call_ns.Merge(part);
  return measurement;
}

}  // namespace basalt::bench

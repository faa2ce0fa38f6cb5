#include "bench/steady/standstills.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>

namespace basalt::bench {
namespace {

using std::chrono::steady_clock;

bool RunsFirstOn(size_t processor, std::thread* thread) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(processor, &only);
  const sched_param lowest{.sched_priority = sched_get_priority_min(SCHED_FIFO)};
  return pthread_setaffinity_np(thread->native_handle(), sizeof only, &only) == 0 &&
         pthread_setschedparam(thread->native_handle(), SCHED_FIFO, &lowest) == 0;
}

}  // namespace

Standstills::Standstills() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  bool all_run_first = true;
  for (size_t processor = 0; processor < CPU_SETSIZE && all_run_first; ++processor) {
    if (!CPU_ISSET(processor, &allowed)) continue;
    threads_.emplace_back([this, processor] { Watch(processor); });
    all_run_first = RunsFirstOn(processor, &threads_.back());
  }
  if (all_run_first) return;
  ends_ = true;
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

Standstills::~Standstills() {
  ends_ = true;
  for (std::thread& thread : threads_) thread.join();
}

void Standstills::Watch(size_t processor) {
  constexpr auto kSleep = std::chrono::milliseconds(2);
  constexpr auto kLateness = std::chrono::milliseconds(1);
  while (!ends_) {
    const Time due = steady_clock::now() + kSleep;
    std::this_thread::sleep_until(due);
    const Time woken = steady_clock::now();
    if (woken - due < kLateness) continue;
    const std::scoped_lock lock(mutex_);
    found_.push_back({processor, due, woken});
  }
}

uint64_t Standstills::NsWithin(Time from, Time to) const {
  const std::scoped_lock lock(mutex_);
  std::vector<uint64_t> ns;  // of each processor
  for (const Standstill& each : found_) {
    const auto within = std::min(each.to, to) - std::max(each.from, from);
    if (within.count() <= 0) continue;
    if (ns.size() <= each.processor) ns.resize(each.processor + 1);
    ns[each.processor] += static_cast<uint64_t>(within.count());
  }
  return ns.empty() ? 0 : *std::max_element(ns.begin(), ns.end());
}

}  // namespace basalt::bench

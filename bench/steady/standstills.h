#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace basalt::bench {

/// Times in which a processor let nobody run: the host of a virtual machine had taken it away, or
/// the kernel did not give it up. Found by a thread of real-time priority on each processor, which
/// sleeps two milliseconds at a time and notes when it wakes late.
class Standstills {
 public:
  using Time = std::chrono::steady_clock::time_point;

  Standstills();
  ~Standstills();
  Standstills(const Standstills&) = delete;
  Standstills& operator=(const Standstills&) = delete;

  /// False: the system allows no real-time priority, so that nothing is known.
  bool is_watching() const noexcept { return !threads_.empty(); }
  /// How much of that time a processor stood still: of the one that did longest.
  uint64_t NsWithin(Time from, Time to) const;

 private:
  struct Standstill {
    size_t processor;
    Time from;
    Time to;
  };

  void Watch(size_t processor);

  std::atomic<bool> ends_{false};
  mutable std::mutex mutex_;
  std::vector<Standstill> found_;  ///< Under mutex_.
  std::vector<std::thread> threads_;
};

}  // namespace basalt::bench

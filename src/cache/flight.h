#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "basalt/status.h"

namespace basalt::cache {

class Shard;
struct Entry;

/// One computation of one missing key: a thread computes, others wait for it. Its shard lists it
/// while its result may still be kept.
struct Flight {
  enum class State : uint8_t {
    kComputing,
    kDone,
    kThrew,  ///< The function threw: whoever waits tries again.
  };

  ~Flight();

  const uint64_t hash;
  const std::string key;
  Shard* const shard;
  const std::thread::id computer = std::this_thread::get_id();

  /// Under the shard's lock: a Put, Delete or Clear came meanwhile, the result is not kept.
  bool is_beaten = false;

  std::mutex mutex{};
  std::condition_variable ended{};
  // Under `mutex`.
  State state = State::kComputing;
  Status error{};
  Entry* entry = nullptr;  ///< The result, pinned once for the flight itself.
};

}  // namespace basalt::cache

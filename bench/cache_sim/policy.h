#pragma once

#include <cstdint>
#include <memory>

#include "bench/cache_sim/trace.h"

// A simulated cache. The bytes of the objects that it holds never exceed its capacity; what it
// knows beside them (queues, ghosts, sketches) is not counted. An object that alone exceeds the
// capacity passes by. A hit does not change an object's size.

namespace basalt::cache_sim {

class Policy {
 public:
  Policy() = default;
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;
  virtual ~Policy() = default;

  /// Asks for the key; on a miss the object is brought in. Gives whether it was there.
  virtual bool Access(uint32_t key, uint32_t size) = 0;
};

/// What leaves is what was not asked for longest.
std::unique_ptr<Policy> MakeLru(const Trace& trace, uint64_t capacity_bytes);

/// LRU that moves a key to the front at most once in 300,000 requests: what "once in a second" is
/// to a cache that serves as many.
std::unique_ptr<Policy> MakeLazyLru(const Trace& trace, uint64_t capacity_bytes);

/// First in, first out, but what was asked for meanwhile gets another round: one bit a key.
std::unique_ptr<Policy> MakeClock(const Trace& trace, uint64_t capacity_bytes);

/// Zhang et al., "SIEVE is simpler than LRU", NSDI 2024: a hand moves from the oldest to the
/// newest, spares what was asked for since it last came by, and leaves it where it is.
std::unique_ptr<Policy> MakeSieve(const Trace& trace, uint64_t capacity_bytes);

/// Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023: a small queue of 10
/// %, out of which only what was asked for again (once suffices) reaches the main one; ghosts of 90
/// %.
std::unique_ptr<Policy> MakeS3Fifo(const Trace& trace, uint64_t capacity_bytes);

/// Einziger et al., "TinyLFU: a highly efficient cache admission policy", TOS 2017: an LRU window
/// of 1 % before a segmented LRU (80 % protected); what leaves the window replaces the main part's
/// victim only if a count-min sketch has seen it more often.
std::unique_ptr<Policy> MakeWTinyLfu(const Trace& trace, uint64_t capacity_bytes);

/// What leaves is what will be asked for last; it knows the whole trace, and must be asked for
/// exactly its requests. With objects of one size no policy misses less (Belady, 1966). With mixed
/// sizes it is an approximation of such a bound.
std::unique_ptr<Policy> MakeBelady(const Trace& trace, uint64_t capacity_bytes);

}  // namespace basalt::cache_sim

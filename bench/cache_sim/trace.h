#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <unordered_map>
#include <vector>

// A trace is what a program asked of its cache, in order. Its keys are numbered in the order in
// which they first appear, so that policies can keep what they know of a key in arrays.

namespace basalt::cache_sim {

struct Request {
  uint32_t key = 0;   ///< Below key_count.
  uint32_t size = 0;  ///< Of the object, in bytes.

  friend bool operator==(const Request&, const Request&) = default;
};

struct Trace {
  std::string name;
  std::vector<Request> requests;
  uint32_t key_count = 0;
  /// The sizes of all keys, each as it first was.
  uint64_t footprint_bytes = 0;
  uint64_t requested_bytes = 0;
  /// Whether all objects are of one size.
  bool is_uniform = true;
};

/// Gathers the requests of a trace under whatever 64-bit names their keys have.
class TraceBuilder {
 public:
  /// More cannot be held: positions in a trace are 32-bit numbers.
  static constexpr uint64_t kRequestsMax = std::numeric_limits<uint32_t>::max() - 1;

  explicit TraceBuilder(std::string name) { trace_.name = std::move(name); }

  void Add(uint64_t key, uint32_t size);
  uint64_t size() const noexcept { return trace_.requests.size(); }
  Trace Finish() && { return std::move(trace_); }

 private:
  Trace trace_;
  std::unordered_map<uint64_t, uint32_t> numbers_;
};

}  // namespace basalt::cache_sim

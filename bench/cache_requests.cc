#include "bench/cache_requests.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/random.h"
#include "tools/workload/zipf.h"

namespace basalt::bench {
namespace {

constexpr double kZipfSkew = 0.99;

}  // namespace

CacheKey::CacheKey(uint32_t number) noexcept {
  constexpr std::string_view kPrefix = "key_";
  std::copy(kPrefix.begin(), kPrefix.end(), bytes_.begin());
  char* const end =
      std::to_chars(bytes_.data() + kPrefix.size(), bytes_.data() + kPaddedBytes - 1, number).ptr;
  bytes_.back() = static_cast<char>(end - bytes_.data());
}

CacheRequests EveryKey(uint32_t keys) {
  CacheRequests requests(keys);
  for (uint32_t i = 0; i < keys; ++i) requests[i] = {CacheKey(i), i, true};
  return requests;
}

CacheRequests UniformRequests(size_t count, uint32_t keys, uint32_t put_percent, uint64_t seed) {
  base::Random random(seed);
  CacheRequests requests(count);
  for (CacheRequest& request : requests) {
    const auto number = static_cast<uint32_t>(random.Below(keys));
    request = {CacheKey(number), number, random.Below(100) < put_percent};
  }
  return requests;
}

CacheRequests ZipfRequests(size_t count, uint32_t keys, uint64_t seed) {
  const workload::Zipf zipf(keys, kZipfSkew);
  base::Random random(seed);
  CacheRequests requests(count);
  for (CacheRequest& request : requests) {
    const auto number = static_cast<uint32_t>(zipf(random));
    request = {CacheKey(number), number, false};
  }
  return requests;
}

std::vector<uint32_t> TimesToLive(uint32_t count, uint64_t seed) {
  constexpr double kShortestMs = 1e3;
  constexpr double kLongestMs = 3.6e6;
  base::Random random(seed);
  std::vector<uint32_t> times(count);
  for (uint32_t& time : times) {
    time = static_cast<uint32_t>(kShortestMs *
                                 std::pow(kLongestMs / kShortestMs, random.NextDouble()));
  }
  return times;
}

uint64_t KeyBytes(uint32_t keys) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < keys; ++i) bytes += CacheKey(i).view().size();
  return bytes;
}

}  // namespace basalt::bench

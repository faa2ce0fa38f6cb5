#include "bench/cache_sim/generated_trace.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "bench/cache_sim/zipf.h"

namespace basalt::cache_sim {
namespace {

/// Where all objects are alike.
constexpr uint32_t kObjectBytes = 100;
/// Where they are not: sizes are log-uniform between these.
constexpr double kSizeMin = 16;
constexpr double kSizeMax = 4096;
/// Between two moves of a ranking that drifts.
constexpr uint32_t kRequestsPerMove = 10;

Trace MakeZipf(const char* name, double skew, const TraceShape& shape) {
  TraceBuilder builder(name);
  base::Random random(shape.seed);
  const Zipf zipf(shape.keys, skew);
  while (builder.size() < shape.requests) builder.Add(zipf(&random), kObjectBytes);
  return std::move(builder).Finish();
}
Trace MakeZipf80(const TraceShape& shape) { return MakeZipf("zipf80", 0.80, shape); }
Trace MakeZipf99(const TraceShape& shape) { return MakeZipf("zipf99", 0.99, shape); }

/// The keys stand in a circle; the ranking begins at one of them, and its begin moves on by one
/// place after every few requests.
Trace MakeTurning(const char* name, bool forwards, const TraceShape& shape) {
  TraceBuilder builder(name);
  base::Random random(shape.seed);
  const Zipf zipf(shape.keys, 0.99);
  while (builder.size() < shape.requests) {
    const uint64_t moves = builder.size() / kRequestsPerMove % shape.keys;
    const uint64_t first = forwards ? moves : shape.keys - moves;
    builder.Add((first + zipf(&random)) % shape.keys, kObjectBytes);
  }
  return std::move(builder).Finish();
}
Trace MakeDrift(const TraceShape& shape) { return MakeTurning("drift", false, shape); }
Trace MakeHeat(const TraceShape& shape) { return MakeTurning("heat", true, shape); }

Trace MakeScan(const TraceShape& shape) {
  TraceBuilder builder("scan");
  base::Random random(shape.seed);
  const Zipf zipf(shape.keys, 0.99);
  const uint32_t scan_length = std::max(shape.keys / 100, 1U);
  uint64_t fresh_key = shape.keys;
  while (builder.size() < shape.requests) {
    if (random.OneIn(uint64_t{4} * scan_length)) {
      for (uint32_t i = 0; i < scan_length && builder.size() < shape.requests; ++i) {
        builder.Add(fresh_key++, kObjectBytes);
      }
    } else {
      builder.Add(zipf(&random), kObjectBytes);
    }
  }
  return std::move(builder).Finish();
}

Trace MakeLoop(const TraceShape& shape) {
  TraceBuilder builder("loop");
  while (builder.size() < shape.requests) builder.Add(builder.size() % shape.keys, kObjectBytes);
  return std::move(builder).Finish();
}

Trace MakeMixed(const TraceShape& shape) {
  TraceBuilder builder("mixed");
  base::Random random(shape.seed);
  std::vector<uint32_t> sizes(shape.keys);
  for (uint32_t& size : sizes) {
    size = static_cast<uint32_t>(kSizeMin * std::pow(kSizeMax / kSizeMin, random.NextDouble()));
  }
  const Zipf zipf(shape.keys, 0.99);
  while (builder.size() < shape.requests) {
    const uint32_t key = zipf(&random);
    builder.Add(key, sizes[key]);
  }
  return std::move(builder).Finish();
}

Trace MakeBurst(const TraceShape& shape) {
  struct Fresh {
    uint64_t key;
    uint64_t reads_left;
  };
  constexpr size_t kFreshObjects = 200;
  TraceBuilder builder("burst");
  base::Random random(shape.seed);
  const Zipf zipf(shape.keys, 0.80);
  std::vector<Fresh> fresh(kFreshObjects, {0, 0});
  uint64_t fresh_key = shape.keys;
  while (builder.size() < shape.requests) {
    if (random.Below(100) < 60) {
      builder.Add(zipf(&random), kObjectBytes);
      continue;
    }
    Fresh& object = fresh[random.Below(fresh.size())];
    if (object.reads_left == 0) object = {fresh_key++, random.Between(1, 12)};
    builder.Add(object.key, kObjectBytes);
    --object.reads_left;
  }
  return std::move(builder).Finish();
}

Trace MakeRecency(const TraceShape& shape) {
  TraceBuilder builder("recency");
  base::Random random(shape.seed);
  const uint32_t depth_max = std::max(shape.keys / 3, 2U);
  std::vector<uint32_t> stack;  // What was asked for last is at its end.
  uint32_t fresh_key = 0;
  while (builder.size() < shape.requests) {
    if (stack.size() < depth_max / 100 + 2 || random.OneIn(10)) {
      stack.push_back(fresh_key++);
    } else {
      const auto reach = static_cast<double>(std::min<size_t>(stack.size(), depth_max));
      const auto depth = static_cast<std::ptrdiff_t>(std::pow(reach, random.NextDouble()));
      std::rotate(stack.end() - depth, stack.end() - depth + 1, stack.end());
    }
    builder.Add(stack.back(), kObjectBytes);
  }
  return std::move(builder).Finish();
}

}  // namespace

const std::vector<TraceKind>& TraceKinds() {
  static const std::vector<TraceKind> kinds = {
      {"zipf80", "Zipf with skew 0.80", true, MakeZipf80},
      {"zipf99", "Zipf with skew 0.99", true, MakeZipf99},
      {"drift", "Zipf 0.99; every 10 requests a new key becomes the most popular, the others cool",
       true, MakeDrift},
      {"scan", "Zipf 0.99, and a fifth of the requests are scans of keys that come never again",
       true, MakeScan},
      {"loop", "all keys in order, again and again", true, MakeLoop},
      {"mixed", "Zipf 0.99, sizes log-uniform from 16 B to 4 KiB", true, MakeMixed},
      {"heat", "drift backwards: keys heat up to the most popular, then vanish", false, MakeHeat},
      {"burst",
       "Zipf 0.80, and two fifths are new objects, read up to 12 times within a short time", false,
       MakeBurst},
      {"recency", "a tenth new keys, else one whose depth in the LRU stack is log-uniform", false,
       MakeRecency},
  };
  return kinds;
}

}  // namespace basalt::cache_sim

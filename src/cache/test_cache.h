#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "basalt/cache.h"
#include "base/coding.h"
#include "cache/core.h"
#include "io/sim_clock.h"

namespace basalt::cache {

/// A cache for a test, which cannot go on without it.
inline std::unique_ptr<Cache> NewCache(CacheOptions options = {}) {
  Result<std::unique_ptr<Cache>> cache = Cache::Create(std::move(options));
  EXPECT_TRUE(cache) << cache.status().ToString();
  return std::move(cache).value();
}

/// What a lookup gave, as text; "<absent>" for nothing.
inline std::string TextOf(const MaybeValue& value) {
  return value ? value->ToString() : "<absent>";
}

/// The object that a lookup has found, until the end of the expression.
template <class V>
const V& Held(const Pinned<V>& found) {
  return *found;
}

/// The parts of a cache of bytes that need time, on a clock that the test moves.
class SimCache {
 public:
  using Millis = std::chrono::milliseconds;

  explicit SimCache(CacheOptions options = {}) {
    Result<std::shared_ptr<CacheCore>> core =
        CacheCore::Create(std::move(options), nullptr, &clock_);
    EXPECT_TRUE(core) << core.status().ToString();
    core_ = std::move(core).value();
  }
  ~SimCache() { core_->Close(); }
  SimCache(const SimCache&) = delete;
  SimCache& operator=(const SimCache&) = delete;

  void AdvanceMillis(uint64_t ms) { clock_.Advance(ms * 1000); }
  uint64_t now_ms() { return clock_.MonotonicMicros() / 1000; }

  /// `ttl_ms`: 0 does not expire.
  Status Put(std::string_view key, std::string_view value, int64_t ttl_ms) {
    return core_->PutBytes(key, value, Millis(ttl_ms), Condition::kAlways).status();
  }
  std::string Get(std::string_view key) { return TextOf(core_->Get<true>(key)); }
  bool Touch(std::string_view key, int64_t ttl_ms) { return core_->Touch(key, Millis(ttl_ms)); }
  CacheCore* operator->() const noexcept { return core_.get(); }

 private:
  io::SimClock clock_;
  std::shared_ptr<CacheCore> core_;
};

/// A value that tells whether it is whole: its version, then bytes that follow from key and
/// version. `size` is 8 at least.
inline std::string StampedValue(uint64_t key, uint64_t version, size_t size) {
  std::string value(size, '\0');
  std::memcpy(value.data(), &version, sizeof version);
  uint64_t state = key * 0x9E37'79B9'7F4A'7C15 + version;
  for (size_t i = sizeof version; i < size; ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;
    value[i] = static_cast<char>(state >> 56);
  }
  return value;
}
/// The version that a stamped value carries.
inline uint64_t VersionOf(std::string_view value) { return base::Load<uint64_t>(value.data()); }
/// Whether the value is one that StampedValue made for this key.
inline bool IsWhole(uint64_t key, std::string_view value) {
  return value.size() >= sizeof(uint64_t) &&
         value == StampedValue(key, VersionOf(value), value.size());
}

}  // namespace basalt::cache

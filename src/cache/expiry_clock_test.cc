#include "cache/expiry_clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "basalt/cache.h"

// Expiry by the machine's clock, which hits look at in the least work that tells.

namespace basalt::cache {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

TEST(ExpiryClock, WhatIsFarOffIsBeyondAllThatTheCoarseClockMayBeLate) {
  constexpr uint64_t kStandstillMs = 1000;
  const ExpiryClock clock(nullptr);
  // All of a second: the milliseconds in it are estimated.
  for (int i = 0; i < 220; ++i) {
    const uint64_t coarse_ms = clock.CoarseMillis();
    const uint64_t far_off_ms = clock.FarOff();
    EXPECT_GE(far_off_ms, coarse_ms + kStandstillMs);
    EXPECT_LE(far_off_ms, clock.CoarseMillis() + 2 * kStandstillMs);
    std::this_thread::sleep_for(milliseconds(5));
  }
}

TEST(ExpiryClock, HitsOfExpiringEntriesAreHandedOutAndCountedOnce) {
  const std::unique_ptr<Cache> cache = Cache::Create().value();
  const std::string keys[] = {"k", "key_1", "key_123456", std::string(40, 'k')};
  uint64_t hits = 0;
  for (const std::string& key : keys) {
    // One that is far off, and one of which the exact clock decides.
    for (const milliseconds ttl : {milliseconds(3'600'000), milliseconds(900)}) {
      const auto before = steady_clock::now();
      ASSERT_TRUE(cache->Put(key, "value", {.ttl = ttl}).ok());
      for (int i = 0; i < 5; ++i) {
        const MaybeValue value = cache->Get(key);
        if (!value) {  // The machine may be slow.
          EXPECT_GE(steady_clock::now() - before, ttl) << key;
          break;
        }
        EXPECT_EQ(value->view(), "value");
        EXPECT_EQ(cache->GetStats().hits, ++hits) << key;
      }
    }
  }
  std::this_thread::sleep_for(milliseconds(901));
  for (const std::string& key : keys) EXPECT_FALSE(cache->Get(key)) << key;
  EXPECT_EQ(cache->GetStats().hits, hits);
}

}  // namespace
}  // namespace basalt::cache

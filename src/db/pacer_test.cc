#include "db/pacer.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace basalt::db {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;

/// What writers of `bytes` at a time may write in a second, where each waits as it is told.
uint64_t BytesInASecond(double lag, uint64_t bytes) {
  Pacer pacer;
  pacer.SetLag(lag);
  uint64_t written = 0;
  for (uint64_t now_ns = 1; now_ns <= kSecondNs; written += bytes) {
    now_ns += 100 + pacer.Charge(bytes, now_ns);
  }
  return written;
}

TEST(Pacer, LeavesWritersAloneWhileCompactionKeepsUp) {
  Pacer pacer;
  for (const double lag : {0.0, 1.0, Pacer::kLagFree}) {
    pacer.SetLag(lag);
    EXPECT_TRUE(pacer.is_free());
    EXPECT_EQ(pacer.Charge(1 << 30, 1), 0U);
  }
}

TEST(Pacer, SlowsDownByAFactorOfSixteenARoundAndWithoutACliff) {
  uint64_t before = UINT64_MAX;
  for (double lag = Pacer::kLagFree + 0.05; lag < 7; lag += 0.05) {
    const uint64_t bytes = BytesInASecond(lag, 128);
    EXPECT_LE(bytes, before) << lag;
    // Of what it was, a twentieth of a round before: beyond the beginning, where it falls from
    // no bound at all.
    if (lag > Pacer::kLagFree + 0.5) {
      EXPECT_GE(bytes, before * 3 / 4) << lag;
    }
    before = bytes;
  }
  EXPECT_NEAR(static_cast<double>(BytesInASecond(Pacer::kLagFree + 1, 128)), 6.66e6, 0.5e6);
  EXPECT_NEAR(static_cast<double>(BytesInASecond(Pacer::kLagFree + 2, 128)), 3.9e5, 3e4);
  EXPECT_GE(BytesInASecond(1e9, 128), 9'000U) << "it never stands still";
}

TEST(Pacer, CountsBytesAndNotWrites) {
  for (const uint64_t bytes : {16, 100, 1000, 10'000}) {
    EXPECT_NEAR(static_cast<double>(BytesInASecond(Pacer::kLagFree + 1, bytes)), 6.66e6, 0.5e6);
  }
}

TEST(Pacer, GivesWritersOnePaceTogether) {
  Pacer pacer;
  pacer.SetLag(Pacer::kLagFree + 2);
  uint64_t wait_ns = 0;
  for (int i = 0; i < 100; ++i) wait_ns = pacer.Charge(1000, 1);
  EXPECT_NEAR(static_cast<double>(wait_ns), 100 * 1000 * 2'550, 1e6) << "the last of 100";
}

TEST(Pacer, LetsNobodyWaitLongerThanASecond) {
  Pacer pacer;
  pacer.SetLag(100);
  for (int i = 0; i < 100; ++i) EXPECT_LE(pacer.Charge(uint64_t{1} << 32, 1), kSecondNs);
  EXPECT_LE(pacer.Charge(1, 1), kSecondNs);
  pacer.SetLag(0);
  EXPECT_EQ(pacer.Charge(1, 1), 0U);
}

}  // namespace
}  // namespace basalt::db

#include "cache/recency.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace basalt::cache {
namespace {

constexpr uint64_t kEntries = 1000;
constexpr int kDraws = 10'000;

/// Ghosts of which `early_percent` come back within the first quarter of the entries, the others
/// within the second.
void Feed(Recency* recency, int ghosts, int early_percent) {
  for (int i = 0; i < ghosts; ++i) {
    recency->OnGhost(i % 100 < early_percent ? kEntries / 8 : kEntries * 3 / 8, kEntries);
  }
}

int Decisions(Recency* recency) {
  int decisions = 0;
  for (int i = 0; i < kDraws; ++i) decisions += recency->Decides() ? 1 : 0;
  return decisions;
}

TEST(Recency, DecidesNothingBeforeItHasSeenGhosts) {
  Recency recency;
  EXPECT_EQ(Decisions(&recency), 0);
}

TEST(Recency, GhostsThatComeBackAtAConstantRateLeaveItAtRest) {
  Recency recency;
  Feed(&recency, 100'000, 50);
  EXPECT_LT(Decisions(&recency), kDraws / 20);
}

TEST(Recency, GhostsThatComeBackSoonOrNeverMakeItDecideEverything) {
  Recency recency;
  Feed(&recency, 100'000, 65);
  EXPECT_GT(Decisions(&recency), kDraws * 9 / 10);
}

TEST(Recency, ItComesToRestAgain) {
  Recency recency;
  Feed(&recency, 100'000, 65);
  Feed(&recency, 100'000, 45);
  EXPECT_LT(Decisions(&recency), kDraws / 20);
}

TEST(Recency, GhostsOlderThanHalfTheEntriesSayNothing) {
  Recency recency;
  for (int i = 0; i < 100'000; ++i) recency.OnGhost(kEntries / 2 + 1, kEntries);
  EXPECT_EQ(Decisions(&recency), 0);
}

TEST(Recency, TheShareOfItsDecisionsFollowsTheLevel) {
  Recency recency;
  int before = 0;
  for (int step = 0; step < 8; ++step) {
    for (int i = 0; i < 100; ++i) recency.OnGhost(0, kEntries);
    const int decisions = Decisions(&recency);
    EXPECT_GT(decisions, before);
    before = decisions;
  }
}

}  // namespace
}  // namespace basalt::cache

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <chrono>

#include "base/test_history.h"

// The checker itself: it must find each kind of wrong read, or the tests that use it prove nothing.

namespace basalt::base {
namespace {

constexpr auto kNever = KeyHistory::Time::max();

bool Finds(const KeyHistory& history, bool may_lose) {
  testing::TestPartResultArray failures;
  {
    const testing::ScopedFakeTestPartResultReporter reporter(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
    HistoryCheck(0, history, may_lose).Run();
  }
  return failures.size() > 0;
}

TEST(HistoryCheck, FindsEachKindOfWrongReadInAStore) {
  const KeyHistory fine{.writes = {{1, {2, 3}}, {2, {6, 9}}, {kNoVersion, {12, 13}}, {3, {20, 29}}},
                        .reads = {{kNoVersion, {1, 2}},
                                  {1, {5, 7}},
                                  {2, {7, 8}},
                                  {2, {10, 11}},
                                  {kNoVersion, {14, 15}},
                                  {kNoVersion, {21, 22}}}};
  EXPECT_FALSE(Finds(fine, false));
  const auto finds_also = [&](const KeyHistory::Read& read) {
    KeyHistory history = fine;
    history.reads.push_back(read);
    return Finds(history, false);
  };
  EXPECT_TRUE(finds_also({1, {10, 11}})) << "overwritten";
  EXPECT_TRUE(finds_also({1, {9, 10}})) << "overwritten, as a read has shown, though not ended";
  EXPECT_TRUE(finds_also({2, {14, 15}})) << "deleted";
  EXPECT_TRUE(finds_also({3, {18, 19}})) << "not yet written";
  EXPECT_TRUE(finds_also({4, {18, 19}})) << "never written";
  EXPECT_TRUE(finds_also({kNoVersion, {4, 5}})) << "written before";
  EXPECT_TRUE(finds_also({kNoVersion, {30, 31}})) << "written again";
  EXPECT_FALSE(finds_also({1, {7, 8}})) << "at the same time";
}

TEST(HistoryCheck, FindsEachKindOfWrongReadInACache) {
  const auto now = std::chrono::steady_clock::now();
  const KeyHistory fine{.writes = {{1, {1, 2}, kNever}, {kNoVersion, {4, 7}}},
                        .reads = {{1, {3, 5}, now}, {1, {6, 8}, now}, {kNoVersion, {3, 4}, now}}};
  EXPECT_FALSE(Finds(fine, true));
  KeyHistory history = fine;
  history.reads.push_back({1, {9, 10}, now});
  EXPECT_TRUE(Finds(history, true)) << "after the absence";
  history = fine;
  history.reads.push_back({2, {3, 5}, now});
  EXPECT_TRUE(Finds(history, true)) << "of what was never put";
  history = fine;
  history.writes.push_back({2, {20, 21}, kNever});
  history.reads.push_back({2, {18, 19}, now});
  EXPECT_TRUE(Finds(history, true)) << "before the put";
  history = fine;
  history.consumptions.push_back({1, 5});
  EXPECT_TRUE(Finds(history, true)) << "after it was taken";
  history = fine;
  history.consumptions = {{1, 8}, {1, 9}};
  EXPECT_TRUE(Finds(history, true)) << "taken twice";
  history = fine;
  history.writes[0].dead_at = now - std::chrono::milliseconds(1);
  EXPECT_TRUE(Finds(history, true)) << "after its expiry";
}

TEST(HistoryCheck, AWriteThatReplacesNothingProvesNothingAboutOthers) {
  KeyHistory history{.writes = {{1, {1, 2}}, {.version = 2, .span = {3, 4}, .replaces = false}},
                     .reads = {{1, {5, 6}}, {2, {3, 7}}}};
  EXPECT_FALSE(Finds(history, true));
  history.writes[1].replaces = true;
  EXPECT_TRUE(Finds(history, true));
}

}  // namespace
}  // namespace basalt::base

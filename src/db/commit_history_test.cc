#include "db/commit_history.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "basalt/write_batch.h"
#include "base/random.h"

namespace basalt::db {
namespace {

using transaction::ReadSet;

std::string PutOf(std::string_view key) {
  WriteBatch batch;
  batch.Put(key, "v");
  return std::string(batch.bytes());
}

ReadSet ReadsOf(std::string_view key) {
  ReadSet reads(1 << 20);
  reads.AddKey(0, key);
  return reads;
}

TEST(CommitHistory, RecordsOnlyWhileItIsNeeded) {
  CommitHistory history;
  EXPECT_FALSE(history.is_recording());
  EXPECT_FALSE(history.Covers(0));
  std::optional<CommitHistory::User> user(std::in_place, &history);
  history.Begin(10);
  EXPECT_TRUE(history.Covers(10));
  EXPECT_FALSE(history.Covers(9));
  history.Record(11, PutOf("k"));
  EXPECT_EQ(history.CountAbove(10), 1u);

  // The next commit ends it, unless there is another user by then.
  user.reset();
  user.emplace(&history);
  history.Record(12, PutOf("k"));
  EXPECT_EQ(history.CountAbove(10), 2u);
  user.reset();
  history.Record(13, PutOf("k"));
  EXPECT_FALSE(history.is_recording());
  EXPECT_FALSE(history.Covers(13));

  user.emplace(&history);
  history.Begin(20);
  EXPECT_FALSE(history.Covers(19));
  EXPECT_EQ(history.CountAbove(0), 0u);
}

TEST(CommitHistory, FindsWhatWasWrittenAboveASequence) {
  CommitHistory history;
  const CommitHistory::User user(&history);
  history.Begin(10);
  history.Record(11, PutOf("a"));
  WriteBatch range;
  range.Put("x", "v");
  range.DeleteRange("m", "p");
  history.Record(13, range.bytes());
  history.Record(14, PutOf("b"));

  EXPECT_TRUE(history.ConflictAbove(10, ReadsOf("a")));
  EXPECT_FALSE(history.ConflictAbove(11, ReadsOf("a")));
  EXPECT_TRUE(history.ConflictAbove(11, ReadsOf("n")));
  EXPECT_FALSE(history.ConflictAbove(10, ReadsOf("p")));
  EXPECT_TRUE(history.ConflictAbove(13, ReadsOf("b")));
  EXPECT_EQ(history.ConflictAbove(10, ReadsOf("b")), transaction::NameOfKey("b", 0));
  // A snapshot inside of a batch does not exist; one at its end does not see a conflict.
  EXPECT_FALSE(history.ConflictAbove(13, ReadsOf("x")));
}

TEST(CommitHistory, CoversLessWhenItIsFull) {
  CommitHistory history;
  const CommitHistory::User user(&history);
  history.Begin(0);
  const std::string kilobyte(1000, 'v');
  for (base::SequenceNumber sequence = 1; sequence <= 3000; ++sequence) {
    WriteBatch batch;
    batch.Put("key " + std::to_string(sequence), kilobyte);
    history.Record(sequence, batch.bytes());
    // What it says that it covers it has, from the first commit on.
    ASSERT_TRUE(history.Covers(sequence - 1));
    if (sequence % 50 != 0) continue;
    const base::SequenceNumber first = sequence < 1200 ? 0 : sequence - 1200;
    for (base::SequenceNumber from = first; from < sequence; from += 37) {
      if (!history.Covers(from)) continue;
      ASSERT_EQ(history.CountAbove(from), sequence - from);
      ASSERT_TRUE(history.ConflictAbove(from, ReadsOf("key " + std::to_string(from + 1))));
    }
  }
  EXPECT_FALSE(history.Covers(0));
  EXPECT_FALSE(history.Covers(3000 - CommitHistory::kBytesMax / 1000));
  EXPECT_TRUE(history.Covers(2500));
}

// The oldest commit that is there is the first one above what it covers.
TEST(CommitHistory, CoversFromTheLastCommitThatItHasDropped) {
  CommitHistory history;
  const CommitHistory::User user(&history);
  history.Begin(0);
  for (base::SequenceNumber sequence = 1; sequence <= 5000; ++sequence) {
    history.Record(sequence, PutOf("key " + std::to_string(sequence) + std::string(900, 'x')));
  }
  base::SequenceNumber from = 0;
  while (!history.Covers(from)) ++from;
  ASSERT_GT(from, 0u);
  EXPECT_EQ(history.CountAbove(from), 5000 - from);
  EXPECT_EQ(history.CountAbove(from - 1), 5000 - from);  // One is missing.
}

TEST(CommitHistory, ABatchThatIsTooLargeEndsWhatWasBefore) {
  CommitHistory history;
  const CommitHistory::User user(&history);
  history.Begin(0);
  history.Record(1, PutOf("a"));
  history.Record(2, PutOf(std::string(CommitHistory::kBatchBytesMax / 2, 'k')));
  EXPECT_TRUE(history.Covers(0));
  WriteBatch large;
  large.Put("k", std::string(CommitHistory::kBatchBytesMax + 1, 'v'));
  history.Record(3, large.bytes());
  EXPECT_FALSE(history.Covers(2));
  EXPECT_TRUE(history.Covers(3));
  history.Record(4, PutOf("b"));
  EXPECT_TRUE(history.ConflictAbove(3, ReadsOf("b")));
}

}  // namespace
}  // namespace basalt::db

#include "memtable/hash_index.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/random.h"

namespace basalt::memtable {
namespace {

using Position = HashIndex::Position;

class HashIndexTest : public testing::Test {
 protected:
  ~HashIndexTest() override { retired_.Collect(); }

  void Add(uint32_t tag) {
    const auto position = static_cast<Position>(tags_.size() + 1);
    const HashIndex::Seen seen =
        index_.FindOrPlace(tag, [position](Position other) { return other == position; });
    ASSERT_TRUE(HashIndex::Publish(seen, tag, position));
    tags_.push_back(tag);
  }
  void ExpectAll() {
    const base::EpochGuard inside;
    for (size_t i = 0; i < tags_.size(); ++i) {
      const auto position = static_cast<Position>(i + 1);
      ASSERT_EQ(index_.Find(tags_[i], [position](Position other) { return other == position; }),
                position)
          << "tag " << tags_[i] << ", of " << tags_.size();
    }
    EXPECT_EQ(index_.CountProbes().words, tags_.size());
  }

  std::shared_ptr<base::ChunkPool> pool_ = std::make_shared<base::ChunkPool>();
  base::ByteBudget budget_{~uint64_t{0}};
  base::RetireList retired_;
  HashIndex index_{pool_, &budget_, &retired_, {}};
  std::vector<uint32_t> tags_;
};

TEST_F(HashIndexTest, DoublingsKeepWordsNearTheirHomes) {
  base::Random random(1);
  for (int i = 0; i < 100'000; ++i) {
    ASSERT_TRUE(index_.Reserve(1, /*within_limit=*/true));
    Add(static_cast<uint32_t>(random.Next()));
  }
  ExpectAll();
  const HashIndex::ProbeCounts counts = index_.CountProbes();
  EXPECT_LT(static_cast<double>(counts.buckets) / static_cast<double>(counts.words), 1.1);
}

// Buckets that are full before and after a doubling: their words stand far from home, across the
// end of the table, too.
TEST_F(HashIndexTest, DoublingsFindRoomForWordsOfCrowdedBuckets) {
  base::Random random(2);
  for (int i = 0; i < 20'000; ++i) {
    ASSERT_TRUE(index_.Reserve(1, /*within_limit=*/true));
    const auto bits = static_cast<uint32_t>(random.Next());
    const uint32_t crowded = random.OneIn(2) ? bits | 0xFFFC : bits & ~uint32_t{0xFFF0};
    Add(random.OneIn(4) ? bits : crowded);
    if ((i & (i + 1)) == 0) ExpectAll();
  }
  ExpectAll();
}

TEST_F(HashIndexTest, AJumpOverSizesKeepsAllWords) {
  base::Random random(3);
  for (const size_t more : {300, 2'000, 50'000, 10}) {
    ASSERT_TRUE(index_.Reserve(more, /*within_limit=*/true));
    for (size_t i = 0; i < more; ++i) Add(static_cast<uint32_t>(random.Next()));
    ExpectAll();
  }
}

// Threads store words of few tags, so that they want the same empty words, from one bucket to many.
TEST(HashIndexThreads, WordsOfManyThreadsAreAllThere) {
  constexpr uint32_t kThreads = 3;
  constexpr uint32_t kWordsOfThread = 20'000;
  const auto pool = std::make_shared<base::ChunkPool>();
  base::ByteBudget budget(~uint64_t{0});
  base::RetireList retired;
  std::array<InsertGate::Place, kThreads> in_memory;
  const std::array<InsertGate::Place*, kThreads> places = {&in_memory[0], &in_memory[1],
                                                           &in_memory[2]};
  {
    HashIndex index(pool, &budget, &retired, places);
    const auto tag_of = [](Position position) { return position / 4 * 0x9E37'79B9; };
    const auto is = [](Position wanted) {
      return [wanted](Position position) { return position == wanted; };
    };
    std::vector<std::thread> threads;
    for (uint32_t thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        uint8_t room = 0;
        for (uint32_t i = 0; i < kWordsOfThread; ++i) {
          const Position position = 1 + i * kThreads + thread;
          const uint32_t tag = tag_of(position);
          const base::EpochGuard inside;
          if (room == 0) room = index.ReserveSome(/*within_limit=*/true);
          ASSERT_GT(room--, 0);
          {
            InsertGate::Visit visit(index.gate(), places[thread]);
            visit.Enter();
            while (!HashIndex::Publish(index.FindOrPlace(tag, is(position)), tag, position)) {
            }
          }
          ASSERT_EQ(index.Find(tag, is(position)), position);
        }
        index.GiveBack(room);
      });
    }
    for (std::thread& thread : threads) thread.join();

    const base::EpochGuard inside;
    for (Position position = 1; position <= kThreads * kWordsOfThread; ++position) {
      ASSERT_EQ(index.Find(tag_of(position), is(position)), position);
    }
    EXPECT_EQ(index.CountProbes().words, uint64_t{kThreads} * kWordsOfThread);
  }
  retired.Collect();
  EXPECT_EQ(budget.used_bytes(), 0u);
}

}  // namespace
}  // namespace basalt::memtable

#include "shared_map/update_turns.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "basalt/shared_map.h"
#include "base/test_update.h"
#include "shared_map/test_map.h"

namespace basalt::shared_map {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = UpdateTurns::Clock;

TEST(UpdateTurns, OthersWaitUntilATurnEndsAndItsOwnThreadDoesNot) {
  UpdateTurns turns;
  std::mutex writer;
  std::unique_lock lock(writer);
  turns.WaitFor("key", &lock);
  std::optional<UpdateTurns::Turn> turn(turns.Begin("key", seconds(100)));
  turns.WaitFor("key", &lock);
  std::atomic<bool> has_waited{false};
  std::thread other([&] {
    std::unique_lock others(writer);
    turns.WaitFor("another", &others);
    turns.WaitFor("key", &others);
    EXPECT_TRUE(others.owns_lock());
    has_waited = true;
  });
  lock.unlock();
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_FALSE(has_waited);
  lock.lock();
  EXPECT_FALSE(has_waited);
  turn.reset();
  lock.unlock();
  other.join();
  EXPECT_TRUE(has_waited);
}

TEST(UpdateTurns, NobodyWaitsLongerThanATurnsTimeNorForTheNextOne) {
  UpdateTurns turns;
  std::mutex writer;
  std::unique_lock lock(writer);
  UpdateTurns::Turn turn = turns.Begin("key", milliseconds(20));
  const auto begin = Clock::now();
  std::thread other([&] {
    std::unique_lock others(writer);
    turns.WaitFor("key", &others);
    EXPECT_GE(Clock::now() - begin, milliseconds(20));
    turn = UpdateTurns::Turn();
    turn = turns.Begin("key", seconds(100));
  });
  std::thread third([&] {
    std::unique_lock others(writer);
    turns.WaitFor("key", &others);
    EXPECT_LT(Clock::now() - begin, seconds(50));
  });
  lock.unlock();
  other.join();
  third.join();
}

TEST(UpdateTurns, AKeyHasOneTurnAtATime) {
  UpdateTurns turns;
  std::mutex writer;
  std::unique_lock lock(writer);
  {
    const UpdateTurns::Turn turn = turns.Begin("key", seconds(100));
    const UpdateTurns::Turn none = turns.Begin("key", seconds(100));
    const UpdateTurns::Turn another = turns.Begin("another", seconds(100));
  }
  std::thread other([&] {
    std::unique_lock others(writer);
    turns.WaitFor("key", &others);
    turns.WaitFor("another", &others);
  });
  lock.unlock();
  other.join();
}

/// Puts a key again and again, by a thread of its own.
class BusyWriter {
 public:
  BusyWriter(SharedMap* map, std::string key)
      : thread_([this, map, key] {
          for (uint64_t i = 0; !stop_; ++i) {
            ASSERT_TRUE(map->Put(key, "busy " + std::to_string(i)).ok());
            ++puts_;
          }
        }) {}
  ~BusyWriter() {
    stop_ = true;
    thread_.join();
  }
  uint64_t puts() const { return puts_; }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> puts_{0};
  std::thread thread_;
};

TEST(SharedMapUpdate, OfALongFunctionEndsBesideABusyWriter) {
  auto map = SharedMap::Create(":memory:").value();
  ASSERT_TRUE(map->Put("key", "first").ok());
  BusyWriter writer(map.get(), "key");
  for (int update = 0; update < 3; ++update) {
    int rounds = 0;
    const Status status = map->Update(
        "key", base::ByValue([&](std::optional<std::string_view> value) {
          EXPECT_TRUE(value);
          ++rounds;
          // Long enough for the writer to come in between, if it may.
          const uint64_t puts = writer.puts();
          const auto begin = Clock::now();
          while (Clock::now() - begin < milliseconds(20)) std::this_thread::yield();
          while (rounds <= 3 && writer.puts() < puts + 2) std::this_thread::yield();
          return Result<std::optional<std::string>>("updated " + std::to_string(update));
        }));
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_GT(rounds, 3);
  }
}

// Each of them has its turn, and waits for the other's key.
TEST(SharedMapUpdate, FunctionsThatWriteEachOthersKeysEnd) {
  auto map = SharedMap::Create(":memory:").value();
  const std::string keys[] = {"one", "two"};
  for (const std::string& key : keys) ASSERT_TRUE(map->Put(key, "0").ok());
  std::vector<std::thread> threads;
  std::atomic<int> meetings{0};
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      int rounds = 0;
      const Status status =
          map->Update(keys[i], base::ByValue([&](std::optional<std::string_view>) {
                        ++rounds;
                        // Its own key changes in the first rounds, so that it gets a turn; then
                        // both meet.
                        if (rounds <= 3) {
                          EXPECT_TRUE(map->Put(keys[i], std::to_string(rounds)).ok());
                        }
                        if (rounds == 4) {
                          ++meetings;
                          while (meetings < 2) std::this_thread::yield();
                          EXPECT_TRUE(map->Put(keys[1 - i], "by the other").ok());
                        }
                        return Result<std::optional<std::string>>("done");
                      }));
      EXPECT_TRUE(status.ok()) << status.ToString();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace basalt::shared_map

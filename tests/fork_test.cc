// fork() while other threads of the process work: what a child has of its own works there, and what
// it inherits is refused at once.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <ranges>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "basalt/cache.h"
#include "basalt/db.h"
#include "basalt/memtable.h"
#include "base/arena.h"
#include "base/epoch.h"
#include "base/test_fork.h"

namespace basalt {
namespace {

constexpr int kForks = 20;
constexpr int kKeys = 2000;

std::string KeyOf(uint32_t i) { return "key" + std::to_string(i % kKeys); }

class ForkTest : public testing::Test {
 protected:
  ForkTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "basalt-fork-XXXXXX").string();
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  ~ForkTest() override { std::filesystem::remove_all(directory_); }

  std::string Path(const std::string& name) const { return (directory_ / name).string(); }

  std::filesystem::path directory_;
};

using Call = std::function<bool(uint32_t)>;

/// Threads that make a call each again and again, until they are destroyed.
std::vector<std::jthread> Repeat(const std::vector<Call>& calls) {
  std::vector<std::jthread> threads;
  for (const Call& call : calls) {
    threads.emplace_back([call](const std::stop_token& stop) {
      for (uint32_t i = 0; !stop.stop_requested(); i += 7) EXPECT_TRUE(call(i));
    });
  }
  return threads;
}

/// Writes, reads and scans a database, and asks for its statistics.
std::vector<Call> WorkOf(DB* db) {
  return {[db](uint32_t i) { return db->Put(KeyOf(i), std::string(300, 'y')).ok(); },
          [db](uint32_t i) { return db->Get(KeyOf(i)).has_value(); },
          [db](uint32_t i) {
            const auto it = db->NewIterator();
            it->Seek(KeyOf(i));
            for (int steps = 0; it->Valid() && steps < 50; ++steps) it->Next();
            return it->status().ok();
          },
          [db](uint32_t) { return db->GetStats().keyspaces == 1 && db->GetSnapshot(); }};
}

/// A thread that is inside an epoch as long as this lives.
class InsideAnEpoch {
 public:
  InsideAnEpoch()
      : thread_([this] {
          const base::EpochGuard inside;
          has_entered_ = true;
          has_entered_.notify_one();
          may_leave_.wait(false);
        }) {
    has_entered_.wait(false);
  }
  ~InsideAnEpoch() {
    may_leave_ = true;
    may_leave_.notify_one();
    thread_.join();
  }
  InsideAnEpoch(const InsideAnEpoch&) = delete;
  InsideAnEpoch& operator=(const InsideAnEpoch&) = delete;

 private:
  std::atomic<bool> has_entered_{false};
  std::atomic<bool> may_leave_{false};
  std::thread thread_;
};

/// The number of the first step that fails; 0: none.
int UseDatabase(const std::string& path) {
  auto db = DB::Open(path, {.memory_budget = uint64_t{1} << 20});
  if (!db) return 1;
  for (uint32_t i = 0; i < kKeys; ++i) {
    if (!(*db)->Put(KeyOf(i), std::string(300, 'x')).ok()) return 2;
  }
  if (!(*db)->CompactRange().ok()) return 3;
  for (uint32_t i = 0; i < kKeys; ++i) {
    const auto value = (*db)->Get(KeyOf(i));
    if (!value || !*value || (*value)->size() != 300) return 4;
  }
  return (*db)->Close().ok() ? 0 : 5;
}

TEST_F(ForkTest, AChildUsesADatabaseOfItsOwnWhateverThreadsDidAtTheFork) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's own locks may be held by a thread that the child does not have";
#endif
  auto db = DB::Open(Path("parent"), {.memory_budget = uint64_t{1} << 20}).value();
  const auto busy = Repeat(WorkOf(db.get()));
  for (int i = 0; i < kForks; ++i) {
    ASSERT_EQ(base::InChild([&] { return UseDatabase(Path("child")); }), 0) << "after " << i;
  }
}

TEST_F(ForkTest, ACacheOfAChildFreesWhatWasPutIntoIt) {
  const InsideAnEpoch reader;
  const int code = base::InChild([] {
    auto cache = Cache::Create({.capacity_bytes = uint64_t{1} << 20});
    if (!cache) return 1;
    const std::string value(10'000, 'x');
    for (uint32_t i = 0; i < 10 * kKeys; ++i) {
      if (!(*cache)->Put(KeyOf(i), value).ok()) return 2;
    }
    return 0;
  });
  EXPECT_EQ(code, 0);
}

TEST_F(ForkTest, AMemTableOfAChildFreesWhatWasOverwritten) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer lets no child of several threads start one";
#endif
  const InsideAnEpoch reader;
  const int code = base::InChild([] {
    constexpr uint64_t kBudget = uint64_t{4} << 20;
    auto table = MemTable::Create({.memory_budget = kBudget});
    if (!table) return 1;
    const std::string value(1000, 'x');
    for (uint32_t i = 0; i < 40 * kBudget / 1000; ++i) {
      if (!(*table)->Put(KeyOf(i % 100), value).ok()) return 2;
    }
    return base::ChunkPool::Process()->slab_bytes() <= 2 * kBudget ? 0 : 3;
  });
  EXPECT_EQ(code, 0);
}

TEST_F(ForkTest, AnInheritedHandleIsRefusedAtOnceWhateverThreadsDidAtTheFork) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's own locks may be held by a thread that the child does not have";
#endif
  auto db = DB::Open(Path("parent"), {.memory_budget = uint64_t{1} << 20}).value();
  ASSERT_TRUE(db->Put(KeyOf(0), "value").ok());
  const auto is_refused = [](const Status& status) {
    return status.code() == StatusCode::kFailedPrecondition;
  };
  const auto busy = Repeat(WorkOf(db.get()));
  for (int i = 0; i < kForks; ++i) {
    auto snapshot = std::make_unique<Snapshot>(db->GetSnapshot().value());
    auto it = db->NewIterator();
    it->SeekToFirst();
    const int code = base::InChild([&] {
      if (db->GetStats().memory_budget != 0) return 1;
      if (!is_refused(db->Put("key", "value")) || !is_refused(db->Get("key").status())) return 2;
      if (!is_refused(db->Flush()) || !is_refused(db->Sync())) return 3;
      if (!is_refused(db->NewIterator()->status())) return 4;
      it->Next();
      if (!is_refused(it->status())) return 5;
      if (!is_refused(db->Close())) return 6;
      db.reset();
      it.reset();
      snapshot.reset();
      return 0;
    });
    ASSERT_EQ(code, 0) << "after " << i;
  }
}

TEST_F(ForkTest, InheritedCachesAndMemTablesEndAtOnceWhateverThreadsDidAtTheFork) {
  auto cache = Cache::Create({.capacity_bytes = uint64_t{1} << 20, .shards = 1}).value();
  auto table = MemTable::Create({.memory_budget = uint64_t{4} << 20}).value();
  // What they evict and replace is as large: nothing asks the system, whose locks a sanitizer has.
  const std::string value(300, 'x');
  const auto put = [&](uint32_t i) { return cache->Put(KeyOf(i), value).ok(); };
  const auto take = [&](uint32_t) { return table->GetSnapshot().has_value(); };
  const auto busy = Repeat({put, put, take, take});
  for (int i = 0; i < kForks; ++i) {
    auto snapshot = std::make_unique<Snapshot>(table->GetSnapshot().value());
    const int code = base::InChild([&] {
      snapshot.reset();
      table.reset();
      cache.reset();
      return 0;
    });
    ASSERT_EQ(code, 0) << "after " << i;
  }
}

// A thread of the parent may have stopped anywhere inside of it.
TEST_F(ForkTest, TheEndOfWhatIsInheritedDestroysNothing) {
  const auto descriptors = [] {
    return std::ranges::distance(std::filesystem::directory_iterator("/proc/self/fd"));
  };
  auto db = DB::Open(Path("parent"), {.memory_budget = uint64_t{1} << 20}).value();
  ASSERT_TRUE(db->Put("key", "value").ok());
  auto it = db->NewIterator();
  EXPECT_EQ(base::InChild([&] {
              const auto before = descriptors();
              it.reset();
              db.reset();
              return descriptors() == before ? 0 : 1;
            }),
            0);
  it->SeekToFirst();
  ASSERT_TRUE(it->Valid()) << it->status().ToString();
  EXPECT_EQ(it->value(), "value");
}

}  // namespace
}  // namespace basalt

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "wal/test_log.h"

namespace basalt::wal {
namespace {

constexpr int kWriters = 4;
constexpr uint64_t kRecordsPerWriter = 1500;

/// What writers were told: the payload of each LSN.
class Promises {
 public:
  void Add(Lsn lsn, std::string payload) {
    const std::lock_guard lock(mutex_);
    ASSERT_TRUE(payloads_.emplace(lsn, std::move(payload)).second) << "LSN " << lsn << " twice";
  }
  const std::map<Lsn, std::string>& payloads() const { return payloads_; }

 private:
  std::mutex mutex_;
  std::map<Lsn, std::string> payloads_;
};

void ExpectKept(io::FileSystem* fs, const Promises& promises, Lsn flushed) {
  const Recovered recovered = RecoverAll(fs, flushed, flushed);
  ASSERT_TRUE(recovered.status.ok()) << recovered.status.ToString();
  uint64_t compared = 0;
  for (const auto& [lsn, payload] : promises.payloads()) {
    if (lsn <= flushed) continue;
    ASSERT_LE(lsn, flushed + recovered.payloads.size());
    ASSERT_EQ(recovered.payloads[lsn - flushed - 1], payload) << lsn;
    ++compared;
  }
  EXPECT_EQ(compared, recovered.payloads.size()) << "something else was recovered";
}

TEST(LogThreads, WritersSyncersAndRotationsTogetherLoseAndMixNothing) {
  const auto fs = NewTestFileSystem();
  const auto log = StartLog(fs.get());
  Promises promises;
  std::atomic<bool> is_done{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < kWriters; ++t) {
    threads.emplace_back([&, t] {
      base::Random random(static_cast<uint64_t>(t));
      for (uint64_t i = 0; i < kRecordsPerWriter; ++i) {
        std::string payload = std::to_string(t) + "/" + TestPayload(i);
        Log::Ticket ticket = log->Stage(i, 1, payload);
        const Status written = log->Wait(ticket);
        ASSERT_TRUE(written.ok()) << written.ToString();
        promises.Add(ticket.lsn(), std::move(payload));
        if (random.OneIn(10)) {
          ASSERT_TRUE(log->Sync(ticket.lsn()).ok());
          ASSERT_GE(log->durable_lsn(), ticket.lsn());
        }
      }
    });
  }
  std::thread rotator([&] {
    while (!is_done.load()) {
      log->Rotate();
      log->SetFlushed(log->durable_lsn());
      ASSERT_LE(log->durable_lsn(), log->last_lsn());
      ASSERT_GE(log->bytes_written() + 1, log->syncs());
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  for (std::thread& thread : threads) thread.join();
  is_done.store(true);
  rotator.join();
  ASSERT_TRUE(log->Close().ok());
  fs->Crash(1, io::CrashMode::kNone);
  ExpectKept(fs.get(), promises, 0);
  EXPECT_EQ(promises.payloads().size(), kWriters * kRecordsPerWriter);
}

TEST(LogThreads, WritersGoOnAmidFailingCallsAndKeepWhatTheyWerePromised) {
  std::atomic<uint64_t> failures{0};
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    const auto fs = NewTestFileSystem();
    std::atomic<Lsn> flushed{0};
    Log* raw = nullptr;
    const auto flush_through = [&](Lsn lsn) {
      Lsn before = flushed.load();
      while (before < lsn && !flushed.compare_exchange_weak(before, lsn)) {
      }
      raw->SetFlushed(lsn);
      static_cast<void>(raw->RemoveObsolete(lsn));
      return Status();
    };
    const auto log = StartLog(fs.get(), {}, flush_through);
    raw = log.get();
    Promises promises;
    std::atomic<int> writers{kWriters};
    std::vector<std::thread> threads;
    for (int t = 0; t < kWriters; ++t) {
      threads.emplace_back([&, t] {
        base::Random random(seed * 100 + static_cast<uint64_t>(t));
        for (uint64_t i = 0; i < kRecordsPerWriter / 2; ++i) {
          std::string payload = std::to_string(t) + "/" + TestPayload(i);
          Log::Ticket ticket = log->Stage(i, 1, payload);
          if (!log->Wait(ticket).ok()) {
            failures.fetch_add(1);
            continue;
          }
          promises.Add(ticket.lsn(), std::move(payload));
          if (random.OneIn(5)) {
            const Status synced = log->Sync(ticket.lsn());
            if (synced.ok()) {
              ASSERT_GE(log->durable_lsn(), ticket.lsn());
            } else {
              failures.fetch_add(1);
            }
          }
        }
        writers.fetch_sub(1);
      });
    }
    base::Random random(seed);
    while (writers.load() > 0) {
      fs->SetFault({.at_call = random.Between(1, 30), .error = EIO, .sticky = random.OneIn(3)});
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      fs->ClearFault();
      log->Rotate();
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(log->Close().ok());
    fs->Crash(seed, io::CrashMode::kNone);
    ExpectKept(fs.get(), promises, flushed.load());
  }
  EXPECT_GT(failures.load(), 0U);
}

}  // namespace
}  // namespace basalt::wal

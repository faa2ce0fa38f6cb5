#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "base/out_of_memory.h"
#include "base/test_memory_operators.h"
#include "wal/test_log.h"

// What becomes of a log while allocations fail.

namespace basalt::wal {
namespace {

using base::MemoryThatFails;

TEST(LogMemory, AGroupThatFindsNoMemoryFailsWithThoseBehindItAndLaterOnesAreWritten) {
  bool has_failed = true;
  for (int64_t allowed = 0; has_failed; ++allowed) {
    SCOPED_TRACE(allowed);
    const auto fs = NewTestFileSystem();
    auto log = StartLog(fs.get());
    std::vector<std::string> expected;
    has_failed = false;
    for (const bool is_first : {true, false}) {  // the one that makes a file, and another
      Log::Ticket leader = log->Stage(1, 1, "leader");
      log->Rotate();
      Log::Ticket behind = log->Stage(2, 1, "behind");
      Status status;
      {
        const MemoryThatFails once(allowed, 1);
        status = log->Wait(leader);
        has_failed |= once.has_failed();
      }
      const Status after = log->Wait(behind);
      if (status.ok()) {
        ASSERT_EQ(after.ToString(), "Ok");
        expected.insert(expected.end(), {"leader", "behind"});
      } else {
        ASSERT_EQ(status.code(), StatusCode::kResourceExhausted);
        ASSERT_EQ(after.code(), StatusCode::kResourceExhausted);
      }
      const std::string later = is_first ? "later" : "last";
      ASSERT_EQ(Append(log.get(), later).ToString(), "Ok");
      expected.push_back(later);
    }
    ASSERT_EQ(log->Sync(log->last_lsn()).ToString(), "Ok");
    log.reset();
    const Recovered recovered = RecoverAll(fs.get());
    ASSERT_EQ(recovered.status.ToString(), "Ok");
    ASSERT_EQ(recovered.payloads, expected);
  }
}

TEST(LogMemory, ASyncThatFindsNoMemoryIsFollowedByOneThatDoes) {
  bool has_failed = true;
  for (int64_t allowed = 0; has_failed; ++allowed) {
    SCOPED_TRACE(allowed);
    const auto fs = NewTestFileSystem();
    auto log = StartLog(fs.get(), {}, [](Lsn) { return Status(); });
    ASSERT_TRUE(Append(log.get(), "record").ok());
    Status status;
    {
      const MemoryThatFails once(allowed, 1);
      try {
        status = log->Sync(1);
      } catch (const std::bad_alloc&) {
        status = base::OutOfMemory();
      }
      has_failed = once.has_failed();
    }
    if (!has_failed) {
      ASSERT_EQ(status.ToString(), "Ok");
    }
    ASSERT_EQ(log->Sync(1).ToString(), "Ok");
    ASSERT_EQ(log->durable_lsn(), 1U);
  }
}

TEST(LogMemory, ACloseThatFindsNoMemorySaysSoEachTime) {
  bool has_failed = true;
  for (int64_t allowed = 0; has_failed; ++allowed) {
    SCOPED_TRACE(allowed);
    const auto fs = NewTestFileSystem();
    auto log = StartLog(fs.get());
    ASSERT_TRUE(Append(log.get(), "record").ok());
    Status status;
    {
      const MemoryThatFails once(allowed, 1);
      status = log->Close();
      has_failed = once.has_failed();
    }
    ASSERT_EQ(log->Close().code(), status.code());
    if (!has_failed) {
      ASSERT_EQ(status.ToString(), "Ok");
    }
    log.reset();
    ASSERT_EQ(RecoverAll(fs.get()).payloads, std::vector<std::string>{"record"});
  }
}

}  // namespace
}  // namespace basalt::wal

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/out_of_memory.h"
#include "base/test_memory_operators.h"
#include "wal/test_log.h"

// What becomes of a log while allocations fail.

namespace basalt::wal {
namespace {

using base::EachAllocation;

TEST(LogMemory, AGroupThatFindsNoMemoryFailsWithThoseBehindItAndLaterOnesAreWritten) {
  EachAllocation each;
  while (each.Next()) {
    SCOPED_TRACE(each.ToString());
    const auto fs = NewTestFileSystem();
    auto log = StartLog(fs.get());
    std::vector<std::string> expected;
    for (const bool is_first : {true, false}) {  // the one that makes a file, and another
      Log::Ticket leader = log->Stage(1, 1, "leader");
      log->Rotate();
      Log::Ticket behind = log->Stage(2, 1, "behind");
      const Status status = each.Call([&] { return log->Wait(leader); });
      const Status after = log->Wait(behind);
      if (status.ok()) {
        ASSERT_EQ(after.ToString(), "Ok");
        expected.insert(expected.end(), {"leader", "behind"});
      } else {
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
  EachAllocation each;
  while (each.Next()) {
    SCOPED_TRACE(each.ToString());
    const auto fs = NewTestFileSystem();
    auto log = StartLog(fs.get(), {}, [](Lsn) { return Status(); });
    ASSERT_TRUE(Append(log.get(), "record").ok());
    const auto sync = [&] { return base::OrOutOfMemory([&] { return log->Sync(1); }); };
    static_cast<void>(each.Call(sync));
    ASSERT_EQ(log->Sync(1).ToString(), "Ok");
    ASSERT_EQ(log->durable_lsn(), 1U);
  }
}

TEST(LogMemory, ACloseThatFindsNoMemorySaysSoEachTime) {
  EachAllocation each;
  while (each.Next()) {
    SCOPED_TRACE(each.ToString());
    const auto fs = NewTestFileSystem();
    auto log = StartLog(fs.get());
    ASSERT_TRUE(Append(log.get(), "record").ok());
    const Status status = each.Call([&] { return log->Close(); });
    ASSERT_EQ(log->Close().code(), status.code());
    log.reset();
    ASSERT_EQ(RecoverAll(fs.get()).payloads, std::vector<std::string>{"record"});
  }
}

}  // namespace
}  // namespace basalt::wal

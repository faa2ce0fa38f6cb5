#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "wal/test_log.h"

// Random lives of a log, cut short by power failures and disturbed by failing calls, compared with
// a model after each: what is recovered is a prefix of what was written and has all that was
// acknowledged.

namespace basalt::wal {
namespace {

enum class Faults : uint8_t { kNone, kOneByTheCaller, kRandom };

class LogLife {
 public:
  LogLife(uint64_t seed, Faults faults)
      : random_(seed), faults_(faults), fs_(NewTestFileSystem()) {}

  /// Lives until a power cut at a random call, and recovers from it.
  void LiveAndDie(io::CrashMode mode) {
    fs_->ResetCalls();
    const uint64_t cut_at = random_.Between(1, 120);
    const uint64_t crash_seed = random_.Next();
    has_power_ = true;
    fs_->SetObserver([=, this](uint64_t call, std::string_view, std::string_view) {
      if (call != cut_at) return;
      has_power_ = false;
      fs_->Crash(crash_seed, mode);
    });
    if (log_ == nullptr) Open();
    for (int step = 0; step < 400 && has_power_ && !::testing::Test::HasFailure(); ++step) Step();
    if (has_power_) {
      has_power_ = false;
      fs_->Crash(crash_seed, mode);
    }
    fs_->SetObserver({});
    fs_->ClearFault();
    log_.reset();
    Open();
    attempts_.clear();  // What the cut left is there for good, and nothing else can come back.
  }

  /// With the `call`-th call failing: nothing acknowledged is lost, and when the fault is over
  /// writes and syncs work again. False when there are fewer calls.
  bool LiveWithFaultAt(uint64_t call, int error, bool is_sticky) {
    has_power_ = true;
    Open();
    fs_->SetFault({.at_call = call, .error = error, .sticky = is_sticky});
    for (int step = 0; step < 60; ++step) Step();
    const bool happened = fs_->FaultHappened();
    fs_->ClearFault();
    if (log_ == nullptr) Open();
    Write(1);
    EXPECT_EQ(failed_writes_in_a_row_, 0U);
    EXPECT_TRUE(Sync().ok());
    fs_->Crash(call, io::CrashMode::kNone);
    log_.reset();
    Open();
    return happened;
  }

  uint64_t acknowledged() const { return acknowledged_; }

 private:
  void Step() {
    if (log_ == nullptr) {
      Open();
      return;
    }
    if (faults_ == Faults::kRandom && random_.OneIn(15)) {
      fs_->SetFault({.at_call = random_.Between(1, 5),
                     .error = random_.OneIn(2) ? EIO : ENOSPC,
                     .sticky = random_.OneIn(2)});
    } else if (faults_ == Faults::kRandom && random_.OneIn(4)) {
      fs_->ClearFault();
    }
    switch (random_.Below(24)) {
      case 0:
        log_->Rotate();
        break;
      case 1:
      case 2:
        static_cast<void>(Sync());
        break;
      case 3:
        if (random_.OneIn(2)) static_cast<void>(Flush(random_.Between(flushed_, LastWritten())));
        break;
      case 4:
        if (random_.OneIn(3)) {
          if (log_->Close().ok()) Acknowledge(LastWritten());
          log_.reset();
        }
        break;
      case 5:
        if (random_.OneIn(3)) log_.reset();  // A killed process.
        break;
      default:
        Write(random_.Between(1, 4));
    }
  }

  Lsn LastWritten() const { return written_.size(); }

  void Acknowledge(Lsn lsn) {
    if (has_power_) acknowledged_ = std::max(acknowledged_, lsn);
  }

  void Write(uint64_t count) {
    std::vector<Log::Ticket> tickets;
    std::vector<std::string> payloads;
    bool failed = false;
    for (uint64_t i = 0; i < count; ++i) {
      if (random_.OneIn(8)) log_->Rotate();
      payloads.push_back(TestPayload(++next_payload_));
      tickets.push_back(log_->Stage(next_payload_, 1, payloads.back()));
      if (log_->last_lsn() < tickets.back().lsn()) break;  // It has failed: nothing is behind it.
    }
    for (size_t i = 0; i < tickets.size(); ++i) {
      const Status status = log_->Wait(tickets[i]);
      if (status.ok()) {
        ASSERT_FALSE(failed) << "a group was written behind one that failed";
        ASSERT_EQ(tickets[i].lsn(), LastWritten() + 1);
        written_.push_back(payloads[i]);
      } else {
        failed = true;
        attempts_[tickets[i].lsn()].push_back(payloads[i]);
      }
    }
    failed_writes_in_a_row_ = failed ? failed_writes_in_a_row_ + 1 : 0;
    ASSERT_EQ(log_->last_lsn(), LastWritten());
  }

  Status Sync() {
    const Lsn lsn = LastWritten();
    Status status = log_->Sync(lsn);
    if (status.ok()) Acknowledge(lsn);
    return status;
  }

  /// As a flush that makes tables durable and then says so in the manifest.
  Status Flush(Lsn lsn) {
    if (!has_power_) return Status(StatusCode::kIoError, "no power");
    flushed_ = std::max(flushed_, lsn);
    manifest_durable_ = std::max({manifest_durable_, flushed_, log_->durable_lsn()});
    Acknowledge(flushed_);
    log_->SetFlushed(flushed_);
    static_cast<void>(log_->RemoveObsolete(flushed_));
    return {};
  }

  void Open() {
    Recovered recovered = RecoverAll(fs_.get(), flushed_, manifest_durable_);
    if (!recovered.status.ok()) {
      ASSERT_NE(recovered.status.code(), StatusCode::kCorruption) << recovered.status.ToString();
      ASSERT_TRUE(!has_power_ || faults_ != Faults::kNone) << recovered.status.ToString();
      if (!fs_->FaultHappened() && has_power_) FAIL() << recovered.status.ToString();
      return;
    }
    Compare(recovered.payloads);
    auto log = Log::Start(fs_.get(), kTestDirectory, recovered.result.start,
                          {.preallocate_bytes = random_.OneIn(2) ? 8192U : 0U,
                           .flush_through = [this](Lsn lsn) { return Flush(lsn); }});
    if (log) log_ = std::move(*log);
  }

  void Compare(const std::vector<std::string>& payloads) {
    const Lsn last = flushed_ + payloads.size();
    ASSERT_GE(last, acknowledged_) << "lost what was acknowledged";
    for (Lsn lsn = flushed_ + 1; lsn <= last; ++lsn) {
      const std::string& found = payloads[lsn - flushed_ - 1];
      if (lsn <= LastWritten() && written_[lsn - 1] == found) continue;
      const std::vector<std::string>& failed = attempts_[lsn];
      ASSERT_TRUE(lsn > acknowledged_ && std::count(failed.begin(), failed.end(), found) > 0)
          << "LSN " << lsn << " of " << last << " was never written as " << found;
    }
    written_.resize(flushed_);
    written_.insert(written_.end(), payloads.begin(), payloads.end());
  }

  base::Random random_;
  const Faults faults_;
  std::unique_ptr<io::SimFileSystem> fs_;
  std::unique_ptr<Log> log_;
  bool has_power_ = true;
  // The model: by LSN what was written, what was tried and failed; and what is promised.
  std::vector<std::string> written_;
  std::map<Lsn, std::vector<std::string>> attempts_;
  Lsn acknowledged_ = 0;
  Lsn flushed_ = 0;
  Lsn manifest_durable_ = 0;
  uint64_t next_payload_ = 0;
  uint64_t failed_writes_in_a_row_ = 0;
};

constexpr io::CrashMode kModes[] = {io::CrashMode::kRandom,   io::CrashMode::kNone,
                                    io::CrashMode::kAll,      io::CrashMode::kPrefix,
                                    io::CrashMode::kTornTail, io::CrashMode::kSubset};

void ManyLives(Faults faults) {
  constexpr uint64_t kSeeds = 150;
  uint64_t acknowledged = 0;
  for (const io::CrashMode mode : kModes) {
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      SCOPED_TRACE("mode " + std::to_string(static_cast<int>(mode)) + " seed " +
                   std::to_string(seed));
      LogLife life(seed, faults);
      for (int i = 0; i < 8 && !::testing::Test::HasFailure(); ++i) life.LiveAndDie(mode);
      if (::testing::Test::HasFailure()) return;
      acknowledged += life.acknowledged();
    }
  }
  EXPECT_GT(acknowledged, kSeeds * 6 * 5);
}

TEST(LogCrash, PowerCutsLeaveAPrefixWithAllThatWasAcknowledged) { ManyLives(Faults::kNone); }

TEST(LogCrash, PowerCutsAmidFailingCallsLeaveAPrefixWithAllThatWasAcknowledged) {
  ManyLives(Faults::kRandom);
}

TEST(LogCrash, AnyCallMayFailOnceOrForSomeTime) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    for (const int error : {EIO, ENOSPC, EMFILE}) {
      for (const bool is_sticky : {false, true}) {
        for (uint64_t call = 1;; ++call) {
          SCOPED_TRACE("seed " + std::to_string(seed) + " error " + std::to_string(error) +
                       " call " + std::to_string(call) + (is_sticky ? " sticky" : " once"));
          LogLife life(seed * 1000, Faults::kOneByTheCaller);
          const bool happened = life.LiveWithFaultAt(call, error, is_sticky);
          if (::testing::Test::HasFailure()) return;
          if (!happened) break;
          ASSERT_LT(call, 2000U);
        }
      }
    }
  }
}

}  // namespace
}  // namespace basalt::wal

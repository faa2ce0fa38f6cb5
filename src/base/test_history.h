#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

// For tests: a checker of what threads have read from a store while others wrote to it.
//
// Each thread records its operations on a key, with tickets of one shared counter that it draws
// before and after each. Every value has a version of its own. A read is wrong in these cases.
// - No write of its version had begun when the read ended.
// - Another write had begun after that write was over, and was over before the read began. A write
//   is over when it has ended, or when a read of its version has ended.
// - The version was consumed (taken, or updated to another value) before the read began, or is
//   consumed twice.
// - The version had expired when the read began.
// - It found nothing in a store that keeps everything, although no delete explains that.

namespace basalt::base {

/// The tickets of an operation.
struct TicketSpan {
  uint64_t begin = 0;
  uint64_t end = 0;
};

constexpr uint64_t kNoVersion = 0;  ///< A delete, or a read that found nothing.

/// What happened to one key.
struct KeyHistory {
  using Time = std::chrono::steady_clock::time_point;

  struct Write {
    uint64_t version;
    TicketSpan span;
    Time dead_at = Time::max();  ///< It has expired by then.
    /// False: it proves nothing about other versions. Its value may have been returned without
    /// being stored, or another write of the history stands for what it replaced.
    bool replaces = true;
  };
  struct Read {
    uint64_t version;
    TicketSpan span;
    Time began_at = Time::min();
  };
  struct Consumption {
    uint64_t version;
    uint64_t end;  ///< Its last ticket.
  };
  std::vector<Write> writes{};
  std::vector<Read> reads{};
  std::vector<Consumption> consumptions{};

  void Append(const KeyHistory& other) {
    writes.insert(writes.end(), other.writes.begin(), other.writes.end());
    reads.insert(reads.end(), other.reads.begin(), other.reads.end());
    consumptions.insert(consumptions.end(), other.consumptions.begin(), other.consumptions.end());
  }
};

/// For each ticket, the earliest end of a write that began after it.
class NextWrite {
 public:
  explicit NextWrite(std::vector<TicketSpan> writes) : writes_(std::move(writes)) {
    std::ranges::sort(writes_, {}, &TicketSpan::begin);
    for (size_t i = writes_.size(); i-- > 1;) {
      writes_[i - 1].end = std::min(writes_[i - 1].end, writes_[i].end);
    }
  }
  uint64_t FirstEndAfter(uint64_t ticket) const {
    const auto it = std::ranges::upper_bound(writes_, ticket, {}, &TicketSpan::begin);
    return it == writes_.end() ? std::numeric_limits<uint64_t>::max() : it->end;
  }

 private:
  std::vector<TicketSpan> writes_;
};

/// Checks all reads of one key. `may_lose`: the store may drop a key at any time, as a cache does.
class HistoryCheck {
 public:
  HistoryCheck(uint64_t key, KeyHistory history, bool may_lose)
      : key_(key), may_lose_(may_lose), history_(std::move(history)) {}

  /// Adds a failure for each wrong read.
  void Run() {
    for (KeyHistory::Write& write : history_.writes) {
      if (write.version != kNoVersion) writes_.emplace(write.version, &write);
    }
    EndWritesThatWereRead();
    const NextWrite next_write(ReplacingSpans());
    FindAbsences(next_write);
    FindConsumed();
    for (const KeyHistory::Read& read : history_.reads) {
      if (read.version == kNoVersion) {
        CheckAbsence(read.span);
      } else {
        CheckRead(read, next_write);
      }
    }
  }

 private:
  /// A version that was read is stored, although its write may not have ended.
  void EndWritesThatWereRead() {
    for (const KeyHistory::Read& read : history_.reads) {
      const auto it = writes_.find(read.version);
      if (it == writes_.end() || !it->second->replaces) continue;
      it->second->span.end = std::min(it->second->span.end, read.span.end);
    }
  }

  std::vector<TicketSpan> ReplacingSpans() const {
    std::vector<TicketSpan> spans;
    for (const KeyHistory::Write& write : history_.writes) {
      if (write.replaces) spans.push_back(write.span);
    }
    return spans;
  }

  void FindAbsences(const NextWrite& next_write) {
    absences_.emplace_back();  // Before the first write.
    for (const KeyHistory::Write& write : history_.writes) {
      if (write.version == kNoVersion) absences_.push_back(write.span);
    }
    for (TicketSpan& absence : absences_) absence.end = next_write.FirstEndAfter(absence.end);
  }

  void FindConsumed() {
    for (const auto& [version, end] : history_.consumptions) {
      const auto [it, is_first] = consumed_.emplace(version, end);
      EXPECT_TRUE(is_first) << "key " << key_ << ": version " << version
                            << " was taken or updated twice";
      it->second = std::min(it->second, end);
    }
  }

  void CheckAbsence(TicketSpan read) const {
    const bool is_possible =
        may_lose_ || std::ranges::any_of(absences_, [&read](const TicketSpan& absence) {
          return absence.begin < read.end && read.begin <= absence.end;
        });
    EXPECT_TRUE(is_possible) << "key " << key_ << " was not found in [" << read.begin << ", "
                             << read.end << "]";
  }

  void CheckRead(const KeyHistory::Read& read, const NextWrite& next_write) const {
    const auto it = writes_.find(read.version);
    if (it == writes_.end()) {
      ADD_FAILURE() << "key " << key_ << ": version " << read.version << " was never written";
      return;
    }
    const KeyHistory::Write& write = *it->second;
    uint64_t stale_from = next_write.FirstEndAfter(write.span.end);
    const auto consumed = consumed_.find(read.version);
    if (consumed != consumed_.end()) stale_from = std::min(stale_from, consumed->second);
    EXPECT_LT(write.span.begin, read.span.end) << "key " << key_ << ": read before it was written";
    EXPECT_LE(read.span.begin, stale_from)
        << "key " << key_ << ": version " << read.version << ", written in [" << write.span.begin
        << ", " << write.span.end << "], was read in [" << read.span.begin << ", " << read.span.end
        << "]";
    EXPECT_LE(read.began_at, write.dead_at) << "key " << key_ << ": read after its expiry";
  }

  const uint64_t key_;
  const bool may_lose_;
  KeyHistory history_;
  std::unordered_map<uint64_t, KeyHistory::Write*> writes_;
  std::unordered_map<uint64_t, uint64_t> consumed_;
  std::vector<TicketSpan> absences_;
};

}  // namespace basalt::base

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/internal_key.h"
#include "transaction/read_set.h"

// The newest commits with the keys that they wrote, so that a commit under the commit lock can tell
// whether what it depends on has changed since some sequence number, without I/O and without
// waiting for writes that are not visible yet.
//
// Layout
//
//   entries .... {last sequence number, bytes of the batch} in the order of commits, oldest first
//   covers_from  commits above this sequence number are all among the entries
//
// It is kept only while somebody needs it (a User): other writes pay for one look at a flag. An
// entry is a copy of the batch's log form. When the entries pass kBytesMax the oldest go; a batch
// above kBatchBytesMax is not copied, and all before it goes: what depends on more is then checked
// in memtables and tables (Core::ChangedBetween).
//
// All functions except User's need the commit lock.
//
// Cost: a commit that is recorded a copy of its batch; a check one hash and one probe for each
// record of the commits that it looks at.

namespace basalt::db {

class CommitHistory {
 public:
  static constexpr size_t kBytesMax = size_t{1} << 20;
  static constexpr size_t kBatchBytesMax = size_t{64} << 10;

  /// Needs the history while it lives. Made and destroyed without the lock.
  class User {
   public:
    explicit User(CommitHistory* history) noexcept : history_(history) {
      history_->users_.fetch_add(1, std::memory_order_seq_cst);
    }
    ~User() { history_->users_.fetch_sub(1, std::memory_order_seq_cst); }
    User(const User&) = delete;
    User& operator=(const User&) = delete;

   private:
    CommitHistory* const history_;
  };

  /// Begins to record, if that is not done yet: a User calls it before its first read.
  /// `last_sequence`: the greatest that was given out.
  void Begin(base::SequenceNumber last_sequence) noexcept;
  bool is_recording() const noexcept { return is_recording_; }
  /// A commit up to `last`; `bytes`: its log form. Only while is_recording(). Without memory it
  /// covers less.
  void Record(base::SequenceNumber last, std::string_view bytes) noexcept;

  /// Whether it has all commits above `sequence`.
  bool Covers(base::SequenceNumber sequence) const noexcept {
    return is_recording_ && sequence >= covers_from_;
  }
  /// How many commits above `sequence` it has.
  size_t CountAbove(base::SequenceNumber sequence) const noexcept;
  /// The first record of a commit above `sequence` that wrote something in `reads`, as "key k of
  /// keyspace n"; nothing: there is none. `reads` is normalised. Throws std::bad_alloc.
  std::optional<std::string> ConflictAbove(base::SequenceNumber sequence,
                                           const transaction::ReadSet& reads) const;

 private:
  struct Entry {
    base::SequenceNumber last;
    std::string bytes;
  };
  void Stop() noexcept;

  std::atomic<uint64_t> users_{0};
  bool is_recording_ = false;
  base::SequenceNumber covers_from_ = 0;
  size_t bytes_ = 0;
  std::deque<Entry> entries_;
};

}  // namespace basalt::db

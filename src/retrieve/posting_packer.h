#pragma once

#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/store.h"
#include "basalt/transaction.h"

// Packs the postings of terms: many 'p' records (posting_record.h) become postings of 'm' segments.
//
// One transaction packs up to 1,024 records into one segment. It reads each record and the segment,
// and so conflicts with writes of these documents and with another packing of the term; writes of
// other documents do not conflict. Its own writes are bounded: about 64 KiB for a term with few
// positions. Answers of queries do not change.
//
// A term is due when it has got at least 32 new records, and a quarter as many as it has documents
// or 4,096. So each posting is rewritten a bounded number of times, and a query reads at most a
// quarter of its postings as single records.

namespace basalt::retrieve {

/// Thread-safe.
class PostingPacker {
 public:
  PostingPacker(Store* store, KeyspaceId keyspace) : store_(store), keyspace_(keyspace) {}

  /// Remembers a term that is written.
  void Touch(const std::string& term);
  /// Packs the terms touched so far that are due. After an error, those left are still remembered.
  Status PackDue();

 private:
  using Unpacked = std::vector<std::pair<uint64_t, std::string>>;  // By document; values of 'p'.
  struct Segment {
    uint64_t last_document = 0;
    std::string bytes{};  // Empty: a new one.
    bool is_last = true;
  };

  Result<bool> IsDue(std::string_view term) const;
  Status Pack(std::string_view term) const;
  Result<bool> PackSome(Transaction& tx, std::string_view term) const;
  Result<Unpacked> ReadUnpacked(Transaction& tx, std::string_view term, bool* is_all) const;
  Result<Segment> FindSegment(Transaction& tx, std::string_view term, uint64_t document) const;
  Status Rewrite(Transaction& tx, std::string_view term, const Segment& segment,
                 std::string_view changes) const;
  Status SettleCounter(Transaction& tx, std::string_view term, bool is_all, size_t packed) const;

  Store* const store_;
  const KeyspaceId keyspace_;
  std::mutex mutex_;  // Guards touched_.
  std::set<std::string> touched_;
};

}  // namespace basalt::retrieve

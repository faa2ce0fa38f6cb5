#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/snapshot.h"
#include "basalt/store.h"
#include "text/postings_source.h"

namespace basalt::retrieve {

/// The postings of a TextIndex at a snapshot; posting_record.h has the records. Find copies all
/// postings of its term.
class StorePostings final : public text::PostingsSource {
 public:
  static Result<std::unique_ptr<StorePostings>> Open(const Store* store, KeyspaceId keyspace);

  text::CollectionStats GetStats() const override { return stats_; }
  Result<text::TermPostings> Find(std::string_view term) override;
  Result<std::vector<std::string>> TermsWithPrefix(std::string_view prefix, size_t limit) override;

 private:
  StorePostings(const Store* store, KeyspaceId keyspace, Snapshot snapshot)
      : store_(store), keyspace_(keyspace), snapshot_(std::move(snapshot)) {}
  Result<uint64_t> Counter(std::string_view key) const;
  /// The 'p' records of a term as a segment. Empty: there are none.
  Result<std::string> ReadUnpacked(std::string_view term) const;

  const Store* store_;
  const KeyspaceId keyspace_;
  const Snapshot snapshot_;
  text::CollectionStats stats_;
  std::deque<std::string> segments_;  // Of all terms that were looked for. Cursors point into them.
};

}  // namespace basalt::retrieve

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "basalt/options.h"
#include "basalt/status.h"
#include "basalt/write_batch.h"
#include "base/merge_operator.h"

// What a transaction has written: the batch that its commit applies, and a view of it by key for
// the transaction's own reads.
//
//   batch ..... the records in order
//   view ...... for each keyspace the keys that the records name, in order, each with what the
//               records make of it; and the ranges that they have deleted, disjoint. Made when
//               somebody reads, from the records since the last time, so that a transaction that
//               only writes costs what a batch costs
//
// A key's state stands for all records of the key so far. Merges on a key that no record of the
// transaction has put or deleted apply to what the store has. A merge of a number on an own value
// that is no number stays a merge: reading that key fails, as it does in a store, and no other.
//
// One thread at a time.

namespace basalt::transaction {

/// What a transaction's records make of one key.
struct OwnState {
  enum class Kind : uint8_t {
    kPut,
    kDeleted,
    kMerges,  ///< `merges` apply to what the store has.
  };
  Kind kind = Kind::kDeleted;
  std::string value{};               ///< Of a put.
  std::optional<WallTime> expiry{};  ///< Of a put.
  /// Oldest first. Of a put: those from the first on that cannot be applied to it.
  std::vector<base::PendingMerge> merges{};

  /// What the merges, at least one, make of what is under them: the put, or what the store has.
  /// FailedPrecondition: a number was to be changed that is none.
  Result<base::MergedValue> Merged(std::optional<std::string_view> stored,
                                   uint64_t stored_expiry_ms, uint64_t now_ms) const;
};

class OwnWrites {
 public:
  /// How long a put lives whose ttl is unset.
  using DefaultTtl = std::function<std::chrono::milliseconds(KeyspaceId keyspace)>;

  explicit OwnWrites(DefaultTtl default_ttl) : default_ttl_(std::move(default_ttl)) {}

  using Keys = std::map<std::string, OwnState, std::less<>>;
  /// [first, second), disjoint and not adjacent, by their begin.
  using Ranges = std::map<std::string, std::string, std::less<>>;
  struct OfKeyspace {
    Keys keys;
    Ranges deleted;

    /// Whether a deleted range covers the key; a key that was written since is in `keys`.
    bool IsInDeletedRange(std::string_view key) const noexcept;
  };

  const WriteBatch& batch() const noexcept { return batch_; }
  bool empty() const noexcept { return batch_.empty(); }

  /// Adds the records and conditions of another batch. An error adds nothing.
  Status Append(const WriteBatch& other);
  WriteBatch::Mark mark() const noexcept { return batch_.mark(); }
  /// Takes back what was added since. `mark` is not later than a mark that was gone back to.
  void TruncateTo(const WriteBatch::Mark& mark) noexcept;

  /// What the records say of a keyspace; null: nothing. Valid until the next record. `now_ms`: the
  /// wall time of the transaction. Throws std::bad_alloc; records that the view does not have yet
  /// are then applied by the next call.
  const OfKeyspace* Of(KeyspaceId keyspace, uint64_t now_ms);

  uint64_t memory_bytes() const noexcept { return batch_.byte_size() + view_bytes_; }

 private:
  void Apply(const WriteBatch::Record& record, uint64_t now_ms);
  void ApplyMerge(const WriteBatch::Record& record, uint64_t now_ms, OfKeyspace* view);
  std::optional<WallTime> ExpiryOf(const WriteBatch::Record& record, uint64_t now_ms) const;

  const DefaultTtl default_ttl_;
  WriteBatch batch_;
  std::map<uint32_t, OfKeyspace> view_;
  size_t applied_bytes_ = 0;  // of the batch, in the view
  uint64_t view_bytes_ = 0;
};

/// Adds [begin, end), which is not empty, to disjoint ranges. Throws std::bad_alloc, and has
/// changed nothing then.
void AddDeletedRange(std::string_view begin, std::string_view end, OwnWrites::Ranges* ranges);

}  // namespace basalt::transaction

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/iterator.h"
#include "basalt/options.h"
#include "transaction/own_writes.h"
#include "transaction/read_set.h"

// A transaction's iterator: what the store has at the transaction's snapshot, with the
// transaction's own writes over it.
//
// `base` walks the store. `own` are the keys that the transaction had written when the iterator was
// made, in order, and `deleted` the ranges that it had deleted; both are copies, so that later
// writes change nothing here. Each of `base` and the place in `own` stands at the first of its keys
// that is not before the present one, in the direction of the last move; a move in the other
// direction seeks both.
//
// It tells the read set which keys it has passed: one range for each stretch between two seeks,
// from the least to the greatest key that it has shown. The range is told when the stretch ends.

namespace basalt::transaction {

class OwnIterator;

/// The iterators of a transaction that live.
using LiveIterators = std::vector<OwnIterator*>;

class OwnIterator final : public Iterator {
 public:
  struct Own {
    std::string key;
    OwnState state;
  };
  /// What it walks, beside the store.
  struct Overlay {
    std::vector<Own> own;
    OwnWrites::Ranges deleted;
  };

  /// `options`: those of `base`, whose bounds `overlay` lies in; `now_ms`: the transaction's wall
  /// time; `reads`: null, or what hears of the keys that were passed, until Finish. Enters itself
  /// into `live`.
  OwnIterator(std::unique_ptr<Iterator> base, const ReadOptions& options, Overlay overlay,
              uint64_t now_ms, ReadSet* reads, std::shared_ptr<LiveIterators> live);
  ~OwnIterator() override;

  std::optional<WallTime> expiry() const noexcept override;
  void SeekToFirst() override;
  void SeekToLast() override;
  void Seek(std::string_view target) override;
  void SeekForPrev(std::string_view target) override;
  void Next() override;
  void Prev() override;

  /// Tells the read set of the present stretch. The transaction calls it before its commit. Throws
  /// std::bad_alloc.
  void TellReads();
  /// The transaction has ended with `why`: the iterator is not valid any more, and the read set may
  /// go.
  void Finish(const Status& why) noexcept;

 private:
  // A stretch of keys that were passed, [low, high).
  struct Stretch {
    std::optional<std::string> low;   ///< Nothing: the end, as long as nothing was shown.
    std::optional<std::string> high;  ///< Nothing: the end.
  };

  bool IsUsable();
  void BeginStretch(std::optional<std::string> at);
  void ExtendStretch();
  void TurnForward();
  void TurnBackward();
  void FindForward();
  void FindBackward();
  bool BaseIsAt(std::string_view key) const noexcept {
    return base_->Valid() && base_->key() == key;
  }
  /// Shows what the transaction has made of a key, over the base's record if that is of this key.
  /// False: nothing, or an error, which is in the status.
  bool ShowOwn(const Own& own, bool base_is_equal);
  void ShowBase();
  void Fail(Status why) noexcept;
  void ShowNothing() noexcept;
  size_t PlaceBehind(std::string_view key) const noexcept;
  size_t PlaceAtOrBehind(std::string_view key) const noexcept;

  const std::unique_ptr<Iterator> base_;
  const KeyspaceId keyspace_;
  const bool keys_only_;
  std::string lower_;
  std::optional<std::string> upper_;
  const Overlay overlay_;
  const uint64_t now_ms_;
  ReadSet* reads_;
  const std::shared_ptr<LiveIterators> live_;

  // Forward: the place of the first own key that is not before the present one. Backward: one more
  // than that of the last own key that is not behind it.
  size_t place_ = 0;
  bool forward_ = true;
  bool shows_base_ = false;
  std::optional<Stretch> stretch_;
  std::string merged_;
  std::optional<WallTime> own_expiry_;
  Status finished_;
};

}  // namespace basalt::transaction

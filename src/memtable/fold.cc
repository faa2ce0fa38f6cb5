#include <algorithm>
#include <bit>
#include <mutex>
#include <new>

#include "base/merge_operator.h"
#include "memtable/generation.h"

// Folds: records that stand for many merges of one key, so that reads of the key do not visit all
// of them.
//
//     newest                                    oldest
//     m9 -> m8 -> [F] -> m7 -> m6 -> ... -> m2 -> put
//                  '----------- behind ----------^
//
// A fold has the tag of the newest merge that it stands for, and lies in front of that. Readers
// that use it continue behind the oldest. Readers at a lower sequence number pass it, and find all
// versions as they were. It has no order entry: runs, iterators and flushes do not see it.
//
// A fold adds nothing new, so any reader may make it, at any time, more than once, or not at all.
// The merges that it stands for never change, because no version can come between two visible ones.
// For the same reason all range deletes below its sequence number are known: it ends where one
// covers the key.
//
// An expiring value takes the merges with it that were written before. If a reader finds that the
// value below has expired between the merges of a fold, it does not use that fold and looks behind
// it, where older folds may lie.
//
// Numbers are folded with everything behind them: a fold of any number of merges has one operand.
// Appended bytes are copied into each fold, so folds grow in steps of 16: sixteen of one size make
// one of the next. A reader meets at most 16 log16(n) of n appends, and each byte is copied
// log16(n) times.

namespace basalt::memtable {
namespace {

constexpr int kStepBits = 4;
static_assert(Generation::kFoldedMin == size_t{1} << kStepBits);

/// Of one record, as if it were a fold.
FoldedMerges FoldedOf(const Record& record) noexcept {
  if (record.is_fold()) return record.folded();
  return {.oldest = base::TagSequence(record.tag.load(std::memory_order_relaxed)),
          .earliest_ms = record.time_ms(),
          .latest_ms = record.time_ms(),
          .count = 1,
          .behind = record.previous.load(std::memory_order_acquire)};
}

MergeOperator OperatorOf(const Record& record) noexcept {
  return static_cast<MergeOperator>(record.value()[0]);
}

/// How many steps of 16 lead to a fold of so many.
int SizeClassOf(const Record& record) noexcept {
  if (!record.is_fold()) return 0;
  return (static_cast<int>(std::bit_width(record.folded().count)) - 1) / kStepBits;
}

/// The merges of a key that one fold may stand for, from the newest on; each is a record or a fold.
class MergesToFold {
 public:
  /// `newest`: a merge. `cover`: the newest range delete over the key.
  MergesToFold(const Generation& table, const Record& newest, base::SequenceNumber cover,
               uint64_t expiry_ms) noexcept
      : table_(table),
        op_(OperatorOf(newest)),
        cover_(cover),
        expiry_ms_(expiry_ms),
        expires_(newest.time_ms() < expiry_ms) {
    ComeTo(&newest);
  }

  /// Null: there are no more.
  const Record* present() const noexcept { return present_; }
  void Next() noexcept { ComeTo(table_.Behind(*present_)); }

  /// How many of them a new fold should stand for; 0: there should be none.
  static size_t CountWorth(MergesToFold merges) noexcept {
    size_t all = 0;
    size_t worth = 0;
    const bool is_append = merges.op_ == MergeOperator::kAppend;
    for (int size_class = 0;; ++size_class) {
      size_t of_class = size_class == 0 ? 0 : 1;  // those before make one of this class
      for (; merges.present() != nullptr; merges.Next(), ++all, ++of_class) {
        if (is_append && SizeClassOf(*merges.present()) > size_class) break;
      }
      if (of_class < Generation::kFoldedMin) return worth;
      worth = all;
    }
  }

 private:
  void ComeTo(const Record* record) noexcept {
    while (record != nullptr && record->is_fold() && record->folded().IsSplitBy(expiry_ms_)) {
      record = table_.Older(*record);
    }
    present_ = record != nullptr && MayJoin(*record) ? record : nullptr;
  }
  bool MayJoin(const Record& record) const noexcept {
    const base::Tag tag = record.tag.load(std::memory_order_acquire);
    return base::TagKind(tag) == RecordKind::kMerge && base::TagSequence(tag) > cover_ &&
           OperatorOf(record) == op_ && (record.time_ms() < expiry_ms_) == expires_;
  }

  const Generation& table_;
  const MergeOperator op_;
  const base::SequenceNumber cover_;
  const uint64_t expiry_ms_;
  const bool expires_;  // they were written before the value under them had expired
  const Record* present_ = nullptr;
};

}  // namespace

void Generation::FoldMerges(uint32_t keyspace, std::string_view key, uint64_t hash,
                            base::SequenceNumber at, uint64_t expiry_ms) noexcept {
  const base::EpochGuard inside;
  const Record* const newest = Find(keyspace, key, hash, at, nullptr);
  if (newest == nullptr) return;
  const base::Tag tag = newest->tag.load(std::memory_order_acquire);
  const base::SequenceNumber cover = range_deletes_.SequenceAt(keyspace, key, at, nullptr);
  if (base::TagKind(tag) != RecordKind::kMerge || base::TagSequence(tag) < cover) return;
  MergesToFold merges(*this, *newest, cover, expiry_ms);
  size_t left = MergesToFold::CountWorth(merges);
  if (left == 0) return;
  try {
    base::MergeRun run;
    FoldedMerges folded = FoldedOf(*newest);
    folded.count = 0;
    // There may be fewer than were counted: another thread may have folded some of them meanwhile.
    for (; left != 0 && merges.present() != nullptr; --left) {
      if (!run.Add(merges.present()->value(), merges.present()->time_ms())) break;
      const FoldedMerges added = FoldedOf(*merges.present());
      folded.oldest = added.oldest;
      folded.earliest_ms = std::min(folded.earliest_ms, added.earliest_ms);
      folded.latest_ms = std::max(folded.latest_ms, added.latest_ms);
      folded.count += added.count;
      folded.behind = added.behind;
      merges.Next();
    }
    const base::PendingMerge merge = run.Take();
    LinkFold({.kind = RecordKind::kMerge,
              .keyspace = keyspace,
              .key = key,
              .value = merge.value,
              .time_ms = merge.time_ms},
             hash, tag, folded, inside.thread_number());
  } catch (const std::bad_alloc&) {
    return;  // readers go on walking
  }
}

void Generation::LinkFold(const RecordSource& source, uint64_t hash, base::Tag tag,
                          const FoldedMerges& folded, uint32_t thread_number) noexcept {
  Segment& segment = SegmentOf(thread_number);
  const std::lock_guard lock(segment);
  const auto [position, record] = segment.PlaceFold(source);
  if (position == 0) return;
  Segment::FillFold(record, source, folded);
  record->tag.store(tag, std::memory_order_release);
  hash = MixKeyspace(hash, source.keyspace);
  ShardOf(hash).LinkFold(record, position, hash, &segment);
}

}  // namespace basalt::memtable

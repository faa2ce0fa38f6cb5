#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "basalt/status.h"
#include "basalt/write_batch.h"

// What WriteBatch::Merge does to a value. The value of a merge record is one byte, the operator,
// and then the operand. A merge says when it was written, because it keeps the expiry of what it
// applies to: one that was written after that had expired applies to nothing.

namespace basalt::base {

/// Bytes of the numbers that kAdd, kMin and kMax work on.
inline constexpr size_t kMergeNumberBytes = 8;

/// InvalidArgument: not an operand of this operator.
Status CheckMergeOperand(MergeOperator op, std::string_view operand);
/// Whether these bytes are the value of a merge record.
bool IsMergeValue(std::string_view value) noexcept;

/// One merge record.
struct PendingMerge {
  std::string value;     ///< Operator and operand.
  uint64_t time_ms = 0;  ///< When it was written.
};

struct MergedValue {
  std::string value;
  uint64_t expiry_ms = 0;  ///< 0: never.
};

/// What merges make of the value under them, if there is one. `merges`: well-formed, newest first,
/// at least one. Of a base that has expired at `now_ms` only the expiry counts: merges that were
/// written before have expired with it, and when there are no others, so has the result.
/// FailedPrecondition: a number was to be changed that is none.
Result<MergedValue> ApplyMerges(std::span<const PendingMerge> merges,
                                std::optional<std::string_view> base, uint64_t base_expiry_ms,
                                uint64_t now_ms);
/// The expiry of that, which takes no operator to be applied.
uint64_t MergedExpiry(std::span<const PendingMerge> merges, uint64_t base_expiry_ms,
                      uint64_t now_ms) noexcept;

/// Adjacent merges of a key, gathered newest first, that one merge can stand for: all operators are
/// associative. It does the same to any value under them that expires after all of them were
/// written, or before any was; of others it says nothing.
class MergeRun {
 public:
  /// False: the operator is another one than that of the run, or the operand would be too long.
  /// `value`: of a merge record. O(its length).
  bool Add(std::string_view value, uint64_t time_ms);

  uint64_t count() const noexcept { return count_; }
  size_t operand_bytes() const noexcept {
    return op_ == MergeOperator::kAppend ? appended_.size() : kMergeNumberBytes;
  }
  /// When the first and the last of them were written, as far as their times tell.
  uint64_t earliest_ms() const noexcept { return earliest_ms_; }
  uint64_t latest_ms() const noexcept { return latest_ms_; }

  /// The one merge, written when the newest was. The run is empty then, as it was not before.
  PendingMerge Take();

 private:
  MergeOperator op_ = MergeOperator::kAdd;
  uint64_t count_ = 0;
  int64_t number_ = 0;
  std::string appended_;  // last byte first, since what is older comes later
  uint64_t newest_ms_ = 0;
  uint64_t earliest_ms_ = 0;
  uint64_t latest_ms_ = 0;
};

}  // namespace basalt::base

#include "base/merge_operator.h"

#include <algorithm>

#include "base/check.h"
#include "base/coding.h"

namespace basalt {
namespace base {
namespace {

std::string_view NameOf(MergeOperator op) noexcept {
  switch (op) {
    case MergeOperator::kAdd:
      return "add";
    case MergeOperator::kMin:
      return "min";
    case MergeOperator::kMax:
      return "max";
    case MergeOperator::kAppend:
      return "append";
  }
  return "unknown";
}

bool IsKnown(uint8_t op) noexcept {
  return op >= static_cast<uint8_t>(MergeOperator::kAdd) &&
         op <= static_cast<uint8_t>(MergeOperator::kAppend);
}

int64_t NumberAt(const char* bytes) noexcept { return static_cast<int64_t>(Load<uint64_t>(bytes)); }

int64_t Combine(MergeOperator op, int64_t present, int64_t operand) noexcept {
  switch (op) {
    case MergeOperator::kMin:
      return std::min(present, operand);
    case MergeOperator::kMax:
      return std::max(present, operand);
    default:  // addition wraps round
      return static_cast<int64_t>(static_cast<uint64_t>(present) + static_cast<uint64_t>(operand));
  }
}

Status ApplyNumber(MergeOperator op, std::string_view operand, std::string* value) {
  if (value->size() != kMergeNumberBytes) {
    return Status(StatusCode::kFailedPrecondition,
                  "merge " + std::string(NameOf(op)) + ": the value has " +
                      std::to_string(value->size()) +
                      " bytes and is not an 8-byte number; put a number, or delete the key");
  }
  Store(value->data(),
        static_cast<uint64_t>(Combine(op, NumberAt(value->data()), NumberAt(operand.data()))));
  return {};
}

}  // namespace

}  // namespace base

std::string EncodeCounter(int64_t number) {
  std::string bytes(base::kMergeNumberBytes, '\0');
  base::Store(bytes.data(), static_cast<uint64_t>(number));
  return bytes;
}

Result<int64_t> DecodeCounter(std::string_view bytes) {
  if (bytes.size() == base::kMergeNumberBytes) return base::NumberAt(bytes.data());
  return Status(StatusCode::kInvalidArgument, "decode a counter: a value of " +
                                                  std::to_string(bytes.size()) +
                                                  " bytes, and a counter has 8");
}

namespace base {

Status CheckMergeOperand(MergeOperator op, std::string_view operand) {
  if (!IsKnown(static_cast<uint8_t>(op))) {
    return Status(StatusCode::kInvalidArgument,
                  "merge: there is no operator " + std::to_string(static_cast<int>(op)));
  }
  if (op != MergeOperator::kAppend && operand.size() != kMergeNumberBytes) {
    return Status(StatusCode::kInvalidArgument,
                  "merge " + std::string(NameOf(op)) + ": the operand has " +
                      std::to_string(operand.size()) +
                      " bytes; give an 8-byte little-endian integer (EncodeCounter)");
  }
  return {};
}

bool IsMergeValue(std::string_view value) noexcept {
  if (value.empty() || !IsKnown(static_cast<uint8_t>(value[0]))) return false;
  return static_cast<MergeOperator>(value[0]) == MergeOperator::kAppend ||
         value.size() == 1 + kMergeNumberBytes;
}

Result<MergedValue> ApplyMerges(std::span<const PendingMerge> merges,
                                std::optional<std::string_view> base, uint64_t base_expiry_ms,
                                uint64_t now_ms) {
  if (base && base_expiry_ms != 0 && base_expiry_ms <= now_ms) {
    const auto expired = std::ranges::find_if(
        merges, [&](const PendingMerge& merge) { return merge.time_ms < base_expiry_ms; });
    merges = merges.first(static_cast<size_t>(expired - merges.begin()));
    if (merges.empty()) return MergedValue{std::string(), base_expiry_ms};
    base.reset();
  }
  MergedValue merged;
  bool present = base.has_value();
  if (present) {
    merged.value = *base;
    merged.expiry_ms = base_expiry_ms;
  }
  for (size_t i = merges.size(); i-- > 0;) {
    const PendingMerge& merge = merges[i];
    BASALT_CHECK(IsMergeValue(merge.value));
    const auto op = static_cast<MergeOperator>(merge.value[0]);
    const std::string_view operand = std::string_view(merge.value).substr(1);
    if (!present) {
      merged = {std::string(operand), 0};
      present = true;
    } else if (op == MergeOperator::kAppend) {
      if (merged.value.size() + operand.size() > kMaxValueBytes) {
        return Status(StatusCode::kFailedPrecondition,
                      "merge append: the value would pass 4 GiB - 1 bytes");
      }
      merged.value.append(operand);
    } else {
      BASALT_RETURN_IF_ERROR(ApplyNumber(op, operand, &merged.value));
    }
  }
  return merged;
}

uint64_t MergedExpiry(std::span<const PendingMerge> merges, uint64_t base_expiry_ms,
                      uint64_t now_ms) noexcept {
  const bool is_of_merges = base_expiry_ms <= now_ms && merges.front().time_ms >= base_expiry_ms;
  return is_of_merges ? 0 : base_expiry_ms;
}

bool MergeRun::Add(std::string_view value, uint64_t time_ms) {
  BASALT_CHECK(IsMergeValue(value));
  const auto op = static_cast<MergeOperator>(value[0]);
  const std::string_view operand = value.substr(1);
  const bool is_append = op == MergeOperator::kAppend;
  if (count_ != 0) {
    if (op != op_) return false;
    if (is_append && 1 + appended_.size() + operand.size() > kMaxValueBytes) return false;
  }
  if (is_append) {
    appended_.append(operand.rbegin(), operand.rend());
  } else {
    const int64_t number = NumberAt(operand.data());
    number_ = count_ == 0 ? number : Combine(op, number, number_);
  }
  if (count_ == 0) newest_ms_ = earliest_ms_ = latest_ms_ = time_ms;
  earliest_ms_ = std::min(earliest_ms_, time_ms);
  latest_ms_ = std::max(latest_ms_, time_ms);
  op_ = op;
  ++count_;
  return true;
}

PendingMerge MergeRun::Take() {
  BASALT_CHECK(count_ != 0);
  PendingMerge merge{std::string(1, static_cast<char>(op_)), newest_ms_};
  if (op_ == MergeOperator::kAppend) {
    merge.value.append(appended_.rbegin(), appended_.rend());
  } else {
    merge.value.resize(1 + kMergeNumberBytes);
    Store(merge.value.data() + 1, static_cast<uint64_t>(number_));
  }
  *this = MergeRun();
  return merge;
}

}  // namespace base
}  // namespace basalt

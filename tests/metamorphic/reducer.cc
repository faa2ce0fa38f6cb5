#include "tests/metamorphic/reducer.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace basalt::metamorphic {
namespace {

class Reducer {
 public:
  Reducer(OperationList list, const FailsFunction& fails, size_t runs_max)
      : list_(std::move(list)), fails_(fails), runs_left_(runs_max) {}

  OperationList Run() {
    for (bool smaller = true; smaller && runs_left_ > 0;) {
      smaller = RemoveOperations();
      for (size_t i = 0; i < list_.operations.size(); ++i) {
        smaller |= RemovePartsOf(i, &Operation::records);
        smaller |= RemovePartsOf(i, &Operation::moves);
        smaller |= RemovePartsOf(i, &Operation::keys);
        smaller |= ShrinkValues(i);
        smaller |= TakeTimesAway(i);
      }
    }
    return std::move(list_);
  }

 private:
  bool StillFails(const OperationList& candidate) {
    if (runs_left_ == 0) return false;
    --runs_left_;
    return fails_(candidate);
  }
  bool Accept(OperationList candidate) {
    if (!StillFails(candidate)) return false;
    list_ = std::move(candidate);
    return true;
  }

  /// Removes chunks of list_.operations, halving their length.
  bool RemoveOperations() {
    bool smaller = false;
    for (size_t chunk = std::max<size_t>(list_.operations.size() / 2, 1); chunk > 0; chunk /= 2) {
      for (size_t at = 0; at < list_.operations.size();) {
        OperationList candidate = list_;
        Erase(candidate.operations, at, chunk);
        if (Accept(std::move(candidate))) {
          smaller = true;
        } else {
          at += chunk;
        }
      }
    }
    return smaller;
  }

  /// The same for what one operation consists of. Only batches may lose all their records.
  template <class T>
  bool RemovePartsOf(size_t operation, std::vector<T> Operation::* part) {
    bool smaller = false;
    const OperationKind kind = list_.operations[operation].kind;
    const bool is_single = kind <= OperationKind::kMerge && kind != OperationKind::kBatch;
    if (is_single || kind == OperationKind::kGet) return false;
    for (size_t chunk = (list_.operations[operation].*part).size(); chunk > 0; chunk /= 2) {
      for (size_t at = 0; at < (list_.operations[operation].*part).size();) {
        OperationList candidate = list_;
        Erase(candidate.operations[operation].*part, at, chunk);
        if (Accept(std::move(candidate))) {
          smaller = true;
        } else {
          at += chunk;
        }
      }
    }
    return smaller;
  }

  bool ShrinkValues(size_t operation) {
    bool smaller = false;
    for (size_t i = 0; i < list_.operations[operation].records.size(); ++i) {
      for (const uint32_t divisor : {0U, 16U, 2U}) {
        const uint32_t size = list_.operations[operation].records[i].value.size;
        const uint32_t next = divisor == 0 ? 0 : size / divisor;
        if (next == size) continue;
        OperationList candidate = list_;
        candidate.operations[operation].records[i].value.size = next;
        smaller |= Accept(std::move(candidate));
      }
    }
    return smaller;
  }

  bool TakeTimesAway(size_t operation) {
    bool smaller = false;
    for (size_t i = 0; i < list_.operations[operation].records.size(); ++i) {
      if (list_.operations[operation].records[i].ttl_ms == 0) continue;
      OperationList candidate = list_;
      candidate.operations[operation].records[i].ttl_ms = 0;
      smaller |= Accept(std::move(candidate));
    }
    return smaller;
  }

  template <class T>
  static void Erase(std::vector<T>& items, size_t at, size_t count) {
    const auto first = items.begin() + static_cast<std::ptrdiff_t>(at);
    items.erase(first, first + static_cast<std::ptrdiff_t>(std::min(count, items.size() - at)));
  }

  OperationList list_;
  const FailsFunction& fails_;
  size_t runs_left_;
};

}  // namespace

OperationList Reduce(OperationList list, const FailsFunction& fails, size_t runs_max) {
  return Reducer(std::move(list), fails, runs_max).Run();
}

}  // namespace basalt::metamorphic

#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/internal_key.h"
#include "base/merge_operator.h"
#include "memtable/generation.h"

namespace basalt::memtable {

/// The merges of one key that a read finds, newest first, and what they build on.
struct MergesOfKey {
  std::vector<base::PendingMerge> merges{};
  FoundRecord below{};  ///< Its tag is 0: nothing, or nothing yet.
  /// Of those of the merges that stand for many.
  std::vector<FoldedMerges> folds{};
  /// Memtables in which it took many steps to find them.
  std::vector<Generation*> long_walks{};

  /// Takes those up to `at` from a memtable, and what they build on, if that is a put. False: older
  /// places may have more. No fold is taken that `expiry_ms` splits. By one search: the versions of
  /// a key are linked, and stay as long as the memtable.
  bool TakeFrom(Generation* table, uint32_t keyspace, std::string_view key, uint64_t hash,
                base::SequenceNumber at, uint64_t expiry_ms);

  /// Whether a fold stands for merges that expire with the value below, and for others.
  bool IsSplit() const noexcept;
};

}  // namespace basalt::memtable

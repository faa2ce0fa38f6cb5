#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/internal_key.h"

namespace basalt::db {

/// The versions of one table that are there for snapshots alone: a newer version of the key, or a
/// range delete, hides them from everybody else. Counted in bytes, by the oldest reader that sees
/// them.
class RetainedVersions {
 public:
  using SequenceNumber = base::SequenceNumber;
  static constexpr size_t kGroupsMax = 32;

  /// A version that readers in [oldest_reader, hidden_from) see. `oldest_reader` is the lowest
  /// boundary of the table's writing that does. Throws std::bad_alloc. O(kGroupsMax).
  void Add(SequenceNumber oldest_reader, SequenceNumber hidden_from, uint64_t bytes);

  uint64_t bytes() const noexcept { return bytes_; }
  /// Bytes of versions that nobody sees who reads at one of `boundaries` (ascending). Where there
  /// were more boundaries than groups, some of them may be missing.
  uint64_t BytesInVain(std::span<const SequenceNumber> boundaries) const noexcept;

 private:
  struct Group {
    SequenceNumber oldest_reader;
    SequenceNumber hidden_from;
    uint64_t bytes;
  };

  void JoinSmallest();

  std::vector<Group> groups_;  // by oldest_reader
  uint64_t bytes_ = 0;
};

}  // namespace basalt::db

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/internal_key.h"

namespace basalt::base {

/// Decides which versions a flush or compaction keeps: for every boundary (a snapshot, or the
/// visible sequence number when the work began) the newest version of each key at or below it, and
/// everything above the last boundary, for snapshots that may still be taken there.
class Retention {
 public:
  /// `boundaries`: ascending, at least the visible number. `at_bottom`: no older version lies below
  /// the output, so that deletes that no boundary needs can go too.
  Retention(std::vector<base::SequenceNumber> boundaries, bool at_bottom)
      : boundaries_(std::move(boundaries)), at_bottom_(at_bottom) {}

  /// Must see all versions in internal order.
  bool Keep(std::string_view key, base::Tag tag);

 private:
  std::vector<base::SequenceNumber> boundaries_;
  const bool at_bottom_;
  bool first_ = true;
  std::string key_;
  size_t stripe_ = 0;  // of the last version of key_: index of the lowest boundary at or above it
};

}  // namespace basalt::base

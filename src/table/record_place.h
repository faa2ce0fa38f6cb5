#pragma once

#include <cstdint>

namespace basalt::table {

/// A record's place in its table.
struct RecordPlace {
  uint32_t block = 0;
  uint32_t ordinal = 0;  ///< In the block.

  friend bool operator==(const RecordPlace&, const RecordPlace&) = default;
};

}  // namespace basalt::table

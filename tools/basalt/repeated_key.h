#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "basalt/perfect_hash.h"

namespace basalt::tools {

struct RepeatedKey {
  std::string key;
  uint64_t place;  ///< Among the keys, from 0.
  uint64_t first_place;
};

/// A key that stands twice among `keys`, if there is one; the first repetition unless memory is
/// short. Takes 8 bytes a key, or walks over them more often to keep within `memory_budget` (0: no
/// bound).
Result<std::optional<RepeatedKey>> FindRepeatedKey(const KeySource& keys, uint64_t memory_budget);

}  // namespace basalt::tools

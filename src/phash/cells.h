#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "basalt/perfect_hash.h"

namespace basalt::phash {

/// The serialised form of a fingerprint set or map: a function, and one cell of fingerprint and
/// payload bits for each of its numbers (format.h).
struct Cells {
  PerfectHash numbers;
  uint32_t fingerprint_bits;
  uint32_t payload_bits;  ///< 0: a set.
  std::string_view bytes;
  const char* cells;
  std::shared_ptr<const std::string> owner;  ///< Null when the bytes are somebody else's.

  /// Gives the mixed hash of each key, and its payload, to `add`.
  using AddCell = std::function<void(uint64_t hash, uint64_t payload)>;
  using WalkCells = std::function<Status(const AddCell& add)>;

  /// `walk` gives the hash of every key of `numbers`.
  static Result<Cells> Build(PerfectHash numbers, uint32_t fingerprint_bits, uint32_t payload_bits,
                             const WalkCells& walk);
  /// `payloads`: whether a map is expected, or a set.
  static Result<Cells> Open(std::string_view bytes, bool payloads);
};

}  // namespace basalt::phash

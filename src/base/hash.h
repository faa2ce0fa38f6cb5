#pragma once

#include <cstdint>
#include <string_view>

// XXH3-64 (library xxHash), the one hash and the one checksum of Basalt.

namespace basalt::base {

/// The hash of a key. The value is part of on-disk formats (filters) and never changes.
uint64_t Hash(std::string_view bytes, uint64_t seed = 0) noexcept;

/// The checksum of bytes that lie at `offset` of the file `file_id`. The position is part of it, so
/// that a block that was written elsewhere, or a stale one of another file, is caught.
uint64_t Checksum(uint64_t file_id, uint64_t offset, std::string_view bytes) noexcept;
/// The same of bytes that lie in two pieces in memory.
uint64_t Checksum(uint64_t file_id, uint64_t offset, std::string_view first,
                  std::string_view second) noexcept;

}  // namespace basalt::base

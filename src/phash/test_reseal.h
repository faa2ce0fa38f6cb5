#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/coding.h"
#include "base/hash.h"
#include "base/seeded_hash.h"
#include "phash/format.h"
#include "phash/level.h"

namespace basalt::phash {

/// Makes the checksum of a changed function right again, and its golden hash if asked for: what
/// reads it is then up against the change itself.
inline void ResealFunction(char* form, size_t size, bool golden = false) {
  if (size < sizeof(Header)) return;
  if (golden) {
    const auto seed = base::Load<uint64_t>(form + offsetof(Header, hash_seed));
    const auto version = base::Load<uint32_t>(form + offsetof(Header, version));
    const std::string_view key(kGoldenKey, sizeof kGoldenKey - 1);
    base::Store(
        form + offsetof(Header, golden_hash),
        Mix(version == kFormatVersion ? base::Hash(key, seed) : base::SeededHash(seed)(key)));
  }
  base::Store(form + offsetof(Header, checksum), FormChecksum({form, size}));
}

/// The same for a fingerprint set or map, and for the function in it.
inline void ResealCells(std::string* form, bool golden = false) {
  if (form->size() < sizeof(CellsHeader)) return;
  const auto function_bytes =
      base::Load<uint64_t>(form->data() + offsetof(CellsHeader, function_bytes));
  if (function_bytes > form->size() - sizeof(CellsHeader)) return;
  ResealFunction(form->data() + sizeof(CellsHeader), function_bytes, golden);
  // As docs/perfect-hash.md has it, apart from the library's own code.
  const std::string_view all = *form;
  constexpr size_t kAt = offsetof(CellsHeader, checksum);
  const uint64_t checksum = base::Hash(all.substr(sizeof(CellsHeader) + function_bytes),
                                       base::Hash(all.substr(0, kAt), kCellsMagic));
  base::Store(form->data() + kAt, checksum);
}

}  // namespace basalt::phash

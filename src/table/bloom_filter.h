#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "basalt/status.h"
#include "base/coding.h"
#include "base/extent_pool.h"

namespace basalt::table {

/// A blocked Bloom filter over key hashes (base::Hash): all bits of a key lie in one 64-byte line,
/// so that a probe is one cache miss. 10 bits a key and 6 probes: about 1 % false positives.
///
/// Layout (a table's filter section), lines aligned to 64 bytes in memory:
///
///     line 0:    kind u32 = 1 | probes u32 = 6 | lines u64 | zeros
///     line 1..:  512 bits each
///
/// The hash's high half, scaled to the number of lines, chooses the line. Its low half is
/// multiplied by an odd constant again and again; the upper 9 bits of each product choose a bit, of
/// 32-bit little-endian words.
///
/// Immutable once built or parsed.
class BloomFilter {
 public:
  struct alignas(64) Line {
    uint32_t words[16];
  };

  BloomFilter() = default;
  static BloomFilter Build(std::span<const uint64_t> hashes);

  /// A filter of `section_bytes` bytes in all, to be filled from a file and then checked by
  /// Validate.
  static BloomFilter Allocate(uint64_t section_bytes);
  /// Corruption or Unsupported: the bytes are no filter that this version knows.
  Status Validate() const;

  bool empty() const noexcept { return count_ == 0; }

  /// False: no key with this hash was added. Not when empty().
  bool MayContain(uint64_t hash) const noexcept {
    return MayContain(reinterpret_cast<const char*>(&lines_[LineOf(hash, count_)]), hash);
  }

  // For filters that are not in memory as a whole.

  /// The line that holds all bits of a hash, of a filter with so many lines, line 0 included.
  static uint64_t LineOf(uint64_t hash, uint64_t count) noexcept {
    return ((hash >> 32) * (count - 1) >> 32) + 1;
  }
  /// `line`: the bytes of LineOf, of any alignment.
  static bool MayContain(const char* line, uint64_t hash) noexcept {
    auto product = static_cast<uint32_t>(hash);
    uint32_t present = 1;
    for (int i = 0; i < kProbes; ++i) {
      product *= kMultiplier;
      const auto word = base::Load<uint32_t>(line + (product >> 28) * sizeof(uint32_t));
      present &= word >> (product >> 23 & 31);
    }
    return (present & 1) != 0;
  }

  /// The section's bytes.
  std::span<char> bytes() noexcept {
    return {reinterpret_cast<char*>(lines_.get()), count_ * sizeof(Line)};
  }
  std::string_view bytes() const noexcept {
    return {reinterpret_cast<const char*>(lines_.get()), count_ * sizeof(Line)};
  }

 private:
  static constexpr int kProbes = 6;
  static constexpr uint32_t kMultiplier = 0x9E37'79B1;

  std::unique_ptr<Line[], base::GiveExtent> lines_;
  uint64_t count_ = 0;  // with line 0
};

}  // namespace basalt::table

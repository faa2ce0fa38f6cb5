#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "basalt/perfect_hash.h"
#include "basalt/status.h"
#include "base/seeded_hash.h"
#include "phash/format.h"
#include "phash/hole_list.h"
#include "phash/level.h"

namespace basalt::phash {

/// A perfect hash function over its serialised form (format.h), which must stay valid and unchanged
/// as long as this object lives. PerfectHash is the public form. Immutable and thread-safe.
///
/// The first level places 97 of 100 keys: one read of memory, the seed of the key's bucket. Further
/// levels, and the table after the last one, place the rest. A slot of a further level is the
/// number of a hole, which is a slot that the level before it left free.
class Function {
 public:
  /// Validates all bytes, as PerfectHash::Open. Throws std::bad_alloc.
  static Result<Function> Open(std::string_view bytes);

  std::string_view bytes() const noexcept { return bytes_; }
  uint64_t size() const noexcept { return size_; }
  PerfectHashSeeds seeds() const noexcept { return seeds_; }
  uint64_t hash_seed() const noexcept { return hash_seed_; }
  std::vector<PerfectHash::LevelFigures> levels() const;

  uint64_t HashKey(std::string_view key) const noexcept;

  [[gnu::always_inline]] uint64_t Index(uint64_t hash) const noexcept {
    return Index(LookupOf(hash));
  }
  void IndexMany(std::span<const uint64_t> hashes, std::span<uint64_t> indexes) const noexcept;

  // Index in two steps, so that the seeds of many keys are fetched at once.
  struct Lookup {
    uint64_t mixed;
    const uint8_t* seed;
  };
  [[gnu::always_inline]] Lookup PrefetchSeed(uint64_t hash) const noexcept {
    const Lookup lookup = LookupOf(hash);
    __builtin_prefetch(lookup.seed, 0, 2);
    return lookup;
  }
  [[gnu::always_inline]] uint64_t Index(const Lookup& lookup) const noexcept {
    const uint32_t seed = *lookup.seed;
    if (seed != 0) [[likely]]
      return top_.Slot(lookup.mixed, seed);
    return IndexInFurtherLevels(lookup.mixed);
  }

  /// A number below size(), at most 512 away from the index of each key that the first level
  /// places. Reads no seed: the address of a record at the index can be translated early.
  uint64_t ApproximateIndex(uint64_t hash) const noexcept { return top_.Middle(Mix(hash)); }

 private:
  Function(const Header& header, std::string_view bytes) noexcept;
  Status Parse(const Header& header);
  Status ParseLevels(const Header& header, std::string_view records);
  [[gnu::always_inline]] Lookup LookupOf(uint64_t hash) const noexcept {
    const uint64_t mixed = Mix(hash);
    return {.mixed = mixed, .seed = top_.seeds + top_.Bucket(mixed)};
  }
  uint64_t IndexInFurtherLevels(uint64_t mixed) const noexcept;
  uint64_t IndexInTable(uint64_t mixed) const noexcept;

  Level top_;  ///< levels_[0]; without levels, one whose only seed is 0.
  uint64_t size_;
  uint64_t hash_seed_;
  PerfectHashSeeds seeds_;
  std::string_view bytes_;
  std::vector<Level> levels_;
  std::vector<HoleList> holes_;       ///< One a level.
  std::vector<uint64_t> hole_bytes_;  ///< The same.
  const char* table_ = nullptr;
  uint64_t table_keys_ = 0;
  std::unique_ptr<const base::SeededHash> hash_;  ///< Null: base::Hash under the seed.
};

}  // namespace basalt::phash

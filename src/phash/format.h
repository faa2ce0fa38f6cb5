#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "basalt/perfect_hash.h"
#include "base/hash.h"

// The serialised forms of docs/perfect-hash.md. Little-endian; every part is a multiple of 8 bytes.
//
//   perfect hash function                       fingerprint set or map
//   Header            64                        CellsHeader       64
//   LevelRecord       16 a level                the function, as it stands on the left
//   table of hashes    8 a key of it            cells, packed, in 8-byte words, and 8 zeros
//   a level's seeds, padded to 8
//   a level's holes (hole_list.h)
//   ... level by level
namespace basalt::phash {

static_assert(std::endian::native == std::endian::little, "a big-endian port must swap");

constexpr uint64_t kFunctionMagic = 0x31'48'50'54'4C'41'53'42;  // "BSALTPH1"
constexpr uint64_t kCellsMagic = 0x31'50'46'54'4C'41'53'42;     // "BSALTFP1"
constexpr uint32_t kFormatVersion = 1;
/// Of a function that hashes its keys by base::SeededHash of another seed than 0. (In version 1
/// such a seed is XXH3's own.)
constexpr uint32_t kSeededFormatVersion = 2;

struct Header {
  uint64_t magic;
  uint32_t version;
  uint32_t required_features;  // None yet; an unknown one is refused.
  uint64_t keys;
  uint64_t hash_seed;
  uint64_t
      golden_hash;  // Of kGoldenKey: tells whether the reader's hash function is the builder's.
  uint64_t bytes;   // Of the whole form.
  uint8_t seeds;    // PerfectHashSeeds
  uint8_t levels;
  uint16_t zero;
  uint32_t table_keys;
  uint64_t checksum;  // XXH3-64 of what follows, seeded with that of what stands before.
};
static_assert(sizeof(Header) == 64);
constexpr char kGoldenKey[] = "basalt";

struct LevelRecord {
  uint64_t keys;
  uint32_t buckets;
  uint8_t slice_log2;
  uint8_t seeds;  // PerfectHashSeeds
  uint16_t zero;
};
static_assert(sizeof(LevelRecord) == 16);

struct CellsHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t required_features;
  uint64_t keys;
  uint64_t function_bytes;
  uint64_t bytes;
  uint8_t fingerprint_bits;
  uint8_t payload_bits;  // 0: a set
  uint8_t zeros[14];
  uint64_t checksum;  // XXH3-64 of all bytes but these and the function's, seeded with the magic.
};
static_assert(sizeof(CellsHeader) == 64);

/// Levels that a function has at most. Each takes some 97 of 100 keys, unless they are chosen by
/// somebody who wants it to fail; then the table takes the rest.
constexpr uint32_t kLevelsMax = 8;
/// A level of so few keys is a table.
constexpr uint64_t kTableKeys = 32;
/// A level of fewer keys has dense seeds and shorter slices.
constexpr uint64_t kShiftKeysMin = 8192;

/// What stands for a hash in the next level, so that the keys of one bucket part: a bijection. Its
/// slots, too, are chosen by all but the lowest bits.
inline uint64_t MixForNextLevel(uint64_t mixed) noexcept {
  return (mixed ^ (mixed >> 32)) * 0xA24B'AED4'963E'E407;
}

/// The bits of a hash that no slot depends on alone.
inline uint64_t Fingerprint(uint64_t mixed, uint32_t bits) noexcept {
  return (mixed * 0xC2B2'AE3D'27D4'EB4F) >> (64 - bits);
}

/// What Header::checksum is to be.
inline uint64_t FormChecksum(std::string_view form) noexcept {
  constexpr size_t kAt = offsetof(Header, checksum);
  return base::Hash(form.substr(kAt + 8), base::Hash(form.substr(0, kAt), kFunctionMagic));
}

template <class Struct>
Struct Read(const char* at) noexcept {
  Struct value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace basalt::phash

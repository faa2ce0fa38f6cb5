#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/status.h"

// Perfect hash functions: a number below n for each of n keys. Read PerfectHash first.
// docs/perfect-hash.md explains it.

namespace basalt {

namespace phash {

class Function;
struct Cells;

}  // namespace phash

/// How the seeds of a perfect hash function are chosen. Lookups cost the same. A function stores
/// its kind. Every processor builds the same bytes.
enum class PerfectHashSeeds : uint8_t {
  /// A seed shifts the slots of a bucket's keys. 64 seeds are tried in one step, on any processor.
  kShift = 1,
  /// A seed gives each key of a bucket a new slot. Smaller functions. As fast to build with
  /// AVX-512, and several times slower without.
  kDense = 2,
};

/// The progress of a build.
struct PerfectHashProgress {
  enum class Stage : uint8_t {
    kHashing,  ///< Walks over the keys; `total` is the number of keys, times the walks.
    kPlacing,  ///< Finds a seed for each bucket; `total` is the number of keys.
  };
  Stage stage;
  uint64_t done;
  uint64_t total;
};

/// Options of a build. The defaults need no tuning.
struct PerfectHashOptions {
  PerfectHashSeeds seeds = PerfectHashSeeds::kShift;
  /// At most 256. 0: one for each processor. The result is the same for any number.
  uint32_t threads = 0;
  /// Bytes that a build may take besides the keys and its result. One pass over the keys needs 18
  /// bytes a key (10 if the keys are hashes); with less, a build makes several passes. 0: no bound.
  /// The minimum is about 2 bytes a key, and more below 10 million keys; the error has the exact
  /// number.
  uint64_t memory_budget = 0;
  /// The seed of the hash of byte keys. 0: plain XXH3-64, for which anyone can construct keys with
  /// equal hashes. Other values: XXH3-64 with a secret derived from the seed. If two keys have
  /// equal hashes, the build starts again with another seed and takes twice as long. So a random
  /// seed saves time if untrusted users choose the keys. PerfectHash::hash_seed returns the seed
  /// that was used.
  uint64_t hash_seed = 0;
  /// Called periodically on the building thread. Returning false stops the build. An exception
  /// reaches the caller of the build.
  std::function<bool(const PerfectHashProgress&)> on_progress = {};
};

/// A perfect hash function: gives each of n keys its own number in [0, n), in about 2 bits a key,
/// and does not store the keys. A key outside the set also gets a number in [0, n). To detect such
/// keys, store the key or a fingerprint at that number.
///
///     basalt::PerfectHash numbers = basalt::PerfectHashBuilder().Build(keys).value();
///     records[numbers.Index("grape")] = ...;
///     Save(numbers.bytes());
///
/// Immutable and thread-safe. Copies share memory.
///
/// Source: P. Beling, P. Sanders, "PHast - Perfect Hashing made fast" (2025); docs/perfect-hash.md
/// has the algorithm and the format.
class PerfectHash {
 public:
  /// Opens a serialised function without copying it: `bytes` must stay valid and unchanged as long
  /// as this object and its copies live. Any alignment. Validates all bytes: O(bytes). Corruption:
  /// the bytes were changed. Unsupported: a newer format, or another hash function.
  static Result<PerfectHash> Open(std::string_view bytes);

  /// The serialised form, valid as long as this object or a copy of it lives. The same keys give
  /// the same bytes, in any order and on every processor. The only exception is keys that have
  /// equal hashes under PerfectHashOptions::hash_seed and under the next seed.
  std::string_view bytes() const& noexcept;
  std::string_view bytes() const&& = delete;  // They may be freed with the temporary.

  /// The number of keys.
  uint64_t size() const noexcept;
  PerfectHashSeeds seeds() const noexcept;
  double bits_per_key() const noexcept;

  /// The number of a key, below size() (0 if size() is 0). For 97 of 100 keys it needs one memory
  /// access: about 3 ns if the seeds (a quarter byte a key) are cached.
  uint64_t Index(std::string_view key) const noexcept;
  /// The same for a key that is a 64-bit hash, or a result of HashKey.
  uint64_t Index(uint64_t hash) const noexcept;
  /// Looks up many keys and prefetches their memory. `indexes` has at least as many elements.
  void IndexMany(std::span<const uint64_t> hashes, std::span<uint64_t> indexes) const noexcept;
  void IndexMany(std::span<const std::string_view> keys,
                 std::span<uint64_t> indexes) const noexcept;

  /// The hash of a byte key: XXH3-64 with this function's seed.
  uint64_t HashKey(std::string_view key) const noexcept;
  /// PerfectHashOptions::hash_seed, unless two byte keys had equal hashes under it.
  uint64_t hash_seed() const noexcept;

  /// How the keys are distributed over the levels of the function.
  struct LevelFigures {
    uint64_t keys;
    uint64_t buckets;  ///< 0: a table of hashes.
    uint64_t slice;    ///< Slots in which a key can be placed.
    uint64_t bytes;
  };
  std::vector<LevelFigures> levels() const;

 private:
  friend class PerfectHashBuilder;
  friend class FingerprintMap;
  friend class FingerprintSet;

  explicit PerfectHash(std::shared_ptr<const phash::Function> function) noexcept;
  static Result<PerfectHash> Own(Result<std::string> bytes);

  std::shared_ptr<const phash::Function> function_;
};

/// Keys that can be read several times, in the same order each time.
class KeySource {
 public:
  virtual ~KeySource() = default;

  /// The number of keys of a pass.
  virtual uint64_t size() const = 0;
  /// Passes all keys to `visit`, any number at once. The views need to be valid during the call
  /// only. An error ends the build and is its result.
  virtual Status Walk(
      const std::function<void(std::span<const std::string_view>)>& visit) const = 0;
};

/// Builds perfect hash functions. The keys, bytes or hashes, must be distinct.
///
/// Time: 40 to 75 ns a key and thread. InvalidArgument: a key appears twice (the message names it
/// and both positions), there are more than 10^9 keys, or the options are out of range.
/// ResourceExhausted: out of memory. Cancelled: on_progress returned false.
///
/// Thread-safe, if on_progress is.
class PerfectHashBuilder {
 public:
  static constexpr uint64_t kKeysMax = 1'000'000'000;

  explicit PerfectHashBuilder(PerfectHashOptions options = {});
  ~PerfectHashBuilder();

  Result<PerfectHash> Build(std::span<const std::string_view> keys) const;
  Result<PerfectHash> Build(const KeySource& keys) const;
  /// For keys that are 64-bit numbers, hashes or not. Look them up with Index(uint64_t).
  Result<PerfectHash> BuildFromHashes(std::span<const uint64_t> hashes) const;

 private:
  PerfectHashOptions options_;
};

/// An approximate set: a perfect hash function and b bits of fingerprint for each key. It contains
/// all its keys, and one of 2^b other keys by mistake. It takes about b + 2 bits a key. A lookup
/// takes two memory accesses.
///
/// Numbers that are used in place of hashes can give more false positives if their halves depend on
/// each other: x << 32 | x up to 2.7 times as many, with b = 16.
///
/// Immutable and thread-safe. Copies share memory. Serialised, opened and built like PerfectHash.
class FingerprintSet {
 public:
  static constexpr uint32_t kBitsMin = 4;
  static constexpr uint32_t kBitsMax = 16;

  /// InvalidArgument: `fingerprint_bits` is out of range, or an error of PerfectHashBuilder.
  static Result<FingerprintSet> Build(std::span<const std::string_view> keys,
                                      uint32_t fingerprint_bits = 8,
                                      const PerfectHashOptions& options = {});
  static Result<FingerprintSet> Build(const KeySource& keys, uint32_t fingerprint_bits = 8,
                                      const PerfectHashOptions& options = {});
  static Result<FingerprintSet> BuildFromHashes(std::span<const uint64_t> hashes,
                                                uint32_t fingerprint_bits = 8,
                                                const PerfectHashOptions& options = {});
  /// Also InvalidArgument: the bytes are a map.
  static Result<FingerprintSet> Open(std::string_view bytes);

  std::string_view bytes() const& noexcept { return bytes_; }
  std::string_view bytes() const&& = delete;  // They may be freed with the temporary.
  uint64_t size() const noexcept { return numbers_.size(); }
  uint32_t fingerprint_bits() const noexcept { return fingerprint_bits_; }
  double bits_per_key() const noexcept;
  const PerfectHash& numbers() const& noexcept { return numbers_; }
  PerfectHash numbers() && noexcept { return std::move(numbers_); }

  /// True for every key of the set, and for one of 2^fingerprint_bits() other keys.
  bool MayContain(std::string_view key) const noexcept { return MayContain(numbers_.HashKey(key)); }
  bool MayContain(uint64_t hash) const noexcept;
  /// Looks up many keys and prefetches their memory. `answers` has at least as many elements.
  void MayContainMany(std::span<const uint64_t> hashes, std::span<bool> answers) const noexcept;

 private:
  explicit FingerprintSet(phash::Cells cells);

  PerfectHash numbers_;
  uint32_t fingerprint_bits_;
  std::string_view bytes_;
  const char* cells_;
  std::shared_ptr<const char[]> owner_;
};

/// A map from keys to integers of a fixed width that does not store the keys: a FingerprintSet with
/// payloads. A key of the map always gets its own payload. One of 2^b other keys gets the payload
/// of some key by mistake.
///
/// Immutable and thread-safe. Copies share memory. Serialised, opened and built like PerfectHash.
class FingerprintMap {
 public:
  static constexpr uint32_t kPayloadBitsMax = 48;

  /// `payloads[i]` belongs to `keys[i]` and takes at most `payload_bits` (1 to 48) bits.
  /// InvalidArgument: a width is out of range, the sizes differ, a payload is too wide (the message
  /// names it), or an error of PerfectHashBuilder.
  static Result<FingerprintMap> Build(std::span<const std::string_view> keys,
                                      std::span<const uint64_t> payloads, uint32_t payload_bits,
                                      uint32_t fingerprint_bits = 8,
                                      const PerfectHashOptions& options = {});
  static Result<FingerprintMap> BuildFromHashes(std::span<const uint64_t> hashes,
                                                std::span<const uint64_t> payloads,
                                                uint32_t payload_bits,
                                                uint32_t fingerprint_bits = 8,
                                                const PerfectHashOptions& options = {});
  /// Also InvalidArgument: the bytes are a set.
  static Result<FingerprintMap> Open(std::string_view bytes);

  std::string_view bytes() const& noexcept { return bytes_; }
  std::string_view bytes() const&& = delete;  // They may be freed with the temporary.
  uint64_t size() const noexcept { return numbers_.size(); }
  uint32_t fingerprint_bits() const noexcept { return fingerprint_bits_; }
  uint32_t payload_bits() const noexcept { return payload_bits_; }
  double bits_per_key() const noexcept;
  const PerfectHash& numbers() const& noexcept { return numbers_; }
  PerfectHash numbers() && noexcept { return std::move(numbers_); }

  /// The payload of a key. Nothing for a key outside the map, except for one of 2^b.
  std::optional<uint64_t> Get(std::string_view key) const noexcept {
    return Get(numbers_.HashKey(key));
  }
  std::optional<uint64_t> Get(uint64_t hash) const noexcept;

 private:
  explicit FingerprintMap(phash::Cells cells);

  PerfectHash numbers_;
  uint32_t fingerprint_bits_;
  uint32_t payload_bits_;
  std::string_view bytes_;
  const char* cells_;
  std::shared_ptr<const char[]> owner_;
};

}  // namespace basalt

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

namespace basalt {

namespace phash {

inline uint64_t MulHigh(uint64_t a, uint64_t b) noexcept {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((Wide{a} * b) >> 64);
}

/// A bijection of 64-bit numbers that makes hashes of what was no hash: part of the format. All but
/// the lowest bits of the result depend on all bits.
inline uint64_t Mix(uint64_t hash) noexcept {
  hash = (hash ^ (hash >> 32)) * 0xD6E8'FEB8'6659'FD93;
  return (hash ^ (hash >> 32)) * 0xD6E8'FEB8'6659'FD93;
}

/// The places that one level's seeds give to hashes.
struct Level {
  /// Of shift seeds. Dense ones may have shorter slices.
  static constexpr uint32_t kSliceLog2 = 10;

  const uint8_t* seeds;  ///< One a bucket; 0: its keys are placed by the next level.
  uint64_t buckets;
  uint64_t slice_begins;  ///< keys - slice + 1
  uint64_t keys;
  uint32_t drop;  ///< 32 - log2 of a slice's slots
  bool dense;

  uint64_t Bucket(uint64_t mixed) const noexcept { return MulHigh(mixed, buckets); }
  /// `seed` is not 0.
  uint64_t Slot(uint64_t mixed, uint32_t seed) const noexcept {
    return MulHigh(mixed, slice_begins) +
           (dense ? DenseOffset(mixed, seed, drop) : ShiftOffset(mixed, seed));
  }
  /// In the middle of all that Slot can give.
  uint64_t Middle(uint64_t mixed) const noexcept {
    return MulHigh(mixed, slice_begins) + (uint64_t{1} << 31 >> drop);
  }

  static uint32_t ShiftOffset(uint64_t mixed, uint32_t seed) noexcept {
    const uint32_t start = static_cast<uint32_t>(mixed) >> (32 - kSliceLog2);
    return (start + 4 * seed) & ((uint32_t{1} << kSliceLog2) - 1);
  }
  static uint32_t DenseOffset(uint64_t mixed, uint32_t seed, uint32_t drop) noexcept {
    return (static_cast<uint32_t>(mixed) + seed * DenseStep(mixed)) >> drop;
  }
  static uint32_t DenseStep(uint64_t mixed) noexcept {
    return static_cast<uint32_t>((mixed * 0x9E37'79B9'7F4A'7C15) >> 32);
  }
};

struct Header;
struct Cells;

}  // namespace phash

/// How the seeds of a perfect hash function are chosen. Queries cost the same; a function names its
/// kind, and every processor builds the same bytes.
enum class PerfectHashSeeds : uint8_t {
  /// A seed moves a bucket's keys along: 64 seeds are tried in one step, on any processor.
  kShift = 1,
  /// A seed gives each key of a bucket a new place: smaller, as fast to build with AVX-512, and
  /// several times slower without.
  kDense = 2,
};

/// How far a build has come.
struct PerfectHashProgress {
  enum class Stage : uint8_t {
    kHashing,  ///< Walks over the keys; `total` is the number of keys, times the walks.
    kPlacing,  ///< Finds a seed for each bucket; `total` is the number of keys.
  };
  Stage stage;
  uint64_t done;
  uint64_t total;
};

/// How a perfect hash function is built. The defaults need no tuning.
struct PerfectHashOptions {
  PerfectHashSeeds seeds = PerfectHashSeeds::kShift;
  /// At most 256; 0: one a processor. The result is the same for any number.
  uint32_t threads = 0;
  /// Bytes that a build may take beside the keys and its result; it walks over the keys more often
  /// when they do not suffice for one walk (18 bytes a key do, 10 for keys that are hashes). 0: no
  /// bound. The least is some 2 bytes a key, and more below 10 million keys: the error names it.
  uint64_t memory_budget = 0;
  /// Of the hash of keys that are bytes; the function tells its own. 0: XXH3-64 as everybody has
  /// it, for which anybody can make keys that have equal hashes. Another number: XXH3-64 under a
  /// secret made of that. A build that meets keys of equal hashes goes on under another seed, and
  /// takes as long again; so a random seed saves time where strangers choose the keys.
  uint64_t hash_seed = 0;
  /// Called now and then on the building thread; false stops the build. May throw: the exception
  /// reaches the caller of the build.
  std::function<bool(const PerfectHashProgress&)> on_progress = {};
};

/// A perfect hash function: gives each of n keys its own number in [0, n), in about 2 bits a key,
/// and forgets the keys. What is not among the keys gets some number in [0, n) too: whoever must
/// tell them apart stores the key, or a fingerprint, at that number.
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
  /// Reads a function out of its serialised form, without copying: `bytes` must live and stay as
  /// long as this object and its copies. Any alignment. Checks everything: O(bytes). Corruption:
  /// they are not what was written. Unsupported: a newer format, or another hash function.
  static Result<PerfectHash> Open(std::string_view bytes);

  /// The serialised form; the same bytes for the same keys in any order, on every processor, unless
  /// keys have equal hashes under PerfectHashOptions::hash_seed and under the next seed. Lives as
  /// long as this object or a copy of it does.
  std::string_view bytes() const& noexcept { return bytes_; }
  std::string_view bytes() const&& = delete;  // They may go with it.

  /// The number of keys.
  uint64_t size() const noexcept { return size_; }
  PerfectHashSeeds seeds() const noexcept { return seeds_; }
  double bits_per_key() const noexcept;

  /// The number of a key, below size() (0 when that is 0). One read of memory for 97 of 100 keys:
  /// some 2 ns when the seeds (a quarter byte a key) are cached.
  uint64_t Index(std::string_view key) const noexcept { return Index(HashKey(key)); }
  /// The same for a key that is a 64-bit hash, or was turned into one by HashKey.
  uint64_t Index(uint64_t hash) const noexcept { return Index(PlaceOf(hash)); }
  /// A number below size(), at most 512 away from that of each key for which Index needs one read
  /// of memory. Needs none: what is stored around it can be asked for before Index knows more.
  uint64_t Near(uint64_t hash) const noexcept { return top_.Middle(phash::Mix(hash)); }
  /// Asks for the memory that Index reads, some keys before it is called.
  [[gnu::always_inline]] void Prefetch(uint64_t hash) const noexcept {
    static_cast<void>(Ask(hash));
  }
  /// The same in two halves, so that nothing is computed twice: Index takes what Ask has given.
  struct Asked {
    uint64_t mixed;
    const uint8_t* seed;
  };
  [[gnu::always_inline]] Asked Ask(uint64_t hash) const noexcept {
    const Asked asked = PlaceOf(hash);
    __builtin_prefetch(asked.seed, 0, 2);
    return asked;
  }
  uint64_t Index(const Asked& asked) const noexcept {
    const uint32_t seed = *asked.seed;
    if (seed != 0) [[likely]]
      return top_.Slot(asked.mixed, seed);
    return IndexOfBumped(asked.mixed);
  }
  /// Many at once, with their memory prefetched. `indexes` has at least as many elements.
  void IndexMany(std::span<const uint64_t> hashes, std::span<uint64_t> indexes) const noexcept;
  void IndexMany(std::span<const std::string_view> keys,
                 std::span<uint64_t> indexes) const noexcept;

  /// The hash of a key that is bytes: XXH3-64 under this function's own seed.
  uint64_t HashKey(std::string_view key) const noexcept;
  /// PerfectHashOptions::hash_seed, unless two keys that are bytes had equal hashes under it.
  uint64_t hash_seed() const noexcept { return hash_seed_; }

  /// How the keys are spread over the levels of the function.
  struct LevelFigures {
    uint64_t keys;
    uint64_t buckets;  ///< 0: a table of hashes.
    uint64_t slice;    ///< Slots that a key can be placed in.
    uint64_t bytes;
  };
  std::vector<LevelFigures> levels() const;

 private:
  friend class PerfectHashBuilder;
  struct Rest;

  PerfectHash(const phash::Header& header, std::shared_ptr<const Rest> rest,
              std::string_view bytes);
  static Result<PerfectHash> Own(Result<std::string> bytes);
  [[gnu::always_inline]] Asked PlaceOf(uint64_t hash) const noexcept {
    const uint64_t mixed = phash::Mix(hash);
    return {.mixed = mixed, .seed = top_.seeds + top_.Bucket(mixed)};
  }
  uint64_t IndexOfBumped(uint64_t mixed) const noexcept;

  phash::Level top_;
  uint64_t size_;
  uint64_t hash_seed_;
  PerfectHashSeeds seeds_;
  std::string_view bytes_;
  std::shared_ptr<const Rest> rest_;  ///< The other levels, and the bytes if they are our own.
};

/// Keys that can be walked over more than once, in the same order each time.
class KeySource {
 public:
  virtual ~KeySource() = default;

  /// The number of keys that a walk gives.
  virtual uint64_t size() const = 0;
  /// Gives all keys to `visit`, any number at once; the views need to last for the call only. An
  /// error ends the build and is its result.
  virtual Status Walk(
      const std::function<void(std::span<const std::string_view>)>& visit) const = 0;
};

/// Builds perfect hash functions. Keys that are bytes must be distinct; those that are hashes too.
///
/// Time: 40 to 75 ns a key and thread. InvalidArgument: a key appears twice (the message names it
/// and both places), there are more than 10^9 keys, or the options are out of range.
/// ResourceExhausted: out of memory. Cancelled: on_progress said so.
///
/// Thread-safe, if on_progress is.
class PerfectHashBuilder {
 public:
  static constexpr uint64_t kKeysMax = 1'000'000'000;

  explicit PerfectHashBuilder(PerfectHashOptions options = {});
  ~PerfectHashBuilder();

  Result<PerfectHash> Build(std::span<const std::string_view> keys) const;
  Result<PerfectHash> Build(const KeySource& keys) const;
  /// For keys that are 64-bit numbers already, be they hashes or not: Index(uint64_t) answers.
  Result<PerfectHash> BuildFromHashes(std::span<const uint64_t> hashes) const;

 private:
  PerfectHashOptions options_;
};

/// A set that answers "perhaps" for one of 2^b absent keys: a perfect hash function and b bits of
/// fingerprint a key. About b + 2 bits a key; a lookup costs two reads of memory.
///
/// Numbers given in place of hashes that are none may be answered "perhaps" more often, where their
/// halves depend on each other: x << 32 | x up to 2.7 times as often, with b = 16.
///
/// Immutable and thread-safe. Copies share memory. Serialised, opened and built as PerfectHash.
class FingerprintSet {
 public:
  static constexpr uint32_t kBitsMin = 4;
  static constexpr uint32_t kBitsMax = 16;

  /// InvalidArgument: `fingerprint_bits` is out of range, or as PerfectHashBuilder.
  static Result<FingerprintSet> Build(std::span<const std::string_view> keys,
                                      uint32_t fingerprint_bits = 8,
                                      const PerfectHashOptions& options = {});
  static Result<FingerprintSet> Build(const KeySource& keys, uint32_t fingerprint_bits = 8,
                                      const PerfectHashOptions& options = {});
  static Result<FingerprintSet> BuildFromHashes(std::span<const uint64_t> hashes,
                                                uint32_t fingerprint_bits = 8,
                                                const PerfectHashOptions& options = {});
  /// Also InvalidArgument: it is a map.
  static Result<FingerprintSet> Open(std::string_view bytes);

  std::string_view bytes() const& noexcept { return bytes_; }
  std::string_view bytes() const&& = delete;  // They may go with it.
  uint64_t size() const noexcept { return numbers_.size(); }
  uint32_t fingerprint_bits() const noexcept { return fingerprint_bits_; }
  double bits_per_key() const noexcept;
  const PerfectHash& numbers() const& noexcept { return numbers_; }
  PerfectHash numbers() && noexcept { return std::move(numbers_); }

  /// True for every key of the set, and for one of 2^fingerprint_bits() others.
  bool MayContain(std::string_view key) const noexcept { return MayContain(numbers_.HashKey(key)); }
  bool MayContain(uint64_t hash) const noexcept;
  /// Many at once, with their memory prefetched. `answers` has at least as many elements.
  void MayContainMany(std::span<const uint64_t> hashes, std::span<bool> answers) const noexcept;

 private:
  explicit FingerprintSet(phash::Cells cells);

  PerfectHash numbers_;
  uint32_t fingerprint_bits_;
  std::string_view bytes_;
  const char* cells_;
  std::shared_ptr<const char[]> owner_;
};

/// A map from keys to integers of a fixed width that forgets the keys: a FingerprintSet with
/// payloads. A present key always gets its own payload; of absent keys, one of 2^b gets another's.
///
/// Immutable and thread-safe. Copies share memory. Serialised, opened and built as PerfectHash.
class FingerprintMap {
 public:
  static constexpr uint32_t kPayloadBitsMax = 48;

  /// `payloads[i]` belongs to `keys[i]` and takes at most `payload_bits` (1 to 48) bits.
  /// InvalidArgument: widths out of range, sizes that differ, a payload that is wider (the message
  /// names it), or as PerfectHashBuilder.
  static Result<FingerprintMap> Build(std::span<const std::string_view> keys,
                                      std::span<const uint64_t> payloads, uint32_t payload_bits,
                                      uint32_t fingerprint_bits = 8,
                                      const PerfectHashOptions& options = {});
  static Result<FingerprintMap> BuildFromHashes(std::span<const uint64_t> hashes,
                                                std::span<const uint64_t> payloads,
                                                uint32_t payload_bits,
                                                uint32_t fingerprint_bits = 8,
                                                const PerfectHashOptions& options = {});
  /// Also InvalidArgument: it is a set.
  static Result<FingerprintMap> Open(std::string_view bytes);

  std::string_view bytes() const& noexcept { return bytes_; }
  std::string_view bytes() const&& = delete;  // They may go with it.
  uint64_t size() const noexcept { return numbers_.size(); }
  uint32_t fingerprint_bits() const noexcept { return fingerprint_bits_; }
  uint32_t payload_bits() const noexcept { return payload_bits_; }
  double bits_per_key() const noexcept;
  const PerfectHash& numbers() const& noexcept { return numbers_; }
  PerfectHash numbers() && noexcept { return std::move(numbers_); }

  /// The payload of a key; nothing for all but one of 2^fingerprint_bits() absent ones.
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

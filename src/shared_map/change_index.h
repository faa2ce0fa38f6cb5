#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/file_system.h"
#include "shared_map/guarded_word.h"
#include "shared_map/version_files.h"

// A file index-NNNNNN: where the newest change of each key lies in the log. The writer stores to it
// through a mapping while readers look.
//
//   offset size
//        0    8  "BSALTMI1"
//        8    4  version: 1
//       12    4  required features: 0
//       16    8  boot id of the machine when it was made: after a restart it is not to be trusted
//       24    8  capacity c: words, a power of two
//       32    8  checksum of the bytes before
//       64    8  1 from the first change on
//      128    8  location behind the last change that is visible, at the end of a batch (guarded)
//      136    8  live entries of the map (guarded)
//      144    8  changes in the log, of this change set (guarded)
//      152    8  keys that have changes: words that are taken (guarded)
//     4096    c  the filter: 8 bytes for every 8 words
//   4096+c   8c  a word: location of a change (4), upper half of its key's hash (4); 0: free
//
// Open addressing, linear probing from the hash's low bits on; a word is never freed, and never
// more than 5 of 8 are taken. A word is stored after the change that it leads to is complete, and
// the visible end after all words of a batch: a reader, which passes over changes behind that end,
// finds the old change or the new one, whole, and never waits. The 8 bytes at 64 stand in a line of
// their own, which readers of a map without changes look at and nobody writes.
//
// Most keys that are looked up have no change, and each of them would miss the cache for a free
// word. So the filter is asked first, an eighth of the words' size: it has four bits of each hash
// that was ever stored, all in one word of its own, set before the index word is stored and never
// cleared. At its fullest (5 keys a word on average) it lets one absent key of a hundred through.
//
// A lookup: a word of the filter; if that has the hash, a cache miss for the word, one for the
// change.

namespace basalt::shared_map {

class ChangeIndex {
 public:
  static constexpr uint64_t kHeaderBytes = 4096;
  static constexpr uint64_t kCapacityMin = 512;

  /// Of a file.
  static constexpr uint64_t BytesFor(uint64_t capacity) noexcept {
    return kHeaderBytes + FilterBytes(capacity) + 8 * capacity;
  }
  /// A power of two with room for `keys`.
  static uint64_t CapacityFor(uint64_t keys) noexcept;

  /// Makes a file, mapped to be written. Nothing of it is synced. On an error it is removed.
  static Result<std::shared_ptr<ChangeIndex>> Create(io::FileSystem* fs, const std::string& path,
                                                     uint64_t capacity, uint64_t boot_id);
  /// Maps a file to be read. Null: it was made before the machine was started.
  static Result<std::shared_ptr<ChangeIndex>> Open(io::FileSystem* fs, const std::string& path,
                                                   uint64_t boot_id);
  /// One that only this process sees.
  static std::shared_ptr<ChangeIndex> Private(uint64_t capacity);

  uint64_t capacity() const noexcept { return mask_ + 1; }
  uint64_t bytes() const noexcept { return BytesFor(capacity()); }

  bool HasChanges() const noexcept { return LoadShared(header_ + kHasChangesAt) != 0; }
  std::optional<uint64_t> visible_end() const noexcept { return Read(kVisibleEndAt); }
  std::optional<uint64_t> entries() const noexcept { return Read(kEntriesAt); }
  std::optional<uint64_t> changes() const noexcept { return Read(kChangesAt); }
  std::optional<uint64_t> keys() const noexcept { return Read(kKeysAt); }

  /// False: no key of this hash has a change.
  bool MayHold(uint64_t hash) const noexcept {
    const uint64_t bits = FilterBits(hash);
    return (LoadShared(FilterWord(hash)) & bits) == bits;
  }
  [[gnu::always_inline]] void PrefetchFilter(uint64_t hash) const noexcept {
    __builtin_prefetch(FilterWord(hash), 0, 2);
  }

  uint64_t FirstPosition(uint64_t hash) const noexcept { return hash & mask_; }
  uint64_t NextPosition(uint64_t position) const noexcept { return (position + 1) & mask_; }
  uint64_t WordAt(uint64_t position) const noexcept { return LoadShared(words_ + 8 * position); }
  /// The line of the first word, and the next one where that is the line's last.
  [[gnu::always_inline]] void Prefetch(uint64_t hash) const noexcept {
    const char* const at = words_ + 8 * FirstPosition(hash);
    __builtin_prefetch(at, 0, 2);
    __builtin_prefetch(at + 8 * (kProbedAtOnce - 1), 0, 2);
  }
  /// The first word that may be of a key of this hash. 0: there is none. Also one that leads
  /// nowhere, of a damaged index.
  ///
  /// Whether a word is free or of another hash cannot be predicted, and a wrong guess would make
  /// all later lookups wait for the word: so a few are looked at without a branch.
  uint64_t Candidate(uint64_t hash) const noexcept {
    for (uint64_t position = hash; position - hash < capacity(); position += kProbedAtOnce) {
      uint64_t first = kNowhere;
#pragma GCC unroll 4
      for (uint32_t i = kProbedAtOnce; i-- > 0;) {
        const uint64_t word = WordAt((position + i) & mask_);
        const uint64_t goes_on = uint64_t{EndsSearch(word, hash)} - 1;  // All bits, or none.
        first = (first & goes_on) | (word & ~goes_on);
      }
      if (first != kNowhere) [[likely]]
        return first;
    }
    return kNowhere;
  }

  static bool Matches(uint64_t word, uint64_t hash) noexcept { return (word ^ hash) >> 32 == 0; }
  static Location LocationOf(uint64_t word) noexcept { return static_cast<Location>(word); }
  static uint64_t WordOf(uint64_t hash, Location location) noexcept {
    return (hash >> 32 << 32) | location;
  }

  // Of the writer.

  /// From now on the hash leads to the change, by the word at a position that FindWord has given.
  void StoreWord(uint64_t hash, uint64_t position, Location location) noexcept {
    // Who sees the word sees the filter's bits: they are stored before it.
    char* const filter_word = FilterWord(hash);
    const uint64_t bits = LoadShared(filter_word);
    if ((bits & FilterBits(hash)) != FilterBits(hash)) {
      StoreShared(filter_word, bits | FilterBits(hash));
    }
    StoreShared(words_ + 8 * position, WordOf(hash, location));
  }
  /// Takes over all words of an index of the same capacity. Nobody else may know of this one yet.
  void CopyWords(const ChangeIndex& from) noexcept;
  struct State {
    uint64_t visible_end;
    uint64_t entries;
    uint64_t changes;
    uint64_t keys;
  };
  void StoreState(const State& state) noexcept;

 private:
  static constexpr uint64_t kHasChangesAt = 64;
  static constexpr uint64_t kVisibleEndAt = 128;
  static constexpr uint64_t kEntriesAt = 136;
  static constexpr uint64_t kChangesAt = 144;
  static constexpr uint64_t kKeysAt = 152;
  static constexpr uint32_t kProbedAtOnce = 4;
  static constexpr uint64_t kWordsPerFilterWord = 8;
  static constexpr uint64_t kNowhere = ~uint64_t{0};

  ChangeIndex() = default;
  static bool EndsSearch(uint64_t word, uint64_t hash) noexcept {
    return static_cast<bool>(static_cast<int>(word == 0) | static_cast<int>(Matches(word, hash)));
  }
  void PointTo(char* begin, uint64_t capacity) noexcept;
  static constexpr uint64_t FilterBytes(uint64_t capacity) noexcept {
    return 8 * (capacity / kWordsPerFilterWord);
  }
  char* FilterWord(uint64_t hash) const noexcept {
    return filter_ + 8 * (FirstPosition(hash) / kWordsPerFilterWord);
  }
  static uint64_t FilterBits(uint64_t hash) noexcept {
    const auto bit = [&](int shift) { return uint64_t{1} << (hash >> shift & 63); };
    return bit(32) | bit(38) | bit(44) | bit(50);
  }
  std::optional<uint64_t> Read(uint64_t at) const noexcept {
    return Unguarded(LoadShared(header_ + at));
  }

  std::unique_ptr<io::WritableMapping> written_;
  std::unique_ptr<io::Mapping> read_;
  std::unique_ptr<uint64_t[]> memory_;
  char* header_ = nullptr;
  char* filter_ = nullptr;
  char* words_ = nullptr;
  uint64_t mask_ = 0;
};

}  // namespace basalt::shared_map

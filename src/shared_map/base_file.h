#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "basalt/status.h"
#include "base/coding.h"
#include "io/file_system.h"
#include "phash/function.h"
#include "shared_map/base_format.h"
#include "shared_map/record.h"
#include "shared_map/verified_bits.h"

namespace basalt::shared_map {

/// What a lookup came to.
enum class Found : uint8_t { kAbsent, kPresent, kCorrupt };

struct BaseFigures {
  uint64_t records = 0;
  uint64_t file_bytes = 0;
  uint64_t function_bytes = 0;
  uint64_t data_bytes = 0;  ///< Records, and what they are filled up with.
  bool fixed = false;
};

/// The immutable records of one shard, mapped (base_format.h has the bytes). Thread-safe.
///
/// A lookup: the function's seed byte, of which there are some 2 bits a key, so that they are
/// cached; variable layout: a word of the starts, a cache miss; the record, a cache miss, and those
/// of what more lines it has. The bits that say which blocks are verified are 32 bytes for 16 MiB;
/// nobody looks at them once all blocks are.
///
/// Where the seeds are too many for the caches, the hash alone tells near which place the record
/// lies, so that its page's address can be translated meanwhile (PrefetchNear).
///
/// In the variable layout a record is asked for where it probably begins, before its start has
/// come: that is guessed between the starts of every 256th record, of which there is a copy in
/// memory that stays in the caches. Where records are of like size, both misses are one by time;
/// where they are not, the page's address at least is known earlier.
///
/// Nothing that the file says is used before it is checked. Header, function, block checksums and
/// starts are verified by Open, which reads them; a block of data by who first reads a record in
/// it, then marked. A place or size that leads out of the data is corruption, also when all
/// checksums are right.
class BaseFile {
 public:
  /// Corruption: the file is damaged or cut short, beyond what the second copy of the header makes
  /// good. Unsupported: a newer format, or another hash function. Allocates a bit a block.
  /// `hash_seed`: of the hashes of keys that lookups are given.
  static Result<std::shared_ptr<const BaseFile>> Open(io::FileSystem* fs, std::string_view path,
                                                      uint64_t hash_seed = 0);
  BaseFile(const BaseFile&) = delete;
  BaseFile& operator=(const BaseFile&) = delete;

  const BaseFigures& figures() const noexcept { return figures_; }
  const std::string& path() const noexcept { return path_; }

  // The hot path. `hash` is that of the key, under the seed that Open was given.

  /// The slot at which the key is if it is anywhere: below figures().records, which must not be 0.
  [[gnu::always_inline]] uint64_t Slot(uint64_t hash, std::string_view key) const noexcept {
    return function_.Index(takes_hashes_ ? hash : function_.HashKey(key));
  }
  /// The same in two halves, for many keys at once: the first asks for the memory that the second
  /// reads.
  [[gnu::always_inline]] phash::Function::Lookup PrefetchSeed(uint64_t hash) const noexcept {
    return function_.PrefetchSeed(hash);
  }
  [[gnu::always_inline]] uint64_t Slot(const phash::Function::Lookup& lookup,
                                       std::string_view key) const noexcept {
    return takes_hashes_ ? function_.Index(lookup) : function_.Index(function_.HashKey(key));
  }
  /// A place in the data near the record of the key, for nearly all keys: told from the hash alone.
  /// (Anywhere, if the function hashes keys by a seed of its own.)
  [[gnu::always_inline]] uint64_t PlaceNear(uint64_t hash) const noexcept {
    const uint64_t slot = function_.ApproximateIndex(hash);
    return stride_ != 0 ? slot * stride_ : 8 * uint64_t{start_samples_[slot / kSampleEvery]};
  }
  /// A line that nobody reads: so addresses there are being translated while the function's seed
  /// comes. Of no further use, it is to stay out of the caches.
  [[gnu::always_inline]] void PrefetchNear(uint64_t hash) const noexcept {
    __builtin_prefetch(data_ + PlaceNear(hash), 0, 0);
  }
  /// The layout. In the fixed one a slot tells a record's place without PrefetchStart.
  bool is_fixed() const noexcept { return stride_ != 0; }
  /// Variable layout: what PrefetchRecord reads.
  [[gnu::always_inline]] void PrefetchStart(uint64_t slot) const noexcept {
    Prefetch(starts_ + slot);
  }
  /// Variable layout: where in the data a record lies if those around it have one size.
  struct Guess {
    uint64_t begin;
    uint64_t end;
  };
  [[gnu::always_inline]] Guess GuessAt(uint64_t slot) const noexcept {
    const uint32_t* const samples = start_samples_.get() + slot / kSampleEvery;
    const uint64_t between = samples[1] - samples[0];
    const uint64_t before = slot % kSampleEvery;
    return {8 * (samples[0] + between * before / kSampleEvery),
            8 * (samples[0] + between * (before + 1) / kSampleEvery)};
  }
  /// The cache line in which a record ends: else a value's end would be waited for after its
  /// beginning. One line, read at once: into the first level.
  [[gnu::always_inline]] void PrefetchLastLine(uint64_t slot) const noexcept {
    const auto end = reinterpret_cast<uintptr_t>(data_) + NextBegin(slot);
    __builtin_prefetch(reinterpret_cast<const char*>(end - kRecordHeaderBytes));
  }
  /// A record's first cache lines, at most 5.
  [[gnu::always_inline]] void PrefetchRecord(uint64_t slot) const noexcept;
  /// The value of a key whose Slot is `slot`. Verifies the blocks that the record touches if nobody
  /// has. The value lies in the mapping.
  Found FindAt(uint64_t slot, std::string_view key, std::string_view* value) const noexcept;
  [[gnu::always_inline]] Found Find(std::string_view key, uint64_t hash,
                                    std::string_view* value) const noexcept {
    if (figures_.records == 0) return Found::kAbsent;
    const uint64_t slot = Slot(hash, key);
    if (stride_ == 0) PrefetchGuess(slot, key.size());
    PrefetchLastLine(slot);
    return FindAt(slot, key, value);
  }

  /// The record at a slot, verified. Corruption with file and offset.
  Result<RecordRef> At(uint64_t slot) const;
  /// Why FindAt said kCorrupt: always an error.
  Status Damage(uint64_t slot) const;

  /// Reads and verifies everything: both copies of the header, the zeros between the sections, all
  /// blocks anew, and that records follow one another, each at the slot that the function gives its
  /// key. `go_on` is called now and then with the records verified so far; Cancelled: it said
  /// false.
  Status VerifyAll(const std::function<bool(uint64_t records)>& go_on) const;

 private:
  static constexpr uint64_t kSampleEvery = 256;

  BaseFile(std::string path, std::unique_ptr<io::Mapping> mapping, const BaseHeader& header,
           phash::Function function, uint64_t hash_seed);

  /// Into the second level: many prefetches into the first one wait for each other on some
  /// processors, three times as long on Zen 4.
  [[gnu::always_inline]] static void Prefetch(const void* at) noexcept {
    __builtin_prefetch(at, 0, 2);
  }
  /// The lines of a record's header, of its value's first word, and of its end, if the guess is
  /// right.
  [[gnu::always_inline]] void PrefetchGuess(uint64_t slot, uint64_t key_bytes) const noexcept {
    const Guess guess = GuessAt(slot);
    // Prefetching has no wrong addresses.
    const auto data = reinterpret_cast<uintptr_t>(data_);
    const uint64_t value = guess.begin + kRecordHeaderBytes + key_bytes;
    __builtin_prefetch(reinterpret_cast<const char*>(data + guess.begin));
    __builtin_prefetch(reinterpret_cast<const char*>(data + value + sizeof(uint64_t) - 1));
    __builtin_prefetch(reinterpret_cast<const char*>(data + guess.end - kRecordHeaderBytes));
  }
  void TakeStartSamples();
  uint64_t Begin(uint64_t slot) const noexcept {
    return stride_ != 0 ? slot * stride_ : 8 * uint64_t{starts_[slot]};
  }
  /// Where the next record begins, if the starts are right.
  uint64_t NextBegin(uint64_t slot) const noexcept {
    return slot + 1 < figures_.records ? Begin(slot + 1) : figures_.data_bytes;
  }
  std::string_view BlockAt(uint64_t block) const noexcept;
  /// Computes the checksum of a block, and marks the block when it is right.
  bool VerifyBlock(uint64_t block) const noexcept;
  /// Verifies those of the blocks from `first` to `last` that are not, and marks them. False: one
  /// is damaged.
  [[gnu::cold, gnu::noinline]] bool VerifyBlocks(uint64_t first, uint64_t last) const noexcept;
  /// "<path>: <what> at offset <offset>: <why>".
  Status Corrupt(std::string_view what, uint64_t offset, std::string_view why) const;
  Status RecordError(uint64_t slot, std::string_view why) const;
  /// As VerifyBlocks, for those that hold these bytes of data.
  Status VerifyRange(uint64_t begin, uint64_t end) const;
  Status VerifyZeros(uint64_t begin, uint64_t end) const;
  Status VerifyHead() const;
  /// `end`: where the next record begins.
  Status VerifyRecord(uint64_t slot, uint64_t end) const;

  // What a lookup reads stands first.
  phash::Function function_;
  bool takes_hashes_;  // It hashes keys as those do who look them up.
  const char* data_;
  const uint32_t* starts_;  // nullptr: fixed layout
  uint64_t stride_;         // 0: variable layout
  // Variable layout: every 256th of the starts, and one behind the last.
  std::unique_ptr<uint32_t[]> start_samples_;
  BaseFigures figures_;
  mutable VerifiedBits verified_;  // Of blocks.
  mutable std::atomic<uint64_t> unverified_blocks_;

  const uint64_t* block_checksums_;
  const BaseHeader header_;
  const std::unique_ptr<io::Mapping> mapping_;
  const std::string path_;
};

[[gnu::always_inline]] inline void BaseFile::PrefetchRecord(uint64_t slot) const noexcept {
  constexpr uint64_t kLineBytes = 64;
  const uint64_t begin = Begin(slot);
  // Of damaged starts nothing needs to be true: prefetching has no wrong addresses.
  const uint64_t bytes = stride_ != 0 ? stride_ : NextBegin(slot) - begin;
  const auto at = reinterpret_cast<uintptr_t>(data_) + begin;
  const auto prefetch_line = [at](uint64_t line) __attribute__((always_inline)) {
    Prefetch(reinterpret_cast<const char*>(at + line * kLineBytes));
  };
  const uint64_t extra = (at % kLineBytes + bytes - 1) / kLineBytes;
  prefetch_line(0);
  // Written out: a loop is twice as many instructions.
  if (extra < 1) return;
  prefetch_line(1);
  if (extra < 2) return;
  prefetch_line(2);
  if (extra < 3) return;
  prefetch_line(3);
  if (extra < 4) return;
  prefetch_line(4);
}

[[gnu::always_inline]] inline Found BaseFile::FindAt(uint64_t slot, std::string_view key,
                                                     std::string_view* value) const noexcept {
  const uint64_t begin = Begin(slot);
  // Data has at least 8 bytes when there are records.
  if (begin > figures_.data_bytes - kRecordHeaderBytes) [[unlikely]]
    return Found::kCorrupt;
  const uint64_t block = begin >> kBlockLog2;
  const bool all_verified = unverified_blocks_.load(std::memory_order_relaxed) == 0;
  if (!all_verified && !verified_.Has(block) && !VerifyBlocks(block, block)) [[unlikely]]
    return Found::kCorrupt;
  const char* const at = data_ + begin;
  const auto header = base::Load<uint64_t>(at);
  // At once: the key's size, the kind, and that there are no flags.
  if (header >> 32 != (uint64_t{kBaseRecordKind} << 16) + key.size()) [[unlikely]]
    return header >> 48 == kBaseRecordKind ? Found::kAbsent : Found::kCorrupt;
  const auto value_bytes = static_cast<uint32_t>(header);
  const uint64_t end = begin + kRecordHeaderBytes + key.size() + value_bytes;
  if (end > figures_.data_bytes) [[unlikely]]
    return Found::kCorrupt;
  if (!all_verified) {
    const uint64_t last_block = (end - 1) >> kBlockLog2;
    if (last_block != block && !VerifyBlocks(block + 1, last_block)) [[unlikely]]
      return Found::kCorrupt;
  }
  const char* const key_at = at + kRecordHeaderBytes;
  if (!base::SameBytes({key_at, key.size()}, key)) return Found::kAbsent;
  // By the size of the key that was asked for, which is known before the record has come: so the
  // value's first bytes can be read together with the header.
  *value = {key_at + key.size(), value_bytes};
  return Found::kPresent;
}

}  // namespace basalt::shared_map

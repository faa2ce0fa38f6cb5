#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>
#include <utility>

#include "basalt/value.h"
#include "base/coding.h"

// One key and its value in one piece of memory, immutable once it is in the index, except the
// state word.
//
//   offset  size
//        0     4  value bytes
//        4     2  key bytes
//        6     1  size class, 1 to 40, or 0: memory of its own; and 0x80 with a pin part, 0x40 in
//                 an extent
//        7     1  marks, for writers under the shard's lock only
//        8     8  state: deadline or link 48 bits | orphan 1 | pins 15
//       16    24  pin part, where a handle may hold the value: above Value::kInlineBytes, or
//       objects
//             ..  key
//             ..  zeros up to a multiple of 8, only with a pin part
//             ..  value
//
// Life of an entry: allocated and filled by one thread; linked into the index by one store;
// unlinked; retired (its state then holds the next retired one instead of the deadline, marked, so
// that a reader that still has it looks the key up again); after the grace period either freed, or,
// when it is pinned, orphaned: the handle that drops the last pin frees it. A pin is taken inside
// an epoch or under the shard's lock, from the index: an orphan gets no new ones.

namespace basalt::cache {

/// The state word.
template <template <class> class Atomic>
class BasicEntryState {
 public:
  /// Below what fits by more than there are threads: each that looks before the others have added
  /// may pass it by one.
  static constexpr uint64_t kPinsMax = (uint64_t{1} << 15) - 1024;
  static constexpr uint64_t kNoDeadline = 0;
  /// Milliseconds; what is longer is taken for this (2,230 years).
  static constexpr uint64_t kDeadlineMax = (uint64_t{1} << 46) - 1;

  /// One more pin. False: there are too many; copy instead.
  bool TryPin() noexcept {
    if ((word_.load(std::memory_order_relaxed) & kPinsMask) >= kPinsMax) return false;
    word_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  /// The same beyond kPinsMax: for one pin of an entry, by who has just unlinked it.
  void Pin() noexcept { word_.fetch_add(1, std::memory_order_relaxed); }
  /// One less. True: it was an orphan's last one, the caller frees.
  bool Unpin() noexcept {
    const uint64_t before = word_.fetch_sub(1, std::memory_order_acq_rel);
    return (before & (kOrphan | kPinsMask)) == (kOrphan | 1);
  }
  bool is_pinned() const noexcept { return (Load() & kPinsMask) != 0; }
  /// After the grace period: leaves it to its pins. True: there are none, the caller frees.
  bool Orphan() noexcept {
    return (word_.fetch_or(kOrphan, std::memory_order_acq_rel) & kPinsMask) == 0;
  }

  /// Milliseconds of the cache's clock; kNoDeadline: none. Nothing when the entry is retired.
  bool ReadDeadline(uint64_t* deadline_ms) const noexcept {
    const uint64_t word = Load();
    *deadline_ms = word >> kFieldShift;
    return (word & kRetired) == 0;
  }
  /// Of an entry that nobody else can see yet.
  void Start(uint64_t deadline_ms) noexcept {
    word_.store(deadline_ms << kFieldShift, std::memory_order_relaxed);
  }
  /// Under the shard's lock.
  void SetDeadline(uint64_t deadline_ms) noexcept { SetField(deadline_ms << kFieldShift); }

  /// Under the shard's lock; `next` is aligned to 8.
  void SetNextRetired(const void* next) noexcept {
    SetField(kRetired | (reinterpret_cast<uintptr_t>(next) >> 3) << kFieldShift);
  }
  void* next_retired() const noexcept {
    return reinterpret_cast<void*>(((Load() & ~kRetired) >> kFieldShift) << 3);
  }

 private:
  static constexpr uint64_t kPinsMask = (uint64_t{1} << 15) - 1;
  static constexpr uint64_t kOrphan = uint64_t{1} << 15;
  static constexpr int kFieldShift = 16;
  static constexpr uint64_t kRetired = uint64_t{1} << 63;

  uint64_t Load() const noexcept { return word_.load(std::memory_order_seq_cst); }
  void SetField(uint64_t field) noexcept {
    uint64_t word = word_.load(std::memory_order_relaxed);
    while (!word_.compare_exchange_weak(word, field | (word & (kOrphan | kPinsMask)),
                                        std::memory_order_seq_cst)) {
    }
  }

  Atomic<uint64_t> word_{0};
};

class Shard;

/// What a Value or Pinned holds on to, inside the entry.
struct PinPart : Value::Pin {
  Shard* shard;
};
inline constexpr size_t kPinPartBytes = sizeof(PinPart);
static_assert(kPinPartBytes == 24);

template <template <class> class Atomic>
struct BasicEntry {
  static constexpr uint8_t kFiled = 1;    ///< The timing wheel has a record of it.
  static constexpr uint8_t kInQueue = 2;  ///< S3-FIFO: it is still in the small queue.

  // In `size_class`, beside the class.
  static constexpr uint8_t kHasPinPart = 0x80;
  static constexpr uint8_t kIsLarge = 0x40;  ///< Of class 0: see SlabAllocator.

  uint32_t value_bytes;
  uint16_t key_bytes;
  uint8_t size_class;
  uint8_t marks;
  BasicEntryState<Atomic> state;

  static constexpr size_t KeyOffset(bool has_pin_part) noexcept {
    return sizeof(BasicEntry) + (has_pin_part ? kPinPartBytes : 0);
  }
  static constexpr size_t ValueOffset(size_t key_bytes, bool has_pin_part) noexcept {
    const size_t end = KeyOffset(has_pin_part) + key_bytes;
    return has_pin_part ? base::RoundUp(end, 8) : end;
  }

  bool has_pin_part() const noexcept { return (size_class & kHasPinPart) != 0; }
  bool is_large() const noexcept { return (size_class & kIsLarge) != 0; }
  uint8_t slab_class() const noexcept {
    return size_class & static_cast<uint8_t>(~(kHasPinPart | kIsLarge));
  }
  size_t bytes() const noexcept { return ValueOffset(key_bytes, has_pin_part()) + value_bytes; }
  std::string_view key() const noexcept { return {at(KeyOffset(has_pin_part())), key_bytes}; }
  char* value() noexcept { return const_cast<char*>(std::as_const(*this).value()); }
  const char* value() const noexcept { return at(ValueOffset(key_bytes, has_pin_part())); }
  // Of one of which it is known whether it has a pin part, and how long its key is.
  const char* KeyAt(bool its_has_pin_part) const noexcept {
    return at(KeyOffset(its_has_pin_part));
  }
  const char* ValueAt(size_t its_key_bytes, bool its_has_pin_part) const noexcept {
    return at(ValueOffset(its_key_bytes, its_has_pin_part));
  }
  std::string_view value_view() const noexcept { return {value(), value_bytes}; }

  PinPart* pin_part() noexcept { return reinterpret_cast<PinPart*>(this + 1); }
  static BasicEntry* OfPinPart(Value::Pin* pin) noexcept {
    return reinterpret_cast<BasicEntry*>(pin) - 1;
  }

 private:
  /// By way of an integer: the memory goes on behind the fields, which compilers do not expect.
  const char* at(size_t offset) const noexcept {
    return reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(this) + offset);
  }
};

struct Entry : BasicEntry<std::atomic> {};
static_assert(sizeof(Entry) == 16);

}  // namespace basalt::cache

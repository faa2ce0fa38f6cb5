#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <vector>

#include "base/random.h"
#include "bench/cache_requests.h"
#include "bench/huge_block.h"

namespace basalt::bench {

/// What no lookup of many keys can be faster than: for each a word of an index, and the ends of the
/// entry that it names, both anywhere in as much memory as the cache's index and entries take.
/// There is no hash, no key to compare, no value to hand out; all words are asked for at once, then
/// all entries.
class CacheFloor {
 public:
  /// Of the keys 0 .. keys - 1.
  explicit CacheFloor(uint32_t keys)
      : index_(Slots(keys) * sizeof(uint64_t)),
        entries_(size_t{keys} * kEntryBytes),
        mask_(Slots(keys) - 1) {
    std::vector<uint32_t> order(keys);
    std::iota(order.begin(), order.end(), 0);
    base::Random random(keys);
    std::shuffle(order.begin(), order.end(), random);
    for (uint32_t number = 0; number < keys; ++number) {
      const uint64_t entry = order[number];
      std::memcpy(index_.data() + SlotOf(number), &entry, sizeof entry);
      std::memcpy(entries_.data() + entry * kEntryBytes, &number, sizeof number);
    }
  }

  /// The requests whose entries are theirs: all. At most kBatch of them.
  template <size_t kBatch>
  uint64_t ReadTogether(std::span<const CacheRequest> requests) const noexcept {
    std::array<const char*, kBatch> entries;
    for (const CacheRequest& request : requests) Fetch(index_.data() + SlotOf(request.number));
    for (size_t i = 0; i < requests.size(); ++i) {
      uint64_t entry = 0;
      std::memcpy(&entry, index_.data() + SlotOf(requests[i].number), sizeof entry);
      entries[i] = entries_.data() + entry * kEntryBytes;
      Fetch(entries[i]);
      Fetch(entries[i] + kLastByte);
    }
    uint64_t right = 0;
    for (size_t i = 0; i < requests.size(); ++i) {
      uint32_t number = 0;
      std::memcpy(&number, entries[i], sizeof number);
      const char last = entries[i][kLastByte];
      right += number == requests[i].number && last == kUntouched ? 1 : 0;
    }
    return right;
  }

 private:
  // Of 13 bytes of key and value.
  static constexpr size_t kEntryBytes = 48;
  static constexpr size_t kLastByte = 39;
  static constexpr char kUntouched = 1;  // As a HugeBlock is filled.

  /// A power of two, of which keys take half on average.
  static constexpr uint64_t Slots(uint32_t keys) { return std::bit_ceil(uint64_t{keys} * 3 / 2); }
  /// In bytes; another one for each number.
  size_t SlotOf(uint32_t number) const noexcept {
    constexpr uint64_t kOdd = 0x9E3779B97F4A7C15;
    return (number * kOdd & mask_) * sizeof(uint64_t);
  }
  // Inlined by force: g++ takes a function that only prefetches for one without effects.
  [[gnu::always_inline]] static void Fetch(const char* at) { __builtin_prefetch(at); }

  HugeBlock index_;
  HugeBlock entries_;
  uint64_t mask_;
};

}  // namespace basalt::bench

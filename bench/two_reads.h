#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "base/random.h"
#include "bench/cache_requests.h"
#include "bench/text.h"

namespace basalt::bench {

/// A block of memory as Basalt's: aligned to huge pages, which the kernel is asked for.
class HugeBlock {
 public:
  explicit HugeBlock(size_t bytes) : bytes_((bytes + kAlignment - 1) / kAlignment * kAlignment) {
    data_.reset(static_cast<char*>(std::aligned_alloc(kAlignment, bytes_)));
    if (data_ == nullptr) Fail("measure the floor", "no memory");
    madvise(data_.get(), bytes_, MADV_HUGEPAGE);
    std::memset(data_.get(), 1, bytes_);
  }
  char* data() const { return data_.get(); }

 private:
  static constexpr size_t kAlignment = size_t{2} << 20;
  struct Free {
    void operator()(char* data) const { std::free(data); }
  };
  size_t bytes_;
  std::unique_ptr<char, Free> data_;
};

/// The least that reads can be: one line of an index, then the whole record that it names, copied.
/// There is no hash, no key to compare, no value to hand out. Thread-safe.
template <size_t kRecordBytes>
class TwoReads {
 public:
  explicit TwoReads(uint32_t records)
      : count_(records), buckets_(records * kEntryBytes), records_(records * kRecordBytes) {
    std::vector<uint32_t> order(records);
    std::iota(order.begin(), order.end(), 0);
    base::Random random(1);
    std::shuffle(order.begin(), order.end(), random);
    for (size_t i = 0; i < records; ++i) {
      std::memcpy(buckets_.data() + i * kEntryBytes, &order[i], sizeof order[i]);
    }
  }
  uint8_t operator()(const CacheRequest& request) const {
    std::array<char, kRecordBytes> copy;
    std::memcpy(copy.data(), RecordOf(request.number), kRecordBytes);
    asm volatile("" : : "r"(copy.data()) : "memory");
    return static_cast<uint8_t>(copy.front() ^ copy.back());
  }
  /// Several: the lines of all entries, then those of all records, are on their way together.
  void ReadTogether(std::span<const CacheRequest> requests) const {
    for (const CacheRequest& request : requests) __builtin_prefetch(EntryOf(request.number));
    for (const CacheRequest& request : requests) Fetch(RecordOf(request.number));
    for (const CacheRequest& request : requests) (*this)(request);
  }
  /// Those of `records` neighbouring entries, where a scan begins: all are on their way together.
  uint8_t Scan(const CacheRequest& request, uint32_t records) const {
    const size_t first = std::min<size_t>(request.number, count_ - records);
    for (size_t i = 0; i < records; ++i) Fetch(RecordOf(first + i));
    int ends = 0;
    for (size_t i = 0; i < records; ++i) {
      const char* const record = RecordOf(first + i);
      ends ^= record[0] ^ record[kRecordBytes - 1];
    }
    return static_cast<uint8_t>(ends);
  }
  /// Every record once, in an order that is not theirs, some on their way ahead of the one read.
  void ReadAll() const {
    constexpr size_t kAhead = 48;
    uint64_t ends = 0;
    for (size_t i = 0; i < count_; ++i) {
      if (i + kAhead < count_) Fetch(RecordOf(i + kAhead));
      const char* const record = RecordOf(i);
      ends += static_cast<uint64_t>(record[0] + record[kRecordBytes - 1]);
    }
    asm volatile("" : : "r"(ends));
  }

 private:
  static constexpr size_t kEntryBytes = 16;

  const char* EntryOf(size_t number) const { return buckets_.data() + number * kEntryBytes; }
  const char* RecordOf(size_t number) const {
    uint32_t record = 0;
    std::memcpy(&record, EntryOf(number), sizeof record);
    return records_.data() + record * kRecordBytes;
  }
  // Inlined by force: g++ takes a function that only prefetches for one without effects.
  [[gnu::always_inline]] static void Fetch(const char* record) {
    constexpr size_t kLineBytes = 64;
    for (size_t at = 0; at < kRecordBytes - 1; at += kLineBytes) {
      __builtin_prefetch(record + at, /*rw=*/0, /*locality=*/2);
    }
    // The line of the last byte may be one more.
    __builtin_prefetch(record + kRecordBytes - 1, /*rw=*/0, /*locality=*/2);
  }

  size_t count_;
  HugeBlock buckets_;
  HugeBlock records_;
};

}  // namespace basalt::bench

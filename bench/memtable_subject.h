#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "bench/cache_requests.h"

// One ordered map under measurement. Each subject uses its library's fastest ordinary calls, and
// reads the first and last byte of a value that it is given. An error ends the program with its
// message.
//
// Requests are those of the cache's benchmark, with other keys: the 16 bytes of CacheKey::padded().

namespace basalt::bench {

inline constexpr size_t kKeyBytes = CacheKey::kPaddedBytes;
inline constexpr size_t kValueBytes = 100;
/// What a record is worth; all else that a subject takes is overhead.
inline constexpr uint64_t kLogicalBytes = kKeyBytes + kValueBytes;

/// The value that belongs to a request's number.
std::string_view ValueOf(uint32_t number) noexcept;

/// The ends of a value in one byte.
inline uint8_t EndsOf(std::string_view value) noexcept {
  return static_cast<uint8_t>(value.front() ^ value.back());
}

/// What a walk over all records has seen.
class Walk {
 public:
  using Clock = std::chrono::steady_clock;

  /// The iterator stands at its first record.
  void Positioned() noexcept { positioned_ = Clock::now(); }
  void Add(std::string_view key, std::string_view value) noexcept {
    uint64_t high = 0;
    uint64_t low = 0;
    std::memcpy(&high, key.data(), sizeof high);
    std::memcpy(&low, key.data() + sizeof high, sizeof low);
    high = __builtin_bswap64(high);
    low = __builtin_bswap64(low);
    const bool ascends = records_ == 0 || high > high_ || (high == high_ && low > low_);
    is_ordered_ = is_ordered_ && ascends;
    high_ = high;
    low_ = low;
    ends_ += EndsOf(value);
    ++records_;
  }
  void Finished() noexcept { finished_ = Clock::now(); }

  uint64_t records() const noexcept { return records_; }
  bool is_ordered() const noexcept { return is_ordered_; }
  /// EndsOf of all values, summed.
  uint64_t ends() const noexcept { return ends_; }
  double position_seconds() const noexcept { return Seconds(positioned_ - started_); }
  double walk_seconds() const noexcept { return Seconds(finished_ - positioned_); }

 private:
  static double Seconds(Clock::duration time) {
    return std::chrono::duration<double>(time).count();
  }

  uint64_t records_ = 0;
  uint64_t high_ = 0;
  uint64_t low_ = 0;
  uint64_t ends_ = 0;
  bool is_ordered_ = true;
  Clock::time_point started_ = Clock::now();
  Clock::time_point positioned_;
  Clock::time_point finished_;
};

/// What a subject is opened for.
struct StorePlan {
  uint64_t records = 0;  ///< That will be put, at most twice each.
  bool compaction = true;
};

class MemTableSubject {
 public:
  virtual ~MemTableSubject() = default;
  MemTableSubject(const MemTableSubject&) = delete;
  MemTableSubject& operator=(const MemTableSubject&) = delete;

  /// As on the command line and in the results.
  virtual std::string name() const = 0;
  /// Version and settings, for people.
  virtual std::string description() const = 0;

  /// Makes a new, empty store.
  virtual void Open(const StorePlan& plan) = 0;
  virtual void Close() = 0;

  virtual void Put(const CacheRequest& request) = 0;
  /// All as one batch, whose making is part of the call; or under one lock.
  virtual void PutBatch(std::span<const CacheRequest> requests) = 0;
  /// EndsOf the value; nothing if the key is absent.
  virtual std::optional<uint8_t> Get(const CacheRequest& request) = 0;
  /// How many of at most kMultiGet keys are present.
  virtual uint64_t MultiGet(std::span<const CacheRequest> requests);
  static constexpr size_t kMultiGet = 32;
  /// Makes an iterator, seeks the key and reads so many records from there; how many there were, 0
  /// if the first has another key.
  virtual uint64_t Scan(const CacheRequest& from, uint64_t records) = 0;
  /// Makes an iterator and walks over everything.
  virtual Walk WalkAll() = 0;

  /// Whether it works in the background, and puts into order what an iterator asks for.
  virtual bool sorts_later() const { return false; }
  /// What is put from now on stands apart from what is there.
  virtual void Seal() {}
  /// Until nothing is left to do in the background.
  virtual void Drain() {}
  /// Of its records, how many are in order already.
  virtual double sorted_percent() const { return 100; }
  /// Memory that it says it takes; 0 if it does not say.
  virtual uint64_t claimed_bytes() const { return 0; }

 protected:
  MemTableSubject() = default;
};

/// Scan and WalkAll over an iterator as Basalt's and RocksDB's are; the caller checks its status.
template <class Iterator>
uint64_t ScanIterator(const CacheRequest& from, uint64_t records, Iterator* iterator) {
  const std::string_view wanted = from.key.padded();
  iterator->Seek(wanted);
  const auto matches = [&] {
    const auto key = iterator->key();
    return std::string_view(key.data(), key.size()) == wanted;
  };
  if (!iterator->Valid() || !matches()) return 0;
  uint64_t seen = 0;
  for (; seen < records && iterator->Valid(); iterator->Next(), ++seen) {
    const auto value = iterator->value();
    const uint8_t ends = EndsOf({value.data(), value.size()});
    asm volatile("" : : "r"(ends));
  }
  return seen;
}

template <class Iterator>
void WalkIterator(Iterator* iterator, Walk* walk) {
  iterator->SeekToFirst();
  walk->Positioned();
  for (; iterator->Valid(); iterator->Next()) {
    const auto key = iterator->key();
    const auto value = iterator->value();
    walk->Add({key.data(), key.size()}, {value.data(), value.size()});
  }
  walk->Finished();
}

std::unique_ptr<MemTableSubject> MakeBasaltMemTable();
std::unique_ptr<MemTableSubject> MakeRocksDbSkipList();
std::unique_ptr<MemTableSubject> MakeTbbConcurrentMap();
std::unique_ptr<MemTableSubject> MakeAbslBtree();
std::unique_ptr<MemTableSubject> MakeStdMap();

}  // namespace basalt::bench

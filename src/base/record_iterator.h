#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "basalt/status.h"
#include "base/internal_key.h"

namespace basalt::base {

/// A put without expiry, of another key than the record before it.
struct PlainPut {
  const char* key_bytes;
  const char* value_bytes;
  uint32_t key_size;
  uint32_t value_size;

  std::string_view key() const noexcept { return {key_bytes, key_size}; }
  std::string_view value() const noexcept { return {value_bytes, value_size}; }
};

/// Walks versions in internal order: what memtables, tables and their mergers give, below the
/// public Iterator. Unpositioned until a seek; one thread at a time; keeps what it reads from
/// alive. An error makes Valid() false and stays in status(). `key` and `value` last until the next
/// move.
class RecordIterator {
 public:
  virtual ~RecordIterator() = default;
  RecordIterator(const RecordIterator&) = delete;
  RecordIterator& operator=(const RecordIterator&) = delete;

  bool Valid() const noexcept { return valid_; }
  std::string_view key() const noexcept { return key_; }
  Tag tag() const noexcept { return tag_; }
  /// A put's expiry, a merge's moment of writing: wall milliseconds since 1970; 0: none.
  uint64_t time_ms() const noexcept { return time_ms_; }
  std::string_view value() const noexcept { return value_; }
  const Status& status() const noexcept { return status_; }

  virtual void SeekToFirst() = 0;
  virtual void SeekToLast() = 0;
  /// To the first record at or after (key, tag) in internal order.
  virtual void Seek(std::string_view key, Tag tag) = 0;
  /// To the last record at or before (key, tag) in internal order.
  virtual void SeekForPrev(std::string_view key, Tag tag) = 0;
  /// Seek in steps, 0 to kSeekSteps - 1, so that of many iterators each takes one before any takes
  /// the next: a step starts to load what the next one, with the same target, would wait for. Until
  /// the last the iterator is unpositioned; another seek may take the place of those left.
  static constexpr int kSeekSteps = 4;
  virtual void SeekStep(int step, std::string_view key, Tag tag) {
    if (step + 1 == kSeekSteps) Seek(key, tag);
  }
  virtual void Next() = 0;
  virtual void Prev() = 0;
  /// Going forward, while Valid(): moves on by `passed` of the plain puts that it gave last, and
  /// gives those up to sequence `at` that come next, as far as it knows without a search: a walk
  /// takes many of them for one call. The span lasts until the next call or move; what it points to
  /// as long as keys and values do.
  virtual std::span<const PlainPut> PlainAhead(size_t passed, SequenceNumber at) noexcept {
    static_cast<void>(passed);
    static_cast<void>(at);
    return {};
  }
  /// To a later record, past more versions of the present key than one, if more follow: as many as
  /// one seek can pass.
  virtual void SkipVersions() {
    const std::string key(key_);
    Seek(key, 0);
  }

 protected:
  RecordIterator() = default;
  /// Stands where the other one does, or has ended as it has.
  void ShowAs(const RecordIterator& other) {
    if (!other.valid_ || !status_.ok()) [[unlikely]]
      status_ = other.status_;
    // All is read before any of it is written: the compiler cannot know that they are two.
    const std::string_view key = other.key_;
    const std::string_view value = other.value_;
    const Tag tag = other.tag_;
    const uint64_t time_ms = other.time_ms_;
    valid_ = other.valid_;
    key_ = key;
    value_ = value;
    tag_ = tag;
    time_ms_ = time_ms;
  }

  std::string_view key_;
  std::string_view value_;
  Tag tag_ = 0;
  uint64_t time_ms_ = 0;
  bool valid_ = false;
  Status status_;
};

}  // namespace basalt::base

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "basalt/value.h"
#include "base/coding.h"
#include "base/internal_key.h"

namespace basalt::memtable {

/// Becomes a Value in the place where that is wanted.
struct ShortValue {
  std::string_view bytes;
  // NOLINTNEXTLINE(google-explicit-constructor): that is what it is for
  [[gnu::always_inline]] operator Value() const noexcept {
    if (bytes.size() > Value::kInlineBytes) __builtin_unreachable();
    return Value::Copy(bytes);
  }
};

/// What the record of a fold has behind its value (fold.cc): of the merges that it stands for.
struct FoldedMerges {
  base::SequenceNumber oldest = 0;  ///< The least sequence.
  uint64_t earliest_ms = 0;         ///< When they were written.
  uint64_t latest_ms = 0;
  uint32_t count = 0;
  uint32_t behind = 0;  ///< Position of the next older version, 0: none.

  /// Whether some were written before this moment, and others were not.
  bool IsSplitBy(uint64_t expiry_ms) const noexcept {
    return earliest_ms < expiry_ms && expiry_ms <= latest_ms;
  }
};

/// One version of a key, in one piece in its generation's arena:
///
///   offset size
///        0    8  tag: sequence << 8 | kind; 0: unfinished; kAbandonedTag: never to be seen
///        8    4  position of the next older version of the key, 0: none
///       12    4  value length
///       16    2  key length
///       18    1  kind (RecordKind), which the tag takes over when the record is finished
///       19    1  flags: 1 time follows, 2 one of several of its batch, 4 keyspace follows, 8 a
///       fold 20    4  keyspace, if flagged; else it is 0
///        .    8  time in ms since 1970 (base::RecordIterator), if flagged
///        .       key bytes, value bytes; of a fold, FoldedMerges
///
/// The tag is stored last, with release: who loads it, not zero, with acquire may read all the
/// rest, which never changes again, but for `previous` (by compare-exchange).
struct Record {
  static constexpr uint8_t kFlagTime = 1;
  static constexpr uint8_t kFlagBatch = 2;
  static constexpr uint8_t kFlagKeyspace = sizeof(uint32_t);
  static constexpr uint8_t kFlagFold = 8;
  static constexpr size_t kHeaderBytes = 20;  // Less than sizeof(Record), which is aligned.
  static constexpr base::Tag kAbandonedTag = 0xFF;

  std::atomic<base::Tag> tag;
  std::atomic<uint32_t> previous;
  uint32_t value_size;
  uint16_t key_size;
  uint8_t kind;
  uint8_t flags;

  char* body() noexcept { return reinterpret_cast<char*>(this) + kHeaderBytes; }
  const char* body() const noexcept { return reinterpret_cast<const char*>(this) + kHeaderBytes; }
  size_t time_offset() const noexcept { return flags & kFlagKeyspace; }
  size_t key_offset() const noexcept {
    return time_offset() + sizeof(uint64_t) * (flags & kFlagTime);
  }

  uint32_t keyspace() const noexcept {
    return (flags & kFlagKeyspace) != 0 ? base::Load<uint32_t>(body()) : 0;
  }

  /// Starts to load the lines behind the first one: where the value lies is known only when that
  /// has come. (Dropped by g++ as without effect, unless inlined.)
  [[gnu::always_inline]] void FetchBehind() const noexcept {
    constexpr size_t kLineBytes = 64;
    const char* const first = reinterpret_cast<const char*>(this);
    __builtin_prefetch(first + kLineBytes);
    __builtin_prefetch(first + 2 * kLineBytes);
  }

  /// Whether it is a put of this key in keyspace 0 without a time: then nothing stands before the
  /// key.
  bool IsPlainPutOf(std::string_view its_key) const noexcept {
    return (flags & ~kFlagBatch) == 0 && kind == static_cast<uint8_t>(RecordKind::kPut) &&
           key_size == its_key.size() && base::SameBytes({body(), its_key.size()}, its_key);
  }
  bool has_short_value() const noexcept { return value_size <= Value::kInlineBytes; }
  /// Of such a one with a short value: that.
  ShortValue PlainShortValue(size_t its_key_size) const noexcept {
    return {{body() + its_key_size, value_size}};
  }

  std::string_view key() const noexcept { return {body() + key_offset(), key_size}; }
  std::string_view value() const noexcept { return {body() + key_offset() + key_size, value_size}; }
  /// As in base::RecordIterator.
  uint64_t time_ms() const noexcept {
    return (flags & kFlagTime) != 0 ? base::Load<uint64_t>(body() + time_offset()) : 0;
  }
  bool is_fold() const noexcept { return (flags & kFlagFold) != 0; }
  /// Of a fold.
  FoldedMerges folded() const noexcept {
    FoldedMerges folded;
    std::memcpy(&folded, value().data() + value_size, sizeof folded);
    return folded;
  }
};
static_assert(offsetof(Record, flags) + sizeof(Record::flags) == Record::kHeaderBytes);

/// What a record is made of.
struct RecordSource {
  RecordKind kind = RecordKind::kPut;
  uint32_t keyspace = 0;
  std::string_view key;
  std::string_view value;
  uint64_t time_ms = 0;        ///< As in base::RecordIterator.
  bool is_of_several = false;  ///< Readers may have to ask whether its batch is complete.

  size_t ByteSize() const noexcept {
    return Record::kHeaderBytes + (keyspace != 0 ? sizeof keyspace : 0) +
           (time_ms != 0 ? sizeof time_ms : 0) + key.size() + value.size();
  }
  uint8_t flags() const noexcept {
    return static_cast<uint8_t>((time_ms != 0 ? Record::kFlagTime : 0) |
                                (is_of_several ? Record::kFlagBatch : 0) |
                                (keyspace != 0 ? Record::kFlagKeyspace : 0));
  }
};

/// Knows which batches are being inserted.
class BatchWatch {
 public:
  /// Whether the batch to which this sequence belongs has records that cannot be seen yet.
  virtual bool IsUnderWay(base::SequenceNumber sequence) const noexcept = 0;
  /// Below it nothing is under way.
  virtual base::SequenceNumber SettledBelow() const noexcept = 0;

 protected:
  ~BatchWatch() = default;
};

/// One look at a key, begun when this is made. A batch may become complete between the load of a
/// link and the question whether it is: then the look may have missed what else the batch has done
/// to the key, and who `has_asked` has to look again, until two looks give the same.
class BatchCheck {
 public:
  explicit BatchCheck(const BatchWatch& watch) noexcept
      : watch_(watch), settled_(watch.SettledBelow()) {}

  bool Hides(base::SequenceNumber sequence, bool is_of_several) noexcept {
    if (!is_of_several || sequence < settled_) return false;
    has_asked_ = true;
    return watch_.IsUnderWay(sequence);
  }
  bool has_asked() const noexcept { return has_asked_; }

 private:
  const BatchWatch& watch_;
  const base::SequenceNumber settled_;
  bool has_asked_ = false;
};

}  // namespace basalt::memtable

#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "io/file_system.h"
#include "shared_map/record.h"
#include "shared_map/verified_bits.h"
#include "shared_map/version_files.h"

// A file log-NNNNNN: a segment of the log of changes. Its space is allocated when it is made, it
// never shrinks, and a byte that a reader may look at is never written again.
//
//   offset size
//        0    8  "BSALTML1"
//        8    4  version: 1
//       12    4  required features: 0
//       16    8  file id: random
//       24    8  capacity: bytes of the file
//       32    4  location of byte 0
//       36   20  0
//       56    8  checksum of the bytes before
//       64       change records, one after the other, then zeros
//
// A change record, at a multiple of 8 bytes:
//
//        0    8  checksum: XXH3-64 of all that follows, seeded by file id and offset
//        8    4  low half of the checksum of the record before; of the first, of the file id
//       12    4  location of the record of the same key that this one replaces; 0: none in this log
//       16    4  location up to which the log was known to be on the disk when this was written
//       20    4  0
//       24       the record (record.h): kinds put and erase; flags 1: more of its batch follows,
//                2: the key had a value before
//
// The chain of checksums makes sure that nothing that stood there before a power cut is taken for
// a continuation of what was written after it.

namespace basalt::shared_map {

inline constexpr uint64_t kLogUnit = 8;
inline constexpr uint64_t kLogHeaderBytes = 64;
/// What stands before the record of a change.
struct ChangeHeader {
  uint64_t checksum;
  uint32_t previous;
  Location replaces;
  Location synced;
  uint32_t zero;
};
inline constexpr uint64_t kChangeHeaderBytes = 24;
static_assert(sizeof(ChangeHeader) == kChangeHeaderBytes);
/// The checksum is of all that follows it.
inline constexpr uint64_t kChecksumBytes = sizeof(ChangeHeader::checksum);
inline constexpr uint64_t kLocationMax = 0xFFFF'FFFF;
inline constexpr uint8_t kFlagMoreFollows = 1;
inline constexpr uint8_t kFlagReplacesValue = 2;

/// A change where it lies.
struct Change {
  RecordRef record{};
  uint32_t checksum = 0;  ///< Low half.
  uint32_t previous = 0;
  Location replaces = 0;
  Location synced = 0;
  Location location = 0;
  Location end = 0;  ///< Of the next one.

  bool is_put() const noexcept { return record.is_put(); }
};

/// A segment that is mapped to be read. Thread-safe: the bytes of a change do not change, and two
/// threads that verify one come to the same.
class LogSegment {
 public:
  /// Makes a file with its space, synced, but not its name. On an error it is removed.
  static Status Create(io::FileSystem* fs, const std::string& path, Location first,
                       uint64_t capacity_bytes);
  static Result<std::shared_ptr<const LogSegment>> Open(io::FileSystem* fs, std::string path,
                                                        const SegmentEntry& entry);

  const std::string& path() const noexcept { return path_; }
  uint64_t file_id() const noexcept { return file_id_; }
  uint64_t capacity_bytes() const noexcept { return bytes_.size(); }
  Location first() const noexcept { return first_; }
  /// Of the first change.
  Location begin() const noexcept { return first_ + kLogHeaderBytes / kLogUnit; }
  /// Of the end of the file.
  uint64_t limit() const noexcept { return first_ + bytes_.size() / kLogUnit; }
  bool Holds(Location location) const noexcept { return location >= begin() && location < limit(); }
  uint64_t OffsetOf(Location location) const noexcept {
    return uint64_t{location - first_} * kLogUnit;
  }
  const char* AddressOf(Location location) const noexcept {
    return bytes_.data() + OffsetOf(location);
  }

  /// What a change takes that begins at a location of this segment, by the sizes of its record,
  /// which it gives. 0: none can be there.
  uint64_t BytesAt(Location location, RecordRef* record) const noexcept;
  /// The bytes of a header at a location behind which at least as many follow.
  ChangeHeader HeaderAt(Location location) const noexcept {
    ChangeHeader header{};
    std::memcpy(&header, AddressOf(location), sizeof header);
    return header;
  }
  /// The change at a location of this segment, verified. False: it is not what was written.
  bool At(Location location, Change* change) const noexcept;
  /// The record of that change, for lookups: verified by who first reads it.
  [[gnu::always_inline]] bool RecordAt(Location location, RecordRef* record) const noexcept {
    if (!verified_.Has(location - first_) && !Verify(location)) [[unlikely]]
      return false;
    const uint64_t begin = OffsetOf(location) + kChangeHeaderBytes;
    *record = RecordRef(bytes_.data() + begin);
    return record->size() <= bytes_.size() - begin;  // Whatever became of it since.
  }
  /// What RecordAt reads, of a record's lines at most 5.
  [[gnu::always_inline]] void Prefetch(Location location) const noexcept {
    constexpr size_t kLines = 5;
    const char* const at = AddressOf(location);
    for (size_t line = 0; line < kLines; ++line) __builtin_prefetch(at + 64 * line, 0, 2);
    verified_.Prefetch(location - first_);
  }

 private:
  LogSegment() = default;
  /// Marks the change when it is what was written.
  [[gnu::noinline]] bool Verify(Location location) const noexcept;

  std::string path_;
  std::unique_ptr<io::Mapping> mapping_;
  std::string_view bytes_;
  uint64_t file_id_ = 0;
  Location first_ = 0;
  /// Of all places at which a change may begin: a false location finds none.
  mutable VerifiedBits verified_;
};

/// Where a walk over a segment came to.
struct LogEnd {
  Location end = 0;
  uint32_t last_checksum = 0;
};

/// Walks over the changes before a location at which one begins or the log ends. Corruption: it is
/// not reached.
Result<LogEnd> WalkUntil(const LogSegment& segment, Location end,
                         const std::function<void(Location, const Change&)>& visit);
/// The same for a segment that was closed. Corruption: also when the last of them is another one.
Result<LogEnd> WalkSealed(const LogSegment& segment, LogEnd end,
                          const std::function<void(Location, const Change&)>& visit);
/// Walks over the whole batches of a segment that was being written: what follows the last of them
/// was never acknowledged. `at_least`: the end that was visible last, or 0 if nobody knows; the
/// rest of the segment is then searched for a change that proves that earlier ones are lost.
/// Corruption: what was acknowledged is damaged, or that would take more than linear time to tell.
Result<LogEnd> WalkOpen(const LogSegment& segment, Location at_least,
                        const std::function<void(Location, const Change&)>& visit);

/// Appends the bytes of a change, but for its checksum, to `out`: FinishChange adds that.
void AppendChange(std::string* out, RecordKind kind, uint8_t flags, Location replaces,
                  Location synced, std::string_view key, std::string_view value);
/// Fills in the chain and the checksum of the change at `at`, of `bytes` bytes. Its checksum's low
/// half.
uint32_t FinishChange(char* at, uint64_t bytes, uint64_t file_id, uint64_t offset,
                      uint32_t previous) noexcept;

/// Makes sure that a file has `bytes` of allocated space, also on file systems without fallocate.
Status AllocateSpace(io::File* file, uint64_t bytes);

}  // namespace basalt::shared_map

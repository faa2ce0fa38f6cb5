#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "basalt/status.h"
#include "base/coding.h"

// The bytes of a log file (docs/log.md has the byte tables): a header of 128 bytes at offset 0, the
// same again at offset 512 so that one torn sector does not lose it, and from offset 1024 on
// records: a header of some 12 bytes, whose numbers are relative to the file's header, and the
// payload. Files are preallocated: zeros follow the last record.
//
// Files of version 1 are read and not written: their records have headers of 48 bytes, and begin at
// multiples of 8.

namespace basalt::wal {

/// Counts records (one a batch) from 1, without a hole, over records and files. 0: none.
using Lsn = uint64_t;

/// Far beyond what is ever written; a header that names more is not one of ours.
inline constexpr Lsn kMaxLsn = Lsn{1} << 62;

/// Of a file. No log gets near it, so that the next number is always greater.
inline constexpr uint64_t kMaxLogFileNumber = uint64_t{1} << 62;

inline constexpr char kLogMagic[8] = {'B', 'S', 'L', 'T', 'L', 'O', 'G', '1'};
inline constexpr uint32_t kLogVersion = 2;  ///< Of what is written; those below it are read too.
/// The required features that this version reads; a file that names others is refused.
inline constexpr uint32_t kKnownRequiredFeatures = 0;
inline constexpr uint64_t kSecondHeaderOffset = 512;
inline constexpr uint64_t kRecordsOffset = 1024;

struct FileHeader {
  char magic[8];
  uint32_t version = kLogVersion;
  uint32_t required_features;
  uint32_t optional_features;
  uint32_t header_bytes;  ///< Of one copy. Every version ends it with the checksum.
  uint64_t file_id;       ///< Random; part of every checksum in the file.
  uint64_t file_number;
  Lsn first_lsn;
  Lsn durable_lsn;  ///< Known when the file was created.
  /// The file before this one, as it must be found: 0 for none.
  uint64_t previous_file_id;
  Lsn previous_last_lsn;
  uint64_t
      previous_length;  ///< The end of its last batch; what lies beyond was never acknowledged.
  uint64_t previous_running_hash;
  uint64_t database_id;  ///< Of the database that it is the log of; 0: not known.
  uint64_t reserved[3];
  uint64_t checksum;  ///< Of the bytes before it, at the copy's offset.
};
static_assert(sizeof(FileHeader) == 128 && alignof(FileHeader) == 8);

enum class LogRecordType : uint32_t {
  kBatch = 1,
  /// Ends a log that was closed: everything up to its LSN is durable. Carries no batch, and so no
  /// LSN of its own: it repeats the last one. Not part of the length and running hash that the next
  /// file's header names.
  kClose = 2,
};

/// A record as it lies in a file.
struct Record {
  uint64_t checksum = 0;  ///< Of the bytes that follow it; version 2 stores its lower half.
  Lsn lsn = 0;
  Lsn durable_lsn = 0;  ///< Known when the record was staged.
  uint64_t first_sequence = 0;
  uint32_t count = 0;
  LogRecordType type = LogRecordType::kBatch;
  std::string_view payload{};
  uint64_t framed_bytes = 0;  ///< From its first byte to the next record's.

  /// Of its operations; 0: it has none.
  uint64_t last_sequence() const noexcept { return count > 0 ? first_sequence + count - 1 : 0; }
};

/// No header of a record that is written now is longer.
inline constexpr size_t kRecordHeaderBytesMax = 56;

/// How records lie in a file of some version.
struct RecordLayout {
  uint64_t alignment;
  uint64_t record_bytes_min;
  size_t checksum_bytes;
};
RecordLayout LayoutOf(const FileHeader& header) noexcept;

/// The first kRecordsOffset bytes of a file; fills in magic, features, sizes and checksums.
std::string EncodeFileHeader(FileHeader header);

/// The header in the first bytes of the file `path`; nothing when neither copy is whole.
/// Unsupported: a whole header of a newer version, or with a required feature that is not known.
Result<std::optional<FileHeader>> DecodeFileHeader(std::string_view first_bytes,
                                                   std::string_view path);

/// Whether the first bytes of a file that has no whole header may be what a crash has left of one.
/// Any part of it may be missing, and zeros are there instead. What no crash leaves is a copy that
/// was written to its end and has a wrong checksum, or other bytes in place of the magic or behind
/// a copy: the header was damaged, or something else was written over it.
bool MayBeUnfinishedHeader(std::string_view first_bytes) noexcept;

/// Writes the header of a record for a file with this header (of the present version): all but the
/// checksum, which SealRecord fills in. Gives its size; the payload follows it.
size_t WriteRecordHeader(const FileHeader& header, const Record& record, char* out) noexcept;

/// Fills in the checksum of the record whose header and payload are the `size` bytes at `framed`
/// and will lie at `offset`; gives Record::checksum.
uint64_t SealRecord(const FileHeader& header, uint64_t offset, char* framed, size_t size) noexcept;
/// The same of a record whose payload lies elsewhere: `framed` are the bytes of its header.
uint64_t SealRecord(const FileHeader& header, uint64_t offset, char* framed, size_t size,
                    std::string_view payload) noexcept;

/// What the bytes at `offset` of `file` say if they are a record, whole but perhaps with a wrong
/// checksum.
std::optional<Record> PeekRecord(std::string_view file, uint64_t offset,
                                 const FileHeader& header) noexcept;

/// The record at `offset` of `file`, if a whole one with a right checksum lies there.
std::optional<Record> ReadRecord(std::string_view file, uint64_t offset,
                                 const FileHeader& header) noexcept;

/// The same of a part of the file: `bytes` begin at its `offset`.
std::optional<Record> ReadRecordAt(std::string_view bytes, uint64_t offset,
                                   const FileHeader& header) noexcept;

/// The running hash of a file after one more record. It starts as the file id.
uint64_t ExtendRunningHash(uint64_t running_hash, uint64_t record_checksum) noexcept;

/// "000042.log".
std::string LogFileName(uint64_t number);
/// The number in a name that LogFileName made.
std::optional<uint64_t> ParseLogFileName(std::string_view name);

}  // namespace basalt::wal

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "basalt/status.h"
#include "base/coding.h"

// The bytes of a log file (docs/log.md has the byte tables): a header of 128 bytes at offset 0, the
// same again at offset 512 so that one torn sector does not lose it, and from offset 1024 on
// records, each aligned to 8 bytes: a header of 48 bytes, the payload, zeros up to the alignment.
// Files are preallocated: zeros follow the last record.

namespace basalt::wal {

/// Counts records (one a batch) from 1, without a hole, over records and files. 0: none.
using Lsn = uint64_t;

/// Far beyond what is ever written; a header that names more is not one of ours.
inline constexpr Lsn kMaxLsn = Lsn{1} << 62;

inline constexpr char kLogMagic[8] = {'B', 'S', 'L', 'T', 'L', 'O', 'G', '1'};
inline constexpr uint32_t kLogVersion = 1;
/// The required features that this version reads; a file that names others is refused.
inline constexpr uint32_t kKnownRequiredFeatures = 0;
inline constexpr uint64_t kSecondHeaderOffset = 512;
inline constexpr uint64_t kRecordsOffset = 1024;
inline constexpr uint64_t kRecordAlignment = 8;

struct FileHeader {
  char magic[8];
  uint32_t version;
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
  uint64_t reserved[4];
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

/// The checksum comes first, so that what it covers (the rest of the header and the payload) is one
/// piece.
struct RecordHeader {
  uint64_t checksum;
  uint64_t payload_bytes;
  Lsn lsn;
  Lsn durable_lsn;  ///< Known when the record was staged.
  uint64_t first_sequence;
  uint32_t count;
  LogRecordType type;
};
static_assert(sizeof(RecordHeader) == 48 && alignof(RecordHeader) == 8);

constexpr uint64_t FramedBytes(uint64_t payload_bytes) noexcept {
  return base::RoundUp(sizeof(RecordHeader) + payload_bytes, kRecordAlignment);
}

/// The first kRecordsOffset bytes of a file; fills in magic, version, sizes and checksums.
std::string EncodeFileHeader(FileHeader header);

/// The header in the first bytes of the file `path`; nothing when neither copy is whole.
/// Unsupported: a whole header of a newer version, or with a required feature that is not known.
Result<std::optional<FileHeader>> DecodeFileHeader(std::string_view first_bytes,
                                                   std::string_view path);

/// `framed` is a record from its header's first byte to its payload's last (or padding, which is
/// ignored); it must hold both.
uint64_t RecordChecksum(uint64_t file_id, uint64_t offset, const char* framed) noexcept;

/// The header of the record at `offset` of `file`, if a whole record with a right checksum lies
/// there.
std::optional<RecordHeader> ReadRecord(std::string_view file, uint64_t offset,
                                       uint64_t file_id) noexcept;

/// The running hash of a file after one more record. It starts as the file id.
uint64_t ExtendRunningHash(uint64_t running_hash, uint64_t record_checksum) noexcept;

/// "000042.log".
std::string LogFileName(uint64_t number);
/// The number in a name that LogFileName made.
std::optional<uint64_t> ParseLogFileName(std::string_view name);

}  // namespace basalt::wal

#include "wal/log_format.h"

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <limits>

#include "base/hash.h"

namespace basalt::wal {
namespace {

std::string_view BytesOf(const FileHeader& header) {
  return {reinterpret_cast<const char*>(&header), sizeof header};
}

/// What all versions promise about a header: its magic, version and features, where its length
/// stands, that it fits its half of the first kRecordsOffset bytes, and that its last 8 bytes are
/// its checksum.
bool IsWhole(std::string_view copy, uint64_t offset, FileHeader* header) {
  if (copy.size() < sizeof *header) return false;
  std::memcpy(header, copy.data(), sizeof *header);
  if (std::memcmp(header->magic, kLogMagic, sizeof kLogMagic) != 0) return false;
  if (header->header_bytes < sizeof *header || header->header_bytes > copy.size()) return false;
  const std::string_view covered = copy.substr(0, header->header_bytes - sizeof(uint64_t));
  return base::Load<uint64_t>(covered.data() + covered.size()) ==
         base::Checksum(header->file_id, offset, covered);
}

/// What a crash may leave of the half of the first bytes that a copy lies in.
bool MayBeUnfinishedCopy(std::string_view half) noexcept {
  const auto is_zero = [](char byte) { return byte == '\0'; };
  if (half.size() > sizeof(FileHeader) &&
      !std::ranges::all_of(half.substr(sizeof(FileHeader)), is_zero)) {
    return false;
  }
  const std::string_view magic = half.substr(0, sizeof kLogMagic);
  for (size_t i = 0; i < magic.size(); ++i) {
    if (magic[i] != kLogMagic[i] && magic[i] != '\0') return false;
  }
  if (half.size() < sizeof(FileHeader)) return true;
  // A copy that has its magic and its last byte was written to its end, and is not whole.
  return magic != std::string_view(kLogMagic, sizeof kLogMagic) ||
         half[sizeof(FileHeader) - 1] == '\0';
}

/// The header of a record of version 1.
struct FirstVersionRecordHeader {
  uint64_t checksum;
  uint64_t payload_bytes;
  Lsn lsn;
  Lsn durable_lsn;
  uint64_t first_sequence;
  uint32_t count;
  LogRecordType type;
};
static_assert(sizeof(FirstVersionRecordHeader) == 48);

std::optional<Record> PeekFirstVersion(std::string_view bytes) noexcept {
  FirstVersionRecordHeader header;
  if (bytes.size() < sizeof header) return {};
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.payload_bytes > bytes.size() - sizeof header) return {};
  return Record{.checksum = header.checksum,
                .lsn = header.lsn,
                .durable_lsn = header.durable_lsn,
                .first_sequence = header.first_sequence,
                .count = header.count,
                .type = header.type,
                .payload = bytes.substr(sizeof header, header.payload_bytes),
                .framed_bytes = base::RoundUp(sizeof header + header.payload_bytes, 8)};
}

// Since version 2 a record's header is a checksum of 32 bits and these numbers.
constexpr size_t kVarints = 5;
constexpr int kTypeBits = 2;
static_assert(sizeof(uint32_t) + kVarints * base::kVarintBytesMax <= kRecordHeaderBytesMax);

/// 0: what the file's header says. Else mostly 1, all that other files hold, or a little more, what
/// this one held when it was synced; only rarely less than the former.
uint64_t PackDurable(const FileHeader& header, Lsn durable) noexcept {
  if (durable == header.durable_lsn) return 0;
  return 1 + base::ToZigZag(durable - (header.first_lsn - 1));
}

Lsn UnpackDurable(const FileHeader& header, uint64_t packed) noexcept {
  if (packed == 0) return header.durable_lsn;
  return header.first_lsn - 1 + base::FromZigZag(packed - 1);
}

std::optional<Record> PeekPacked(std::string_view bytes, const FileHeader& header) noexcept {
  base::Decoder decoder(bytes);
  Record record;
  record.checksum = decoder.Read<uint32_t>();
  const uint64_t payload_bytes = decoder.ReadVarint();
  record.lsn = header.first_lsn - 1 + decoder.ReadVarint();
  record.durable_lsn = UnpackDurable(header, decoder.ReadVarint());
  record.first_sequence = record.lsn + decoder.ReadVarint();
  const uint64_t count_and_type = decoder.ReadVarint();
  record.count = static_cast<uint32_t>(count_and_type >> kTypeBits);
  record.type = static_cast<LogRecordType>(count_and_type & ((1U << kTypeBits) - 1));
  record.payload = decoder.ReadBytes(payload_bytes);
  record.framed_bytes = decoder.position();
  // Type 0 is none: so zeros are no record, whatever their checksum should be.
  if (!decoder.ok() || record.type == LogRecordType{}) return {};
  if (count_and_type >> kTypeBits > std::numeric_limits<uint32_t>::max()) return {};
  return record;
}

/// What `bytes`, which begin where a record may, say if they are one.
std::optional<Record> PeekRecordAt(std::string_view bytes, const FileHeader& header) noexcept {
  return header.version == 1 ? PeekFirstVersion(bytes) : PeekPacked(bytes, header);
}

}  // namespace

std::string EncodeFileHeader(FileHeader header) {
  std::memcpy(header.magic, kLogMagic, sizeof kLogMagic);
  header.required_features = 0;
  header.optional_features = 0;
  header.header_bytes = sizeof header;
  std::fill(std::begin(header.reserved), std::end(header.reserved), uint64_t{0});
  std::string bytes(kRecordsOffset, '\0');
  for (const uint64_t offset : {uint64_t{0}, kSecondHeaderOffset}) {
    header.checksum = base::Checksum(
        header.file_id, offset, BytesOf(header).substr(0, sizeof header - sizeof header.checksum));
    std::memcpy(bytes.data() + offset, &header, sizeof header);
  }
  return bytes;
}

Result<std::optional<FileHeader>> DecodeFileHeader(std::string_view first_bytes,
                                                   std::string_view path) {
  for (const uint64_t offset : {uint64_t{0}, kSecondHeaderOffset}) {
    if (first_bytes.size() < offset) break;
    FileHeader header;
    if (!IsWhole(first_bytes.substr(offset, kSecondHeaderOffset), offset, &header)) continue;
    const uint32_t unknown = header.required_features & ~kKnownRequiredFeatures;
    if (header.version == 0 || header.version > kLogVersion || unknown != 0) {
      return Status(StatusCode::kUnsupported,
                    "open log " + std::string(path) + ": written in log format version " +
                        std::to_string(header.version) + " with required features " +
                        std::to_string(header.required_features) +
                        "; this program reads versions up to " + std::to_string(kLogVersion) +
                        " with required features " + std::to_string(kKnownRequiredFeatures) +
                        ": use the newer program that wrote it");
    }
    // No writer of ours names such LSNs.
    if (header.first_lsn > kMaxLsn || header.previous_last_lsn >= header.first_lsn) continue;
    return std::optional<FileHeader>(header);
  }
  return std::optional<FileHeader>();
}

bool MayBeUnfinishedHeader(std::string_view first_bytes) noexcept {
  first_bytes = first_bytes.substr(0, kRecordsOffset);
  const size_t second = std::min<size_t>(first_bytes.size(), kSecondHeaderOffset);
  return MayBeUnfinishedCopy(first_bytes.substr(0, second)) &&
         MayBeUnfinishedCopy(first_bytes.substr(second));
}

RecordLayout LayoutOf(const FileHeader& header) noexcept {
  if (header.version == 1) {
    return {.alignment = 8,
            .record_bytes_min = sizeof(FirstVersionRecordHeader),
            .checksum_bytes = sizeof(uint64_t)};
  }
  return {.alignment = 1,
          .record_bytes_min = sizeof(uint32_t) + kVarints,
          .checksum_bytes = sizeof(uint32_t)};
}

size_t WriteRecordHeader(const FileHeader& header, const Record& record, char* out) noexcept {
  char* at = out + sizeof(uint32_t);
  at = base::StoreVarint(at, record.payload.size());
  at = base::StoreVarint(at, record.lsn - (header.first_lsn - 1));
  at = base::StoreVarint(at, PackDurable(header, record.durable_lsn));
  at = base::StoreVarint(at, record.first_sequence - record.lsn);
  at = base::StoreVarint(at,
                         uint64_t{record.count} << kTypeBits | static_cast<uint32_t>(record.type));
  return static_cast<size_t>(at - out);
}

uint64_t SealRecord(const FileHeader& header, uint64_t offset, char* framed, size_t size) noexcept {
  const size_t checksum_bytes = LayoutOf(header).checksum_bytes;
  const uint64_t checksum =
      base::Checksum(header.file_id, offset, {framed + checksum_bytes, size - checksum_bytes});
  std::memcpy(framed, &checksum, checksum_bytes);
  return checksum;
}

uint64_t SealRecord(const FileHeader& header, uint64_t offset, char* framed, size_t size,
                    std::string_view payload) noexcept {
  const size_t checksum_bytes = LayoutOf(header).checksum_bytes;
  const uint64_t checksum = base::Checksum(
      header.file_id, offset, {framed + checksum_bytes, size - checksum_bytes}, payload);
  std::memcpy(framed, &checksum, checksum_bytes);
  return checksum;
}

std::optional<Record> PeekRecord(std::string_view file, uint64_t offset,
                                 const FileHeader& header) noexcept {
  if (offset > file.size()) return {};
  return PeekRecordAt(file.substr(offset), header);
}

std::optional<Record> ReadRecord(std::string_view file, uint64_t offset,
                                 const FileHeader& header) noexcept {
  if (offset > file.size()) return {};
  return ReadRecordAt(file.substr(offset), offset, header);
}

std::optional<Record> ReadRecordAt(std::string_view bytes, uint64_t offset,
                                   const FileHeader& header) noexcept {
  std::optional<Record> record = PeekRecordAt(bytes, header);
  if (!record) return {};
  const size_t checksum_bytes = LayoutOf(header).checksum_bytes;
  const char* const begin = bytes.data() + checksum_bytes;
  const uint64_t checksum = base::Checksum(
      header.file_id, offset,
      {begin, static_cast<size_t>(record->payload.data() + record->payload.size() - begin)});
  if (std::memcmp(&checksum, bytes.data(), checksum_bytes) != 0) return {};
  record->checksum = checksum;
  return record;
}

uint64_t ExtendRunningHash(uint64_t running_hash, uint64_t record_checksum) noexcept {
  return base::Hash({reinterpret_cast<const char*>(&record_checksum), sizeof record_checksum},
                    running_hash);
}

std::string LogFileName(uint64_t number) {
  char name[32];
  const int size = std::snprintf(name, sizeof name, "%06" PRIu64 ".log", number);
  return {name, static_cast<size_t>(size)};
}

std::optional<uint64_t> ParseLogFileName(std::string_view name) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || LogFileName(number) != name) return {};
  return number;
}

}  // namespace basalt::wal

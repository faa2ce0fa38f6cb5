#include "wal/log_format.h"

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <cstring>

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

}  // namespace

std::string EncodeFileHeader(FileHeader header) {
  std::memcpy(header.magic, kLogMagic, sizeof kLogMagic);
  header.version = kLogVersion;
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
    if (header.version != kLogVersion || unknown != 0) {
      return Status(StatusCode::kUnsupported,
                    "open log " + std::string(path) + ": written in log format version " +
                        std::to_string(header.version) + " with required features " +
                        std::to_string(header.required_features) + "; this program reads version " +
                        std::to_string(kLogVersion) + " with required features " +
                        std::to_string(kKnownRequiredFeatures) +
                        ": use the newer program that wrote it");
    }
    // No writer of ours names such LSNs.
    if (header.first_lsn > kMaxLsn || header.previous_last_lsn >= header.first_lsn) continue;
    return std::optional<FileHeader>(header);
  }
  return std::optional<FileHeader>();
}

uint64_t RecordChecksum(uint64_t file_id, uint64_t offset, const char* framed) noexcept {
  constexpr size_t kChecksumBytes = sizeof(RecordHeader::checksum);
  const auto payload_bytes = base::Load<uint64_t>(framed + offsetof(RecordHeader, payload_bytes));
  return base::Checksum(
      file_id, offset,
      {framed + kChecksumBytes, sizeof(RecordHeader) - kChecksumBytes + payload_bytes});
}

std::optional<RecordHeader> ReadRecord(std::string_view file, uint64_t offset,
                                       uint64_t file_id) noexcept {
  if (offset > file.size() || file.size() - offset < sizeof(RecordHeader)) return {};
  RecordHeader header;
  std::memcpy(&header, file.data() + offset, sizeof header);
  if (header.payload_bytes > file.size() - offset - sizeof header) return {};
  if (header.checksum != RecordChecksum(file_id, offset, file.data() + offset)) return {};
  return header;
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

#include "shared_map/base_file.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/hash.h"

namespace basalt::shared_map {
namespace {

Status FileError(StatusCode code, std::string_view path, std::string_view what, uint64_t offset,
                 std::string_view why) {
  std::string message(path);
  message.append(": ").append(what).append(" at offset ").append(std::to_string(offset));
  message.append(": ").append(why);
  if (code == StatusCode::kCorruption) message.append("; restore a copy of the map");
  return Status(code, std::move(message));
}

constexpr std::string_view kWrongChecksum =
    "the checksum does not match: the bytes are not those that were written";

bool IsIntact(const BaseHeader& header) noexcept {
  const std::string_view bytes(reinterpret_cast<const char*>(&header), kBaseChecksummedBytes);
  return std::memcmp(header.magic, kBaseMagic, sizeof kBaseMagic) == 0 &&
         header.checksum == base::Checksum(header.file_id, 0, bytes);
}

BaseHeader HeaderAt(std::string_view file, uint64_t offset) noexcept {
  BaseHeader header;
  std::memcpy(&header, file.data() + offset, sizeof header);
  return header;
}

// Whether the numbers are possible in a file of `size` bytes, and agree with one another.
bool AddsUp(const BaseHeader& header, uint64_t size) noexcept {
  const uint64_t data_bytes = header.data.bytes;
  // These first: what is computed below does not overflow then.
  if (header.function.bytes > size || data_bytes > size || data_bytes % 8 != 0 ||
      header.records > data_bytes / kRecordHeaderBytes) {
    return false;
  }
  if (header.layout == BaseLayout::kFixed) {
    const uint64_t stride = header.records == 0 ? 0 : data_bytes / header.records;
    if (header.stride != stride || stride % 8 != 0 || stride * header.records != data_bytes) {
      return false;
    }
  } else if (header.layout != BaseLayout::kVariable || header.stride != 0 ||
             data_bytes > kVariableDataBytesMax || (header.records == 0 && data_bytes != 0)) {
    return false;
  }
  BaseHeader expected = header;
  PlaceSections(&expected, header.function.bytes, data_bytes);
  return std::memcmp(&expected, &header, sizeof header) == 0;
}

// The header of a file of at least kHeadBytes + sizeof(BaseHeader) bytes, checked.
Result<BaseHeader> ReadHeader(std::string_view path, std::string_view file) {
  BaseHeader header = HeaderAt(file, 0);
  if (!IsIntact(header)) header = HeaderAt(file, file.size() - sizeof header);
  if (!IsIntact(header)) {
    return FileError(StatusCode::kCorruption, path, "header", 0,
                     "neither it nor its copy at the file's end is that of a base file of a map");
  }
  if (header.format_version != kBaseFormatVersion ||
      (header.required_features & ~kBaseKnownFeatures) != 0) {
    return FileError(StatusCode::kUnsupported, path, "header", 0,
                     "format version " + std::to_string(header.format_version) + " with features " +
                         std::to_string(header.required_features) +
                         "; open it with the program that wrote it");
  }
  if (header.golden_hash != base::Hash(kBaseGoldenKey)) {
    return FileError(StatusCode::kUnsupported, path, "header", 0,
                     "its keys were hashed with another hash function");
  }
  if (header.file_bytes != file.size()) {
    return FileError(StatusCode::kCorruption, path, "header", 0,
                     "the file has " + std::to_string(file.size()) +
                         " bytes and was written with " + std::to_string(header.file_bytes));
  }
  if (!AddsUp(header, file.size())) {
    return FileError(StatusCode::kCorruption, path, "header", 0,
                     "its numbers contradict themselves");
  }
  return header;
}

// The bytes of a section, verified.
Result<std::string_view> ReadSection(std::string_view path, std::string_view file, uint64_t file_id,
                                     std::string_view name, const BaseSection& section) {
  const std::string_view bytes = file.substr(section.offset, section.bytes);
  if (section.checksum == base::Checksum(file_id, section.offset, bytes)) return bytes;
  return FileError(StatusCode::kCorruption, path, name, section.offset, kWrongChecksum);
}

}  // namespace

Result<std::shared_ptr<const BaseFile>> BaseFile::Open(io::FileSystem* fs, std::string_view path,
                                                       uint64_t hash_seed) try {
  BASALT_ASSIGN_OR_RETURN(const auto file, fs->Open(path, io::OpenMode::kRead));
  BASALT_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  if (size < kHeadBytes + sizeof(BaseHeader)) {
    return FileError(StatusCode::kCorruption, path, "header", 0,
                     "the file has " + std::to_string(size) + " bytes, too few for a base file");
  }
  BASALT_ASSIGN_OR_RETURN(std::unique_ptr<io::Mapping> mapping, file->Map(size));
  const std::string_view bytes = mapping->bytes();
  BASALT_ASSIGN_OR_RETURN(const BaseHeader header, ReadHeader(path, bytes));
  const auto read = [&](std::string_view name, const BaseSection& section) {
    return ReadSection(path, bytes, header.file_id, name, section);
  };
  BASALT_ASSIGN_OR_RETURN(const std::string_view function_bytes, read("function", header.function));
  BASALT_RETURN_IF_ERROR(read("block checksums", header.block_checksums).status());
  BASALT_RETURN_IF_ERROR(read("starts", header.starts).status());
  Result<phash::Function> function = phash::Function::Open(function_bytes);
  if (!function) {
    return FileError(function.error().code(), path, "function", header.function.offset,
                     function.error().message());
  }
  if (function->size() != header.records) {
    return FileError(StatusCode::kCorruption, path, "function", header.function.offset,
                     "it is of " + std::to_string(function->size()) + " keys, and there are " +
                         std::to_string(header.records) + " records");
  }
  return std::shared_ptr<const BaseFile>(
      new BaseFile(std::string(path), std::move(mapping), header, std::move(*function), hash_seed));
} catch (const std::bad_alloc&) {
  return Status(StatusCode::kResourceExhausted, "opening a base file of a map: out of memory");
}

BaseFile::BaseFile(std::string path, std::unique_ptr<io::Mapping> mapping, const BaseHeader& header,
                   phash::Function function, uint64_t hash_seed)
    : function_(std::move(function)),
      takes_hashes_(function_.hash_seed() == hash_seed),
      data_(mapping->bytes().data() + header.data.offset),
      starts_(
          header.layout == BaseLayout::kFixed
              ? nullptr
              : reinterpret_cast<const uint32_t*>(mapping->bytes().data() + header.starts.offset)),
      stride_(header.stride),
      figures_{.records = header.records,
               .file_bytes = header.file_bytes,
               .function_bytes = header.function.bytes,
               .data_bytes = header.data.bytes,
               .fixed = header.layout == BaseLayout::kFixed},
      verified_(header.block_checksums.bytes / 8),
      unverified_blocks_(header.block_checksums.bytes / 8),
      block_checksums_(reinterpret_cast<const uint64_t*>(mapping->bytes().data() +
                                                         header.block_checksums.offset)),
      header_(header),
      mapping_(std::move(mapping)),
      path_(std::move(path)) {
  if (stride_ == 0) TakeStartSamples();
}

// The last one stands where a full group of records would end, of the size that those there have.
void BaseFile::TakeStartSamples() {
  if (figures_.records == 0) return;
  const uint64_t last = (figures_.records - 1) / kSampleEvery;
  start_samples_ = std::make_unique_for_overwrite<uint32_t[]>(last + 2);
  for (uint64_t i = 0; i <= last; ++i) start_samples_[i] = starts_[i * kSampleEvery];
  const uint64_t rest = figures_.data_bytes / 8 - start_samples_[last];
  const uint64_t records = figures_.records - last * kSampleEvery;
  start_samples_[last + 1] =
      static_cast<uint32_t>(start_samples_[last] + rest * kSampleEvery / records);
}

std::string_view BaseFile::BlockAt(uint64_t block) const noexcept {
  const uint64_t begin = block * kBlockBytes;
  return {data_ + begin, std::min(kBlockBytes, figures_.data_bytes - begin)};
}

bool BaseFile::VerifyBlock(uint64_t block) const noexcept {
  const uint64_t offset = header_.data.offset + block * kBlockBytes;
  if (block_checksums_[block] != base::Checksum(header_.file_id, offset, BlockAt(block))) {
    return false;
  }
  if (verified_.Set(block)) unverified_blocks_.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

bool BaseFile::VerifyBlocks(uint64_t first, uint64_t last) const noexcept {
  for (uint64_t block = first; block <= last; ++block) {
    if (!verified_.Has(block) && !VerifyBlock(block)) return false;
  }
  return true;
}

Status BaseFile::Corrupt(std::string_view what, uint64_t offset, std::string_view why) const {
  return FileError(StatusCode::kCorruption, path_, what, offset, why);
}

Status BaseFile::RecordError(uint64_t slot, std::string_view why) const {
  return Corrupt("record of slot " + std::to_string(slot), header_.data.offset + Begin(slot), why);
}

Status BaseFile::VerifyRange(uint64_t begin, uint64_t end) const {
  for (uint64_t block = begin / kBlockBytes; block <= (end - 1) / kBlockBytes; ++block) {
    if (verified_.Has(block) || VerifyBlock(block)) continue;
    return Corrupt("block of records", header_.data.offset + block * kBlockBytes, kWrongChecksum);
  }
  return Status();
}

Result<RecordRef> BaseFile::At(uint64_t slot) const {
  BASALT_CHECK(slot < figures_.records);
  const uint64_t begin = Begin(slot);
  if (begin > figures_.data_bytes - kRecordHeaderBytes) {
    return RecordError(slot, "it would begin after the end of the records");
  }
  BASALT_RETURN_IF_ERROR(VerifyRange(begin, begin + kRecordHeaderBytes));
  const RecordRef record(data_ + begin);
  if (record.header().kind != kBaseRecordKind || record.header().flags != 0) {
    return RecordError(slot, "it is of kind " + std::to_string(record.header().kind) +
                                 " with flags " + std::to_string(record.header().flags));
  }
  if (record.size() > figures_.data_bytes - begin) {
    return RecordError(slot, "its " + std::to_string(record.size()) +
                                 " bytes would end after the end of the records");
  }
  BASALT_RETURN_IF_ERROR(VerifyRange(begin, begin + record.size()));
  return record;
}

Status BaseFile::Damage(uint64_t slot) const {
  const Result<RecordRef> record = At(slot);
  if (!record) return record.error();
  return RecordError(slot, "its bytes were damaged when they were read first, and are not now");
}

Status BaseFile::VerifyZeros(uint64_t begin, uint64_t end) const {
  const std::string_view bytes = mapping_->bytes().substr(begin, end - begin);
  const size_t at = bytes.find_first_not_of('\0');
  if (at == bytes.npos) return Status();
  return Corrupt("gap between sections", begin + at, "it should hold zeros");
}

Status BaseFile::VerifyHead() const {
  const uint64_t copies[] = {0, header_.file_bytes - sizeof(BaseHeader)};
  for (const uint64_t offset : copies) {
    if (std::memcmp(mapping_->bytes().data() + offset, &header_, sizeof header_) == 0) continue;
    return Corrupt("header", offset, "this copy is damaged, the other one is in use");
  }
  const BaseSection* const sections[] = {&header_.function, &header_.block_checksums,
                                         &header_.starts, &header_.data};
  uint64_t end = sizeof(BaseHeader);
  for (const BaseSection* const section : sections) {
    BASALT_RETURN_IF_ERROR(VerifyZeros(end, section->offset));
    end = section->offset + section->bytes;
  }
  return Status();
}

Status BaseFile::VerifyRecord(uint64_t slot, uint64_t end) const {
  BASALT_ASSIGN_OR_RETURN(const RecordRef record, At(slot));
  const uint64_t begin = Begin(slot);
  const uint64_t record_end = begin + record.size();
  if (record_end > end || (stride_ == 0 && base::RoundUp(record_end, 8) != end)) {
    return RecordError(slot, "its " + std::to_string(record.size()) +
                                 " bytes do not fit into its " + std::to_string(end - begin));
  }
  BASALT_RETURN_IF_ERROR(VerifyZeros(header_.data.offset + record_end, header_.data.offset + end));
  const uint64_t right_slot = function_.Index(function_.HashKey(record.key()));
  if (right_slot == slot) return Status();
  return RecordError(slot, "its key belongs to slot " + std::to_string(right_slot));
}

Status BaseFile::VerifyAll(const std::function<bool(uint64_t records)>& go_on) const {
  constexpr uint64_t kReportBytes = uint64_t{4} << 20;
  BASALT_RETURN_IF_ERROR(VerifyHead());
  uint64_t end = 0;  // Of the record before.
  uint64_t next_block = 0;
  uint64_t reported = 0;
  for (uint64_t slot = 0; slot < figures_.records; ++slot) {
    const uint64_t begin = Begin(slot);
    if (begin != end) return RecordError(slot, "it does not begin where the one before ends");
    end = NextBegin(slot);
    if (end <= begin || end > figures_.data_bytes) {
      return RecordError(slot, "the next one begins before it, or after the end of the records");
    }
    for (; next_block * kBlockBytes < end; ++next_block) {
      if (VerifyBlock(next_block)) continue;
      return Corrupt("block of records", header_.data.offset + next_block * kBlockBytes,
                     kWrongChecksum);
    }
    BASALT_RETURN_IF_ERROR(VerifyRecord(slot, end));
    if (end - reported < kReportBytes) continue;
    reported = end;
    if (go_on && !go_on(slot + 1)) {
      return Status(StatusCode::kCancelled, path_ + ": stopped verifying on request");
    }
  }
  return Status();
}

}  // namespace basalt::shared_map

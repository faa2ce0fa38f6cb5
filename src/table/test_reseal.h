#pragma once

#include <cstring>
#include <string>

#include "base/hash.h"
#include "table/block.h"
#include "table/stored_block.h"
#include "table/table_format.h"

namespace basalt::table {

/// Makes every checksum of a changed table file right again, and the size in its trailer, as far as
/// its parts can be found: what reads it is then up against the change itself.
inline void ResealTable(std::string* bytes) {
  if (bytes->size() < sizeof(FileHeader) + sizeof(FileTrailer)) return;
  const auto within = [bytes](uint64_t offset, uint64_t size) {
    return offset <= bytes->size() && size <= bytes->size() - offset;
  };
  const auto put = [bytes](uint64_t offset, const auto& fields) {
    std::memcpy(bytes->data() + offset, &fields, sizeof fields);
  };
  const uint64_t trailer_offset = bytes->size() - sizeof(FileTrailer);
  auto header = FromBytes<FileHeader>(*bytes);
  auto trailer = FromBytes<FileTrailer>(*bytes, trailer_offset);
  const auto checksum = [&](uint64_t offset, uint64_t size) {
    return base::Checksum(header.file_id, offset, {bytes->data() + offset, size});
  };
  const auto reseal_blocks = [&](const SectionEntry& entry) {
    BlockBuffer buffer = BlockBuffer::Allocate(entry.size);
    std::memcpy(buffer.bytes.get(), bytes->data() + entry.offset, entry.size);
    const auto index = Block::Parse(std::move(buffer), Block::Content::kIndex);
    if (!index) return;
    for (uint32_t i = 0; i < (*index)->count(); ++i) {
      const auto handle = FromBytes<BlockHandle>((*index)->value(i));
      if (!within(handle.offset, handle.payload_bytes) ||
          !within(handle.offset + handle.payload_bytes, kBlockTrailerBytes)) {
        continue;
      }
      put(handle.offset + handle.payload_bytes + 8,
          checksum(handle.offset, handle.payload_bytes + 8));
    }
  };

  header.checksum = checksum(0, kHeaderChecksummedBytes);
  put(0, header);
  const uint64_t table_bytes = trailer.section_count * sizeof(SectionEntry);
  if (within(trailer.section_table_offset, table_bytes)) {
    for (uint64_t at = 0; at < table_bytes; at += sizeof(SectionEntry)) {
      const uint64_t entry_offset = trailer.section_table_offset + at;
      auto entry = FromBytes<SectionEntry>(*bytes, entry_offset);
      if (!within(entry.offset, entry.size)) continue;
      if (entry.kind == static_cast<uint32_t>(SectionKind::kIndex)) reseal_blocks(entry);
      entry.checksum = checksum(entry.offset, entry.size);
      put(entry_offset, entry);
    }
    trailer.section_table_checksum = checksum(trailer.section_table_offset, table_bytes);
  }
  trailer.file_bytes = bytes->size();
  put(trailer_offset, trailer);
  trailer.checksum = checksum(trailer_offset, kTrailerChecksummedBytes);
  put(trailer_offset, trailer);
}

}  // namespace basalt::table

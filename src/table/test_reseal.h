#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <utility>

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
  const auto reseal_stored = [&](uint64_t offset, uint64_t payload_bytes) {
    if (!within(offset, payload_bytes) || !within(offset + payload_bytes, kBlockTrailerBytes)) {
      return;
    }
    put(offset + payload_bytes + 8, checksum(offset, payload_bytes + 8));
  };
  // Of an index, whole or a part of one, or its root; null: there is none.
  const auto parse = [&](uint64_t offset, uint64_t size) -> std::shared_ptr<const Block> {
    if (!within(offset, size)) return nullptr;
    BlockBuffer buffer = BlockBuffer::Allocate(size);
    std::memcpy(buffer.bytes.get(), bytes->data() + offset, size);
    auto block = Block::Parse(std::move(buffer), Block::Content::kIndex);
    return block ? *block : nullptr;
  };
  const auto reseal_blocks = [&](uint64_t offset, uint64_t size) {
    const auto index = parse(offset, size);
    for (uint32_t i = 0; index != nullptr && i < index->count(); ++i) {
      const auto handle = FromBytes<BlockHandle>(index->value(i));
      reseal_stored(handle.offset, handle.payload_bytes);
    }
  };
  const auto reseal_parts = [&](uint64_t offset, uint64_t size) {
    const auto root = parse(offset, size);
    for (uint32_t i = 0; root != nullptr && i < root->count(); ++i) {
      const auto handle = FromBytes<IndexPartHandle>(root->value(i));
      reseal_blocks(handle.offset, handle.payload_bytes);
      reseal_stored(handle.offset, handle.payload_bytes);
    }
  };

  header.checksum = checksum(0, kHeaderChecksummedBytes);
  put(0, header);
  const uint64_t table_bytes = trailer.section_count * sizeof(SectionEntry);
  if (within(trailer.section_table_offset, table_bytes)) {
    const auto for_each_section = [&](const auto& visit) {
      for (uint64_t at = 0; at < table_bytes; at += sizeof(SectionEntry)) {
        const uint64_t entry_offset = trailer.section_table_offset + at;
        const auto entry = FromBytes<SectionEntry>(*bytes, entry_offset);
        if (within(entry.offset, entry.size)) visit(entry_offset, entry);
      }
    };
    for_each_section([&](uint64_t, const SectionEntry& entry) {
      const auto kind = static_cast<SectionKind>(entry.kind);
      if (kind == SectionKind::kIndex) reseal_blocks(entry.offset, entry.size);
      if (kind == SectionKind::kIndexRoot) reseal_parts(entry.offset, entry.size);
    });
    for_each_section([&](uint64_t entry_offset, SectionEntry entry) {
      entry.checksum = checksum(entry.offset, entry.size);
      put(entry_offset, entry);
    });
    trailer.section_table_checksum = checksum(trailer.section_table_offset, table_bytes);
  }
  trailer.file_bytes = bytes->size();
  put(trailer_offset, trailer);
  trailer.checksum = checksum(trailer_offset, kTrailerChecksummedBytes);
  put(trailer_offset, trailer);
}

}  // namespace basalt::table

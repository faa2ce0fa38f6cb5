#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/hash.h"
#include "phash/test_reseal.h"
#include "shared_map/base_format.h"

namespace basalt::shared_map {

/// Makes every checksum of a changed base file right again, its size, and the header's copy, as far
/// as its sections can be found: what reads it is then up against the change itself.
inline void ResealBase(std::string* bytes) {
  if (bytes->size() < kHeadBytes + sizeof(BaseHeader)) return;
  BaseHeader header;
  std::memcpy(&header, bytes->data(), sizeof header);
  const auto within = [bytes](const BaseSection& section) {
    return section.offset >= kHeadBytes && section.offset <= bytes->size() - sizeof(BaseHeader) &&
           section.bytes <= bytes->size() - sizeof(BaseHeader) - section.offset;
  };
  const auto checksum = [&](uint64_t offset, uint64_t size) {
    return base::Checksum(header.file_id, offset, {bytes->data() + offset, size});
  };
  if (within(header.function)) {
    phash::ResealFunction(bytes->data() + header.function.offset, header.function.bytes);
  }
  if (within(header.data) && within(header.block_checksums)) {
    const uint64_t blocks = std::min((header.data.bytes + kBlockBytes - 1) / kBlockBytes,
                                     header.block_checksums.bytes / 8);
    for (uint64_t block = 0; block < blocks; ++block) {
      const uint64_t begin = block * kBlockBytes;
      const uint64_t sum =
          checksum(header.data.offset + begin, std::min(kBlockBytes, header.data.bytes - begin));
      std::memcpy(bytes->data() + header.block_checksums.offset + 8 * block, &sum, sizeof sum);
    }
  }
  for (BaseSection* const section : {&header.function, &header.block_checksums, &header.starts}) {
    if (within(*section)) section->checksum = checksum(section->offset, section->bytes);
  }
  header.file_bytes = bytes->size();
  std::memcpy(bytes->data(), &header, sizeof header);
  header.checksum = checksum(0, kBaseChecksummedBytes);
  std::memcpy(bytes->data(), &header, sizeof header);
  std::memcpy(bytes->data() + bytes->size() - sizeof header, &header, sizeof header);
}

}  // namespace basalt::shared_map

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/coding.h"
#include "base/hash.h"
#include "vector/hnsw_checkpoint.h"

namespace basalt::vector {

/// Makes the checksums of a changed checkpoint right again, as far as its lengths lead: what reads
/// it is then up against the change itself.
inline void ResealCheckpoint(std::string* image) {
  if (image->size() < kCheckpointHeadBytes) return;
  const auto id = base::Load<uint64_t>(image->data() + 16);
  size_t begin = 0;
  size_t size = kCheckpointHeadBytes + base::Load<uint32_t>(image->data() + 36);
  while (size <= image->size() - begin && image->size() - begin - size >= 8) {
    base::Store(image->data() + begin + size,
                base::Checksum(id, begin, {image->data() + begin, size}));
    begin += size + 8;
    if (image->size() - begin < 4) return;
    size = 4 + size_t{base::Load<uint32_t>(image->data() + begin)};
  }
}

}  // namespace basalt::vector

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/status.h"
#include "base/coding.h"
#include "base/internal_key.h"

// Many range deletes as a manifest stores them: in blocks, which are compressed.
//
// Layout of a block
//
//   0  4  number of range deletes
//   4  4  bytes of their entries, at most 1 MiB
//   8  4  bytes stored. As many as the entries have: these are the entries. Fewer: a frame of
//         Zstandard, at most kBlockRatioMax times smaller
//  12     stored
//
// An entry is one of the manifest (manifest.h). Entries ascend by keyspace within a block.

namespace basalt::db {

/// A range delete that has been flushed.
struct RangeDelete {
  base::SequenceNumber sequence = 0;
  std::string begin;
  std::string end;  ///< Exclusive.
};

/// A range delete by keys as users know them.
struct ManifestRangeDelete {
  uint32_t keyspace = 0;
  RangeDelete range;
};

/// Appends an entry of a manifest.
void AppendRangeDelete(uint32_t keyspace, base::SequenceNumber sequence, std::string_view begin,
                       std::string_view end, std::string* out);

/// Reads so many entries. False: they are malformed, or do not ascend by keyspace.
bool ReadRangeDeleteEntries(base::Decoder* in, uint64_t count,
                            std::vector<ManifestRangeDelete>* out);

/// Blocks of some range deletes of a tree. Immutable.
class RangeDeleteBlocks {
 public:
  /// `ranges`: by tree keys, ascending by their beginning. Throws std::bad_alloc.
  RangeDeleteBlocks(std::span<const RangeDelete> ranges, bool is_shared);

  uint32_t count() const noexcept { return count_; }
  std::string_view bytes() const noexcept { return bytes_; }

 private:
  void AppendBlock(uint32_t ranges, std::string_view entries);

  uint32_t count_ = 0;
  std::string bytes_;
};

/// Reads the next block, and appends its range deletes to `out`. False: it is malformed. Throws
/// std::bad_alloc.
bool ReadRangeDeleteBlock(base::Decoder* in, std::vector<ManifestRangeDelete>* out);

}  // namespace basalt::db

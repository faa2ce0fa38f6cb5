#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "basalt/status.h"
#include "vector/code_book.h"
#include "vector/graph_nodes.h"

// An index as bytes: what it would take long to compute anew.
//
//   head 64 | code book | checksum 8 | block | block | ...
//
//   head     8  magic "BasaltHn"
//            4  version, 1
//            4  features that a reader must know, none yet
//            8  id, which is part of every checksum
//            4  slots
//            4  entry, kNoSlot: there is none
//            4  level of the entry
//            4  bytes of the code book (code_book.h)
//            24 zeros
//   block    4  bytes of the slots
//               1,024 slots, the last block fewer
//            8  checksum of both
//   slot     1  state (SlotState, but not kCondemned)
//               a free slot has no more
//               the code
//            4  next in its ring
//               of a node, for each level from 0 to the slot's: 1 byte, how many links; 4 each
//
// Checksums are base::Checksum of the bytes before them, from where the last one ended, bound to
// the id and the offset. Integers are little-endian. Nothing follows the last block.
//
// What is read is believed only when its checksums are right and AuditGraph finds no fault, so that
// links lead to nodes, and to all of them.

namespace basalt::vector {

using CheckpointSink = std::function<Status(std::string_view)>;

inline constexpr char kCheckpointMagic[8] = {'B', 'a', 's', 'a', 'l', 't', 'H', 'n'};
inline constexpr uint32_t kCheckpointVersion = 1;
inline constexpr uint32_t kCheckpointBlockSlots = 1'024;
inline constexpr size_t kCheckpointHeadBytes = 64;

/// Writes the slots below `slots`, while others may be inserted and these be removed; no slot below
/// is given anew and none is condemned. Links to slots above are left out: what was inserted later
/// are leaves of the tree, or behind such. Throws std::bad_alloc. An error is the sink's.
Status WriteCheckpoint(const GraphNodes& nodes, const CodeBook& book, uint32_t slots,
                       GraphNodes::Entry entry, uint64_t id, const CheckpointSink& sink);

/// Reads what WriteCheckpoint wrote, or any other bytes.
class CheckpointReader {
 public:
  explicit CheckpointReader(std::string_view bytes) noexcept : bytes_(bytes), rest_(bytes) {}

  /// Corruption or Unsupported: the message says where. Comes first.
  Result<CodeBook> ReadBook();
  /// Fills `nodes`, which were made from the book and are empty. Throws std::bad_alloc.
  Status ReadNodes(GraphNodes* nodes);

 private:
  Status Corrupt(std::string_view what) const;
  Status TakeChecksum(const char* begin);
  Status ReadBlock(uint32_t begin, uint32_t end, GraphNodes* nodes);
  Status ReadSlot(uint32_t slot, std::string_view* block, GraphNodes* nodes);

  std::string_view bytes_;
  std::string_view rest_;
  uint64_t id_ = 0;
  uint32_t slots_ = 0;
  GraphNodes::Entry entry_;
};

}  // namespace basalt::vector

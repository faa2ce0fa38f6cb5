#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "text/postings.h"

namespace basalt::text {

/// Several cursors over postings of one term as one: of postings of the same document, the newest
/// hides the others. O(children) a run of postings of one child. A block of it ends where a child's
/// block ends, so that positions are read from the children's blocks, and only when they are asked
/// for.
class MergedCursor final : public PostingsCursor {
 public:
  enum class Removals : uint8_t {
    kHide,  ///< For reads, and for merges of all segments of a term.
    kKeep,  ///< For merges above older segments.
  };
  /// At the first posting. `newest_first` is not empty.
  explicit MergedCursor(std::vector<std::unique_ptr<PostingsCursor>> newest_first,
                        Removals removals = Removals::kHide);

 private:
  void DoLoadBlock(uint64_t target) override;
  void DoReadPositions(size_t at, std::vector<uint32_t>* positions) override;
  struct Turn {
    size_t newest = 0;
    uint64_t document = kNoDocument;
    uint64_t others = kNoDocument;
  };
  bool FillBlock();
  Turn FindNewest() const noexcept;
  void Take(size_t i) noexcept;
  bool Step(PostingsCursor* child);
  bool TakeShared(size_t newest);
  bool TakeRun(size_t i, uint64_t limit);

  std::vector<std::unique_ptr<PostingsCursor>> children_;
  Removals removals_;
  uint64_t resume_ = 0;  // All documents below are done, though a child may stand at one.
  // Where the positions of posting i are: a child, and the place in its block.
  std::array<uint32_t, kPostingsBlock> child_of_;
  std::array<uint8_t, kPostingsBlock> place_of_;
};

/// The cursor for reading segments of one term, the newest first. They outlive it.
std::unique_ptr<PostingsCursor> OpenSegments(const std::vector<std::string_view>& newest_first);

/// One segment in place of several. `is_oldest`: there are no older ones, so that removals go. An
/// empty string: nothing is left. Corruption: of one of them.
Result<std::string> MergeSegments(const std::vector<std::string_view>& newest_first,
                                  bool is_oldest);

}  // namespace basalt::text

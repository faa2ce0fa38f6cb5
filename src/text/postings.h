#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/status.h"

// The postings of one term: the documents that hold it, ascending, and where. They are kept in
// segments, byte strings of any number of postings, which are immutable. A change appends a small
// segment with the postings of the documents that changed; of several segments the newest that
// knows a document decides (merged_postings.h). A document that lost the term has a posting without
// positions there, a removal. Segments are merged now and then, as those of an LSM tree.
//
// A posting carries the length of its document, so that scoring looks nowhere else. Whoever changes
// a document writes the postings of all its terms anew.
//
// A segment, of version 1. Integers are varints (base/coding.h) where no size is given.
//
//   size  header
//      1  version, 1
//      .  postings, at least 1
//      .  removals among them
//      .  greatest frequency
//      .  least length of the documents that are not removed; 0: there are none
//
//         blocks of 1 to 128 postings
//      .  bytes of the block behind this field
//      .  its last document, less the last one of the block before (the first block: less 0)
//      1  postings less 1
//      1  width of the document numbers, 0 to 64 bits
//      1  width of the frequencies, 0 to 32
//      1  width of the lengths, 0 to 32
//      1  width of the positions, 0 to 32; 0: there are none
//      .  its first document, less the last one of the block before and 1 (the first block: less 0)
//      .  least length in it; 0 if there are only removals
//         then numbers of these widths (phash/packed_bits.h), each array from a whole byte on:
//         the other documents, each less the one before and 1; frequencies; lengths, each less the
//         least (0 for a removal); positions, those of one posting after those of another: the
//         first, then each less the one before and 1
//
// A scan decodes documents, frequencies and lengths of a block at once, some 4 ns a posting; a seek
// passes blocks by their first two fields; positions are read where a phrase asks for them.

namespace basalt::text {

inline constexpr size_t kPostingsBlock = 128;
/// Behind the last document; no document has this number.
inline constexpr uint64_t kNoDocument = UINT64_MAX;

/// What a term is to one document. `positions` ascend; none: the document does not hold the term
/// any more.
struct Posting {
  uint64_t document = 0;
  uint32_t length = 0;  ///< Tokens of the document; 0 for a removal.
  std::span<const uint32_t> positions{};
};

/// Writes a segment.
class PostingsBuilder {
 public:
  /// Documents ascend, below kNoDocument (else a failed check).
  void Add(const Posting& posting);

  bool empty() const noexcept { return count_ == 0; }
  /// About what Finish would give now.
  size_t byte_size() const noexcept { return blocks_.size() + 16 * pending_.size(); }
  /// The segment of what was added, and begins a new one. Not when empty().
  std::string Finish();

 private:
  struct Pending {
    uint64_t document;
    uint32_t length;
    uint32_t frequency;
  };
  void WriteBlock();

  std::string blocks_;
  uint64_t count_ = 0;
  uint64_t removals_ = 0;
  uint32_t frequency_max_ = 0;
  uint32_t length_min_ = UINT32_MAX;
  uint64_t last_document_ = 0;  // of the last block
  std::vector<Pending> pending_;
  std::vector<uint32_t> pending_positions_;  // the differences that are written
};

/// Walks postings, a block at a time. One thread at a time.
class PostingsCursor {
 public:
  virtual ~PostingsCursor() = default;
  PostingsCursor(const PostingsCursor&) = delete;
  PostingsCursor& operator=(const PostingsCursor&) = delete;

  /// The document of the present posting; kNoDocument: beyond the last one, or after an error.
  uint64_t document() const noexcept { return at_ < count_ ? documents_[at_] : kNoDocument; }
  /// Of the present posting. A frequency of 0 is a removal.
  uint32_t frequency() const noexcept { return frequencies_[at_]; }
  uint32_t length() const noexcept { return lengths_[at_]; }
  void ReadPositions(std::vector<uint32_t>* positions) { DoReadPositions(at_, positions); }

  /// Nothing beyond the last posting.
  void Next() {
    if (++at_ < count_ || document_max_ == kNoDocument) return;
    LoadBlock(document_max_ + 1);
  }
  /// To the first posting from `target` on, if that lies ahead.
  void Seek(uint64_t target);

  /// No posting has a greater frequency, no removal aside a smaller length.
  uint32_t frequency_max() const noexcept { return frequency_max_; }
  uint32_t length_min() const noexcept { return length_min_; }

  /// Ok, or the error that ended the walk.
  const Status& status() const noexcept { return status_; }

 protected:
  PostingsCursor() = default;

  /// Fills in the first block that has a document from `target` on, and sets `count_`. Without one,
  /// or after an error, `count_` is 0. `document_max_` is set by the caller.
  virtual void DoLoadBlock(uint64_t target) = 0;
  /// Of posting `at` of the block.
  virtual void DoReadPositions(size_t at, std::vector<uint32_t>* positions) = 0;

  void LoadBlock(uint64_t target);
  /// Ends the walk.
  void Fail(Status error) noexcept;

  friend class MergedCursor;

  std::array<uint64_t, kPostingsBlock> documents_;
  std::array<uint32_t, kPostingsBlock> frequencies_;
  std::array<uint32_t, kPostingsBlock> lengths_;
  size_t at_ = 0;
  size_t count_ = 0;
  uint64_t document_max_ = 0;  // of the block; kNoDocument: there is none behind it
  uint32_t frequency_max_ = 0;
  uint32_t length_min_ = 0;
  Status status_;
};

/// The postings of one segment, removals included. Corruption, with the offset, ends the walk at
/// the first malformed block.
class SegmentCursor final : public PostingsCursor {
 public:
  /// At the first posting. `segment` outlives the cursor.
  explicit SegmentCursor(std::string_view segment);

  uint64_t postings() const noexcept { return postings_; }
  uint64_t removals() const noexcept { return removals_; }

 private:
  struct BlockHead {
    uint64_t document_max;
    uint64_t document_min;
    size_t count;
    uint32_t document_width;
    uint32_t frequency_width;
    uint32_t length_width;
    uint32_t position_width;
    uint32_t length_min;
  };
  void ReadHeader();
  void DoLoadBlock(uint64_t target) override;
  void DoReadPositions(size_t at, std::vector<uint32_t>* positions) override;
  void Decode(std::string_view block);
  bool DecodeDocuments(const BlockHead& head, const char* packed);
  bool DecodeFrequenciesAndLengths(const BlockHead& head, const char* packed);
  void Malformed(std::string_view what);

  std::string_view segment_;
  size_t next_block_ = 0;
  uint64_t block_before_ = 0;  // last document of the block before next_block_
  bool is_first_ = true;       // next_block_ is the first one
  uint64_t postings_ = 0;
  uint64_t removals_ = 0;
  // Positions of the present block.
  const char* positions_ = nullptr;
  uint32_t position_width_ = 0;
  std::array<uint64_t, kPostingsBlock + 1> position_begins_;
  std::string padded_;  // the last block, with room behind it
};

}  // namespace basalt::text

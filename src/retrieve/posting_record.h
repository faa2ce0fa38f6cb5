#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/status.h"

// The records of a TextIndex, in one keyspace. A key begins with a tag; terms are fields of
// basalt/key.h, other integers in keys are big-endian.
//
//   key                        value
//   'f'                        u8 version, 1; then the stemmer's name
//   'c' 'd', 'c' 't'           counters (MergeOperator::kAdd): documents; tokens of all of them
//   'd' u64 document           varint tokens; then its terms: varint length, bytes
//   'n' term                   counter: the low 40 bits count the documents that hold the term, the
//                              high 24 bits the 'p' records written since the term was packed
//   'p' term, u64 document     a posting that is not packed: varint tokens of the document, then
//                              positions: the first, then each less the one before and 1. Empty: a
//                              removal, the document has lost the term.
//   'm' term, u64 document     a segment of packed postings (text/postings.h), by its last
//   document.
//                              It has no removals.
//
// The 'p' record of a document hides what a segment says of it. A removal is written only if a
// segment may hold the document; otherwise the 'p' record is deleted. Counters are merged and not
// read, so transactions that write different documents do not conflict.

namespace basalt::retrieve {

/// A posting that is not packed. Without positions it is a removal.
struct PostingRecord {
  uint32_t length = 0;
  std::vector<uint32_t> positions{};  ///< Ascending.

  friend bool operator==(const PostingRecord&, const PostingRecord&) = default;
};
std::string EncodePosting(const PostingRecord& posting);
/// Corruption: the bytes are no posting.
Result<PostingRecord> DecodePosting(std::string_view bytes);

/// The number of a document's tokens, and its terms, each once, ascending.
struct DocumentRecord {
  uint64_t length = 0;
  std::vector<std::string> terms{};

  friend bool operator==(const DocumentRecord&, const DocumentRecord&) = default;
};
std::string EncodeDocument(const DocumentRecord& document);
/// Corruption: the bytes are no document record.
Result<DocumentRecord> DecodeDocument(std::string_view bytes);

/// The value of an 'n' record. Operands of both parts can be added in one merge.
struct TermCounter {
  uint64_t documents = 0;
  uint64_t changes = 0;  ///< Modulo 2^24.

  friend bool operator==(const TermCounter&, const TermCounter&) = default;
};
/// What a merge adds.
std::string TermCounterOperand(int64_t documents, int64_t changes);
/// Corruption: the value has not 8 bytes.
Result<TermCounter> DecodeTermCounter(std::string_view bytes);

// Keys.
inline constexpr std::string_view kFormatKey = "f";
inline constexpr std::string_view kDocumentsKey = "cd";
inline constexpr std::string_view kTokensKey = "ct";
inline constexpr char kTermTag = 'n';
inline constexpr char kPostingTag = 'p';
inline constexpr char kSegmentTag = 'm';
std::string DocumentKey(uint64_t document);
std::string TermKey(char tag, std::string_view term);
std::string PostingKey(char tag, std::string_view term, uint64_t document);
/// The document at the end of a key that begins with the TermKey `prefix`. Corruption: there is
/// none.
Result<uint64_t> DocumentOf(std::string_view key, std::string_view prefix);

}  // namespace basalt::retrieve

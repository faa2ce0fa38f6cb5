#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/postings_source.h"
#include "text/tokenizer.h"

namespace basalt::text {

/// Postings in memory. A term has segments of postings, the newest at the end; each change of a
/// document appends one of a single posting to each of its terms, and segments of similar size are
/// merged, so that a term with n postings has O(log n) segments and each posting is merged O(log n)
/// times. One thread at a time.
class MemoryIndex final : public PostingsSource {
 public:
  /// `tokenizer` divides the texts; queries are parsed by one alike.
  explicit MemoryIndex(std::unique_ptr<Tokenizer> tokenizer) noexcept
      : tokenizer_(std::move(tokenizer)) {}

  /// Adds a document, or replaces it. Below kNoDocument. Keeps no copy of the text.
  void Put(uint64_t document, std::string_view text);
  /// False: it was not there.
  bool Remove(uint64_t document);

  CollectionStats GetStats() const override { return stats_; }
  Result<TermPostings> Find(std::string_view term) override;
  Result<std::vector<std::string>> TermsWithPrefix(std::string_view prefix, size_t limit) override;

 private:
  struct Segment {
    std::string bytes;
    uint64_t postings = 0;
  };
  struct TermEntry {
    uint64_t document_frequency = 0;
    std::vector<Segment> segments{};  // oldest first
  };
  using Terms = std::map<std::string, TermEntry, std::less<>>;
  struct DocumentEntry {
    uint64_t length = 0;
    std::vector<Terms::iterator> terms{};
  };
  void Append(const Posting& posting, Terms::iterator term);
  static void MergeNewest(TermEntry* entry);
  void Unlink(const DocumentEntry& entry);

  std::unique_ptr<Tokenizer> tokenizer_;
  Terms terms_;
  std::unordered_map<uint64_t, DocumentEntry> documents_;
  CollectionStats stats_;
};

}  // namespace basalt::text

#include "text/memory_index.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "text/merged_postings.h"

namespace basalt::text {

void MemoryIndex::Put(uint64_t document, std::string_view text) {
  std::map<std::string, std::vector<uint32_t>, std::less<>> positions;
  uint32_t length = 0;
  for (tokenizer_->Reset(text); tokenizer_->Next(); ++length) {
    const Token& token = tokenizer_->token();
    auto found = positions.find(token.term);
    if (found == positions.end()) found = positions.emplace(token.term, 0).first;
    found->second.push_back(token.position);
  }

  const auto [place, is_new] = documents_.try_emplace(document);
  DocumentEntry& entry = place->second;
  const DocumentEntry old = std::exchange(entry, {.length = length});
  for (const auto& [term, places] : positions) {
    const auto at = terms_.try_emplace(term).first;
    Append({document, length, places}, at);
    ++at->second.document_frequency;
    entry.terms.push_back(at);
  }
  Unlink(old);
  // Of the terms that it had, the others get removals. Both lists are in the order of the terms.
  const auto comes_before = [](Terms::iterator a, Terms::iterator b) {
    return a->first < b->first;
  };
  std::vector<Terms::iterator> lost;
  std::set_difference(old.terms.begin(), old.terms.end(), entry.terms.begin(), entry.terms.end(),
                      std::back_inserter(lost), comes_before);
  for (const Terms::iterator term : lost) Append({.document = document}, term);
  if (is_new) ++stats_.documents;
  stats_.total_length += length;
}

bool MemoryIndex::Remove(uint64_t document) {
  const auto found = documents_.find(document);
  if (found == documents_.end()) return false;
  Unlink(found->second);
  for (const Terms::iterator term : found->second.terms) Append({.document = document}, term);
  documents_.erase(found);
  --stats_.documents;
  return true;
}

/// Takes out of the statistics what a document had.
void MemoryIndex::Unlink(const DocumentEntry& entry) {
  stats_.total_length -= entry.length;
  for (const Terms::iterator term : entry.terms) --term->second.document_frequency;
}

/// Forgets the term if nothing is left of it.
void MemoryIndex::Append(const Posting& posting, Terms::iterator term) {
  PostingsBuilder builder;
  builder.Add(posting);
  std::vector<Segment>& segments = term->second.segments;
  segments.push_back({builder.Finish(), 1});
  while (segments.size() > 1 &&
         segments[segments.size() - 2].postings <= 2 * segments.back().postings) {
    MergeNewest(&term->second);
  }
  if (segments.empty()) terms_.erase(term);
}

void MemoryIndex::MergeNewest(TermEntry* entry) {
  std::vector<Segment>& segments = entry->segments;
  const Segment newest = std::move(segments.back());
  segments.pop_back();
  Segment& older = segments.back();
  auto merged = MergeSegments({newest.bytes, older.bytes}, segments.size() == 1);
  BASALT_CHECK(merged.has_value());  // Both are our own.
  if (merged->empty()) {
    segments.pop_back();
    return;
  }
  older.bytes = *std::move(merged);
  older.postings = SegmentCursor(older.bytes).postings();
}

Result<TermPostings> MemoryIndex::Find(std::string_view term) {
  const auto found = terms_.find(term);
  if (found == terms_.end() || found->second.document_frequency == 0) return TermPostings();
  std::vector<std::string_view> segments;
  for (const Segment& segment : found->second.segments) segments.push_back(segment.bytes);
  std::reverse(segments.begin(), segments.end());
  return TermPostings{found->second.document_frequency, OpenSegments(segments)};
}

Result<std::vector<std::string>> MemoryIndex::TermsWithPrefix(std::string_view prefix,
                                                              size_t limit) {
  std::vector<std::string> terms;
  for (auto at = terms_.lower_bound(prefix); at != terms_.end(); ++at) {
    if (terms.size() == limit || !at->first.starts_with(prefix)) break;
    if (at->second.document_frequency > 0) terms.push_back(at->first);
  }
  return terms;
}

}  // namespace basalt::text

#include "retrieve/store_postings.h"

#include "basalt/key.h"
#include "base/check.h"
#include "base/coding.h"
#include "retrieve/posting_record.h"
#include "text/merged_postings.h"

namespace basalt::retrieve {

Result<std::unique_ptr<StorePostings>> StorePostings::Open(const Store* store,
                                                           KeyspaceId keyspace) {
  BASALT_ASSIGN_OR_RETURN(Snapshot snapshot, store->GetSnapshot());
  std::unique_ptr<StorePostings> source(new StorePostings(store, keyspace, std::move(snapshot)));
  BASALT_ASSIGN_OR_RETURN(source->stats_.documents, source->Counter(kDocumentsKey));
  BASALT_ASSIGN_OR_RETURN(source->stats_.total_length, source->Counter(kTokensKey));
  return source;
}

Result<uint64_t> StorePostings::Counter(std::string_view key) const {
  BASALT_ASSIGN_OR_RETURN(const MaybeValue found,
                          store_->Get(key, {.snapshot = &snapshot_, .keyspace = keyspace_}));
  if (!found) return 0;
  if (found->size() == sizeof(uint64_t)) return base::Load<uint64_t>(found->view().data());
  return Status(
      StatusCode::kCorruption,
      "a counter of a text index is malformed; drop its keyspace and put the documents again");
}

Result<text::TermPostings> StorePostings::Find(std::string_view term) {
  text::TermPostings postings;
  BASALT_ASSIGN_OR_RETURN(
      const MaybeValue counter,
      store_->Get(TermKey(kTermTag, term), {.snapshot = &snapshot_, .keyspace = keyspace_}));
  if (!counter) return postings;
  BASALT_ASSIGN_OR_RETURN(const TermCounter count, DecodeTermCounter(counter->view()));
  if (count.documents == 0) return postings;
  postings.document_frequency = count.documents;

  std::vector<std::string_view> newest_first;
  BASALT_ASSIGN_OR_RETURN(std::string unpacked, ReadUnpacked(term));
  if (!unpacked.empty()) newest_first.push_back(segments_.emplace_back(std::move(unpacked)));
  const std::string prefix = TermKey(kSegmentTag, term);
  const auto packed =
      store_->NewIterator({.snapshot = &snapshot_, .keyspace = keyspace_, .prefix = prefix});
  for (packed->SeekToFirst(); packed->Valid(); packed->Next()) {
    newest_first.push_back(segments_.emplace_back(packed->value()));
  }
  BASALT_RETURN_IF_ERROR(packed->status());
  if (!newest_first.empty()) postings.cursor = text::OpenSegments(newest_first);
  return postings;
}

Result<std::string> StorePostings::ReadUnpacked(std::string_view term) const {
  const std::string prefix = TermKey(kPostingTag, term);
  text::PostingsBuilder builder;
  const auto it =
      store_->NewIterator({.snapshot = &snapshot_, .keyspace = keyspace_, .prefix = prefix});
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    BASALT_ASSIGN_OR_RETURN(const uint64_t document, DocumentOf(it->key(), prefix));
    if (document == text::kNoDocument) {
      return Status(StatusCode::kCorruption, "a text index has a posting of document 2^64 - 1");
    }
    BASALT_ASSIGN_OR_RETURN(const PostingRecord posting, DecodePosting(it->value()));
    builder.Add({document, posting.length, posting.positions});
  }
  BASALT_RETURN_IF_ERROR(it->status());
  return builder.empty() ? std::string() : builder.Finish();
}

Result<std::vector<std::string>> StorePostings::TermsWithPrefix(std::string_view prefix,
                                                                size_t limit) {
  std::string begin(1, kTermTag);
  KeyWriter(&begin).StringPrefix(prefix);
  const KeyRange range = PrefixRange(begin);
  const auto it = store_->NewIterator(
      {.snapshot = &snapshot_, .keyspace = keyspace_, .lower = range.begin, .upper = range.end});
  std::vector<std::string> terms;
  for (it->SeekToFirst(); it->Valid() && terms.size() < limit; it->Next()) {
    BASALT_ASSIGN_OR_RETURN(const TermCounter count, DecodeTermCounter(it->value()));
    if (count.documents == 0) continue;
    KeyReader in(it->key().substr(1));
    std::string term;
    in.ReadString(&term);
    BASALT_RETURN_IF_ERROR(in.Finish());
    terms.push_back(std::move(term));
  }
  BASALT_RETURN_IF_ERROR(it->status());
  return terms;
}

}  // namespace basalt::retrieve

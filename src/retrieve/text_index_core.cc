#include "retrieve/text_index_core.h"

#include <map>
#include <utility>

#include "basalt/key.h"
#include "base/check.h"
#include "base/coding.h"
#include "retrieve/posting_record.h"
#include "text/postings.h"
#include "text/stemmer.h"

namespace basalt::retrieve {
namespace {

constexpr char kFormatVersion = 1;

using PostingsByTerm = std::map<std::string, PostingRecord, std::less<>>;

/// The postings of a text, with the number of its tokens in each.
PostingsByTerm PostingsOf(std::string_view text, text::Tokenizer* tokenizer, uint32_t* length) {
  PostingsByTerm postings;
  *length = 0;
  for (tokenizer->Reset(text); tokenizer->Next(); ++*length) {
    const text::Token& token = tokenizer->token();
    auto found = postings.find(token.term);
    if (found == postings.end()) found = postings.try_emplace(std::string(token.term)).first;
    found->second.positions.push_back(token.position);
  }
  for (auto& [term, posting] : postings) posting.length = *length;
  return postings;
}

}  // namespace

Result<std::unique_ptr<TextIndexCore>> TextIndexCore::Open(Store* store,
                                                           const TextIndexOptions& options) {
  const Capabilities can = store->capabilities();
  if (!can.transactions || !can.ordered || !can.keyspaces || !can.snapshots || !can.merges) {
    return Status(StatusCode::kUnsupported,
                  "a text index needs a store with transactions, order, snapshots, keyspaces and "
                  "merges: use a DB or a MemTable");
  }
  BASALT_ASSIGN_OR_RETURN(const KeyspaceId keyspace, options.create_if_missing
                                                         ? store->OpenOrCreateKeyspace(options.name)
                                                         : store->OpenKeyspace(options.name));
  std::unique_ptr<TextIndexCore> core(new TextIndexCore(store, keyspace));
  BASALT_RETURN_IF_ERROR(core->ReadFormat(options));
  return core;
}

/// Reads the format and the stemmer, or writes them.
Status TextIndexCore::ReadFormat(const TextIndexOptions& options) {
  stemmer_ = options.stemmer.value_or("");
  BASALT_RETURN_IF_ERROR(NewTokenizer().status());  // There is such a stemmer.
  BASALT_ASSIGN_OR_RETURN(MaybeValue found, store_->Get(kFormatKey, {.keyspace = keyspace_}));
  if (!found && options.create_if_missing) {
    const auto put =
        store_->PutIfAbsent(kFormatKey, kFormatVersion + stemmer_, {.keyspace = keyspace_});
    if (!put) return put.error();
    BASALT_ASSIGN_OR_RETURN(found, store_->Get(kFormatKey, {.keyspace = keyspace_}));
  }
  if (!found) return Status(StatusCode::kNotFound, "the keyspace holds no text index");
  if (!found->view().starts_with(kFormatVersion)) {
    return Status(StatusCode::kUnsupported,
                  "the text index has a format that this version does not know: use a newer one");
  }
  const std::string stored(found->view().substr(1));
  if (options.stemmer && *options.stemmer != stored) {
    return Status(StatusCode::kInvalidArgument, "the text index was made with the stemmer '" +
                                                    stored + "' and cannot be opened with '" +
                                                    *options.stemmer + "'");
  }
  stemmer_ = stored;
  return NewTokenizer().status();
}

Result<std::unique_ptr<text::Tokenizer>> TextIndexCore::NewTokenizer() const {
  if (stemmer_.empty()) return std::make_unique<text::Tokenizer>();
  BASALT_ASSIGN_OR_RETURN(std::unique_ptr<text::Stemmer> stemmer, text::Stemmer::Create(stemmer_));
  return std::make_unique<text::Tokenizer>(std::move(stemmer));
}

Status TextIndexCore::AddToCounter(Transaction& tx, std::string_view key, int64_t amount) const {
  std::string operand;
  base::Append(&operand, static_cast<uint64_t>(amount));
  return tx.Merge(key, MergeOperator::kAdd, operand, {.keyspace = keyspace_});
}

Status TextIndexCore::CountChange(Transaction& tx, const std::string& term, int64_t documents) {
  packer_.Touch(term);
  return tx.Merge(TermKey(kTermTag, term), MergeOperator::kAdd, TermCounterOperand(documents, 1),
                  {.keyspace = keyspace_});
}

Status TextIndexCore::Put(Transaction& tx, uint64_t document, std::string_view text) {
  if (document >= text::kNoDocument) {
    return Status(StatusCode::kInvalidArgument, "2^64 - 1 cannot be the number of a document");
  }
  BASALT_ASSIGN_OR_RETURN(const std::unique_ptr<text::Tokenizer> tokenizer, NewTokenizer());
  uint32_t length = 0;
  const PostingsByTerm postings = PostingsOf(text, tokenizer.get(), &length);
  BASALT_RETURN_IF_ERROR(Remove(tx, document).status());
  DocumentRecord record{.length = length};
  for (const auto& [term, posting] : postings) {
    BASALT_RETURN_IF_ERROR(tx.Put(PostingKey(kPostingTag, term, document), EncodePosting(posting),
                                  {.keyspace = keyspace_}));
    BASALT_RETURN_IF_ERROR(CountChange(tx, term, 1));
    record.terms.push_back(term);
  }
  BASALT_RETURN_IF_ERROR(AddToCounter(tx, kDocumentsKey, 1));
  BASALT_RETURN_IF_ERROR(AddToCounter(tx, kTokensKey, length));
  return tx.Put(DocumentKey(document), EncodeDocument(record), {.keyspace = keyspace_});
}

Result<bool> TextIndexCore::Remove(Transaction& tx, uint64_t document) {
  const std::string key = DocumentKey(document);
  BASALT_ASSIGN_OR_RETURN(const MaybeValue found, tx.Get(key, {.keyspace = keyspace_}));
  if (!found) return false;
  BASALT_ASSIGN_OR_RETURN(const DocumentRecord record, DecodeDocument(found->view()));
  for (const std::string& term : record.terms) {
    BASALT_RETURN_IF_ERROR(RemovePosting(tx, term, document));
    BASALT_RETURN_IF_ERROR(CountChange(tx, term, -1));
  }
  BASALT_RETURN_IF_ERROR(AddToCounter(tx, kDocumentsKey, -1));
  BASALT_RETURN_IF_ERROR(AddToCounter(tx, kTokensKey, -static_cast<int64_t>(record.length)));
  BASALT_RETURN_IF_ERROR(tx.Delete(key, {.keyspace = keyspace_}));
  return true;
}

/// The segment that may hold the document is the first one that ends at or behind it. The read is
/// tracked, so that a packing which adds one meanwhile is a conflict.
Status TextIndexCore::RemovePosting(Transaction& tx, const std::string& term, uint64_t document) {
  const std::string segment = PostingKey(kSegmentTag, term, document);
  const KeyRange range = PrefixRange(TermKey(kSegmentTag, term));
  const auto it = tx.NewIterator(
      {.keyspace = keyspace_, .lower = segment, .upper = range.end, .keys_only = true});
  it->SeekToFirst();
  BASALT_RETURN_IF_ERROR(it->status());
  const std::string key = PostingKey(kPostingTag, term, document);
  if (it->Valid()) return tx.Put(key, "", {.keyspace = keyspace_});
  return tx.Delete(key, {.keyspace = keyspace_});
}

}  // namespace basalt::retrieve

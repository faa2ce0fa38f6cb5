#include "basalt/text_index.h"

#include <utility>

#include "base/check.h"
#include "base/out_of_memory.h"
#include "retrieve/store_postings.h"
#include "retrieve/text_index_core.h"
#include "text/query.h"
#include "text/scorer.h"

namespace basalt {
namespace {

/// The change is committed, and an error would say that it is not. Terms that could not be packed
/// are packed by a later call; MergePostings reports what fails.
void PackAfterCommit(retrieve::TextIndexCore* core) {
  (void)base::OrOutOfMemory([&] { return core->packer().PackDue(); });
}

}  // namespace

TextIndex::TextIndex(std::unique_ptr<retrieve::TextIndexCore> core) : core_(std::move(core)) {}
TextIndex::~TextIndex() = default;

Result<std::unique_ptr<TextIndex>> TextIndex::Open(Store* store, const TextIndexOptions& options) {
  return base::OrOutOfMemory([&]() -> Result<std::unique_ptr<TextIndex>> {
    BASALT_ASSIGN_OR_RETURN(std::unique_ptr<retrieve::TextIndexCore> core,
                            retrieve::TextIndexCore::Open(store, options));
    return std::unique_ptr<TextIndex>(new TextIndex(std::move(core)));
  });
}

Status TextIndex::Put(Transaction& tx, uint64_t document, std::string_view text) {
  return base::OrOutOfMemory([&] { return core_->Put(tx, document, text); });
}
Result<bool> TextIndex::Remove(Transaction& tx, uint64_t document) {
  return base::OrOutOfMemory([&] { return core_->Remove(tx, document); });
}

Status TextIndex::Put(uint64_t document, std::string_view text) {
  return base::OrOutOfMemory([&]() -> Status {
    BASALT_RETURN_IF_ERROR(
        Transact(core_->store(), [&](Transaction& tx) { return core_->Put(tx, document, text); }));
    PackAfterCommit(core_.get());
    return {};
  });
}

Result<bool> TextIndex::Remove(uint64_t document) {
  return base::OrOutOfMemory([&]() -> Result<bool> {
    bool was_there = false;
    BASALT_RETURN_IF_ERROR(Transact(core_->store(), [&](Transaction& tx) -> Status {
      BASALT_ASSIGN_OR_RETURN(was_there, core_->Remove(tx, document));
      return {};
    }));
    PackAfterCommit(core_.get());
    return was_there;
  });
}

Status TextIndex::MergePostings() {
  return base::OrOutOfMemory([&] { return core_->packer().PackDue(); });
}

Result<std::vector<TextHit>> TextIndex::Search(
    std::string_view query, size_t k, const std::function<bool(uint64_t document)>& admits) const {
  return base::OrOutOfMemory([&]() -> Result<std::vector<TextHit>> {
    BASALT_ASSIGN_OR_RETURN(const std::unique_ptr<text::Tokenizer> tokenizer,
                            core_->NewTokenizer());
    BASALT_ASSIGN_OR_RETURN(const std::unique_ptr<retrieve::StorePostings> source,
                            retrieve::StorePostings::Open(&core_->store(), core_->keyspace()));
    BASALT_ASSIGN_OR_RETURN(
        const std::unique_ptr<text::Scorer> scorer,
        text::MakeScorer(text::ParseQuery(query, tokenizer.get()), source.get()));
    BASALT_ASSIGN_OR_RETURN(const std::vector<text::Hit> found,
                            text::FindBest(scorer.get(), k, admits));
    std::vector<TextHit> hits;
    hits.reserve(found.size());
    for (const text::Hit& hit : found) hits.push_back({hit.document, hit.score});
    return hits;
  });
}

Result<TextIndexStats> TextIndex::GetStats() const {
  return base::OrOutOfMemory([&]() -> Result<TextIndexStats> {
    BASALT_ASSIGN_OR_RETURN(const std::unique_ptr<retrieve::StorePostings> source,
                            retrieve::StorePostings::Open(&core_->store(), core_->keyspace()));
    const text::CollectionStats stats = source->GetStats();
    return TextIndexStats{.documents = stats.documents, .tokens = stats.total_length};
  });
}

}  // namespace basalt

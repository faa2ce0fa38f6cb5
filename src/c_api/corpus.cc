#include <utility>

#include "basalt/retrieve.h"
#include "c_api/call.h"
#include "c_api/handles.h"
#include "c_api/json_writer.h"
#include "c_api/options.h"

namespace basalt::c_api {
namespace {

Status CheckCorpus(const basalt_corpus* corpus, const basalt_transaction* transaction) {
  BASALT_C_REQUIRE(corpus != nullptr, "corpus");
  BASALT_C_RETURN_IF_ERROR(CheckShare(corpus->share));
  return CheckOptional(transaction);
}

std::string PassageJson(const RetrievedPassage& passage) {
  ObjectWriter parts;
  if (passage.parts.bm25) parts.Add("bm25", *passage.parts.bm25);
  if (passage.parts.dense) parts.Add("dense", *passage.parts.dense);
  parts.Add("hybrid", passage.parts.hybrid)
      .Add("links", passage.parts.links)
      .Add("page_rank", passage.parts.page_rank);
  return ObjectWriter()
      .Add("source", passage.source)
      .Add("title", passage.title)
      .Add("text", passage.text)
      .Add("begin", passage.begin)
      .Add("end", passage.end)
      .Add("score", passage.score)
      .AddJson("parts", parts.Finish())
      .Add("tokens", passage.tokens)
      .Add("evidence", passage.evidence)
      .Finish();
}

}  // namespace
}  // namespace basalt::c_api

using namespace basalt;         // NOLINT(google-*)
using namespace basalt::c_api;  // NOLINT(google-*)

int basalt_corpus_open(basalt_store* store, const basalt_corpus_options* options,
                       basalt_corpus** corpus, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(corpus != nullptr, "corpus");
    *corpus = nullptr;
    BASALT_C_RETURN_IF_ERROR(CheckStore(store));
    CorpusOptions open;
    BASALT_C_RETURN_IF_ERROR(ToCorpusOptions(options, &open));
    StoreShare share(*store);
    Result<std::unique_ptr<Corpus>> opened = Corpus::Open(share.store.get(), open);
    if (!opened) return opened.error();
    *corpus = new basalt_corpus{.share = std::move(share), .corpus = *std::move(opened)};
    return {};
  });
}

void basalt_corpus_free(basalt_corpus* corpus) { delete corpus; }

int basalt_corpus_ingest(basalt_corpus* corpus, basalt_transaction* transaction,
                         const basalt_document* document, basalt_ingested* ingested,
                         basalt_error* error) {
  return Call(error, [&]() -> Status {
    if (ingested != nullptr) *ingested = {};
    BASALT_C_RETURN_IF_ERROR(CheckCorpus(corpus, transaction));
    BASALT_C_REQUIRE(document != nullptr, "document");
    BASALT_C_REQUIRE(IsBytes(document->source, document->source_size), "source");
    BASALT_C_REQUIRE(IsBytes(document->title, document->title_size), "title");
    BASALT_C_REQUIRE(IsBytes(document->text, document->text_size), "text");
    const Document copy{.source = std::string(ViewOf(document->source, document->source_size)),
                        .title = std::string(ViewOf(document->title, document->title_size)),
                        .text = std::string(ViewOf(document->text, document->text_size))};
    const Result<IngestResult> result =
        transaction == nullptr ? corpus->corpus->IngestText(copy)
                               : corpus->corpus->IngestText(transaction->transaction, copy);
    if (!result) return result.error();
    if (ingested != nullptr) {
      *ingested = {.passages = result->passages, .entities = result->entities};
    }
    return {};
  });
}

int basalt_corpus_forget(basalt_corpus* corpus, basalt_transaction* transaction, const void* source,
                         size_t source_size, bool* found, basalt_error* error) {
  return Call(error, [&]() -> Status {
    if (found != nullptr) *found = false;
    BASALT_C_RETURN_IF_ERROR(CheckCorpus(corpus, transaction));
    BASALT_C_REQUIRE(IsBytes(source, source_size), "source");
    const std::string_view name = ViewOf(source, source_size);
    const Result<bool> was_there = transaction == nullptr
                                       ? corpus->corpus->Forget(name)
                                       : corpus->corpus->Forget(transaction->transaction, name);
    if (!was_there) return was_there.error();
    if (found != nullptr) *found = *was_there;
    return {};
  });
}

int basalt_corpus_finish(basalt_corpus* corpus, basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_RETURN_IF_ERROR(CheckCorpus(corpus, nullptr));
    BASALT_C_RETURN_IF_ERROR(corpus->corpus->graph().FinishRemovals());
    return corpus->corpus->text().MergePostings();
  });
}

int basalt_corpus_retrieve(const basalt_corpus* corpus, const char* query, size_t query_size,
                           const basalt_retrieve_options* options, char** json,
                           basalt_error* error) {
  return Call(error, [&]() -> Status {
    BASALT_C_REQUIRE(json != nullptr, "json");
    *json = nullptr;
    BASALT_C_RETURN_IF_ERROR(CheckCorpus(corpus, nullptr));
    BASALT_C_REQUIRE(IsBytes(query, query_size), "query");
    RetrieveOptions retrieve;
    BASALT_C_RETURN_IF_ERROR(ToRetrieveOptions(options, &retrieve));
    const Result<RetrieveResult> found =
        corpus->corpus->Retrieve(ViewOf(query, query_size), retrieve);
    if (!found) return found.error();
    *json = CopyForCaller(ObjectWriter()
                              .AddObjects("passages", found->passages, PassageJson)
                              .Add("tokens", found->tokens)
                              .Add("truncated", found->truncated)
                              .Finish());
    return {};
  });
}

#include <cmath>
#include <utility>

#include "basalt/retrieve.h"
#include "base/check.h"
#include "base/out_of_memory.h"
#include "retrieve/corpus_core.h"
#include "retrieve/ranking.h"
#include "retrieve/selection.h"

namespace basalt {
namespace {

using retrieve::CorpusCore;

/// A document of several MiB is one transaction: each MiB of text takes about 90 MiB of memory.
constexpr TransactOptions kDocument{.transaction = {.memory_limit = uint64_t{1} << 30}};

/// The change is committed, and an error would say that it is not. What is left is done by a later
/// call; Corpus::Tidy reports what fails.
void TidyAfterCommit(CorpusCore* core) {
  (void)base::OrOutOfMemory([&] { return core->Tidy(); });
}

Result<RetrieveResult> RetrieveFrom(const CorpusCore& core, std::string_view query,
                                    const RetrieveOptions& options) {
  if (!std::isfinite(options.link_weight) || options.link_weight < 0) {
    return Status(StatusCode::kInvalidArgument,
                  "RetrieveOptions::link_weight must be finite and not negative");
  }
  BASALT_ASSIGN_OR_RETURN(const GraphView view, core.graph().Read());
  retrieve::Ranking ranking(&core, &view, options);
  BASALT_RETURN_IF_ERROR(ranking.Run(query));
  return retrieve::Selection(&view, options).Choose(ranking);
}

}  // namespace

Corpus::Corpus(std::unique_ptr<CorpusCore> core) : core_(std::move(core)) {}
Corpus::~Corpus() = default;

Result<std::unique_ptr<Corpus>> Corpus::Open(Store* store, const CorpusOptions& options) {
  return base::OrOutOfMemory([&]() -> Result<std::unique_ptr<Corpus>> {
    BASALT_ASSIGN_OR_RETURN(std::unique_ptr<CorpusCore> core, CorpusCore::Open(store, options));
    return std::unique_ptr<Corpus>(new Corpus(std::move(core)));
  });
}

Result<IngestResult> Corpus::IngestText(Transaction& tx, const Document& document) {
  return base::OrOutOfMemory([&]() -> Result<IngestResult> {
    BASALT_ASSIGN_OR_RETURN(const auto prepared, core_->Prepare(document));
    return core_->Ingest(tx, prepared);
  });
}

Result<bool> Corpus::Forget(Transaction& tx, std::string_view source) {
  return base::OrOutOfMemory([&] { return core_->Forget(tx, source); });
}

Result<IngestResult> Corpus::IngestText(const Document& document) {
  return base::OrOutOfMemory([&]() -> Result<IngestResult> {
    BASALT_ASSIGN_OR_RETURN(const auto prepared, core_->Prepare(document));
    IngestResult ingested;
    BASALT_RETURN_IF_ERROR(Transact(
        core_->store(),
        [&](Transaction& tx) -> Status {
          BASALT_ASSIGN_OR_RETURN(ingested, core_->Ingest(tx, prepared));
          return {};
        },
        kDocument));
    TidyAfterCommit(core_.get());
    return ingested;
  });
}

Result<bool> Corpus::Forget(std::string_view source) {
  return base::OrOutOfMemory([&]() -> Result<bool> {
    bool was_there = false;
    BASALT_RETURN_IF_ERROR(Transact(
        core_->store(),
        [&](Transaction& tx) -> Status {
          BASALT_ASSIGN_OR_RETURN(was_there, core_->Forget(tx, source));
          return {};
        },
        kDocument));
    TidyAfterCommit(core_.get());
    return was_there;
  });
}

Status Corpus::Tidy() {
  return base::OrOutOfMemory([&] { return core_->Tidy(); });
}

Result<RetrieveResult> Corpus::Retrieve(std::string_view query,
                                        const RetrieveOptions& options) const {
  return base::OrOutOfMemory([&] { return RetrieveFrom(*core_, query, options); });
}

Graph& Corpus::graph() noexcept { return core_->graph(); }
TextIndex& Corpus::text() noexcept { return core_->text(); }

}  // namespace basalt

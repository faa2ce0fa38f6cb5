#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "basalt/retrieve.h"
#include "basalt/store.h"
#include "tools/basalt/retrieval.h"

namespace basalt::tools {

/// A corpus with the vectors that it uses.
struct OpenedCorpus {
  std::unique_ptr<DenseIndex> dense;  // Null: none. The corpus refers to it.
  std::unique_ptr<Corpus> corpus;
};

enum class CorpusUse : uint8_t { kIngest, kForget, kRetrieve };

/// Opens a corpus of `db`, which must outlive it; kIngest makes it. Where passages have vectors,
/// Forget also removes these without a model, and IngestText without one is FailedPrecondition.
/// InvalidArgument: `embed` is not of the form
/// "local:FOLDER". Unsupported: this program was built without embeddings.
Result<OpenedCorpus> OpenCorpus(Store* store, const CorpusChoice& choice, CorpusUse use,
                                const std::optional<std::string>& stemmer = std::nullopt);

}  // namespace basalt::tools

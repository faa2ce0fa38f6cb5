#pragma once

#include <memory>
#include <optional>
#include <string>

#include "basalt/db.h"
#include "basalt/retrieve.h"
#include "tools/basalt/retrieval.h"

namespace basalt::tools {

/// A corpus with the vectors that it uses.
struct OpenedCorpus {
  std::unique_ptr<DenseIndex> dense;  // Null: none. The corpus refers to it.
  std::unique_ptr<Corpus> corpus;
};

/// Opens a corpus of `db`, which must outlive it. InvalidArgument: `embed` is not of the form
/// "local:FOLDER". Unsupported: this program was built without embeddings.
Result<OpenedCorpus> OpenCorpus(DB* db, const CorpusChoice& choice, bool create_if_missing,
                                const std::optional<std::string>& stemmer = std::nullopt);

}  // namespace basalt::tools

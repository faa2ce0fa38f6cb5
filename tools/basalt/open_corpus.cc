#include "tools/basalt/open_corpus.h"

#include <string_view>
#include <utility>
#include <vector>

#ifdef BASALT_EMBED
#include "basalt/embed.h"
#endif

namespace basalt::tools {
namespace {

constexpr std::string_view kLocal = "local:";

#ifdef BASALT_EMBED
Result<std::unique_ptr<DenseIndex>> OpenDense(Store* store, const CorpusChoice& choice) {
  auto embedder = OpenLocalEmbedder(choice.embed.substr(kLocal.size()));
  if (!embedder) return embedder.error();
  const EmbeddingModel& model = (*embedder)->model();
  return OpenDenseIndex(
      store, {.name = choice.name + ".vectors",
              .dimension = model.dimension,
              .model = model.id,
              .embed = [embedder = *embedder](auto texts) { return embedder->EmbedAll(texts); }});
}
#else
Result<std::unique_ptr<DenseIndex>> OpenDense(Store* /*store*/, const CorpusChoice& /*choice*/) {
  return Status(StatusCode::kUnsupported,
                "--embed: this program was built without embeddings (BASALT_EMBED)");
}
#endif

/// The vectors that passages already have, to be removed with them. Null: they have none.
Result<std::unique_ptr<DenseIndex>> OpenDenseToRemove(Store* store, const CorpusChoice& choice) {
  const std::string name = choice.name + ".vectors";
  const Result<KeyspaceId> keyspace = store->OpenKeyspace(name);
  if (!keyspace && keyspace.error().code() == StatusCode::kNotFound) {
    return std::unique_ptr<DenseIndex>();
  }
  if (!keyspace) return keyspace.error();
  return OpenDenseIndex(store,
                        {.name = name, .embed = [](auto /*texts*/) -> Result<std::vector<float>> {
                           return Status(StatusCode::kFailedPrecondition,
                                         "the passages of this corpus have vectors: give --embed");
                         }});
}

}  // namespace

Result<OpenedCorpus> OpenCorpus(Store* store, const CorpusChoice& choice, CorpusUse use,
                                const std::optional<std::string>& stemmer) {
  OpenedCorpus opened;
  if (!choice.embed.empty()) {
    if (!choice.embed.starts_with(kLocal)) {
      return Status(StatusCode::kInvalidArgument,
                    "--embed '" + choice.embed + "': give local:FOLDER");
    }
    Result<std::unique_ptr<DenseIndex>> dense = OpenDense(store, choice);
    if (!dense) return dense.error();
    opened.dense = std::move(*dense);
  } else if (use != CorpusUse::kRetrieve) {
    Result<std::unique_ptr<DenseIndex>> dense = OpenDenseToRemove(store, choice);
    if (!dense) return dense.error();
    opened.dense = std::move(*dense);
  }
  Result<std::unique_ptr<Corpus>> corpus =
      Corpus::Open(store, {.name = choice.name,
                           .create_if_missing = use == CorpusUse::kIngest,
                           .stemmer = stemmer,
                           .dense = opened.dense.get()});
  if (!corpus) return corpus.error();
  opened.corpus = std::move(*corpus);
  return opened;
}

}  // namespace basalt::tools

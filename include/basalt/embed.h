#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/status.h"

// Embeddings: vectors of texts. Texts of similar meaning have vectors that are near each other.
// Read Embedder first. This is a library of its own: link basalt::embed (find_package(basalt
// COMPONENTS embed)). docs/embed.md explains it.

namespace basalt {

/// A model that makes vectors. Vectors of different models cannot be compared. A store of vectors
/// keeps the model's id and refuses vectors of another model.
struct EmbeddingModel {
  std::string id;  ///< Equal for the same model, wherever its files are. Empty: there is none.
  size_t dimension = 0;     ///< Elements of a vector; 0: there is no model.
  size_t tokens_max = 0;    ///< The tokens of a text that are used. Later tokens are ignored.
  bool normalized = false;  ///< Vectors have length 1: their inner product is their cosine.
};

/// Makes vectors of texts. Immutable: any number of threads.
class Embedder {
 public:
  virtual ~Embedder() = default;
  Embedder(const Embedder&) = delete;
  Embedder& operator=(const Embedder&) = delete;

  const EmbeddingModel& model() const noexcept { return model_; }

  /// The vector of a text: UTF-8; malformed bytes are ignored. Errors are those of EmbedAll.
  Result<std::vector<float>> Embed(std::string_view text) const;
  /// The vectors of several texts, one after the other. For short texts this is faster than one
  /// Embed for each. FailedPrecondition: there is no model. ResourceExhausted: out of memory.
  Result<std::vector<float>> EmbedAll(std::span<const std::string_view> texts) const;

 protected:
  explicit Embedder(EmbeddingModel model) : model_(std::move(model)) {}

 private:
  /// `vectors` has room for all vectors.
  virtual Status DoEmbed(std::span<const std::string_view> texts, float* vectors) const = 0;

  EmbeddingModel model_;
};

/// An embedder without a model, the default. Searches by words and links work with it.
std::shared_ptr<const Embedder> NoEmbedder();

/// A BERT encoder with mean pooling, such as the sentence transformer all-MiniLM-L6-v2. It runs on
/// the caller's thread. `folder` holds the published files:
///
///     config.json               model_type bert, hidden_act gelu
///     model.safetensors         F32 or BF16
///     vocab.txt                 a piece a line
///     tokenizer_config.json     optional: do_lower_case
///     sentence_bert_config.json optional: max_seq_length
///     1_Pooling/config.json     optional: must say pooling_mode_mean_tokens
///
/// Weights are kept as bfloat16. The vectors have a cosine above 0.999 to those of the reference
/// implementation. A model like MiniLM-L6 takes 70 MB of memory, loads in a tenth of a second, and
/// takes a few milliseconds for a query. NotFound: a file is absent. Corruption: a file is
/// malformed. Unsupported: another kind of model.
Result<std::shared_ptr<const Embedder>> OpenLocalEmbedder(std::string_view folder);

}  // namespace basalt

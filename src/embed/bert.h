#pragma once

#include <hwy/aligned_allocator.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "basalt/status.h"
#include "embed/kernels.h"
#include "embed/safetensors.h"

namespace basalt::embed {

template <class Element>
using AlignedMemory = hwy::AlignedFreeUniquePtr<Element[]>;

/// What a BERT encoder is made of: the fields of config.json of the same names.
struct BertShape {
  size_t vocabulary_size = 0;
  size_t hidden_size = 0;
  size_t intermediate_size = 0;
  size_t layers = 0;
  size_t heads = 0;
  size_t positions_max = 0;  ///< max_position_embeddings
  size_t types = 0;          ///< type_vocab_size
  float layer_norm_epsilon = 0;

  /// Of config.json. Corruption: a field is absent or out of range. Unsupported: another model, or
  /// another activation than gelu.
  static Result<BertShape> Parse(std::string_view json, std::string_view path);
};

/// A BERT encoder (Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for
/// Language Understanding", 2019), and the mean of what it gives for the tokens of a text, of
/// length 1.
///
/// Each layer, with residuals and a layer norm behind each step: attention (queries, keys and
/// values by one product; scores and sums a head by products, too), then two products with gelu
/// between them. Weights are bfloat16 in panels (kernels.h); embeddings stay float32.
///
/// Several texts go through the products together, without padding; attention is a text's own.
///
/// Immutable; any number of threads, each with a Scratch of its own. About 2 * (weights of a layer)
/// * layers operations a token: 21 million for MiniLM-L6, of which the products are nine tenths.
class Bert {
 public:
  /// What a computation writes to. Grows to what is needed and is kept.
  class Scratch {
   public:
    Scratch() = default;

   private:
    friend class Bert;

    size_t rows_ = 0;    // room for so many tokens
    size_t tokens_ = 0;  // and so many of one text
    AlignedMemory<float> hidden_;
    AlignedMemory<float>
        projected_;  // queries, keys and values of a token, or the result of a product
    AlignedMemory<float> context_;
    AlignedMemory<float> inner_;
    AlignedMemory<float> scores_;
    AlignedMemory<float> panels_;  // keys or values of a head
    AlignedMemory<uint16_t> rounded_;
  };

  /// The tensors may be named as in the model "bert" or as in models that contain it. Errors are
  /// those of Safetensors; InvalidArgument: a shape that the kernels do not support.
  static Result<Bert> Load(const Safetensors& tensors, const BertShape& shape,
                           const Kernels& kernels);

  const BertShape& shape() const noexcept { return shape_; }

  /// The vectors of texts, hidden_size elements each, one after the other. `ids` are their tokens,
  /// below vocabulary_size; `lengths` say how many each has: 1 to positions_max.
  void Embed(std::span<const uint32_t> ids, std::span<const size_t> lengths, Scratch* scratch,
             float* vectors) const;

 private:
  struct Linear {
    size_t columns = 0;
    size_t depth = 0;
    AlignedMemory<uint16_t> weights;
    AlignedMemory<float> bias;
  };
  struct Norm {
    std::vector<float> weight;
    std::vector<float> bias;
  };
  struct Layer {
    Linear projections;  // queries, keys, values
    Linear attention_output;
    Norm attention_norm;
    Linear intermediate;
    Linear output;
    Norm output_norm;
  };
  class Loader;

  Bert() = default;
  void Reserve(Scratch* scratch, size_t rows, size_t tokens) const;
  void Multiply(const Linear& linear, const float* rows, size_t count, float* out,
                Scratch* scratch) const;
  void AddEmbeddings(std::span<const uint32_t> ids, float* rows) const;
  void Attend(size_t first, size_t tokens, Scratch* scratch) const;
  void RunLayer(const Layer& layer, std::span<const size_t> lengths, size_t rows,
                Scratch* scratch) const;
  void NormRows(const Norm& norm, float* rows, const float* residual, size_t count) const;
  void Pool(const float* rows, size_t tokens, float* vector) const;

  BertShape shape_;
  Kernels kernels_{};
  std::vector<float> word_embeddings_;
  std::vector<float> position_embeddings_;  // with the embedding of token type 0
  Norm embedding_norm_;
  std::vector<Layer> layers_;
};

}  // namespace basalt::embed

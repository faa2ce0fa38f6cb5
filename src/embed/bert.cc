#include "embed/bert.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <cmath>
#include <new>
#include <optional>
#include <utility>

#include "base/check.h"
#include "embed/json_file.h"

namespace basalt::embed {
namespace {

template <class Element>
AlignedMemory<Element> Allocate(size_t count) {
  auto memory = hwy::AllocateAligned<Element>(count);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

/// Limits that keep products of sizes within 64 bits and far above any model of this kind.
constexpr uint64_t kSizeMax = 1 << 24;
constexpr uint64_t kLayersMax = 1'000;

}  // namespace

Result<BertShape> BertShape::Parse(std::string_view json, std::string_view path) {
  const std::string what = "'" + std::string(path) + "'";
  BASALT_ASSIGN_OR_RETURN(const boost::json::object config, ParseObject(json, what));
  const auto is_text = [&](const char* field, std::string_view wanted) {
    const boost::json::value* const value = config.if_contains(field);
    return value != nullptr && value->is_string() &&
           std::string_view(value->get_string()) == wanted;
  };
  if (!is_text("model_type", "bert") || !is_text("hidden_act", "gelu")) {
    return Status(
        StatusCode::kUnsupported,
        "reading " + what + ": only models of type bert with hidden_act gelu are supported");
  }
  BertShape shape;
  const std::pair<const char*, size_t*> fields[] = {
      {"vocab_size", &shape.vocabulary_size},
      {"hidden_size", &shape.hidden_size},
      {"intermediate_size", &shape.intermediate_size},
      {"num_hidden_layers", &shape.layers},
      {"num_attention_heads", &shape.heads},
      {"max_position_embeddings", &shape.positions_max},
      {"type_vocab_size", &shape.types}};
  for (const auto& [name, place] : fields) {
    const boost::json::value* const value = config.if_contains(name);
    const std::optional<uint64_t> size = value == nullptr ? std::nullopt : AsSize(*value);
    if (!size || *size == 0 || *size > kSizeMax) {
      return Status(StatusCode::kCorruption, "reading " + what + ": " + name +
                                                 " is not a number from 1 to " +
                                                 std::to_string(kSizeMax));
    }
    *place = *size;
  }
  const boost::json::value* const epsilon = config.if_contains("layer_norm_eps");
  if (epsilon == nullptr || !epsilon->is_double() || !(epsilon->get_double() > 0) ||
      shape.layers > kLayersMax || shape.hidden_size % shape.heads != 0) {
    return Status(StatusCode::kCorruption,
                  "reading " + what +
                      ": layer_norm_eps, num_hidden_layers or num_attention_heads is out of range");
  }
  shape.layer_norm_epsilon = static_cast<float>(epsilon->get_double());
  return shape;
}

/// Takes the tensors of one model.
class Bert::Loader {
 public:
  Loader(const Safetensors& tensors, const Kernels& kernels)
      : tensors_(tensors), kernels_(kernels) {
    if (tensors.tensors().contains("bert.embeddings.word_embeddings.weight")) prefix_ = "bert.";
  }

  Result<std::vector<float>> Read(const std::string& name, std::vector<uint64_t> shape) const {
    return tensors_.ReadFloats(prefix_ + name, shape);
  }

  Result<Norm> ReadNorm(const std::string& name, size_t size) const {
    Norm norm;
    BASALT_ASSIGN_OR_RETURN(norm.weight, Read(name + ".weight", {size}));
    BASALT_ASSIGN_OR_RETURN(norm.bias, Read(name + ".bias", {size}));
    return norm;
  }

  /// One product in place of those of `names`, whose columns stand side by side.
  Result<Linear> ReadLinear(const std::vector<std::string>& names, size_t columns,
                            size_t depth) const {
    std::vector<float> weights;
    std::vector<float> bias;
    for (const std::string& name : names) {
      BASALT_ASSIGN_OR_RETURN(const std::vector<float> more,
                              Read(name + ".weight", {columns, depth}));
      weights.insert(weights.end(), more.begin(), more.end());
      BASALT_ASSIGN_OR_RETURN(const std::vector<float> more_bias, Read(name + ".bias", {columns}));
      bias.insert(bias.end(), more_bias.begin(), more_bias.end());
    }
    Linear linear{.columns = bias.size(), .depth = depth, .weights = {}, .bias = {}};
    linear.weights = Allocate<uint16_t>(kernels_.PackedSize(linear.columns, depth));
    kernels_.pack_bfloat16(weights.data(), depth, 1, linear.columns, depth, linear.weights.get());
    const size_t rounded = kernels_.RoundUp(linear.columns);
    linear.bias = Allocate<float>(rounded);
    std::copy(bias.begin(), bias.end(), linear.bias.get());
    std::fill(linear.bias.get() + bias.size(), linear.bias.get() + rounded, 0.0F);
    return linear;
  }

  Result<Layer> ReadLayer(size_t index, const BertShape& shape) const {
    const std::string name = "encoder.layer." + std::to_string(index) + ".";
    const size_t hidden = shape.hidden_size;
    const size_t inner = shape.intermediate_size;
    const std::string self = name + "attention.self.";
    Layer layer;
    BASALT_ASSIGN_OR_RETURN(
        layer.projections,
        ReadLinear({self + "query", self + "key", self + "value"}, hidden, hidden));
    BASALT_ASSIGN_OR_RETURN(layer.attention_output,
                            ReadLinear({name + "attention.output.dense"}, hidden, hidden));
    BASALT_ASSIGN_OR_RETURN(layer.attention_norm,
                            ReadNorm(name + "attention.output.LayerNorm", hidden));
    BASALT_ASSIGN_OR_RETURN(layer.intermediate,
                            ReadLinear({name + "intermediate.dense"}, inner, hidden));
    BASALT_ASSIGN_OR_RETURN(layer.output, ReadLinear({name + "output.dense"}, hidden, inner));
    BASALT_ASSIGN_OR_RETURN(layer.output_norm, ReadNorm(name + "output.LayerNorm", hidden));
    return layer;
  }

 private:
  const Safetensors& tensors_;
  const Kernels& kernels_;
  std::string prefix_;
};

Result<Bert> Bert::Load(const Safetensors& tensors, const BertShape& shape,
                        const Kernels& kernels) {
  const size_t hidden = shape.hidden_size;
  // Rows follow each other without a gap, and a panel has whole columns of one head.
  if (hidden % kernels.panel != 0 || shape.intermediate_size % kernels.panel != 0 ||
      hidden / shape.heads % kernels.panel != 0) {
    return Status(StatusCode::kUnsupported,
                  "loading a model: its sizes, and those of a head, must be multiples of " +
                      std::to_string(kernels.panel));
  }
  const Loader loader(tensors, kernels);
  Bert bert;
  bert.shape_ = shape;
  bert.kernels_ = kernels;
  BASALT_ASSIGN_OR_RETURN(bert.word_embeddings_, loader.Read("embeddings.word_embeddings.weight",
                                                             {shape.vocabulary_size, hidden}));
  BASALT_ASSIGN_OR_RETURN(
      bert.position_embeddings_,
      loader.Read("embeddings.position_embeddings.weight", {shape.positions_max, hidden}));
  BASALT_ASSIGN_OR_RETURN(
      const std::vector<float> types,
      loader.Read("embeddings.token_type_embeddings.weight", {shape.types, hidden}));
  for (size_t i = 0; i < bert.position_embeddings_.size(); ++i) {
    bert.position_embeddings_[i] += types[i % hidden];
  }
  BASALT_ASSIGN_OR_RETURN(bert.embedding_norm_, loader.ReadNorm("embeddings.LayerNorm", hidden));
  for (size_t i = 0; i < shape.layers; ++i) {
    BASALT_ASSIGN_OR_RETURN(bert.layers_.emplace_back(), loader.ReadLayer(i, shape));
  }
  return bert;
}

void Bert::Reserve(Scratch* scratch, size_t rows, size_t tokens) const {
  const size_t hidden = shape_.hidden_size;
  if (rows > scratch->rows_) {
    scratch->rows_ = 0;
    scratch->hidden_ = Allocate<float>(rows * hidden);
    scratch->projected_ = Allocate<float>(rows * 3 * hidden);
    scratch->context_ = Allocate<float>(rows * hidden);
    scratch->inner_ = Allocate<float>(rows * shape_.intermediate_size);
    scratch->rounded_ = Allocate<uint16_t>(rows * std::max(hidden, shape_.intermediate_size));
    scratch->rows_ = rows;
  }
  if (tokens > scratch->tokens_) {
    scratch->tokens_ = 0;
    const size_t padded = kernels_.RoundUp(tokens);
    scratch->scores_ = Allocate<float>(tokens * padded);
    scratch->panels_ = Allocate<float>(padded * (hidden / shape_.heads));
    scratch->tokens_ = tokens;
  }
}

void Bert::Embed(std::span<const uint32_t> ids, std::span<const size_t> lengths, Scratch* scratch,
                 float* vectors) const {
  if (lengths.empty()) return;
  Reserve(scratch, ids.size(), *std::max_element(lengths.begin(), lengths.end()));
  float* rows = scratch->hidden_.get();
  size_t first = 0;
  for (const size_t tokens : lengths) {
    AddEmbeddings(ids.subspan(first, tokens), rows + first * shape_.hidden_size);
    first += tokens;
  }
  for (const Layer& layer : layers_) RunLayer(layer, lengths, ids.size(), scratch);
  for (const size_t tokens : lengths) {
    Pool(rows, tokens, vectors);
    rows += tokens * shape_.hidden_size;
    vectors += shape_.hidden_size;
  }
}

void Bert::AddEmbeddings(std::span<const uint32_t> ids, float* rows) const {
  const size_t hidden = shape_.hidden_size;
  for (size_t i = 0; i < ids.size(); ++i) {
    std::copy_n(&word_embeddings_[ids[i] * hidden], hidden, rows + i * hidden);
  }
  NormRows(embedding_norm_, rows, position_embeddings_.data(), ids.size());
}

void Bert::RunLayer(const Layer& layer, std::span<const size_t> lengths, size_t rows,
                    Scratch* scratch) const {
  float* const hidden = scratch->hidden_.get();
  float* const projected = scratch->projected_.get();
  float* const inner = scratch->inner_.get();
  Multiply(layer.projections, hidden, rows, projected, scratch);
  size_t first = 0;
  for (const size_t tokens : lengths) {
    Attend(first, tokens, scratch);
    first += tokens;
  }
  Multiply(layer.attention_output, scratch->context_.get(), rows, projected, scratch);
  NormRows(layer.attention_norm, projected, hidden, rows);
  Multiply(layer.intermediate, projected, rows, inner, scratch);
  kernels_.gelu(inner, rows * shape_.intermediate_size);
  Multiply(layer.output, inner, rows, hidden, scratch);
  NormRows(layer.output_norm, hidden, projected, rows);
}

void Bert::Multiply(const Linear& linear, const float* rows, size_t count, float* out,
                    Scratch* scratch) const {
  kernels_.multiply_bfloat16({rows, linear.depth, count}, linear.weights.get(), linear.columns,
                             linear.depth, linear.bias.get(), out, linear.columns,
                             scratch->rounded_.get());
}

/// The attention of one text, whose rows begin at `first`: into `context_`.
void Bert::Attend(size_t first, size_t tokens, Scratch* scratch) const {
  const size_t hidden = shape_.hidden_size;
  const size_t of_head = hidden / shape_.heads;
  const size_t padded = kernels_.RoundUp(tokens);
  const float scale = 1 / std::sqrt(static_cast<float>(of_head));
  float* const scores = scratch->scores_.get();
  float* const panels = scratch->panels_.get();
  for (size_t head = 0; head < shape_.heads; ++head) {
    const float* const queries = scratch->projected_.get() + first * 3 * hidden + head * of_head;
    const float* const keys = queries + hidden;
    const float* const values = keys + hidden;
    kernels_.pack_float(keys, 3 * hidden, 1, tokens, of_head, panels);
    kernels_.multiply_float({queries, 3 * hidden, tokens}, panels, tokens, of_head, nullptr, scores,
                            padded);
    for (size_t i = 0; i < tokens; ++i) kernels_.softmax(scores + i * padded, tokens, scale);
    kernels_.pack_float(values, 1, 3 * hidden, of_head, tokens, panels);
    kernels_.multiply_float({scores, padded, tokens}, panels, of_head, tokens, nullptr,
                            scratch->context_.get() + first * hidden + head * of_head, hidden);
  }
}

void Bert::NormRows(const Norm& norm, float* rows, const float* residual, size_t count) const {
  const size_t hidden = shape_.hidden_size;
  for (size_t i = 0; i < count; ++i) {
    kernels_.layer_norm(rows + i * hidden, residual + i * hidden, hidden, norm.weight.data(),
                        norm.bias.data(), shape_.layer_norm_epsilon);
  }
}

/// The mean of the rows, of length 1.
void Bert::Pool(const float* rows, size_t tokens, float* vector) const {
  const size_t hidden = shape_.hidden_size;
  std::copy_n(rows, hidden, vector);
  for (size_t i = 1; i < tokens; ++i) kernels_.add(vector, rows + i * hidden, hidden);
  double square = 0;
  for (size_t i = 0; i < hidden; ++i) square += double{vector[i]} * vector[i];
  const auto factor = static_cast<float>(1 / std::sqrt(std::max(square, 1e-24)));
  for (size_t i = 0; i < hidden; ++i) vector[i] *= factor;
}

}  // namespace basalt::embed

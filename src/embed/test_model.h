#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/coding.h"
#include "base/random.h"
#include "embed/bert.h"

namespace basalt::embed {

/// The bytes of a file of tensors. Elements are F32.
struct TestTensor {
  std::vector<uint64_t> shape;
  std::vector<float> elements;
};
using TestTensors = std::map<std::string, TestTensor>;

inline std::string SafetensorsOf(const TestTensors& tensors) {
  std::string header = R"({"__metadata__": {"format": "pt"})";
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    std::string sizes;
    for (const uint64_t size : tensor.shape) {
      sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
    }
    const size_t begin = data.size();
    data.append(reinterpret_cast<const char*>(tensor.elements.data()),
                tensor.elements.size() * sizeof(float));
    header += ", \"" + name + R"(": {"dtype": "F32", "shape": [)" + sizes +
              R"(], "data_offsets": [)" + std::to_string(begin) + ", " +
              std::to_string(data.size()) + "]}";
  }
  header += "}";
  std::string file;
  base::Append(&file, uint64_t{header.size()});
  return file + header + data;
}

/// A small model of random weights, whose values bfloat16 has exactly, and what it computes in
/// double precision by plain loops.
class TestModel {
 public:
  static constexpr size_t kHidden = 64;
  static constexpr size_t kInner = 128;
  static constexpr size_t kHeads = 2;
  static constexpr size_t kLayers = 2;
  static constexpr size_t kPositions = 40;
  static constexpr double kEpsilon = 1e-12;

  explicit TestModel(uint64_t seed) : random_(seed) {
    const std::string embeddings = "embeddings.";
    Add(embeddings + "word_embeddings.weight", {VocabularySize(), kHidden}, 1);
    Add(embeddings + "position_embeddings.weight", {kPositions, kHidden}, 1);
    Add(embeddings + "token_type_embeddings.weight", {2, kHidden}, 1);
    AddNorm(embeddings + "LayerNorm");
    for (size_t layer = 0; layer < kLayers; ++layer) {
      const std::string name = LayerName(layer);
      for (const char* part : {"query", "key", "value"}) {
        AddLinear(name + "attention.self." + part, kHidden, kHidden);
      }
      AddLinear(name + "attention.output.dense", kHidden, kHidden);
      AddNorm(name + "attention.output.LayerNorm");
      AddLinear(name + "intermediate.dense", kInner, kHidden);
      AddLinear(name + "output.dense", kHidden, kInner);
      AddNorm(name + "output.LayerNorm");
    }
  }

  static std::string Vocabulary() {
    return "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\nc\nd\n##a\n##b\n##c\n.\n,\ncab\n";
  }
  static size_t VocabularySize() { return 14; }

  static std::string Config() {
    return R"({"model_type": "bert", "hidden_act": "gelu", "hidden_size": 64,
               "intermediate_size": 128, "num_attention_heads": 2, "num_hidden_layers": 2,
               "max_position_embeddings": 40, "vocab_size": 14, "type_vocab_size": 2,
               "layer_norm_eps": 1e-12})";
  }

  const TestTensors& tensors() const { return tensors_; }

  std::vector<double> Embed(const std::vector<uint32_t>& ids) const {
    Matrix rows(ids.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      for (size_t j = 0; j < kHidden; ++j) {
        rows[i].push_back(At("embeddings.word_embeddings.weight", ids[i] * kHidden + j) +
                          At("embeddings.position_embeddings.weight", i * kHidden + j) +
                          At("embeddings.token_type_embeddings.weight", j));
      }
    }
    Norm("embeddings.LayerNorm", &rows);
    for (size_t layer = 0; layer < kLayers; ++layer) RunLayer(LayerName(layer), &rows);
    std::vector<double> vector(kHidden, 0);
    for (const std::vector<double>& row : rows) {
      for (size_t j = 0; j < kHidden; ++j) vector[j] += row[j];
    }
    double square = 0;
    for (const double each : vector) square += each * each;
    for (double& each : vector) each /= std::sqrt(square);
    return vector;
  }

 private:
  using Matrix = std::vector<std::vector<double>>;

  static std::string LayerName(size_t layer) {
    return "encoder.layer." + std::to_string(layer) + ".";
  }

  void Add(const std::string& name, std::vector<uint64_t> shape, double scale, double center = 0) {
    TestTensor& tensor = tensors_[name];
    size_t count = 1;
    for (const uint64_t size : shape) count *= size;
    tensor.shape = std::move(shape);
    for (size_t i = 0; i < count; ++i) {
      const auto number = static_cast<float>(center + scale * (2 * random_.NextDouble() - 1));
      tensor.elements.push_back(
          std::bit_cast<float>(std::bit_cast<uint32_t>(number) & 0xFFFF'0000U));
    }
  }
  void AddLinear(const std::string& name, uint64_t columns, uint64_t depth) {
    Add(name + ".weight", {columns, depth}, 0.25);
    Add(name + ".bias", {columns}, 0.1);
  }
  void AddNorm(const std::string& name) {
    Add(name + ".weight", {kHidden}, 0.3, 1);
    Add(name + ".bias", {kHidden}, 0.3);
  }

  double At(const std::string& name, size_t i) const { return tensors_.at(name).elements.at(i); }

  Matrix Linear(const std::string& name, const Matrix& rows) const {
    const TestTensor& weight = tensors_.at(name + ".weight");
    Matrix out(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      for (size_t column = 0; column < weight.shape[0]; ++column) {
        double sum = At(name + ".bias", column);
        for (size_t k = 0; k < rows[i].size(); ++k) {
          sum += rows[i][k] * weight.elements[column * weight.shape[1] + k];
        }
        out[i].push_back(sum);
      }
    }
    return out;
  }

  void Norm(const std::string& name, Matrix* rows) const {
    for (std::vector<double>& row : *rows) {
      const auto count = static_cast<double>(row.size());
      double mean = 0;
      for (const double each : row) mean += each / count;
      double variance = 0;
      for (const double each : row) variance += (each - mean) * (each - mean) / count;
      for (size_t j = 0; j < row.size(); ++j) {
        row[j] = (row[j] - mean) / std::sqrt(variance + kEpsilon) * At(name + ".weight", j) +
                 At(name + ".bias", j);
      }
    }
  }

  Matrix Attend(const std::string& name, const Matrix& rows) const {
    const Matrix queries = Linear(name + "attention.self.query", rows);
    const Matrix keys = Linear(name + "attention.self.key", rows);
    const Matrix values = Linear(name + "attention.self.value", rows);
    const size_t size = kHidden / kHeads;
    Matrix out(rows.size(), std::vector<double>(kHidden, 0));
    for (size_t begin = 0; begin < kHidden; begin += size) {
      for (size_t i = 0; i < rows.size(); ++i) {
        std::vector<double> weights;
        double sum = 0;
        for (size_t j = 0; j < rows.size(); ++j) {
          double score = 0;
          for (size_t k = begin; k < begin + size; ++k) score += queries[i][k] * keys[j][k];
          weights.push_back(std::exp(score / std::sqrt(static_cast<double>(size))));
          sum += weights.back();
        }
        for (size_t j = 0; j < rows.size(); ++j) {
          for (size_t k = begin; k < begin + size; ++k) {
            out[i][k] += weights[j] / sum * values[j][k];
          }
        }
      }
    }
    return out;
  }

  static void AddTo(const Matrix& more, Matrix* rows) {
    for (size_t i = 0; i < rows->size(); ++i) {
      for (size_t j = 0; j < (*rows)[i].size(); ++j) (*rows)[i][j] += more[i][j];
    }
  }

  void RunLayer(const std::string& name, Matrix* rows) const {
    Matrix attended = Linear(name + "attention.output.dense", Attend(name, *rows));
    AddTo(*rows, &attended);
    Norm(name + "attention.output.LayerNorm", &attended);
    Matrix inner = Linear(name + "intermediate.dense", attended);
    for (std::vector<double>& row : inner) {
      for (double& each : row) each = each / 2 * (1 + std::erf(each / std::sqrt(2.0)));
    }
    *rows = Linear(name + "output.dense", inner);
    AddTo(attended, rows);
    Norm(name + "output.LayerNorm", rows);
  }

  base::Random random_;
  TestTensors tensors_;
};

}  // namespace basalt::embed

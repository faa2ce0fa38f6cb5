#include "bench/vector_data.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>

#include "basalt/vector.h"
#include "base/random.h"
#include "bench/text.h"

namespace basalt::bench {
namespace {

double Gaussian(base::Random* random) {
  const double radius = std::sqrt(-2 * std::log(1 - random->NextDouble()));
  return radius * std::cos(6.283185307179586 * random->NextDouble());
}

VectorDistance DistanceOf(size_t dimension) {
  return *VectorDistance::Create(VectorMetric::kL2, VectorElement::kFloat32, dimension);
}

}  // namespace

VectorData VectorData::Clusters(size_t vectors, size_t queries, size_t dimension, size_t centres,
                                uint64_t seed) {
  VectorData data;
  data.vectors_ = vectors;
  data.queries_ = queries;
  data.dimension_ = dimension;
  data.block_ = std::make_unique<HugeBlock>((vectors + queries) * dimension * sizeof(float));
  base::Random random(seed);
  std::vector<double> scale(dimension);
  for (size_t j = 0; j < dimension; ++j) scale[j] = std::pow(static_cast<double>(j + 1), -0.4);
  std::vector<double> centre(centres * dimension);
  for (size_t i = 0; i < centre.size(); ++i) centre[i] = Gaussian(&random) * scale[i % dimension];
  for (size_t i = 0; i < vectors + queries; ++i) {
    const size_t first = random.Below(centres) * dimension;
    double square = 0;
    std::vector<double> vector(dimension);
    for (size_t j = 0; j < dimension; ++j) {
      vector[j] = centre[first + j] + 0.9 * scale[j] * Gaussian(&random);
      square += vector[j] * vector[j];
    }
    for (size_t j = 0; j < dimension; ++j) {
      data.floats()[i * dimension + j] = static_cast<float>(vector[j] / std::sqrt(square));
    }
  }
  data.FindNeighbours();
  return data;
}

VectorData VectorData::FromFile(const std::string& path, size_t queries) {
  VectorData data;
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return data;
  int32_t dimension = 0;
  if (std::fread(&dimension, sizeof dimension, 1, file) != 1 || dimension <= 0) {
    Fail("read " + path, "it is no fvecs file");
  }
  data.dimension_ = static_cast<size_t>(dimension);
  const size_t row_bytes = (data.dimension_ + 1) * sizeof(float);
  const size_t rows = std::filesystem::file_size(path) / row_bytes;
  if (rows <= queries) Fail("read " + path, "it has too few vectors");
  data.block_ = std::make_unique<HugeBlock>(rows * data.dimension_ * sizeof(float));
  for (size_t i = 0; i < rows; ++i) {
    float* const row = data.floats() + i * data.dimension_;
    if (i != 0 && std::fread(&dimension, sizeof dimension, 1, file) != 1) break;
    if (static_cast<size_t>(dimension) != data.dimension_ ||
        std::fread(row, sizeof(float), data.dimension_, file) != data.dimension_) {
      Fail("read " + path, "a vector has another dimension, or it is cut short");
    }
  }
  std::fclose(file);
  data.vectors_ = rows - queries;
  data.queries_ = queries;
  data.FindNeighbours();
  return data;
}

std::vector<float> VectorData::DistancesFrom(size_t query) const {
  std::vector<float> distances(vectors_);
  DistanceOf(dimension_)
      .ToRows(Query(query), Vector(0), dimension_ * sizeof(float), vectors_, distances.data());
  return distances;
}

void VectorData::FindNeighbours() {
  for (size_t query = 0; query < queries_; ++query) {
    std::vector<float> distances = DistancesFrom(query);
    std::nth_element(distances.begin(), distances.begin() + kNeighbours - 1, distances.end());
    radius_.push_back(distances[kNeighbours - 1]);
  }
}

double VectorData::Recall(size_t query, std::span<const uint32_t> ids) const {
  // Sums differ a little between kernels.
  const float radius = radius_[query] * (1 + 1e-6F);
  size_t found = 0;
  for (const uint32_t id : ids) {
    found += static_cast<size_t>(DistanceOf(dimension_)(Query(query), Vector(id)) <= radius);
  }
  return static_cast<double>(std::min(found, kNeighbours)) / kNeighbours;
}

double VectorData::Recall(size_t query, std::span<const uint32_t> ids,
                          const std::vector<bool>& passes) const {
  std::vector<float> distances = DistancesFrom(query);
  for (size_t i = 0; i < vectors_; ++i) {
    if (!passes[i]) distances[i] = std::numeric_limits<float>::infinity();
  }
  std::vector<float> sorted = distances;
  std::nth_element(sorted.begin(), sorted.begin() + kNeighbours - 1, sorted.end());
  const float radius = sorted[kNeighbours - 1] * (1 + 1e-6F);
  size_t found = 0;
  for (const uint32_t id : ids) found += static_cast<size_t>(distances[id] <= radius);
  return static_cast<double>(std::min(found, kNeighbours)) / kNeighbours;
}

}  // namespace basalt::bench

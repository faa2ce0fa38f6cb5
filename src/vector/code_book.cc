#include "vector/code_book.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/coding.h"

namespace basalt::vector {
namespace {

constexpr size_t kHeadBytes = 32;
// Coordinates by whose errors steps are compared.
constexpr size_t kComparedMax = 1u << 16;
// A distance lies this many standard deviations from what codes say as good as never.
constexpr double kDeviations = 4;

size_t CoordinatesOf(VectorMetric metric, size_t dimension) noexcept {
  return dimension + static_cast<size_t>(metric == VectorMetric::kInnerProduct);
}

double SquaredLength(const float* vector, size_t count) noexcept {
  // Of fixed order, so that every processor gives the same codes.
  double sums[4] = {};
  size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    for (size_t j = 0; j < 4; ++j) {
      sums[j] += static_cast<double>(vector[i + j]) * static_cast<double>(vector[i + j]);
    }
  }
  for (; i < count; ++i) sums[0] += static_cast<double>(vector[i]) * static_cast<double>(vector[i]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// The mean square of what codes of this step are off by.
double MeanSquaredError(const std::vector<float>& centred, float step) {
  double sum = 0;
  for (const float x : centred) {
    const double code = std::clamp(std::floor(static_cast<double>(x / step) + 64), 0.0, 127.0);
    const double error = static_cast<double>(x) - (code - 63.5) * static_cast<double>(step);
    sum += error * error;
  }
  return sum / static_cast<double>(centred.size());
}

}  // namespace

CodeBook::CodeBook(VectorMetric metric, size_t dimension, uint64_t seed)
    : metric_(metric),
      dimension_(dimension),
      code_bytes_((CoordinatesOf(metric, dimension) + kCodeAlignment - 1) / kCodeAlignment *
                  kCodeAlignment),
      seed_(seed),
      centre_(CoordinatesOf(metric, dimension)),
      rotation_(seed, CoordinatesOf(metric, dimension)) {}

double CodeBook::Transform(const float* vector, bool is_query, float* out) const noexcept {
  const double square = SquaredLength(vector, dimension_);
  if (metric_ == VectorMetric::kCosine) {
    const auto scale = static_cast<float>(square > 0 ? 1 / std::sqrt(square) : 0);
    for (size_t i = 0; i < dimension_; ++i) out[i] = vector[i] * scale;
    return square;
  }
  std::memcpy(out, vector, dimension_ * sizeof(float));
  if (metric_ == VectorMetric::kInnerProduct) {
    const double rest = static_cast<double>(norm_max_) * static_cast<double>(norm_max_) - square;
    out[dimension_] = static_cast<float>(is_query || rest <= 0 ? 0 : std::sqrt(rest));
  }
  return square;
}

void CodeBook::Pad(uint8_t* code) const noexcept {
  std::memset(code + centre_.size(), 0, code_bytes_ - centre_.size());
}

size_t CodeBook::Encode(const float* vector, uint8_t* code, float* scratch) const noexcept {
  Transform(vector, /*is_query=*/false, scratch);
  rotation_.Apply(scratch);
  Pad(code);
  return QuantizeTo7Bits(scratch, centre_.data(), 1 / step_, centre_.size(), code);
}

CodeBook::Query CodeBook::EncodeQuery(const float* vector, uint8_t* code,
                                      float* scratch) const noexcept {
  const double square = Transform(vector, /*is_query=*/true, scratch);
  rotation_.Apply(scratch);
  Pad(code);
  QuantizeTo7Bits(scratch, centre_.data(), 1 / step_, centre_.size(), code);
  const double step = step_;
  const double error = static_cast<double>(error_) / (step * step);  // Of a coordinate, in steps.
  const auto coordinates = static_cast<double>(centre_.size());
  Query query{.scale = step * step,
              .bias = 2 * coordinates * error,
              .offset = 0,
              .spread = std::sqrt(2 * error)};
  if (metric_ != VectorMetric::kL2) query.scale /= 2;
  if (metric_ == VectorMetric::kInnerProduct) {
    const double norm = norm_max_;
    query.offset = -(norm * norm + square) / 2;
  }
  return query;
}

double CodeBook::Distance(const Query& query, uint32_t code_distance) noexcept {
  return query.scale * (code_distance - query.bias) + query.offset;
}

double CodeBook::DistanceAtLeast(const Query& query, uint32_t code_distance) noexcept {
  const double length = std::sqrt(std::max(0.0, code_distance - query.bias));
  const double least = std::max(0.0, length - kDeviations * query.spread);
  return query.scale * least * least + query.offset;
}

uint32_t CodeBook::CodeDistanceAtMost(const Query& query, double distance) noexcept {
  const double squared = (distance - query.offset) / query.scale;
  if (squared < 0) return 0;
  const double greatest = std::sqrt(squared) + kDeviations * query.spread;
  const double code_distance = greatest * greatest + query.bias;
  constexpr auto kMax = std::numeric_limits<uint32_t>::max();
  return code_distance < kMax ? static_cast<uint32_t>(code_distance) : kMax;
}

Result<CodeBook> CodeBook::Fit(VectorMetric metric, size_t dimension, uint64_t seed,
                               const float* sample, size_t rows) {
  if (metric > VectorMetric::kCosine) {
    return Status(StatusCode::kInvalidArgument,
                  "codes stand for vectors of numbers: the metric must be L2, inner product or "
                  "cosine");
  }
  if (dimension == 0 || dimension > kVectorDimensionMax || rows == 0) {
    return Status(StatusCode::kInvalidArgument,
                  "codes are made from a sample of at least one vector of 1 to " +
                      std::to_string(kVectorDimensionMax) + " elements: given " +
                      std::to_string(rows) + " of " + std::to_string(dimension));
  }
  CodeBook book(metric, dimension, seed);
  for (size_t i = 0; i < rows; ++i) {
    const double square = SquaredLength(sample + i * dimension, dimension);
    book.norm_max_ = std::max(book.norm_max_, static_cast<float>(std::sqrt(square)));
  }
  const size_t coordinates = book.centre_.size();
  std::vector<float> rotated(rows * coordinates);
  std::vector<double> means(coordinates);
  for (size_t i = 0; i < rows; ++i) {
    float* const row = rotated.data() + i * coordinates;
    book.Transform(sample + i * dimension, /*is_query=*/false, row);
    book.rotation_.Apply(row);
    for (size_t j = 0; j < coordinates; ++j) means[j] += static_cast<double>(row[j]);
  }
  for (size_t j = 0; j < coordinates; ++j) {
    book.centre_[j] = static_cast<float>(means[j] / static_cast<double>(rows));
  }
  std::vector<float> centred;
  const size_t every = rotated.size() / kComparedMax + 1;
  double square = 0;
  for (size_t i = 0; i < rotated.size(); i += every) {
    centred.push_back(rotated[i] - book.centre_[i % coordinates]);
    square += static_cast<double>(centred.back()) * static_cast<double>(centred.back());
  }
  // The least error lies where the codes reach some standard deviations far.
  const double deviation = std::sqrt(square / static_cast<double>(centred.size()));
  double least = std::numeric_limits<double>::infinity();
  for (double reach = 2; deviation > 0 && reach < 20; reach *= 1.08) {
    const auto step = static_cast<float>(reach * deviation / 64);
    const double error = MeanSquaredError(centred, step);
    if (error >= least || !std::isfinite(1 / step)) continue;
    least = error;
    book.step_ = step;
    book.error_ = static_cast<float>(error);
  }
  return book;
}

void CodeBook::AppendTo(std::string* out) const {
  out->push_back(static_cast<char>(metric_));
  out->append(3, '\0');
  base::Append(out, static_cast<uint32_t>(dimension_));
  base::Append(out, seed_);
  for (const float number : {step_, norm_max_, error_}) {
    base::Append(out, std::bit_cast<uint32_t>(number));
  }
  base::Append(out, uint32_t{0});
  for (const float number : centre_) base::Append(out, std::bit_cast<uint32_t>(number));
}

Result<CodeBook> CodeBook::Parse(std::string_view* bytes) {
  const Status corruption(StatusCode::kCorruption,
                          "a code book of vectors is damaged: rebuild it from the vectors");
  if (bytes->size() < kHeadBytes) return corruption;
  const char* const head = bytes->data();
  const auto metric = static_cast<VectorMetric>(head[0]);
  const auto dimension = base::Load<uint32_t>(head + 4);
  const bool has_zeros =
      head[1] == 0 && head[2] == 0 && head[3] == 0 && base::Load<uint32_t>(head + 28) == 0;
  if (metric > VectorMetric::kCosine || dimension == 0 || dimension > kVectorDimensionMax ||
      !has_zeros) {
    return corruption;
  }
  const size_t size = kHeadBytes + 4 * CoordinatesOf(metric, dimension);
  if (bytes->size() < size) return corruption;
  CodeBook book(metric, dimension, base::Load<uint64_t>(head + 8));
  const auto number_at = [head](size_t at) {
    return std::bit_cast<float>(base::Load<uint32_t>(head + at));
  };
  book.step_ = number_at(16);
  book.norm_max_ = number_at(20);
  book.error_ = number_at(24);
  bool is_finite = std::isfinite(1 / book.step_) && book.step_ > 0 &&
                   std::isfinite(book.norm_max_) && book.norm_max_ >= 0 &&
                   std::isfinite(book.error_) && book.error_ >= 0;
  for (size_t i = 0; i < book.centre_.size(); ++i) {
    book.centre_[i] = number_at(kHeadBytes + 4 * i);
    is_finite = is_finite && std::isfinite(book.centre_[i]);
  }
  if (!is_finite) return corruption;
  bytes->remove_prefix(size);
  return book;
}

}  // namespace basalt::vector

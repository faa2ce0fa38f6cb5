#include "vector/code_book.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "vector/test_vectors.h"

namespace basalt::vector {
namespace {

std::vector<float> Draw(size_t count, Clusters* clusters) {
  std::vector<float> vectors;
  for (size_t i = 0; i < count; ++i) {
    const auto vector = clusters->Next();
    vectors.insert(vectors.end(), vector.begin(), vector.end());
  }
  return vectors;
}

uint32_t CodeDistance(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
  uint32_t distance;
  ProcessorKernels().codes.to_rows(a.data(), b.data(), 0, 1, a.size(), &distance);
  return distance;
}

TEST(CodeBook, DistancesOfCodesAreAboutThoseOfTheMetric) {
  base::Random random(1);
  for (const VectorMetric metric :
       {VectorMetric::kL2, VectorMetric::kCosine, VectorMetric::kInnerProduct}) {
    for (const size_t dimension : {5u, 100u, 384u}) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(metric) << ", " << dimension);
      Clusters clusters(50, dimension, 0.7, &random);
      const auto sample = Draw(500, &clusters);
      const auto book = CodeBook::Fit(metric, dimension, 9, sample.data(), 500);
      ASSERT_TRUE(book.has_value());
      EXPECT_EQ(book->code_bytes() % kCodeAlignment, 0u);
      EXPECT_GE(book->code_bytes(), dimension);
      const auto exact = VectorDistance::Create(metric, VectorElement::kFloat32, dimension);
      std::vector<uint8_t> query_code(book->code_bytes());
      std::vector<uint8_t> code(book->code_bytes());
      std::vector<float> scratch(book->scratch_floats());
      size_t below = 0;
      size_t beyond_radius = 0;
      double error = 0;
      double spread = 0;
      for (size_t i = 0; i < 1'000; ++i) {
        const auto query = clusters.Next();
        const float* const row = sample.data() + random.Below(500) * dimension;
        const CodeBook::Query q =
            book->EncodeQuery(query.data(), query_code.data(), scratch.data());
        book->Encode(row, code.data(), scratch.data());
        const uint32_t distance = CodeDistance(query_code, code);
        const double expected = (*exact)(query.data(), row);
        EXPECT_LE(CodeBook::DistanceAtLeast(q, distance), CodeBook::Distance(q, distance) + 1e-6);
        below += static_cast<size_t>(expected < CodeBook::DistanceAtLeast(q, distance) - 1e-5);
        beyond_radius +=
            static_cast<size_t>(distance > CodeBook::CodeDistanceAtMost(q, expected + 1e-5));
        error += std::abs(CodeBook::Distance(q, distance) - expected);
        spread += std::abs(expected);
      }
      // Products are small beside the lengths that codes keep.
      EXPECT_LT(error / spread, metric == VectorMetric::kInnerProduct ? 0.1 : 0.02);
      EXPECT_LE(below, 10u);  // Of a thousand.
      EXPECT_LE(beyond_radius, 10u);
    }
  }
}

// The code of the vector with the greatest product is the nearest, though others are longer.
TEST(CodeBook, InnerProductsOrderAsDistances) {
  base::Random random(2);
  constexpr size_t kDimension = 64;
  std::vector<float> rows;
  for (size_t i = 0; i < 500; ++i) {
    const double length = 0.2 + 3 * random.NextDouble();
    for (size_t j = 0; j < kDimension; ++j) {
      rows.push_back(static_cast<float>(length * Gaussian(&random)));
    }
  }
  const auto book = CodeBook::Fit(VectorMetric::kInnerProduct, kDimension, 1, rows.data(), 500);
  const auto exact =
      VectorDistance::Create(VectorMetric::kInnerProduct, VectorElement::kFloat32, kDimension);
  std::vector<uint8_t> query_code(book->code_bytes());
  std::vector<uint8_t> code(book->code_bytes());
  std::vector<float> scratch(book->scratch_floats());
  size_t agree = 0;
  for (int i = 0; i < 100; ++i) {
    std::vector<float> query(kDimension);
    for (float& x : query) x = static_cast<float>(Gaussian(&random));
    book->EncodeQuery(query.data(), query_code.data(), scratch.data());
    std::vector<std::pair<uint32_t, size_t>> by_code;
    std::vector<std::pair<float, size_t>> by_product;
    for (size_t row = 0; row < 500; ++row) {
      book->Encode(rows.data() + row * kDimension, code.data(), scratch.data());
      by_code.emplace_back(CodeDistance(query_code, code), row);
      by_product.emplace_back((*exact)(query.data(), rows.data() + row * kDimension), row);
    }
    std::ranges::sort(by_code);
    const size_t best = std::ranges::min_element(by_product)->second;
    for (size_t j = 0; j < 5; ++j) agree += static_cast<size_t>(by_code[j].second == best);
  }
  EXPECT_GE(agree, 98u);
}

TEST(CodeBook, IsTheSameWhenItIsReadBack) {
  base::Random random(3);
  Clusters clusters(20, 33, 0.7, &random);
  const auto sample = Draw(200, &clusters);
  for (const VectorMetric metric :
       {VectorMetric::kL2, VectorMetric::kCosine, VectorMetric::kInnerProduct}) {
    const auto book = CodeBook::Fit(metric, 33, 77, sample.data(), 200);
    std::string bytes;
    book->AppendTo(&bytes);
    const std::string behind = "behind";
    std::string all = bytes + behind;
    std::string_view rest = all;
    const auto read = CodeBook::Parse(&rest);
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(rest, behind);
    std::string again;
    read->AppendTo(&again);
    EXPECT_EQ(again, bytes);
    std::vector<float> scratch(book->scratch_floats());
    for (int i = 0; i < 20; ++i) {
      const auto vector = clusters.Next();
      std::vector<uint8_t> a(book->code_bytes());
      std::vector<uint8_t> b(book->code_bytes());
      book->Encode(vector.data(), a.data(), scratch.data());
      read->Encode(vector.data(), b.data(), scratch.data());
      EXPECT_EQ(a, b);
    }
    for (size_t size = 0; size < bytes.size(); ++size) {
      std::string_view cut(bytes.data(), size);
      EXPECT_EQ(CodeBook::Parse(&cut).status().code(), StatusCode::kCorruption);
    }
    for (const size_t zero : {1, 3, 28, 31}) {
      std::string other = bytes;
      other[zero] = 1;
      std::string_view parsed = other;
      EXPECT_EQ(CodeBook::Parse(&parsed).status().code(), StatusCode::kCorruption);
    }
  }
}

TEST(CodeBook, OfEqualVectorsOrExtremesStillGivesCodes) {
  for (const float value : {0.0F, 1.0F, 1e-38F, 1e30F}) {
    const std::vector<float> sample(40, value);
    for (const VectorMetric metric :
         {VectorMetric::kL2, VectorMetric::kCosine, VectorMetric::kInnerProduct}) {
      const auto book = CodeBook::Fit(metric, 8, 1, sample.data(), 5);
      ASSERT_TRUE(book.has_value());
      std::vector<uint8_t> a(book->code_bytes());
      std::vector<uint8_t> b(book->code_bytes());
      std::vector<float> scratch(book->scratch_floats());
      book->Encode(sample.data(), a.data(), scratch.data());
      book->Encode(sample.data() + 8, b.data(), scratch.data());
      EXPECT_EQ(a, b);
      EXPECT_LE(*std::ranges::max_element(a), 127);
    }
  }
}

TEST(CodeBook, CountsWhatLiesBeyondItsEnds) {
  base::Random random(4);
  Clusters clusters(20, 64, 0.7, &random);
  const auto sample = Draw(500, &clusters);
  const auto book = CodeBook::Fit(VectorMetric::kL2, 64, 1, sample.data(), 500);
  std::vector<uint8_t> code(book->code_bytes());
  std::vector<float> scratch(book->scratch_floats());
  size_t beyond = 0;
  size_t beyond_moved = 0;
  for (int i = 0; i < 100; ++i) {
    auto vector = clusters.Next();
    beyond += book->Encode(vector.data(), code.data(), scratch.data());
    for (float& x : vector) x *= 5;
    beyond_moved += book->Encode(vector.data(), code.data(), scratch.data());
  }
  EXPECT_LT(beyond, 64u);  // Of 6,400.
  EXPECT_GT(beyond_moved, 640u);
}

TEST(CodeBook, RefusesWhatHasNoCodes) {
  const float sample[] = {1, 2};
  const auto code = [&](VectorMetric metric, size_t dimension, size_t rows) {
    return CodeBook::Fit(metric, dimension, 1, sample, rows).status().code();
  };
  EXPECT_EQ(code(VectorMetric::kHamming, 2, 1), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(VectorMetric::kL2, 0, 1), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(VectorMetric::kL2, kVectorDimensionMax + 1, 1), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(VectorMetric::kL2, 2, 0), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(VectorMetric::kL2, 2, 1), StatusCode::kOk);
}

}  // namespace
}  // namespace basalt::vector

#include "embed/kernels.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/test_dispatch.h"

namespace basalt::embed {
namespace {

std::vector<float> AnyNumbers(base::Random* random, size_t count) {
  std::vector<float> numbers(count);
  for (float& number : numbers) number = static_cast<float>(2 * random->NextDouble() - 1);
  return numbers;
}

float Rounded(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return std::bit_cast<float>(((bits + 0x7FFF + (bits >> 16 & 1)) >> 16) << 16);
}

/// Runs with the kernels of each instruction set that this processor has.
void WithEachTarget(const std::function<void(const Kernels&)>& test) {
  for (const int64_t target : base::DispatchTargets()) {
    const base::ForcedTarget forced(target);
    const Kernels kernels = ChosenKernels();
    SCOPED_TRACE(kernels.instruction_set);
    test(kernels);
  }
}

TEST(EmbedKernels, ProductsEqualThoseOfPlainLoops) {
  WithEachTarget([](const Kernels& kernels) {
    base::Random random(1);
    for (const size_t rows : {1, 2, 5, 6, 7, 12, 13, 25, 40}) {
      for (const size_t columns : {1, 7, 16, 32, 33, 70}) {
        for (const size_t depth : {2, 6, 32, 64}) {
          const size_t stride = depth + random.Below(3);
          const size_t out_stride = kernels.RoundUp(columns) + random.Below(3);
          const std::vector<float> x = AnyNumbers(&random, rows * stride);
          const std::vector<float> weights = AnyNumbers(&random, columns * depth);
          std::vector<float> bias = AnyNumbers(&random, columns);
          bias.resize(kernels.RoundUp(columns));
          std::vector<float> out(rows * out_stride, 99);
          std::vector<float> out_bfloat16 = out;
          std::vector<float> packed(kernels.PackedSize(columns, depth));
          std::vector<uint16_t> packed_bfloat16(packed.size());
          std::vector<uint16_t> scratch(rows * depth);
          // The second way round: the same matrix, transposed.
          std::vector<float> transposed(columns * depth);
          for (size_t c = 0; c < columns; ++c) {
            for (size_t k = 0; k < depth; ++k) transposed[k * columns + c] = weights[c * depth + k];
          }
          const Rows of_x = {x.data(), stride, rows};
          const float* const with_bias = random.OneIn(2) ? bias.data() : nullptr;
          kernels.pack_float(transposed.data(), 1, columns, columns, depth, packed.data());
          kernels.multiply_float(of_x, packed.data(), columns, depth, with_bias, out.data(),
                                 out_stride);
          kernels.pack_bfloat16(weights.data(), depth, 1, columns, depth, packed_bfloat16.data());
          kernels.multiply_bfloat16(of_x, packed_bfloat16.data(), columns, depth, with_bias,
                                    out_bfloat16.data(), out_stride, scratch.data());
          for (size_t r = 0; r < rows; ++r) {
            for (size_t c = 0; c < out_stride; ++c) {
              double sum = c < columns && with_bias != nullptr ? with_bias[c] : 0;
              double of_rounded = sum;
              for (size_t k = 0; k < depth && c < columns; ++k) {
                const float weight = weights[c * depth + k];
                sum += double{x[r * stride + k]} * weight;
                of_rounded += double{x[r * stride + k]} * Rounded(weight);
              }
              const bool is_result = c < kernels.RoundUp(columns);
              ASSERT_NEAR(out[r * out_stride + c], is_result ? sum : 99, 1e-5);
              ASSERT_NEAR(out_bfloat16[r * out_stride + c], is_result ? of_rounded : 99, 1e-5);
            }
          }
        }
      }
    }
  });
}

TEST(EmbedKernels, FunctionsEqualThoseOfTheStandardLibrary) {
  WithEachTarget([](const Kernels& kernels) {
    base::Random random(2);
    for (const size_t count : {1, 3, 8, 15, 16, 17, 100, 384}) {
      std::vector<float> x = AnyNumbers(&random, count);
      for (float& each : x) each *= random.OneIn(5) ? 100.0F : 4.0F;
      // A canary behind the numbers.
      const auto with_end = [](std::vector<float> values) {
        values.push_back(77);
        return values;
      };

      std::vector<float> gelu = with_end(x);
      kernels.gelu(gelu.data(), count);
      for (size_t i = 0; i < count; ++i) {
        const double expected = 0.5 * x[i] * (1 + std::erf(x[i] / std::sqrt(2.0)));
        ASSERT_NEAR(gelu[i], expected, 1e-6 * std::max(1.0F, std::fabs(x[i])));
      }
      ASSERT_EQ(gelu[count], 77);

      std::vector<float> softmax = with_end(x);
      kernels.softmax(softmax.data(), count, 0.3F);
      double sum = 0;
      for (const float each : x) sum += std::exp(0.3 * (double{each} - x[0]));
      for (size_t i = 0; i < count; ++i) {
        ASSERT_NEAR(softmax[i], std::exp(0.3 * (double{x[i]} - x[0])) / sum, 1e-6);
      }
      ASSERT_EQ(softmax[count], 77);

      const std::vector<float> residual = AnyNumbers(&random, count);
      const std::vector<float> weight = AnyNumbers(&random, count);
      const std::vector<float> bias = AnyNumbers(&random, count);
      std::vector<float> norm = with_end(x);
      kernels.layer_norm(norm.data(), residual.data(), count, weight.data(), bias.data(), 1e-3F);
      double mean = 0;
      for (size_t i = 0; i < count; ++i)
        mean += (double{x[i]} + residual[i]) / static_cast<double>(count);
      double variance = 0;
      for (size_t i = 0; i < count; ++i) {
        variance += std::pow(double{x[i]} + residual[i] - mean, 2) / static_cast<double>(count);
      }
      for (size_t i = 0; i < count; ++i) {
        const double off = (double{x[i]} + residual[i] - mean) / std::sqrt(variance + 1e-3);
        ASSERT_NEAR(norm[i], off * weight[i] + bias[i], 2e-4);
      }
      ASSERT_EQ(norm[count], 77);

      std::vector<float> added = with_end(x);
      kernels.add(added.data(), residual.data(), count);
      for (size_t i = 0; i < count; ++i) ASSERT_EQ(added[i], x[i] + residual[i]);
      ASSERT_EQ(added[count], 77);
    }
  });
}

TEST(EmbedKernels, TheProductByAvx512Bf16RoundsRowsAndNothingElse) {
  Kernels kernels = ChosenKernels();
  const Kernels plain = kernels;
  if (!AddBFloat16Product(&kernels)) GTEST_SKIP() << "this processor has no AVX512-BF16";
  base::Random random(3);
  for (const size_t rows : {1, 7, 12, 13, 24, 30}) {
    for (const size_t depth : {2, 16, 18, 384}) {
      const size_t columns = 40;
      const size_t stride = kernels.RoundUp(columns);
      std::vector<float> x = AnyNumbers(&random, rows * depth);
      const std::vector<float> weights = AnyNumbers(&random, columns * depth);
      const std::vector<float> bias = AnyNumbers(&random, stride);
      std::vector<uint16_t> packed(kernels.PackedSize(columns, depth));
      kernels.pack_bfloat16(weights.data(), depth, 1, columns, depth, packed.data());
      std::vector<uint16_t> scratch(rows * depth);
      std::vector<float> found(rows * stride);
      std::vector<float> expected(rows * stride);
      const Rows of_x = {x.data(), depth, rows};
      kernels.multiply_bfloat16(of_x, packed.data(), columns, depth, bias.data(), found.data(),
                                stride, scratch.data());
      for (float& each : x) each = Rounded(each);
      plain.multiply_bfloat16(of_x, packed.data(), columns, depth, bias.data(), expected.data(),
                              stride, scratch.data());
      for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 2e-5);
    }
  }
}

}  // namespace
}  // namespace basalt::embed

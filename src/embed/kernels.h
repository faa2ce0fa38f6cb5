#pragma once

#include <cstddef>
#include <cstdint>

// The arithmetic of a transformer: products of matrices and what stands between them, compiled for
// each instruction set, the processor's best chosen when the program runs (as vector/kernels.h).
// Numbers are float32. Weights are bfloat16, the upper half of a float32: they are widened as they
// are loaded, and sums stay float32. That halves what is read from memory, which is most of the
// cost of a short text.
//
// A product is rows * weights^T: each element is the inner product of a row and a column of the
// result, of `depth` elements. The weights of `panel` neighbouring columns, two registers of them,
// are a panel: element by element along the depth, those of the columns side by side. In a panel of
// bfloat16 two elements of a column, which follow each other along the depth, share a 32-bit word:
// a shift and a mask widen them, and AVX512-BF16 multiplies and adds both at once. With the latter
// the rows are rounded to bfloat16, too.
//
// The inner loop keeps two registers of sums for each of up to 12 rows (6 where there are only 16
// registers); each pair of loads from a panel serves all of these. A panel is read once for so many
// rows; the rows, which all panels need, stay in the first-level cache.
//
// Rows are contiguous, `stride` elements apart. Where the columns of a result are no multiple of
// the panel, the row goes on to the next multiple: the stride has room for it.

namespace basalt::embed {

/// A matrix of rows.
struct Rows {
  const float* data;
  size_t stride;
  size_t count;
};

struct Kernels {
  const char* instruction_set;
  size_t panel;  ///< Columns; a power of two, at most 64.

  /// Element (column, k) of the source is `source[column * column_stride + k * depth_stride]`.
  /// Columns beyond `columns`, up to the next multiple of the panel, become zero. `out` has
  /// PackedSize() elements. Of bfloat16 the depth is even.
  void (*pack_bfloat16)(const float* source, size_t column_stride, size_t depth_stride,
                        size_t columns, size_t depth, uint16_t* out) noexcept;
  void (*pack_float)(const float* source, size_t column_stride, size_t depth_stride, size_t columns,
                     size_t depth, float* out) noexcept;

  /// out = rows * weights^T + bias. `bias` has a multiple of the panel, or is null. `scratch` has
  /// room for `rows.count * depth` elements.
  void (*multiply_bfloat16)(const Rows& rows, const uint16_t* packed, size_t columns, size_t depth,
                            const float* bias, float* out, size_t out_stride,
                            uint16_t* scratch) noexcept;
  void (*multiply_float)(const Rows& rows, const float* packed, size_t columns, size_t depth,
                         const float* bias, float* out, size_t out_stride) noexcept;

  /// x = x / 2 * (1 + erf(x / sqrt(2))), to 1e-6 of the greatest magnitude around 1.
  void (*gelu)(float* x, size_t count) noexcept;
  /// Replaces a row x by exp(scale * x) / the sum of these.
  void (*softmax)(float* row, size_t count, float scale) noexcept;
  /// x = (x + residual - mean) / sqrt(variance + epsilon) * weight + bias; `residual` may be null.
  void (*layer_norm)(float* row, const float* residual, size_t count, const float* weight,
                     const float* bias, float epsilon) noexcept;
  /// sum += row
  void (*add)(float* sum, const float* row, size_t count) noexcept;

  size_t RoundUp(size_t columns) const noexcept { return (columns + panel - 1) / panel * panel; }
  size_t PackedSize(size_t columns, size_t depth) const noexcept {
    return RoundUp(columns) * depth;
  }
};

/// Of the best instruction set that this processor has.
const Kernels& ProcessorKernels() noexcept;
/// Of the instruction set that Highway has chosen, which a test can change (base/test_dispatch.h).
Kernels ChosenKernels() noexcept;
/// Puts the product by AVX512-BF16 into the kernels of AVX-512. False: the processor has none.
bool AddBFloat16Product(Kernels* kernels) noexcept;

}  // namespace basalt::embed

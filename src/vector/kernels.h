#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "basalt/vector.h"

// Distances from one vector to many: the loops that every search spends its time in, compiled for
// each instruction set, the processor's best chosen when the program runs.
//
// A table of functions, Kernels, is made by kernels.cc for each target of Highway: SSSE3, SSE4,
// AVX2, AVX-512 ("AVX3"), NEON, and plain C++ ("SCALAR"). On x86-64, avx512_kernels.cc replaces
// what VNNI, BF16 and VPOPCNTDQ do in fewer steps.
//
// Sums are kept in at least four registers, so that an addition need not wait for the one before.
// Four rows share each load of the query. The last elements of a row are loaded by a mask, or
// together with some before them, which then count as zero: nothing outside a row is touched, and
// rows may lie at any address.
//
// Cost. A row that lies in the first-level cache costs its loads: two of 32 or one of 64 bytes a
// cycle, and a quarter as many for the query. 512 floats are 40 loads of 64 bytes: 11 ns at 3.7
// GHz. Without sharing the query they are 64: 17 ns. A row in memory costs reading it: at 20 GB/s
// those 2 KiB are 105 ns, whatever the instructions. Codes are a quarter of that: only fewer bytes
// help. bench/vector_bench.cc measures both.

namespace basalt::vector {

struct DistanceFunctions {
  /// To rows that lie `stride` bytes apart. They and the query have `dimension` elements.
  void (*to_rows)(const void* query, const void* rows, size_t stride, size_t count,
                  size_t dimension, float* distances) noexcept;
  /// To rows anywhere.
  void (*to_each)(const void* query, const void* const* rows, size_t count, size_t dimension,
                  float* distances) noexcept;
};

/// L2 distances, squared, between codes: bytes of 0 to 127. `bytes` is a multiple of
/// kCodeAlignment, at most 4 * kVectorDimensionMax.
struct CodeFunctions {
  void (*to_rows)(const uint8_t* query, const uint8_t* rows, size_t stride, size_t count,
                  size_t bytes, uint32_t* distances) noexcept;
  void (*to_each)(const uint8_t* query, const uint8_t* const* rows, size_t count, size_t bytes,
                  uint32_t* distances) noexcept;
};
inline constexpr size_t kCodeAlignment = 16;

/// The functions of one instruction set.
struct Kernels {
  static constexpr size_t kNumberTypes = 5;  ///< Up to VectorElement::kUint8.
  static constexpr size_t kMetrics = 3;      ///< Up to VectorMetric::kCosine.

  const char* instruction_set;
  std::array<std::array<DistanceFunctions, kMetrics>, kNumberTypes> numbers;  ///< [element][metric]
  DistanceFunctions hamming;
  CodeFunctions codes;

  /// Null: the metric does not go with the element type.
  const DistanceFunctions* Find(VectorMetric metric, VectorElement element) const noexcept;
};

/// Of the best instruction set that this processor has.
const Kernels& ProcessorKernels() noexcept;

/// Of the instruction set that Highway has chosen, which a test can change (base/test_dispatch.h).
Kernels ChosenKernels() noexcept;
/// Puts what the processor has beyond Highway's AVX-512 into its kernels. False: it has nothing.
bool AddAvx512Extensions(Kernels* kernels) noexcept;

}  // namespace basalt::vector

#include "vector/kernels.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/test_dispatch.h"
#include "vector/test_vectors.h"

namespace basalt::vector {
namespace {

using Bytes = std::vector<uint8_t>;

// All that this processor can run.
std::vector<Kernels> AllKernels() {
  std::vector<Kernels> all;
  for (const int64_t target : base::DispatchTargets()) {
    const base::ForcedTarget forced(target);
    all.push_back(ChosenKernels());
    Kernels extended = all.back();
    if (AddAvx512Extensions(&extended)) all.push_back(extended);
  }
  return all;
}

// Every dimension up to 300, and some around what registers and loops divide by.
std::vector<size_t> SomeDimensions() {
  std::vector<size_t> dimensions;
  for (size_t i = 1; i <= 300; ++i) dimensions.push_back(i);
  for (const size_t i : {383, 384, 511, 512, 513, 767, 768, 1000, 1023, 1024, 1025, 1536, 2047,
                         2048, 3000, 3072, 4095, 4096}) {
    dimensions.push_back(i);
  }
  return dimensions;
}

struct Pair {
  VectorMetric metric;
  VectorElement element;
};

std::vector<Pair> AllPairs() {
  std::vector<Pair> pairs = {{VectorMetric::kHamming, VectorElement::kBit}};
  for (const VectorElement element :
       {VectorElement::kFloat32, VectorElement::kFloat16, VectorElement::kBFloat16,
        VectorElement::kInt8, VectorElement::kUint8}) {
    for (const VectorMetric metric :
         {VectorMetric::kL2, VectorMetric::kInnerProduct, VectorMetric::kCosine}) {
      pairs.push_back({metric, element});
    }
  }
  return pairs;
}

std::string Name(const Kernels& kernels, const Pair& pair, size_t dimension) {
  return std::string(kernels.instruction_set) + ", metric " +
         std::to_string(static_cast<int>(pair.metric)) + ", element " +
         std::to_string(static_cast<int>(pair.element)) + ", dimension " +
         std::to_string(dimension);
}

// Memory that ends, or begins, where a page begins that cannot be touched.
class GuardedBytes {
 public:
  explicit GuardedBytes(size_t bytes) : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    inner_ = (bytes + page_ - 1) / page_ * page_;
    whole_ = static_cast<uint8_t*>(mmap(nullptr, inner_ + 2 * page_, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(whole_, page_, PROT_NONE);
    mprotect(whole_ + page_ + inner_, page_, PROT_NONE);
  }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;
  ~GuardedBytes() { munmap(whole_, inner_ + 2 * page_); }

  uint8_t* AtBegin(const Bytes& bytes) {
    return static_cast<uint8_t*>(std::memcpy(whole_ + page_, bytes.data(), bytes.size()));
  }
  uint8_t* AtEnd(const Bytes& bytes) {
    return static_cast<uint8_t*>(
        std::memcpy(whole_ + page_ + inner_ - bytes.size(), bytes.data(), bytes.size()));
  }

 private:
  size_t page_;
  size_t inner_;
  uint8_t* whole_;
};

TEST(Kernels, AgreeWithFloat64ForEveryDimension) {
  const uint64_t seed = 45;
  for (const Kernels& kernels : AllKernels()) {
    base::Random random(seed);
    for (const Pair& pair : AllPairs()) {
      const DistanceFunctions& functions = *kernels.Find(pair.metric, pair.element);
      for (const size_t dimension : SomeDimensions()) {
        const size_t bytes = VectorBytes(pair.element, dimension);
        const size_t rows = 1 + random.Below(dimension > 300 ? 5 : 7);
        const size_t stride = bytes + random.Below(64);
        const size_t shift = random.Below(64);
        const Bytes query = RandomVector(pair.element, dimension, &random);
        Bytes memory(shift + rows * stride);
        std::vector<const void*> each;
        for (size_t i = 0; i < rows; ++i) {
          const Bytes row = RandomVector(pair.element, dimension, &random);
          each.push_back(std::memcpy(memory.data() + shift + i * stride, row.data(), row.size()));
        }
        std::vector<float> strided(rows);
        std::vector<float> gathered(rows);
        functions.to_rows(query.data(), memory.data() + shift, stride, rows, dimension,
                          strided.data());
        functions.to_each(query.data(), each.data(), rows, dimension, gathered.data());
        for (size_t i = 0; i < rows; ++i) {
          const Reference reference =
              ReferenceDistance(pair.metric, pair.element, query.data(), each[i], dimension);
          ASSERT_NEAR(strided[i], reference.distance, reference.bound)
              << Name(kernels, pair, dimension) << ", row " << i << " of " << rows;
          ASSERT_NEAR(gathered[i], reference.distance, reference.bound)
              << Name(kernels, pair, dimension) << ", gathered row " << i << " of " << rows;
        }
      }
    }
  }
}

TEST(Kernels, TakeQueryAndRowAtEveryAlignment) {
  base::Random random(46);
  for (const Kernels& kernels : AllKernels()) {
    for (const Pair& pair : AllPairs()) {
      for (const size_t dimension : {37u, 128u, 200u}) {
        const Bytes query = RandomVector(pair.element, dimension, &random);
        const Bytes row = RandomVector(pair.element, dimension, &random);
        const Reference reference =
            ReferenceDistance(pair.metric, pair.element, query.data(), row.data(), dimension);
        Bytes query_memory(query.size() + 64);
        Bytes row_memory(row.size() + 64);
        for (size_t at = 0; at < 64; ++at) {
          std::ranges::copy(query, query_memory.begin() + static_cast<ptrdiff_t>(63 - at));
          std::ranges::copy(row, row_memory.begin() + static_cast<ptrdiff_t>(at));
          float distance = 0;
          kernels.Find(pair.metric, pair.element)
              ->to_rows(query_memory.data() + 63 - at, row_memory.data() + at, 0, 1, dimension,
                        &distance);
          ASSERT_NEAR(distance, reference.distance, reference.bound)
              << Name(kernels, pair, dimension) << ", row at " << at;
        }
      }
    }
  }
}

TEST(Kernels, ReadNothingBesideRows) {
  base::Random random(47);
  for (const Kernels& kernels : AllKernels()) {
    for (const Pair& pair : AllPairs()) {
      const DistanceFunctions& functions = *kernels.Find(pair.metric, pair.element);
      for (size_t dimension = 1; dimension <= 200; ++dimension) {
        const Bytes query = RandomVector(pair.element, dimension, &random);
        const Bytes row = RandomVector(pair.element, dimension, &random);
        const Reference reference =
            ReferenceDistance(pair.metric, pair.element, query.data(), row.data(), dimension);
        GuardedBytes query_memory(query.size());
        GuardedBytes row_memory(row.size());
        for (const bool at_end : {false, true}) {
          const uint8_t* const q = at_end ? query_memory.AtEnd(query) : query_memory.AtBegin(query);
          const uint8_t* const r = at_end ? row_memory.AtEnd(row) : row_memory.AtBegin(row);
          const std::vector<const void*> rows(5, r);
          std::vector<float> distances(5);
          functions.to_each(q, rows.data(), rows.size(), dimension, distances.data());
          for (const float distance : distances) {
            ASSERT_NEAR(distance, reference.distance, reference.bound)
                << Name(kernels, pair, dimension);
          }
        }
      }
    }
  }
}

TEST(Kernels, CompareRowsThatDoNotFitTheFirstCache) {
  constexpr size_t kDimension = 100;
  constexpr size_t kRows = 1'003;
  base::Random random(48);
  for (const Kernels& kernels : AllKernels()) {
    for (const Pair& pair : AllPairs()) {
      const size_t bytes = VectorBytes(pair.element, kDimension);
      const Bytes query = RandomVector(pair.element, kDimension, &random);
      Bytes memory;
      std::vector<const void*> each;
      for (size_t i = 0; i < kRows; ++i) {
        const Bytes row = RandomVector(pair.element, kDimension, &random);
        memory.insert(memory.end(), row.begin(), row.end());
      }
      for (size_t i = 0; i < kRows; ++i) each.push_back(memory.data() + i * bytes);
      std::vector<float> strided(kRows);
      std::vector<float> gathered(kRows);
      const DistanceFunctions& functions = *kernels.Find(pair.metric, pair.element);
      functions.to_rows(query.data(), memory.data(), bytes, kRows, kDimension, strided.data());
      functions.to_each(query.data(), each.data(), kRows, kDimension, gathered.data());
      for (size_t i = 0; i < kRows; ++i) {
        const Reference reference =
            ReferenceDistance(pair.metric, pair.element, query.data(), each[i], kDimension);
        ASSERT_NEAR(strided[i], reference.distance, reference.bound)
            << Name(kernels, pair, kDimension);
        ASSERT_NEAR(gathered[i], reference.distance, reference.bound)
            << Name(kernels, pair, kDimension);
      }
    }
  }
}

TEST(Kernels, GreatestSumsOfIntegersAreExact) {
  const size_t dimension = kVectorDimensionMax;
  const auto distance = [&](const Kernels& kernels, VectorMetric metric, VectorElement element,
                            int a, int b) {
    const Bytes query(dimension, static_cast<uint8_t>(a));
    const Bytes row(dimension, static_cast<uint8_t>(b));
    float result = 0;
    kernels.Find(metric, element)->to_rows(query.data(), row.data(), 0, 1, dimension, &result);
    return result;
  };
  const auto n = static_cast<float>(dimension);
  for (const Kernels& kernels : AllKernels()) {
    SCOPED_TRACE(kernels.instruction_set);
    const auto i8 = VectorElement::kInt8;
    const auto u8 = VectorElement::kUint8;
    EXPECT_EQ(distance(kernels, VectorMetric::kL2, i8, -128, 127), 65'025 * n);
    EXPECT_EQ(distance(kernels, VectorMetric::kL2, i8, 127, -128), 65'025 * n);
    EXPECT_EQ(distance(kernels, VectorMetric::kL2, u8, 0, 255), 65'025 * n);
    EXPECT_EQ(distance(kernels, VectorMetric::kL2, u8, 255, 255), 0);
    EXPECT_EQ(distance(kernels, VectorMetric::kInnerProduct, i8, -128, -128), -16'384 * n);
    EXPECT_EQ(distance(kernels, VectorMetric::kInnerProduct, i8, 127, -128), 16'256 * n);
    EXPECT_EQ(distance(kernels, VectorMetric::kInnerProduct, i8, 0, -128), 0);
    EXPECT_EQ(distance(kernels, VectorMetric::kInnerProduct, u8, 255, 255), -65'025 * n);
    EXPECT_EQ(distance(kernels, VectorMetric::kInnerProduct, u8, 255, 0), 0);
    EXPECT_EQ(distance(kernels, VectorMetric::kCosine, i8, -128, 127), 2);
    EXPECT_NEAR(distance(kernels, VectorMetric::kCosine, u8, 255, 1), 0, 1e-15);
  }
}

TEST(Kernels, CodesAreComparedExactly) {
  base::Random random(49);
  for (const Kernels& kernels : AllKernels()) {
    for (size_t bytes = kCodeAlignment; bytes <= 4'096; bytes += random.Between(1, 9) * 16) {
      for (const size_t rows : {1u, 2u, 3u, 4u, 5u, 8u, 31u}) {
        Bytes query(bytes);
        for (uint8_t& code : query) code = static_cast<uint8_t>(random.Below(128));
        GuardedBytes guarded(rows * bytes);
        Bytes memory(rows * bytes);
        for (uint8_t& code : memory) code = static_cast<uint8_t>(random.Below(128));
        const uint8_t* const first = guarded.AtEnd(memory);
        std::vector<const uint8_t*> each;
        std::vector<uint32_t> expected;
        for (size_t i = 0; i < rows; ++i) {
          each.push_back(first + i * bytes);
          uint32_t sum = 0;
          for (size_t j = 0; j < bytes; ++j) {
            const int difference = query[j] - each.back()[j];
            sum += static_cast<uint32_t>(difference * difference);
          }
          expected.push_back(sum);
        }
        std::vector<uint32_t> strided(rows);
        std::vector<uint32_t> gathered(rows);
        kernels.codes.to_rows(query.data(), first, bytes, rows, bytes, strided.data());
        kernels.codes.to_each(query.data(), each.data(), rows, bytes, gathered.data());
        ASSERT_EQ(strided, expected) << kernels.instruction_set << ", " << bytes << " bytes";
        ASSERT_EQ(gathered, expected) << kernels.instruction_set << ", " << bytes << " bytes";
      }
    }
    const Bytes zeros(4 * kVectorDimensionMax, 0);
    const Bytes greatest(4 * kVectorDimensionMax, 127);
    uint32_t distance = 0;
    kernels.codes.to_rows(zeros.data(), greatest.data(), 0, 1, zeros.size(), &distance);
    EXPECT_EQ(distance, 127 * 127 * zeros.size()) << kernels.instruction_set;
  }
}

TEST(Kernels, EveryFloat16IsWidenedExactly) {
  for (const Kernels& kernels : AllKernels()) {
    for (uint32_t bits = 0; bits < 0x8000; ++bits) {
      if (bits >= 0x7C00) break;  // Not finite.
      const uint16_t row[2] = {static_cast<uint16_t>(bits), static_cast<uint16_t>(bits | 0x8000)};
      const uint16_t query[2] = {0x3C00, 0x3400};  // 1 and 0.25
      float distance = 0;
      kernels.Find(VectorMetric::kInnerProduct, VectorElement::kFloat16)
          ->to_rows(query, row, 0, 1, 2, &distance);
      ASSERT_EQ(distance, -0.75 * Float16ToDouble(static_cast<uint16_t>(bits)))
          << kernels.instruction_set << ", " << bits;
    }
  }
}

TEST(Kernels, BitsBehindTheLastElementAreIgnored) {
  for (const Kernels& kernels : AllKernels()) {
    const uint8_t query[] = {0xFF, 0xFF};
    const uint8_t row[] = {0x0F, 0x02};
    float distance = 0;
    kernels.hamming.to_rows(query, row, 0, 1, 11, &distance);
    EXPECT_EQ(distance, 6) << kernels.instruction_set;
  }
}

// The program is also run in emulators of processors that have less (cmake/tests.cmake): this says
// what the others have tried there.
TEST(Kernels, TheBestInstructionSetIsChosen) {
  std::string names;
  for (const Kernels& kernels : AllKernels()) {
    names += std::string(names.empty() ? "" : ", ") + kernels.instruction_set;
  }
  std::printf("instruction sets: %s; chosen: %s\n", names.c_str(), VectorInstructionSet());
  const char* const expected = std::getenv("BASALT_EXPECTED_INSTRUCTION_SET");
  if (expected != nullptr) {
    EXPECT_STREQ(VectorInstructionSet(), expected);
  }
  // The first is the best; extensions come behind what they extend.
  const std::vector<Kernels> all = AllKernels();
  EXPECT_EQ(std::string_view(VectorInstructionSet()).substr(0, 4),
            std::string_view(all.front().instruction_set).substr(0, 4));
}

TEST(VectorDistance, RefusesWhatDoesNotGoTogether) {
  const auto code = [](VectorMetric metric, VectorElement element, size_t dimension) {
    return VectorDistance::Create(metric, element, dimension).status().code();
  };
  const auto f32 = VectorElement::kFloat32;
  EXPECT_EQ(code(VectorMetric::kL2, f32, 1), StatusCode::kOk);
  EXPECT_EQ(code(VectorMetric::kL2, f32, kVectorDimensionMax), StatusCode::kOk);
  EXPECT_EQ(code(VectorMetric::kL2, f32, 0), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(VectorMetric::kL2, f32, kVectorDimensionMax + 1), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(VectorMetric::kHamming, f32, 8), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(VectorMetric::kL2, VectorElement::kBit, 8), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(VectorMetric::kHamming, VectorElement::kBit, 8), StatusCode::kOk);
  EXPECT_EQ(code(static_cast<VectorMetric>(9), f32, 8), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(VectorMetric::kL2, static_cast<VectorElement>(9), 8),
            StatusCode::kInvalidArgument);
}

TEST(VectorDistance, IsSmallWhereVectorsAreNear) {
  const float query[] = {1, 2, 2};
  const float rows[] = {1, 2, 2, 2, 4, 4, -1, -2, -2, 0, 0, 0};
  float distances[4];
  VectorDistance::Create(VectorMetric::kL2, VectorElement::kFloat32, 3)
      .value()
      .ToRows(query, rows, 12, 4, distances);
  EXPECT_EQ(std::vector<float>(distances, distances + 4), (std::vector<float>{0, 9, 36, 9}));
  VectorDistance::Create(VectorMetric::kInnerProduct, VectorElement::kFloat32, 3)
      .value()
      .ToRows(query, rows, 12, 4, distances);
  EXPECT_EQ(std::vector<float>(distances, distances + 4), (std::vector<float>{-9, -18, 9, 0}));
  VectorDistance::Create(VectorMetric::kCosine, VectorElement::kFloat32, 3)
      .value()
      .ToRows(query, rows, 12, 4, distances);
  EXPECT_EQ(std::vector<float>(distances, distances + 4), (std::vector<float>{0, 0, 2, 1}));
}

TEST(VectorDistance, OfNoRowsTouchesNothing) {
  const float query[] = {1};
  const auto distance = VectorDistance::Create(VectorMetric::kL2, VectorElement::kFloat32, 1);
  distance->ToRows(query, nullptr, 4, 0, nullptr);
  distance->ToEach(query, nullptr, 0, nullptr);
}

}  // namespace
}  // namespace basalt::vector

#include "bench/vector_kernels.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "basalt/vector.h"
#include "base/random.h"
#include "bench/cpu_time.h"
#include "bench/two_reads.h"
#include "vector/kernels.h"

namespace basalt::bench {
namespace {

constexpr size_t kDimension = 512;
constexpr size_t kRowBytes = kDimension * sizeof(float);
constexpr size_t kMemoryBytes = size_t{300} << 20;
constexpr size_t kMemoryRows = kMemoryBytes / kRowBytes;
constexpr size_t kCacheRows = 8;
constexpr size_t kHeapRows = 10'000;

/// FAISS's functions for one query and many rows, and for four rows at a time.
struct Faiss {
  void (*many)(float*, const float*, const float*, size_t, size_t) = nullptr;
  void (*four)(const float*, const float*, const float*, const float*, const float*, size_t, float&,
               float&, float&, float&) = nullptr;
};

Faiss LoadFaiss(const std::string& path) {
  Faiss faiss;
  void* const library = dlopen(path.c_str(), RTLD_NOW);
  if (library == nullptr) return faiss;
  void* const many = dlsym(library, "_ZN5faiss13fvec_L2sqr_nyEPfPKfS2_mm");
  void* const four = dlsym(library, "_ZN5faiss18fvec_L2sqr_batch_4EPKfS1_S1_S1_S1_mRfS2_S2_S2_");
  std::memcpy(&faiss.many, &many, sizeof many);
  std::memcpy(&faiss.four, &four, sizeof four);
  return faiss;
}

/// Of several tries the quickest: others use the machine too.
double LeastSeconds(int tries, const std::function<void()>& run) {
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < tries; ++i) {
    const double start = CpuSeconds();
    run();
    least = std::min(least, CpuSeconds() - start);
  }
  return least;
}

void Keep(const void* memory) { asm volatile("" : : "r"(memory) : "memory"); }

// Reads as fast as one thread can: sums of vectors of 64 bytes, as wide as the processor has them.
__attribute__((target_clones("avx512f", "avx2", "default"))) uint64_t SumOfWords(const char* begin,
                                                                                 size_t bytes) {
  using Words __attribute__((vector_size(64), aligned(8))) = uint64_t;
  Words sums[4] = {};
  const auto* words = reinterpret_cast<const Words*>(begin);
  for (size_t i = 0; i < bytes / sizeof(Words); i += 4) {
    for (size_t j = 0; j < 4; ++j) sums[j] += words[i + j];
  }
  const Words sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  return sum[0] ^ sum[1] ^ sum[2] ^ sum[3] ^ sum[4] ^ sum[5] ^ sum[6] ^ sum[7];
}

// 300 MiB once through.
void MeasureMemory(const VectorDistance& distance, const Faiss& faiss, const HugeBlock& block,
                   VectorReport* report) {
  const auto* const rows = reinterpret_cast<const float*>(block.data());
  std::vector<float> query(kDimension, 0.25F);
  std::vector<float> distances(kMemoryRows);
  constexpr int kTries = 5;
  const auto add = [&](const char* subject, double seconds) {
    report->Add("kernel_memory", subject, "throughput", "GB/s",
                static_cast<double>(kMemoryRows * kRowBytes) / seconds / 1e9);
  };
  add("basalt", LeastSeconds(kTries, [&] {
        distance.ToRows(query.data(), rows, kRowBytes, kMemoryRows, distances.data());
        Keep(distances.data());
      }));
  add("read", LeastSeconds(kTries, [&] {
        const uint64_t sum = SumOfWords(block.data(), kMemoryRows * kRowBytes);
        Keep(&sum);
      }));
  if (faiss.many != nullptr) {
    add("faiss", LeastSeconds(kTries, [&] {
          faiss.many(distances.data(), query.data(), rows, kDimension, kMemoryRows);
          Keep(distances.data());
        }));
  }
  // The same bytes as codes.
  const auto* const codes = reinterpret_cast<const uint8_t*>(block.data());
  std::vector<uint32_t> code_distances(kMemoryRows * 4);
  const double seconds = LeastSeconds(kTries, [&] {
    vector::ProcessorKernels().codes.to_rows(codes, codes, kDimension, kMemoryRows * 4, kDimension,
                                             code_distances.data());
    Keep(code_distances.data());
  });
  report->Add("kernel_codes", "basalt", "throughput", "GB/s",
              static_cast<double>(kMemoryRows * kRowBytes) / seconds / 1e9);
}

void MeasureCache(const VectorDistance& distance, const Faiss& faiss, const HugeBlock& block,
                  VectorReport* report) {
  constexpr int kTurns = 20'000;
  constexpr int kTries = 7;
  const auto* const rows = reinterpret_cast<const float*>(block.data());
  const float* const query = rows + kCacheRows * kDimension;
  float distances[kCacheRows];
  const auto add = [&](const char* subject, const char* metric, double seconds) {
    report->Add("kernel_cache", subject, metric, "M rows/s", kTurns * kCacheRows / seconds / 1e6);
  };
  add("basalt", "throughput", LeastSeconds(kTries, [&] {
        for (int i = 0; i < kTurns; ++i) {
          distance.ToRows(query, rows, kRowBytes, kCacheRows, distances);
          Keep(distances);
        }
      }));
  add("basalt", "one by one", LeastSeconds(kTries, [&] {
        for (int i = 0; i < kTurns; ++i) {
          for (size_t j = 0; j < kCacheRows; ++j) {
            distances[j] = distance(query, rows + j * kDimension);
          }
          Keep(distances);
        }
      }));
  if (faiss.many != nullptr) {
    add("faiss", "throughput", LeastSeconds(kTries, [&] {
          for (int i = 0; i < kTurns; ++i) {
            faiss.many(distances, query, rows, kDimension, kCacheRows);
            Keep(distances);
          }
        }));
  }
  if (faiss.four != nullptr) {
    add("faiss", "four at a time", LeastSeconds(kTries, [&] {
          for (int i = 0; i < kTurns; ++i) {
            for (size_t j = 0; j < kCacheRows; j += 4) {
              const float* const row = rows + j * kDimension;
              faiss.four(query, row, row + kDimension, row + 2 * kDimension, row + 3 * kDimension,
                         kDimension, distances[j], distances[j + 1], distances[j + 2],
                         distances[j + 3]);
            }
            Keep(distances);
          }
        }));
  }
}

// 10,000 vectors, each of its own allocation, in random order: as fast as their 20 MB can be read.
void MeasureHeap(const VectorDistance& distance, VectorReport* report) {
  std::vector<std::unique_ptr<float[]>> rows;
  std::vector<const void*> order;
  base::Random random(3);
  for (size_t i = 0; i < kHeapRows; ++i) {
    rows.push_back(std::make_unique<float[]>(kDimension));
    for (size_t j = 0; j < kDimension; ++j) {
      rows.back()[j] = static_cast<float>(random.NextDouble());
    }
    order.push_back(rows.back().get());
  }
  std::shuffle(order.begin(), order.end(), random);
  std::vector<float> query(kDimension, 0.5F);
  std::vector<float> distances(kHeapRows);
  const double together = LeastSeconds(7, [&] {
    distance.ToEach(query.data(), order.data(), kHeapRows, distances.data());
    Keep(distances.data());
  });
  const double one_by_one = LeastSeconds(7, [&] {
    for (size_t i = 0; i < kHeapRows; ++i) distances[i] = distance(query.data(), order[i]);
    Keep(distances.data());
  });
  report->Add("kernel_heap", "basalt", "together", "ns", together / kHeapRows * 1e9);
  report->Add("kernel_heap", "basalt", "one by one", "ns", one_by_one / kHeapRows * 1e9);
}

}  // namespace

void MeasureVectorKernels(const std::string& faiss_path, VectorReport* report) {
  static const Faiss faiss = LoadFaiss(faiss_path);
  static const HugeBlock block(kMemoryBytes);
  const VectorDistance distance =
      *VectorDistance::Create(VectorMetric::kL2, VectorElement::kFloat32, kDimension);
  MeasureMemory(distance, faiss, block, report);
  MeasureCache(distance, faiss, block, report);
  MeasureHeap(distance, report);
}

}  // namespace basalt::bench

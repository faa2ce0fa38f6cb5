#include <gtest/gtest.h>

#include "basalt/perfect_hash.h"
#include "phash/test_functions.h"

// How much memory a build takes: every allocation of this program is counted. Sanitizers have
// allocators of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<uint64_t> allocated = 0;
std::atomic<uint64_t> allocated_max = 0;

void* Counted(void* memory) {
  if (memory == nullptr) return nullptr;
  const uint64_t now = allocated += malloc_usable_size(memory);
  uint64_t most = allocated_max;
  while (most < now && !allocated_max.compare_exchange_weak(most, now)) {
  }
  return memory;
}

void* CountedOrThrow(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return Counted(memory);
}

void Free(void* memory) noexcept {
  if (memory != nullptr) allocated -= malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

void* operator new(size_t bytes) { return CountedOrThrow(std::malloc(bytes)); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  const auto align = static_cast<size_t>(alignment);
  return CountedOrThrow(std::aligned_alloc(align, (bytes + align - 1) / align * align));
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return Counted(std::malloc(bytes));
}
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete(void* memory, size_t) noexcept { Free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { Free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { Free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { Free(memory); }

namespace basalt::phash {
namespace {

/// The bytes that were allocated at most while `work` ran, beyond those before it.
template <class Work>
uint64_t MostBytes(const Work& work) {
  const uint64_t before = allocated;
  allocated_max = before;
  work();
  return allocated_max - before;
}

constexpr uint64_t kKeys = 4'000'000;

TEST(PerfectHashMemory, ABuildFromHashesTakesAtMostTwentyBytesAKey) {
  const std::vector<uint64_t> hashes = RandomHashes(kKeys, 1);
  for (const PerfectHashSeeds seeds : kBothKinds) {
    const uint64_t most = MostBytes([&] {
      ASSERT_TRUE(PerfectHashBuilder({.seeds = seeds, .threads = 1}).BuildFromHashes(hashes));
    });
    EXPECT_LE(most, 20 * kKeys);
    EXPECT_GE(most, 8 * kKeys) << "less than what is moved";
    RecordProperty("bytes_a_key", std::to_string(static_cast<double>(most) / kKeys));
  }
}

TEST(PerfectHashMemory, ABuildFromKeysTakesAtMostTwentyBytesAKey) {
  // One text that all keys are pieces of.
  std::string text;
  for (uint64_t i = 0; i < kKeys; ++i) text.append(reinterpret_cast<const char*>(&i), 4);
  std::vector<std::string_view> keys;
  keys.reserve(kKeys);
  for (uint64_t i = 0; i < kKeys; ++i) keys.emplace_back(text.data() + 4 * i, 4);
  const uint64_t most =
      MostBytes([&] { ASSERT_TRUE(PerfectHashBuilder({.threads = 1}).Build(keys)); });
  EXPECT_LE(most, 20 * kKeys);
}

/// Builds with the least memory, and some more.
template <class Build>
void ExpectWithinBudget(uint32_t threads, uint64_t keys, const Build& build) {
  const uint64_t least = LeastBudget({.threads = threads}, build);
  for (const uint64_t budget : {least, least + 3 * keys}) {
    uint64_t result = 0;
    const uint64_t most = MostBytes([&] {
      const auto function = build({.threads = threads, .memory_budget = budget});
      ASSERT_TRUE(function) << function.error().ToString();
      result = function->bytes().size();
    });
    EXPECT_LE(most, budget + result) << keys << " keys, " << threads << " threads";
  }
}

TEST(PerfectHashMemory, ABuildFromHashesStaysInsideItsBudget) {
  const std::vector<uint64_t> hashes = RandomHashes(kKeys, 2);
  for (const uint32_t threads : {1, 2}) {
    ExpectWithinBudget(threads, kKeys, [&](const PerfectHashOptions& options) {
      return PerfectHashBuilder(options).BuildFromHashes(hashes);
    });
  }
}

TEST(PerfectHashMemory, ABuildFromKeysStaysInsideItsBudget) {
  constexpr uint64_t kSome = kKeys / 4;
  std::string text;
  for (uint64_t i = 0; i < kSome; ++i) text.append(reinterpret_cast<const char*>(&i), 4);
  std::vector<std::string_view> keys;
  for (uint64_t i = 0; i < kSome; ++i) keys.emplace_back(text.data() + 4 * i, 4);
  const VectorSource source(keys, 10'000);
  for (const uint32_t threads : {1, 2}) {
    ExpectWithinBudget(threads, kSome, [&](const PerfectHashOptions& options) {
      return PerfectHashBuilder(options).Build(source);
    });
    ExpectWithinBudget(threads, kSome, [&](const PerfectHashOptions& options) {
      return PerfectHashBuilder(options).Build(keys);
    });
  }
}

}  // namespace
}  // namespace basalt::phash

#endif

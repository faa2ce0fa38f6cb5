#include <gtest/gtest.h>

#include "cache/test_cache.h"

// Each allocation that fails is an error or a miss, and all works on. Sanitizers have allocators of
// their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#include <chrono>
#include <cstdlib>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>

namespace {

// Of this thread: so many allocations succeed, and the one after them fails.
constexpr int kNeverFails = std::numeric_limits<int>::max();
thread_local int until_failure = kNeverFails;

bool Fails() noexcept {
  if (until_failure == kNeverFails) return false;
  return until_failure-- == 0;
}

// Apart, or the compiler takes std::free of what came from operator new for a mistake.
[[gnu::noinline]] void Free(void* memory) noexcept { std::free(memory); }

}  // namespace

void* operator new(size_t bytes) {
  void* const memory = Fails() ? nullptr : std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return Fails() ? nullptr : std::malloc(bytes);
}
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete(void* memory, size_t) noexcept { Free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { Free(memory); }

namespace basalt::cache {
namespace {

/// Runs `work` with its n-th allocation failing, for each n. False: it had fewer.
template <class Work>
bool RunWithFailure(int n, const Work& work) {
  until_failure = n;
  work();
  return std::exchange(until_failure, kNeverFails) < 0;
}

TEST(CacheMemory, AComputationThatFindsNoMemoryLeavesItsKeyComputable) {
  const std::function<Result<std::string>()> compute = [] { return std::string("computed"); };
  bool has_failed = true;
  for (int n = 0; has_failed; ++n) {
    const std::shared_ptr<Cache> cache = NewCache({.capacity_bytes = 1 << 20});
    static_cast<void>(cache->Get("key"));
    Result<Value> value = Status(StatusCode::kAborted, "not asked");
    has_failed = RunWithFailure(n, [&] { value = cache->GetOrCompute("key", compute); });
    if (!value) {
      ASSERT_EQ(value.error().code(), StatusCode::kResourceExhausted) << "allocation " << n;
    }
    // It holds all it uses: should it wait for ever, it stays behind.
    std::packaged_task<std::string()> ask(
        [cache, compute] { return cache->GetOrCompute("key", compute)->ToString(); });
    std::future<std::string> answer = ask.get_future();
    std::thread(std::move(ask)).detach();
    ASSERT_EQ(answer.wait_for(std::chrono::seconds(20)), std::future_status::ready)
        << "allocation " << n << ": nobody computes, and another thread waits";
    EXPECT_EQ(answer.get(), "computed");
    EXPECT_EQ(cache->GetStats().pinned_entries, 0u);
    ASSERT_LT(n, 100);
  }
}

}  // namespace
}  // namespace basalt::cache

#endif

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
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

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

template <class SomeCache>
void ExpectNothingIsThrown(SomeCache* cache) {
  const std::string long_key(70'000, 'k');
  const CachePutOptions negative{.ttl = std::chrono::milliseconds(-1'000'000)};
  const std::function<Result<std::string>()> compute = [] { return std::string("computed"); };
  const std::vector<std::pair<const char*, std::function<Status()>>> calls = {
      {"create", [] { return SomeCache::Create().status(); }},
      {"create too small", [] { return SomeCache::Create({.capacity_bytes = 1}).status(); }},
      {"create in parts", [] { return SomeCache::Create({.shards = 3}).status(); }},
      {"create in too many parts",
       [] { return SomeCache::Create({.capacity_bytes = 65'536, .shards = 128}).status(); }},
      {"create with a ttl",
       [] { return SomeCache::Create({.default_ttl = std::chrono::milliseconds(-1)}).status(); }},
      {"create with no eviction",
       [] { return SomeCache::Create({.eviction = Eviction{7}}).status(); }},
      {"put", [&] { return cache->Put(long_key, "value"); }},
      {"put with a ttl", [&] { return cache->Put("key", "value", negative); }},
      {"put if absent", [&] { return cache->PutIfAbsent(long_key, "value").status(); }},
      {"replace", [&] { return cache->Replace(long_key, "value").status(); }},
      {"touch", [&] { return cache->Touch("key", *negative.ttl) ? Status() : NoMemory(); }},
      {"get or compute", [&] { return cache->GetOrCompute(long_key, compute).status(); }},
      {"get or compute with a ttl",
       [&] { return cache->GetOrCompute("key", compute, negative).status(); }},
      {"set capacity", [&] { return cache->SetCapacity(1); }},
  };
  for (const auto& [name, call] : calls) {
    bool has_failed = true;
    for (int n = 0; has_failed; ++n) {
      EXPECT_NO_THROW(has_failed = RunWithFailure(n, [&] { static_cast<void>(call()); }))
          << name << ", allocation " << n;
      until_failure = kNeverFails;
      ASSERT_LT(n, 1000);
    }
  }
}

TEST(CacheMemory, WhatRefusesAnArgumentDoesNotThrowWhereThereIsNone) {
  const auto cache = NewCache({.capacity_bytes = 1 << 20});
  ExpectNothingIsThrown(cache.get());
  const auto typed = TypedCache<std::string, std::string>::Create({.capacity_bytes = 1 << 20});
  ASSERT_TRUE(typed);
  ExpectNothingIsThrown(typed->get());

  const std::string long_key(70'000, 'k');
  const std::string large(2 << 20, 'v');
  const auto update = [](auto) { return std::optional<std::string>("value"); };
  MaybeValue value;
  for (int n = 0; n < 10; ++n) {
    EXPECT_NO_THROW(RunWithFailure(n, [&] { EXPECT_FALSE(cache->Put("key", large).ok()); }));
    EXPECT_NO_THROW(RunWithFailure(n, [&] { EXPECT_FALSE(cache->Allocate(long_key, 10)); }));
    EXPECT_NO_THROW(RunWithFailure(n, [&] { EXPECT_FALSE(cache->Update(long_key, update).ok()); }));
    EXPECT_NO_THROW(
        RunWithFailure(n, [&] { EXPECT_FALSE(cache->MultiGet({}, {&value, 1}).ok()); }));
  }
}

TEST(CacheMemory, AMultiGetMissesWhatItCannotCopy) {
  const auto cache = NewCache();
  const std::string large(200, 'v');
  ASSERT_TRUE(cache->Put("large", large).ok());
  ASSERT_TRUE(cache->Put("small", "value").ok());
  std::vector<MaybeValue> held;
  for (int i = 0; i < 31'744; ++i) held.push_back(cache->Get("large"));
  // One more handle would be a copy.
  const std::vector<std::string_view> keys = {"small", "large", "small"};
  std::vector<MaybeValue> values(keys.size());
  Status status;
  ASSERT_TRUE(RunWithFailure(0, [&] { status = cache->MultiGet(keys, values); }));
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(TextOf(values[0]), "value");
  EXPECT_FALSE(values[1]);
  EXPECT_EQ(TextOf(values[2]), "value");
}

}  // namespace
}  // namespace basalt::cache

#endif

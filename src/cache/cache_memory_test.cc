// Allocations that fail, each in turn, are errors or misses, and all works on; and lookups ask for
// none.

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/epoch.h"
#include "base/test_memory_operators.h"
#include "base/test_update.h"
#include "cache/test_cache.h"

namespace basalt::cache {
namespace {

using base::MemoryThatFails;
using std::chrono::hours;
using std::chrono::milliseconds;

/// Runs `work` with its n-th allocation failing, for each n. False: it had fewer.
template <class Work>
bool RunWithFailure(int n, const Work& work) {
  const MemoryThatFails one(n, 1);
  work();
  return one.has_failed();
}

/// Whether `work` asks for memory; it gets none.
template <class Work>
bool Allocates(const Work& work) {
  const MemoryThatFails none(0);
  work();
  return none.has_failed();
}

/// Keys that are there for good, that expire in an hour, that have expired, and that were never
/// put.
enum class Kind : uint8_t { kLasting, kExpiring, kExpired, kAbsent };
constexpr std::array kKinds = {Kind::kLasting, Kind::kExpiring, Kind::kExpired, Kind::kAbsent};

bool IsThere(Kind kind) { return kind == Kind::kLasting || kind == Kind::kExpiring; }

// Of all sizes that lookups have ways of their own for, and so many that some are not in their home
// bucket.
std::vector<std::string> KeysOf(Kind kind) {
  const std::string last(1, static_cast<char>('a' + static_cast<int>(kind)));
  std::vector<std::string> keys;
  for (const size_t bytes : {1, 3, 4, 8, 9, 16, 17, 40, 1'000, 65'535}) {
    keys.push_back(std::string(bytes - 1, 'k') + last);
  }
  for (int i = 0; i < 1'000; ++i) keys.push_back("key " + std::to_string(i) + last);
  return keys;
}

CachePutOptions OptionsOf(Kind kind) {
  if (kind == Kind::kLasting) return {};
  return {.ttl = kind == Kind::kExpiring ? milliseconds(hours(1)) : milliseconds(1)};
}

/// Puts them all but those that are absent.
template <class SomeCache, class ValueOfNumber>
void PutKeys(SomeCache* cache, const ValueOfNumber& value_of) {
  for (const Kind kind : kKinds) {
    size_t number = 0;
    if (kind == Kind::kAbsent) continue;
    for (const std::string& key : KeysOf(kind)) {
      ASSERT_TRUE(cache->Put(key, value_of(number++), OptionsOf(kind)).ok());
    }
  }
  std::this_thread::sleep_for(milliseconds(5));
}

template <class SomeCache>
void ExpectLookupsAskForNone(SomeCache* cache) {
  static_cast<void>(cache->Peek("a thread's first lookup may ask for memory"));
  for (const Kind kind : kKinds) {
    for (const std::string& key : KeysOf(kind)) {
      bool gets = false;
      bool peeks = false;
      EXPECT_FALSE(Allocates([&] { gets = static_cast<bool>(cache->Get(key)); }))
          << "get, kind " << static_cast<int>(kind) << ", " << key.size() << " bytes";
      EXPECT_FALSE(Allocates([&] { peeks = static_cast<bool>(cache->Peek(key)); }))
          << "peek, kind " << static_cast<int>(kind) << ", " << key.size() << " bytes";
      EXPECT_EQ(gets, IsThere(kind));
      EXPECT_EQ(peeks, IsThere(kind));
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(CacheMemory, LookupsAskForNone) {
  constexpr std::array<size_t, 5> kValueBytes = {0, 1, Value::kInlineBytes, Value::kInlineBytes + 1,
                                                 20'000};
  const auto cache = NewCache({.shards = 1});
  PutKeys(cache.get(), [&](size_t i) { return std::string(kValueBytes[i % 5], 'v'); });
  ExpectLookupsAskForNone(cache.get());
  // Inside another epoch they cannot go the quick way.
  const base::EpochGuard guard;
  ExpectLookupsAskForNone(cache.get());
}

TEST(CacheMemory, AMultiGetAsksForNone) {
  constexpr std::array<size_t, 3> kValueBytes = {1, Value::kInlineBytes + 1, 20'000};
  const auto cache = NewCache({.shards = 1});
  PutKeys(cache.get(), [&](size_t i) { return std::string(kValueBytes[i % 3], 'v'); });
  static_cast<void>(cache->Peek("a thread's first lookup may ask for memory"));
  for (const Kind kind : kKinds) {
    const std::vector<std::string> keys = KeysOf(kind);
    const std::vector<std::string_view> views(keys.begin(), keys.end());
    std::vector<MaybeValue> values(keys.size());
    Status status;
    EXPECT_FALSE(Allocates([&] { status = cache->MultiGet(views, values); }));
    EXPECT_TRUE(status.ok()) << status.ToString();
    for (const MaybeValue& value : values) ASSERT_EQ(value.has_value(), IsThere(kind));
  }
}

TEST(CacheMemory, LookupsOfObjectsAskForNone) {
  const auto cache = TypedCache<std::string, std::string>::Create({.shards = 1}).value();
  PutKeys(cache.get(), [](size_t) { return std::string(300, 'v'); });
  ExpectLookupsAskForNone(cache.get());

  const auto numbers = TypedCache<uint64_t, uint64_t>::Create().value();
  ASSERT_TRUE(numbers->Put(7, 49).ok());
  for (const uint64_t key : {7, 8}) {
    Pinned<uint64_t> value;
    EXPECT_FALSE(Allocates([&] { value = numbers->Get(key); }));
    EXPECT_EQ(static_cast<bool>(value), key == 7);
  }
}

TEST(CacheMemory, AHitThatNeedsNoComputationAsksForNone) {
  const auto cache = NewCache();
  const std::string large(5'000, 'v');
  ASSERT_TRUE(cache->Put("small", "value").ok());
  ASSERT_TRUE(cache->Put("large", large).ok());
  const std::function<Result<std::string>()> compute = [] { return std::string("computed"); };
  static_cast<void>(cache->Peek("a thread's first lookup may ask for memory"));
  for (const std::string_view key : {"small", "large"}) {
    Result<Value> value = Status(StatusCode::kAborted, "not asked");
    EXPECT_FALSE(Allocates([&] { value = cache->GetOrCompute(key, compute); }));
    ASSERT_TRUE(value);
    EXPECT_EQ(value->view(), key == "small" ? std::string_view("value") : large);
  }
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
        [cache, compute] { return cache->GetOrCompute("key", compute).value().ToString(); });
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
  const CachePutOptions negative{.ttl = milliseconds(-1'000'000)};
  const std::function<Result<std::string>()> compute = [] { return std::string("computed"); };
  const std::vector<std::pair<const char*, std::function<Status()>>> calls = {
      {"create", [] { return SomeCache::Create().status(); }},
      {"create too small", [] { return SomeCache::Create({.capacity_bytes = 1}).status(); }},
      {"create in parts", [] { return SomeCache::Create({.shards = 3}).status(); }},
      {"create in too many parts",
       [] { return SomeCache::Create({.capacity_bytes = 65'536, .shards = 128}).status(); }},
      {"create with a ttl",
       [] { return SomeCache::Create({.default_ttl = milliseconds(-1)}).status(); }},
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
    EXPECT_NO_THROW(RunWithFailure(
        n, [&] { EXPECT_FALSE(cache->Update(long_key, base::ByValue(update)).ok()); }));
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

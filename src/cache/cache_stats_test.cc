#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "basalt/cache.h"
#include "base/random.h"
#include "base/test_update.h"
#include "cache/test_cache.h"

// The reports of a cache: statistics, Prometheus text, on_remove.

namespace basalt::cache {
namespace {

using std::chrono::milliseconds;

// ---- Figures ----

void ExpectSumsAgree(const CacheStats& stats) {
  EXPECT_EQ(stats.entry_bytes + stats.index_bytes + stats.retired_bytes + stats.pinned_bytes +
                stats.reserved_bytes,
            stats.bytes);
  EXPECT_EQ(stats.inserts, stats.entries + stats.evicted + stats.expired + stats.erased);
  EXPECT_LE(stats.bytes, stats.capacity_bytes);
}

TEST(CacheStats, AGetThatMeetsAnotherKeysEntryIsAMiss) {
  // Of so many absent keys some have bucket and tag in common with a present one: each of the
  // entries in a bucket has one tag of 65,536.
  const SimCache cache({.capacity_bytes = 16 << 20, .shards = 1});
  constexpr uint64_t kPresent = 20'000;
  constexpr uint64_t kAbsent = 400'000;
  for (uint64_t i = 0; i < kPresent; ++i) {
    ASSERT_TRUE(
        cache->PutBytes("present " + std::to_string(i), "value", std::nullopt, Condition::kAlways));
  }
  const CacheStats before = cache->GetStats();
  ASSERT_EQ(before.entries, kPresent);
  for (uint64_t i = 0; i < kAbsent; ++i) {
    ASSERT_FALSE(cache->Get<true>("absent " + std::to_string(i)));
  }
  EXPECT_EQ(cache->GetStats().hits, before.hits);
  EXPECT_EQ(cache->GetStats().misses, before.misses + kAbsent);
}

TEST(CacheStats, AddUpThroughRandomOperations) {
  for (const Eviction eviction : {Eviction::kClock, Eviction::kS3Fifo}) {
    for (const uint32_t shards : {1, 4}) {
      const uint64_t seed = shards;
      SCOPED_TRACE("seed " + std::to_string(seed));
      base::Random random(seed);
      SimCache cache({.capacity_bytes = 512 << 10, .shards = shards, .eviction = eviction});
      uint64_t lookups = 0;
      for (int i = 0; i < 40'000; ++i) {
        const std::string key = std::to_string(random.Below(3000));
        switch (random.Below(6)) {
          case 0:
          case 1:
            static_cast<void>(
                cache.Put(key, std::string(random.Below(2000), 'v'), random.OneIn(3) ? 50 : 0));
            break;
          case 2:
            cache->Delete(key);
            break;
          case 3:
            cache.Touch(key, static_cast<int64_t>(random.Below(100)));
            break;
          default:
            cache.Get(key);
            ++lookups;
        }
        if (random.OneIn(20)) cache.AdvanceMillis(1);
        if (i % 1000 == 0) ExpectSumsAgree(cache->GetStats());
      }
      const CacheStats stats = cache->GetStats();
      ExpectSumsAgree(stats);
      EXPECT_EQ(stats.hits + stats.misses, lookups);
      EXPECT_GT(stats.hits, 0u);
      EXPECT_GT(stats.misses, 0u);
      EXPECT_GT(stats.evicted, 0u);
      EXPECT_GT(stats.expired, 0u);
      EXPECT_GT(stats.replaced, 0u);
      EXPECT_GT(stats.erased, 0u);
      EXPECT_EQ(stats.pinned_entries, 0u);
      EXPECT_EQ(stats.pinned_bytes, 0u);
      EXPECT_DOUBLE_EQ(stats.hit_ratio(),
                       static_cast<double>(stats.hits) / static_cast<double>(lookups));
    }
  }
}

TEST(CacheStats, PeekAndWritesCountNoLookup) {
  const auto cache = NewCache();
  EXPECT_EQ(cache->GetStats().hit_ratio(), 0);
  ASSERT_TRUE(cache->Put("key", "value").ok());
  cache->Peek("key");
  cache->Peek("absent");
  cache->Touch("key", milliseconds(0));
  cache->Take("absent");
  EXPECT_EQ(cache->GetStats().hits + cache->GetStats().misses, 0u);
  cache->Get("key");
  cache->Get("absent");
  EXPECT_EQ(cache->GetStats().hits, 1u);
  EXPECT_EQ(cache->GetStats().misses, 1u);
}

TEST(CacheStats, AnEntryTakesFewBytesMoreThanItsKeyAndValue) {
  const auto cache = NewCache({.capacity_bytes = 64 << 20});
  constexpr int kEntries = 200'000;
  for (int i = 0; i < kEntries; ++i) {
    ASSERT_TRUE(cache->Put("key_" + std::to_string(100'000 + i), "val").ok());
  }
  const CacheStats stats = cache->GetStats();
  ASSERT_EQ(stats.entries, static_cast<uint64_t>(kEntries));
  EXPECT_LE(stats.bytes / stats.entries, 60u);
}

// ---- Prometheus ----

/// Reads the text format: families by their TYPE, samples by name and labels. Fails the test where
/// the text is not well-formed.
struct Exposition {
  std::map<std::string, std::string> types;
  std::map<std::string, uint64_t> samples;

  explicit Exposition(const std::string& text) {
    EXPECT_TRUE(text.ends_with('\n'));
    std::istringstream lines(text);
    std::set<std::string> helps;
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string first;
      words >> first;
      if (first == "#") {
        std::string kind;
        std::string name;
        std::string rest;
        words >> kind >> name >> rest;
        EXPECT_FALSE(rest.empty()) << line;
        if (kind == "HELP") {
          EXPECT_TRUE(helps.insert(name).second) << line;
        } else {
          EXPECT_EQ(kind, "TYPE") << line;
          EXPECT_TRUE(rest == "counter" || rest == "gauge") << line;
          EXPECT_TRUE(types.emplace(name, rest).second) << line;
        }
        continue;
      }
      const std::string name = first.substr(0, first.find('{'));
      EXPECT_EQ(types.count(name), 1u) << line;
      EXPECT_EQ(helps.count(name), 1u) << line;
      EXPECT_EQ(types[name] == "counter", name.ends_with("_total")) << line;
      EXPECT_EQ(first.find('{') == std::string::npos, !first.ends_with("\"}")) << line;
      EXPECT_TRUE(std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == ':';
      })) << line;
      EXPECT_FALSE(name[0] >= '0' && name[0] <= '9') << line;
      uint64_t value = 0;
      EXPECT_TRUE(words >> value) << line;
      EXPECT_TRUE(samples.emplace(first, value).second) << line;
    }
    EXPECT_EQ(types.size(), helps.size());
  }
};

TEST(CacheStats, PrometheusTextIsWellFormedAndSaysTheSame) {
  const auto cache = NewCache({.capacity_bytes = 1 << 20});
  for (int i = 0; i < 5000; ++i) {
    ASSERT_TRUE(cache->Put(std::to_string(i), std::string(300, 'v')).ok());
    cache->Get(std::to_string(i / 2));
  }
  cache->Delete("4999");
  const Result<CacheReservation> reservation = cache->Reserve(10'000);
  ASSERT_TRUE(reservation);
  const CacheStats stats = cache->GetStats();
  Exposition text(stats.ToPrometheus("pages"));
  for (const auto& [name, type] : text.types) EXPECT_TRUE(name.starts_with("pages_")) << name;
  EXPECT_EQ(text.samples["pages_lookups_total{result=\"hit\"}"], stats.hits);
  EXPECT_EQ(text.samples["pages_lookups_total{result=\"miss\"}"], stats.misses);
  EXPECT_EQ(text.samples["pages_inserts_total"], stats.inserts);
  EXPECT_EQ(text.samples["pages_removals_total{reason=\"evicted\"}"], stats.evicted);
  EXPECT_EQ(text.samples["pages_removals_total{reason=\"erased\"}"], 1u);
  EXPECT_EQ(text.samples["pages_entries"], stats.entries);
  EXPECT_EQ(text.samples["pages_capacity_bytes"], 1u << 20);
  EXPECT_EQ(text.samples["pages_bytes{part=\"reserved\"}"], 10'000u);
  uint64_t bytes = 0;
  for (const auto& [name, value] : text.samples) {
    if (name.starts_with("pages_bytes{")) bytes += value;
  }
  EXPECT_EQ(bytes, stats.bytes);
  EXPECT_TRUE(Exposition(stats.ToPrometheus()).samples.contains("basalt_cache_entries"));
}

TEST(CacheStats, PrometheusNamesAreWellFormedWhateverThePrefix) {
  const std::pair<std::string_view, std::string_view> prefixes[] = {
      {"bad name{", "bad_name_"},
      {"a\n# b", "a___b"},
      {"7th", "_7th"},
      {"", ""},
      {"\xC3\xA9", "__"},
      {"app:Cache_7", "app:Cache_7"},
  };
  for (const auto& [prefix, begins] : prefixes) {
    Exposition text(CacheStats{.hits = 7}.ToPrometheus(prefix));
    EXPECT_EQ(text.samples[std::string(begins) + "_lookups_total{result=\"hit\"}"], 7u) << prefix;
    for (const auto& [name, type] : text.types) {
      EXPECT_TRUE(name.starts_with(std::string(begins) + "_")) << name;
    }
  }
}

// ---- on_remove ----

struct Heard {
  std::string key;
  std::string value;
  Removal reason;
  bool operator==(const Heard&) const = default;
};

CacheOptions Listening(std::vector<Heard>* heard, CacheOptions options = {}) {
  options.on_remove = [heard](std::string_view key, std::string_view value, Removal reason) {
    heard->push_back({std::string(key), std::string(value), reason});
  };
  return options;
}

TEST(CacheOnRemove, HearsOfEveryKindWithKeyAndValue) {
  std::vector<Heard> heard;
  SimCache cache(Listening(&heard));
  const std::string large(5000, 'v');
  ASSERT_TRUE(cache.Put("a", "one", 0).ok());
  ASSERT_TRUE(cache.Put("a", large, 0).ok());
  EXPECT_EQ(heard, (std::vector<Heard>{{"a", "one", Removal::kReplaced}}));
  heard.clear();
  EXPECT_TRUE(cache->Delete("a"));
  EXPECT_EQ(heard, (std::vector<Heard>{{"a", large, Removal::kDeleted}}));
  heard.clear();
  ASSERT_TRUE(cache.Put("b", "two", 0).ok());
  EXPECT_TRUE(cache->TakeBytes("b"));
  EXPECT_EQ(heard, (std::vector<Heard>{{"b", "two", Removal::kDeleted}}));
  heard.clear();
  ASSERT_TRUE(cache.Put("c", "three", 0).ok());
  const auto erase = [](auto) -> Result<std::optional<std::string>> { return std::nullopt; };
  EXPECT_TRUE(cache->Update("c", base::ByValue(erase)).ok());
  EXPECT_EQ(heard, (std::vector<Heard>{{"c", "three", Removal::kDeleted}}));
  heard.clear();
  ASSERT_TRUE(cache.Put("d", "four", 10).ok());
  cache.AdvanceMillis(10);
  EXPECT_FALSE(cache->Delete("d"));
  EXPECT_EQ(heard, (std::vector<Heard>{{"d", "four", Removal::kExpired}}));
  heard.clear();
  ASSERT_TRUE(cache.Put("e", "five", 0).ok());
  cache->Clear();
  EXPECT_EQ(heard, (std::vector<Heard>{{"e", "five", Removal::kDeleted}}));
}

TEST(CacheOnRemove, HearsOfTheValueWhoseReplacementFoundNoRoom) {
  std::vector<Heard> heard;
  const auto cache = NewCache(Listening(&heard, {.capacity_bytes = 1 << 20}));
  ASSERT_TRUE(cache->Put("key", "old").ok());
  EXPECT_FALSE(cache->Put("key", std::string(2 << 20, 'v')).ok());
  EXPECT_EQ(heard, (std::vector<Heard>{{"key", "old", Removal::kDeleted}}));
}

TEST(CacheOnRemove, HearsOfAValueThatAsManyHandlesHoldAsCan) {
  std::vector<Heard> heard;
  const auto cache = NewCache(Listening(&heard));
  const std::string value(200, 'v');
  ASSERT_TRUE(cache->Put("key", value).ok());
  std::vector<MaybeValue> held;
  for (int i = 0; i < 31'744; ++i) held.push_back(cache->Get("key"));
  ASSERT_EQ(cache->GetStats().pinned_entries, held.size());
  EXPECT_TRUE(cache->Delete("key"));
  EXPECT_EQ(heard, (std::vector<Heard>{{"key", value, Removal::kDeleted}}));
  held.clear();
  EXPECT_EQ(cache->GetStats().pinned_entries, 0u);
}

TEST(CacheOnRemove, IsSilentAtTheEnd) {
  std::vector<Heard> heard;
  auto cache = NewCache(Listening(&heard));
  ASSERT_TRUE(cache->Put("key", "value").ok());
  cache.reset();
  EXPECT_TRUE(heard.empty());
}

TEST(CacheOnRemove, HearsOfEachEntryOnceAndOfNoneThatIsThere) {
  for (const Eviction eviction : {Eviction::kClock, Eviction::kS3Fifo}) {
    std::set<std::string> present;  // Values, each put once, of which nothing was heard yet.
    std::array<uint64_t, 4> counts{};
    CacheOptions options{.capacity_bytes = 1 << 20, .shards = 2, .eviction = eviction};
    options.on_remove = [&](std::string_view key, std::string_view value, Removal reason) {
      ++counts[static_cast<size_t>(reason)];
      EXPECT_EQ(present.erase(std::string(value)), 1u) << key;
      EXPECT_TRUE(value.starts_with(key)) << key;
    };
    SimCache cache(options);
    base::Random random(7);
    for (int i = 0; i < 30'000; ++i) {
      const std::string key = std::to_string(random.Below(5000)) + ":";
      const std::string value = key + std::to_string(i) + std::string(random.Below(1000), 'v');
      present.insert(value);
      if (!cache.Put(key, value, random.OneIn(3) ? 20 : 0).ok()) present.erase(value);
      if (random.OneIn(10)) cache->Delete(std::to_string(random.Below(5000)) + ":");
      cache.AdvanceMillis(random.Below(2));
    }
    EXPECT_EQ(present.size(), cache->GetStats().entries);
    cache->Clear();
    EXPECT_TRUE(present.empty()) << present.size();
    const CacheStats stats = cache->GetStats();
    EXPECT_EQ(counts[static_cast<size_t>(Removal::kEvicted)], stats.evicted);
    EXPECT_EQ(counts[static_cast<size_t>(Removal::kExpired)], stats.expired);
    EXPECT_EQ(counts[static_cast<size_t>(Removal::kReplaced)], stats.replaced);
    EXPECT_EQ(counts[static_cast<size_t>(Removal::kDeleted)], stats.erased);
    for (const uint64_t count : counts) EXPECT_GT(count, 0u);
  }
}

TEST(CacheOnRemove, MayUseTheCache) {
  Cache* cache_in_callback = nullptr;
  uint64_t calls = 0;
  CacheOptions options{.capacity_bytes = 256 << 10, .shards = 1};
  options.on_remove = [&](std::string_view key, std::string_view value, Removal reason) {
    ++calls;
    if (reason == Removal::kDeleted && key.starts_with("phoenix")) {
      EXPECT_FALSE(cache_in_callback->Peek(key)) << "it hears after it has left";
      EXPECT_TRUE(cache_in_callback->Put("again " + std::string(key), value).ok());
    }
    if (reason == Removal::kEvicted && calls % 64 == 0) {
      EXPECT_TRUE(cache_in_callback->Put("last evicted", key).ok());
      cache_in_callback->GetStats();
    }
  };
  const auto cache = NewCache(options);
  cache_in_callback = cache.get();
  ASSERT_TRUE(cache->Put("phoenix", "ashes").ok());
  EXPECT_TRUE(cache->Delete("phoenix"));
  EXPECT_EQ(TextOf(cache->Get("again phoenix")), "ashes");
  for (int i = 0; i < 20'000; ++i) {
    ASSERT_TRUE(cache->Put("key" + std::to_string(i), std::string(100, 'v')).ok());
  }
  EXPECT_TRUE(cache->Peek("last evicted"));
  EXPECT_GT(calls, 10'000u);
}

TEST(CacheOnRemove, MayComputeAnewWhatHasExpired) {
  Cache* cache_in_callback = nullptr;
  CacheOptions options;
  options.on_remove = [&](std::string_view key, std::string_view, Removal reason) {
    EXPECT_EQ(reason, Removal::kExpired);
    const auto renew = [] { return std::string("renewed"); };
    const Result<Value> renewed = cache_in_callback->GetOrCompute(key, renew);
    ASSERT_TRUE(renewed) << renewed.error().ToString();
    EXPECT_EQ(renewed->view(), "renewed");
  };
  const auto cache = NewCache(options);
  cache_in_callback = cache.get();
  ASSERT_TRUE(cache->Put("key", "old", {.ttl = std::chrono::milliseconds(1)}).ok());
  while (cache->Peek("key")) std::this_thread::yield();
  const auto value = cache->GetOrCompute("key", [] { return std::string("unasked"); });
  ASSERT_TRUE(value) << value.error().ToString();
  EXPECT_EQ(value->view(), "renewed");
  EXPECT_EQ(cache->GetStats().computed, 1u);
}

TEST(CacheOnRemove, ThatPutsBackWhatAClearErasesDoesNotKeepItFromItsEnd) {
  constexpr uint64_t kKeys = 5000;
  constexpr uint64_t kCallsMax = 20 * kKeys;
  Cache* cache_in_callback = nullptr;
  uint64_t calls = 0;
  CacheOptions options{.capacity_bytes = 4 << 20, .shards = 1};
  options.on_remove = [&](std::string_view key, std::string_view value, Removal) {
    if (++calls == kCallsMax) cache_in_callback = nullptr;
    if (cache_in_callback == nullptr) return;
    EXPECT_TRUE(cache_in_callback->Put(key, value).ok());
  };
  const auto cache = NewCache(options);
  cache_in_callback = cache.get();
  for (uint64_t i = 0; i < kKeys; ++i) {
    ASSERT_TRUE(cache->Put("key" + std::to_string(i), "value").ok());
  }
  cache->Clear();
  EXPECT_GE(calls, kKeys);
  EXPECT_LT(calls, 3 * kKeys);
  EXPECT_EQ(cache->GetStats().entries, kKeys);
}

TEST(CacheOnRemove, ThatPutsForWhatWasEvictedIsNotCalledInsideItself) {
  for (const size_t size : {100, 3000}) {
    std::unique_ptr<Cache> cache;
    int depth = 0;
    int depth_max = 0;
    uint64_t heard = 0;
    CacheOptions options{.capacity_bytes = 1 << 20};
    options.on_remove = [&](std::string_view key, std::string_view, Removal reason) {
      depth_max = std::max(depth_max, ++depth);
      ++heard;
      if (reason == Removal::kEvicted && !key.starts_with("gone")) {
        ASSERT_TRUE(cache->Put("gone " + std::string(key), std::string(size / 2, 'g')).ok());
      }
      --depth;
    };
    cache = NewCache(options);
    for (int i = 0; i < 20'000; ++i) {
      ASSERT_TRUE(cache->Put("key" + std::to_string(i), std::string(size, 'v')).ok()) << i;
    }
    EXPECT_EQ(depth_max, 1);
    const CacheStats stats = cache->GetStats();
    EXPECT_EQ(heard, stats.evicted + stats.replaced + stats.erased);
    EXPECT_EQ(stats.refused, 0u);
    EXPECT_LE(stats.bytes, stats.capacity_bytes);
    EXPECT_EQ(stats.pinned_entries, 0u);
    EXPECT_EQ(stats.pinned_bytes, 0u);
    EXPECT_GT(stats.entries * size, 400'000u) << "what it put threw out no more than it needed";
  }
}

TEST(CacheOnRemove, OfTwoCachesThatPutIntoEachOtherEachIsCalledOnceAtATime) {
  std::array<std::unique_ptr<Cache>, 2> caches;
  std::array<int, 2> depths{};
  int depth_max = 0;
  for (size_t i = 0; i < 2; ++i) {
    CacheOptions options{.capacity_bytes = 1 << 20};
    options.on_remove = [&, i](std::string_view key, std::string_view, Removal reason) {
      depth_max = std::max(depth_max, ++depths[i]);
      // What is evicted goes to the other one, three times at most.
      if (reason == Removal::kEvicted && key.size() < 12) {
        ASSERT_TRUE(caches[1 - i]->Put(std::string(key) + "+", std::string(200, 'v')).ok());
      }
      --depths[i];
    };
    caches[i] = NewCache(options);
  }
  for (int i = 100'000; i < 130'000; ++i) {
    ASSERT_TRUE(caches[0]->Put("key" + std::to_string(i), std::string(200, 'v')).ok());
  }
  EXPECT_EQ(depth_max, 1);
  for (const auto& cache : caches) {
    EXPECT_EQ(cache->GetStats().pinned_entries, 0u);
    // And what on_remove has just heard of.
    EXPECT_LE(cache->GetStats().bytes, cache->GetStats().capacity_bytes + (16 << 10));
  }
}

}  // namespace
}  // namespace basalt::cache

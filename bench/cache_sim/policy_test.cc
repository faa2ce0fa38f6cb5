#include "bench/cache_sim/policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "bench/cache_sim/simulation.h"

namespace basalt::cache_sim {
namespace {

/// A trace of single letters, each an object of one byte.
Trace Letters(const std::string& letters) {
  TraceBuilder builder("letters");
  for (const char letter : letters) builder.Add(static_cast<uint64_t>(letter), 1);
  return std::move(builder).Finish();
}

/// What a policy made of a trace of letters: a hit is an upper-case letter.
std::string Hits(std::unique_ptr<Policy> (*make)(const Trace&, uint64_t),
                 const std::string& letters, uint64_t capacity) {
  const Trace trace = Letters(letters);
  const std::unique_ptr<Policy> policy = make(trace, capacity);
  std::string hits;
  for (size_t i = 0; i < letters.size(); ++i) {
    const bool is_hit = policy->Access(trace.requests[i].key, 1);
    hits += static_cast<char>(is_hit ? letters[i] - 'a' + 'A' : letters[i]);
  }
  return hits;
}

Trace RandomTrace(uint64_t seed, uint32_t keys, int requests, uint32_t size_max) {
  base::Random random(seed);
  std::vector<uint32_t> sizes(keys);
  for (uint32_t& size : sizes) size = static_cast<uint32_t>(random.Between(1, size_max));
  TraceBuilder builder("random");
  for (int i = 0; i < requests; ++i) {
    // The lower of two draws: some keys are asked for more often than others.
    const uint64_t key = std::min(random.Below(keys), random.Below(keys));
    builder.Add(key, sizes[key]);
  }
  return std::move(builder).Finish();
}

uint64_t MissesOf(Policy* policy, const Trace& trace) {
  uint64_t misses = 0;
  for (const Request& request : trace.requests) {
    misses += policy->Access(request.key, request.size) ? 0 : 1;
  }
  return misses;
}

/// The fewest misses that any evictions could lead to, by trying all of them: for each set of keys
/// that may be held, the fewest misses so far.
uint64_t FewestMisses(const Trace& trace, int capacity) {
  constexpr uint64_t kUnreached = UINT64_MAX;
  const size_t sets = size_t{1} << trace.key_count;
  std::vector<uint64_t> fewest(sets, kUnreached);
  fewest[0] = 0;
  for (const Request& request : trace.requests) {
    const size_t asked = size_t{1} << request.key;
    std::vector<uint64_t> next(sets, kUnreached);
    for (size_t held = 0; held < sets; ++held) {
      if (fewest[held] == kUnreached) continue;
      const uint64_t misses = fewest[held] + ((held & asked) == 0 ? 1 : 0);
      const size_t most = held | asked;
      for (size_t kept = most;; kept = (kept - 1) & most) {
        if (std::popcount(kept) <= capacity) next[kept] = std::min(next[kept], misses);
        if (kept == 0) break;
      }
    }
    fewest = next;
  }
  return *std::min_element(fewest.begin(), fewest.end());
}

TEST(Lru, HitsAndEvictsAsAListInOrderOfUseWould) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    const Trace trace = RandomTrace(seed, 50, 2000, 30);
    constexpr uint64_t kCapacity = 200;
    const std::unique_ptr<Policy> lru = MakeLru(trace, kCapacity);
    std::vector<Request> model;  // The most recent last.
    for (const Request& request : trace.requests) {
      const auto found = std::find_if(model.begin(), model.end(),
                                      [&](const Request& held) { return held.key == request.key; });
      ASSERT_EQ(lru->Access(request.key, request.size), found != model.end());
      if (found != model.end()) model.erase(found);
      model.push_back(request);
      uint64_t bytes = 0;
      for (const Request& held : model) bytes += held.size;
      for (; bytes > kCapacity; model.erase(model.begin())) bytes -= model.front().size;
    }
  }
}

TEST(LazyLru, DoesNotMoveAKeyAgainSoonAfterItCame) {
  EXPECT_EQ(Hits(MakeLru, "abaca", 2), "abAcA");
  EXPECT_EQ(Hits(MakeLazyLru, "abaca", 2), "abAca");
}

TEST(LazyLru, MovesAKeyAfterThreeHundredThousandRequests) {
  const std::string pause(300'000, 'b');
  EXPECT_TRUE(Hits(MakeLazyLru, "ab" + pause + "aca", 2).ends_with("AcA"));
  EXPECT_TRUE(Hits(MakeLazyLru, "ab" + pause.substr(10) + "aca", 2).ends_with("Aca"));
}

TEST(Clock, GivesASecondChanceToWhatWasAskedForAgain) {
  // d finds a referenced: it goes behind c, and b leaves. Then b finds c, and c finds a.
  EXPECT_EQ(Hits(MakeClock, "abcadbca", 3), "abcAdbca");
  EXPECT_EQ(Hits(MakeClock, "abcada", 3), "abcAdA");
}

TEST(Sieve, SparesWhatWasVisitedWhereItStands) {
  // d: the hand clears a and takes b; b: it goes on to c; c: to d. So a is still there.
  EXPECT_EQ(Hits(MakeSieve, "abcadbca", 3), "abcAdbcA");
}

TEST(Sieve, ItsHandComesBackToTheOldest) {
  // d: the hand clears a and takes b. e: it clears c and d, begins anew, and takes a.
  EXPECT_EQ(Hits(MakeSieve, "abcadcdea", 3), "abcAdCDea");
}

// Capacity 10: one in the small queue, nine ghosts.
TEST(S3Fifo, OneHitInTheSmallQueueLeadsIntoTheMainOne) {
  // k pushes a out of the small queue, into the main one, and b out of the cache.
  EXPECT_EQ(Hits(MakeS3Fifo, "aabcdefghijkab", 10), "aAbcdefghijkAb");
}

TEST(S3Fifo, WhatComesBackFromItsGhostEntersTheMainQueue) {
  // b is a ghost when it comes again, so it outlives the new keys m .. v; k does not.
  EXPECT_EQ(Hits(MakeS3Fifo, "aabcdefghijkbmnopqrstuvbak", 10), "aAbcdefghijkbmnopqrstuvBAk");
}

// Capacity 5: nothing stays in the small queue for long, and there are five ghosts.
TEST(S3Fifo, AGhostIsForgottenAfterAsManyAsThereIsRoomFor) {
  // Four became ghosts after a: it enters the main queue, and outlives l .. p.
  EXPECT_EQ(Hits(MakeS3Fifo, "abcdefghijalmnopa", 5), "abcdefghijalmnopA");
  // Five did: it enters the small queue again, and leaves it.
  EXPECT_EQ(Hits(MakeS3Fifo, "abcdefghijkalmnopa", 5), "abcdefghijkalmnopa");
}

TEST(WTinyLfu, KeysThatAreAskedForOftenSurviveAScan) {
  TraceBuilder builder("scan");
  for (int round = 0; round < 5; ++round) {
    for (uint64_t key = 0; key < 90; ++key) builder.Add(key, 1);
  }
  for (uint64_t key = 1000; key < 1400; ++key) builder.Add(key, 1);
  const Trace trace = std::move(builder).Finish();
  const std::unique_ptr<Policy> tiny_lfu = MakeWTinyLfu(trace, 100);
  const std::unique_ptr<Policy> lru = MakeLru(trace, 100);
  MissesOf(tiny_lfu.get(), trace);
  MissesOf(lru.get(), trace);
  int kept = 0;
  for (uint32_t key = 0; key < 90; ++key) {
    kept += tiny_lfu->Access(key, 1) ? 1 : 0;
    EXPECT_FALSE(lru->Access(key, 1));
  }
  EXPECT_GE(kept, 85);
}

TEST(Belady, MissesAsFewAsAnyEvictionsCould) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    const Trace trace = RandomTrace(seed, 7, 40, 1);
    for (int capacity = 1; capacity <= 5; ++capacity) {
      EXPECT_EQ(MissesOf(MakeBelady(trace, static_cast<uint64_t>(capacity)).get(), trace),
                FewestMisses(trace, capacity));
    }
  }
}

/// All policies that are simulated.
class EveryPolicy : public testing::TestWithParam<size_t> {
 protected:
  std::unique_ptr<Policy> Make(const Trace& trace, uint64_t capacity_bytes) const {
    return PolicyKinds()[GetParam()].make(trace, capacity_bytes);
  }
};

// A policy that held more than its capacity would be found here, too.
TEST_P(EveryPolicy, NeverMissesLessThanBeladyWithObjectsOfOneSize) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    const Trace trace = RandomTrace(seed, 300, 5000, 1);
    for (const uint64_t capacity : {1, 2, 7, 30, 150, 299}) {
      SCOPED_TRACE(capacity);
      EXPECT_GE(MissesOf(Make(trace, capacity).get(), trace),
                MissesOf(MakeBelady(trace, capacity).get(), trace));
    }
  }
}

TEST_P(EveryPolicy, MissesEachKeyOnceWhereAllFit) {
  const Trace trace = RandomTrace(1, 300, 20'000, 50);
  // Twice the footprint: the parts of a policy that has several need room each.
  EXPECT_EQ(MissesOf(Make(trace, 2 * trace.footprint_bytes).get(), trace), trace.key_count);
}

TEST_P(EveryPolicy, LetsAnObjectPassThatExceedsTheCapacity) {
  TraceBuilder builder("huge");
  for (const uint64_t key : {1, 2, 1, 2, 1}) builder.Add(key, key == 1 ? 10 : 101);
  const Trace trace = std::move(builder).Finish();
  const std::unique_ptr<Policy> policy = Make(trace, 100);
  std::vector<bool> hits;
  for (const Request& request : trace.requests) {
    hits.push_back(policy->Access(request.key, request.size));
  }
  EXPECT_EQ(hits, (std::vector<bool>{false, false, true, false, true}));
}

std::vector<size_t> SimulatedPolicies() {
  std::vector<size_t> simulated;
  for (size_t i = 0; i < PolicyKinds().size(); ++i) {
    if (PolicyKinds()[i].make != nullptr) simulated.push_back(i);
  }
  return simulated;
}

INSTANTIATE_TEST_SUITE_P(All, EveryPolicy, testing::ValuesIn(SimulatedPolicies()),
                         [](const testing::TestParamInfo<size_t>& info) {
                           std::string name(PolicyKinds()[info.param].name);
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace basalt::cache_sim

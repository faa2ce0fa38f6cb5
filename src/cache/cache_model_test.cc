#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "basalt/cache.h"
#include "base/random.h"
#include "base/test_update.h"
#include "cache/test_cache.h"

// Random operations on a cache and on a map with deadlines. With capacity for everything the two
// agree; a small cache may miss, but what it returns is what the map has.

namespace basalt::cache {
namespace {

/// What the cache would be if memory were without end.
class Model {
 public:
  struct Item {
    std::string value;
    uint64_t deadline_ms;  ///< 0: none.
  };

  const Item* Find(const std::string& key, uint64_t now_ms) {
    const auto it = items_.find(key);
    if (it == items_.end()) return nullptr;
    if (it->second.deadline_ms == 0 || now_ms < it->second.deadline_ms) return &it->second;
    items_.erase(it);
    return nullptr;
  }
  void Put(const std::string& key, std::string value, uint64_t deadline_ms) {
    items_[key] = {std::move(value), deadline_ms};
  }
  void Touch(const std::string& key, uint64_t deadline_ms) {
    const auto it = items_.find(key);
    if (it != items_.end()) it->second.deadline_ms = deadline_ms;
  }
  void Delete(const std::string& key) { items_.erase(key); }
  void Clear() { items_.clear(); }
  std::map<std::string, std::string> Alive(uint64_t now_ms) const {
    std::map<std::string, std::string> alive;
    for (const auto& [key, item] : items_) {
      if (item.deadline_ms == 0 || now_ms < item.deadline_ms) alive[key] = item.value;
    }
    return alive;
  }

 private:
  std::unordered_map<std::string, Item> items_;
};

struct Setting {
  CacheOptions options;
  bool is_ample;  ///< The cache has room for everything.
  uint64_t keys;
};

/// One run of random operations, each checked.
class ModelRun {
 public:
  ModelRun(const Setting& setting, uint64_t seed)
      : setting_(setting), random_(seed), cache_(setting.options) {}

  void Run(int steps) {
    for (step_ = 0; step_ < steps && !testing::Test::HasFailure(); ++step_) {
      key_ = "k" + std::to_string(random_.Below(setting_.keys));
      Step();
      if (random_.OneIn(4)) cache_.AdvanceMillis(random_.Below(5));
      // Now and then long enough for higher levels of the timing wheel.
      if (random_.OneIn(5000)) cache_.AdvanceMillis(random_.Below(2'000'000));
    }
    CheckAll();
  }

 private:
  using Millis = CacheCore::Ttl::value_type;

  void Step() {
    switch (random_.Below(16)) {
      case 0:
      case 1:
      case 2:
        return Put(Condition::kAlways);
      case 3:
        return Put(Condition::kIfAbsent);
      case 4:
        return Put(Condition::kIfPresent);
      case 5:
        return Delete();
      case 6:
        return Take();
      case 7:
        return Touch();
      case 8:
      case 9:
        return Update();
      case 10:
        return MultiGet();
      case 11:
        if (random_.OneIn(2000)) return Clear();
        if (random_.OneIn(500)) return CheckAll();
        return Get(false);
      default:
        return Get(true);
    }
  }

  const Model::Item* Expected() { return model_.Find(key_, cache_.now_ms()); }
  /// Whether what the cache has for the key now is right; a small one may have lost it, and the
  /// model then forgets it too.
  void Agree(const std::optional<std::string>& got) {
    const Model::Item* const expected = Expected();
    if (got) {
      ASSERT_NE(expected, nullptr) << "step " << step_ << ": " << key_ << " is gone";
      ASSERT_EQ(*got, expected->value) << "step " << step_;
    } else if (setting_.is_ample) {
      ASSERT_EQ(expected, nullptr) << "step " << step_ << ": " << key_ << " is there";
    } else {
      model_.Delete(key_);
    }
  }
  static std::optional<std::string> Text(const MaybeValue& value) {
    if (!value) return std::nullopt;
    return value->ToString();
  }
  bool IsThere() {
    const bool is_there = cache_->Get<false>(key_).has_value();
    if (!is_there && !setting_.is_ample) model_.Delete(key_);
    return is_there;
  }

  std::string RandomValue() {
    static constexpr std::array<uint64_t, 8> kSizesMax = {1, 20, 20, 100, 120, 500, 600, 9000};
    const size_t size = random_.Below(kSizesMax[random_.Below(kSizesMax.size())]);
    return std::to_string(step_) + ":" + std::string(size, static_cast<char>('a' + step_ % 26));
  }
  uint64_t RandomTtl() {
    static constexpr std::array<uint64_t, 6> kTtls = {0, 0, 1, 30, 3000, 3'000'000};
    const uint64_t ttl_ms = kTtls[random_.Below(kTtls.size())];
    return ttl_ms == 0 ? 0 : 1 + random_.Below(ttl_ms);
  }
  uint64_t DeadlineOf(uint64_t ttl_ms) { return ttl_ms == 0 ? 0 : cache_.now_ms() + ttl_ms; }

  void Put(Condition condition) {
    const bool was_there = IsThere();
    const std::string value = RandomValue();
    const uint64_t ttl_ms = RandomTtl();
    const Result<bool> put =
        cache_->PutBytes(key_, value, Millis(static_cast<int64_t>(ttl_ms)), condition);
    ASSERT_TRUE(put) << "step " << step_ << ": " << put.status().ToString();
    if (setting_.is_ample) {
      ASSERT_EQ(*put, condition == Condition::kAlways ||
                          was_there == (condition == Condition::kIfPresent))
          << "step " << step_;
    }
    if (*put) model_.Put(key_, value, DeadlineOf(ttl_ms));
    Agree(Text(cache_->Get<false>(key_)));
  }
  void Get(bool counts) {
    Agree(Text(counts ? cache_->Get<true>(key_) : cache_->Get<false>(key_)));
  }
  void MultiGet() {
    std::vector<std::string> keys;
    for (uint64_t i = random_.Below(40); i > 0; --i) {
      keys.push_back("k" + std::to_string(random_.Below(setting_.keys)));
    }
    const std::vector<std::string_view> asked(keys.begin(), keys.end());
    std::vector<MaybeValue> values(keys.size());
    ASSERT_TRUE(cache_->MultiGet(asked, values).ok());
    for (size_t i = 0; i < keys.size(); ++i) {
      key_ = keys[i];
      Agree(Text(values[i]));
    }
  }
  void Take() {
    const MaybeValue taken = cache_->TakeBytes(key_);
    std::optional<std::string> text;
    if (taken) text = taken->ToString();
    Agree(text);
    model_.Delete(key_);
  }
  void Delete() {
    const bool was_there = IsThere();
    ASSERT_EQ(cache_->Delete(key_), was_there) << "step " << step_;
    ASSERT_EQ(was_there, Expected() != nullptr) << "step " << step_;
    model_.Delete(key_);
  }
  void Touch() {
    const bool was_there = IsThere();
    const uint64_t ttl_ms = RandomTtl();
    ASSERT_EQ(cache_.Touch(key_, static_cast<int64_t>(ttl_ms)), was_there) << "step " << step_;
    if (was_there) model_.Touch(key_, DeadlineOf(ttl_ms));
  }
  void Update() {
    const uint64_t kind = random_.Below(4);
    const std::string value = RandomValue();
    std::optional<std::string> seen;
    const auto update =
        [&](std::optional<std::string_view> before) -> Result<std::optional<std::string>> {
      seen.reset();
      if (before) seen = std::string(*before);
      if (kind == 0) return Status(StatusCode::kAborted, "not now");
      if (kind == 1) return std::nullopt;
      return value;
    };
    const Status status = cache_->Update(key_, base::ByValue(update));
    ASSERT_EQ(status.code(), kind == 0 ? StatusCode::kAborted : StatusCode::kOk);
    Agree(seen);
    const Model::Item* const before = Expected();
    if (kind == 1) model_.Delete(key_);
    if (kind > 1) model_.Put(key_, value, before == nullptr ? 0 : before->deadline_ms);
    Agree(Text(cache_->Get<false>(key_)));
  }
  void Clear() {
    cache_->Clear();
    model_.Clear();
    ASSERT_EQ(cache_->GetStats().entries, 0u);
  }
  void CheckAll() {
    const std::map<std::string, std::string> alive = model_.Alive(cache_.now_ms());
    std::set<std::string> seen;
    const Status status = cache_->ForEach([&](const Entry& entry) {
      const std::string key(entry.key());
      const auto it = alive.find(key);
      EXPECT_TRUE(seen.insert(key).second) << key;
      EXPECT_TRUE(it != alive.end() && it->second == entry.value_view()) << key;
      return !testing::Test::HasFailure();
    });
    ASSERT_TRUE(status.ok());
    if (setting_.is_ample) {
      ASSERT_EQ(seen.size(), alive.size()) << "step " << step_;
    }
    ASSERT_LE(cache_->GetStats().bytes, setting_.options.capacity_bytes);
  }

  const Setting& setting_;
  base::Random random_;
  SimCache cache_;
  Model model_;
  int step_ = 0;
  std::string key_;
};

class CacheModelTest : public testing::TestWithParam<std::tuple<Eviction, uint32_t, uint64_t>> {
 protected:
  void RunAll(uint64_t capacity_bytes, bool is_ample, uint64_t keys, int steps) {
    const auto [eviction, shards, seed] = GetParam();
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Setting setting{.options = {.capacity_bytes = capacity_bytes,
                                      .shards = shards,
                                      .default_ttl = {},
                                      .eviction = eviction},
                          .is_ample = is_ample,
                          .keys = keys};
    ModelRun(setting, seed).Run(steps);
  }
};

TEST_P(CacheModelTest, WithAmpleCapacityTheCacheIsTheMap) {
  RunAll(uint64_t{256} << 20, true, 4000, 40'000);
}
TEST_P(CacheModelTest, AFewKeysThatChangeAllTheTimeAgreeToo) {
  RunAll(uint64_t{16} << 20, true, 20, 40'000);
}
TEST_P(CacheModelTest, ASmallCacheReturnsNothingStale) {
  RunAll(uint64_t{768} << 10, false, 4000, 40'000);
}

INSTANTIATE_TEST_SUITE_P(All, CacheModelTest,
                         testing::Combine(testing::Values(Eviction::kClock, Eviction::kS3Fifo),
                                          testing::Values(1u, 8u), testing::Values(1u, 2u)));

}  // namespace
}  // namespace basalt::cache

#include "transaction/own_iterator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "base/hash.h"
#include "base/key_bound.h"
#include "base/random.h"

namespace basalt::transaction {
namespace {

using std::chrono::milliseconds;
using Content = std::map<std::string, std::string, std::less<>>;

constexpr uint64_t kWalkedAt = 1'000'000;
constexpr uint64_t kWalkReadBytes = uint64_t{1} << 30;

/// Walks a map within bounds, as a store's iterator does.
class MapIterator final : public Iterator {
 public:
  MapIterator(const Content* content, std::string lower, std::optional<std::string> upper)
      : content_(content), lower_(std::move(lower)), upper_(std::move(upper)) {}

  std::optional<WallTime> expiry() const noexcept override { return expiry_; }
  void SeekToFirst() override { Seek(lower_); }
  void SeekToLast() override {
    Show(upper_ ? content_->lower_bound(*upper_) : content_->end(), /*before=*/true);
  }
  void Seek(std::string_view target) override {
    Show(content_->lower_bound(std::max<std::string_view>(target, lower_)), /*before=*/false);
  }
  void SeekForPrev(std::string_view target) override {
    if (upper_ && target >= *upper_) return SeekToLast();
    Show(content_->upper_bound(target), /*before=*/true);
  }
  void Next() override {
    if (Valid()) Show(std::next(content_->find(key_)), /*before=*/false);
  }
  void Prev() override {
    if (Valid()) Show(content_->find(key_), /*before=*/true);
  }
  void FailWith(Status why) { failure_ = std::move(why); }
  void ExpireAt(std::optional<WallTime> expiry) { expiry_ = expiry; }

 private:
  void Show(Content::const_iterator at, bool before) {
    valid_ = false;
    status_ = failure_;
    if (!failure_.ok()) return;
    if (before) {
      if (at == content_->begin()) return;
      --at;
    }
    if (at == content_->end() || at->first < lower_ || (upper_ && at->first >= *upper_)) return;
    key_ = at->first;
    value_ = at->second;
    valid_ = true;
  }

  const Content* const content_;
  const std::string lower_;
  const std::optional<std::string> upper_;
  Status failure_;
  std::optional<WallTime> expiry_;
};

struct Case {
  Content stored;
  Content merged;  ///< With the transaction's writes.
  OwnIterator::Overlay overlay;
};

constexpr uint64_t kKeySpan = 30;
std::string KeyAt(uint64_t number) { return {'k', static_cast<char>('a' + number)}; }

Case RandomCase(base::Random* random) {
  Case made;
  OwnWrites own([](KeyspaceId) { return milliseconds(0); });
  for (uint64_t i = 0; i < kKeySpan; ++i) {
    if (random->OneIn(2)) made.stored[KeyAt(i)] = "s" + std::to_string(i);
  }
  made.merged = made.stored;
  WriteBatch batch;
  for (uint64_t left = random->Below(12); left > 0; --left) {
    const std::string key = KeyAt(random->Below(kKeySpan));
    switch (random->Below(5)) {
      case 0:
        batch.Delete(key);
        made.merged.erase(key);
        break;
      case 1: {
        const std::string end = KeyAt(random->Below(kKeySpan));
        if (end <= key) break;
        batch.DeleteRange(key, end);
        made.merged.erase(made.merged.lower_bound(key), made.merged.lower_bound(end));
        break;
      }
      case 2:
        batch.Merge(key, MergeOperator::kAppend, "+");
        made.merged[key] += "+";
        break;
      default:
        batch.Put(key, "own");
        made.merged[key] = "own";
    }
  }
  EXPECT_TRUE(own.Append(batch).ok());
  if (const OwnWrites::OfKeyspace* view = own.Of(KeyspaceId::kDefault, kWalkedAt)) {
    for (const auto& [key, state] : view->keys) made.overlay.own.push_back({key, state});
    made.overlay.deleted = view->deleted;
  }
  return made;
}

/// Bounds of a walk.
struct Bounds {
  std::string lower;
  std::optional<std::string> upper;
};

Bounds RandomBounds(base::Random* random) {
  Bounds bounds;
  if (random->OneIn(2)) bounds.lower = KeyAt(random->Below(kKeySpan));
  if (random->OneIn(2)) bounds.upper = KeyAt(random->Below(kKeySpan));
  return bounds;
}

/// An iterator over a case with its model: an iterator over the merged content. Both are moved in
/// the same way. What was passed is kept as the model's own list of keys and gaps.
class Walk {
 public:
  Walk(Case* of, const Bounds& bounds, ReadSet* reads)
      : bounds_(bounds), model_(&of->merged, bounds.lower, bounds.upper) {
    ReadOptions options;
    if (!bounds.lower.empty()) options.lower = bounds.lower;
    if (bounds.upper) options.upper = *bounds.upper;
    OwnIterator::Overlay overlay = of->overlay;
    std::erase_if(overlay.own, [&](const OwnIterator::Own& own) {
      return own.key < bounds.lower || (bounds.upper && own.key >= *bounds.upper);
    });
    walked_ = std::make_unique<OwnIterator>(
        std::make_unique<MapIterator>(&of->stored, bounds.lower, bounds.upper), options,
        std::move(overlay), kWalkedAt, reads, std::make_shared<LiveIterators>());
  }

  void Step(base::Random* random) {
    const std::string target = KeyAt(random->Below(kKeySpan)) + (random->OneIn(2) ? "x" : "");
    const uint64_t draw = random->Below(20);
    if (draw < 8) {
      Move([](Iterator* it) { it->Next(); });
    } else if (draw < 16) {
      Move([](Iterator* it) { it->Prev(); });
    } else if (draw == 16) {
      Move([](Iterator* it) { it->SeekToFirst(); });
    } else if (draw == 17) {
      Move([](Iterator* it) { it->SeekToLast(); });
    } else if (draw == 18) {
      Move([&](Iterator* it) { it->Seek(target); });
    } else {
      Move([&](Iterator* it) { it->SeekForPrev(target); });
    }
  }

  template <class Do>
  void Move(const Do& move) {
    move(walked_.get());
    move(&model_);
    ASSERT_TRUE(walked_->status().ok());
    ASSERT_EQ(walked_->Valid(), model_.Valid());
    if (!model_.Valid()) return;
    ASSERT_EQ(walked_->key(), model_.key());
    ASSERT_EQ(walked_->value(), model_.value());
    shown_.emplace_back(model_.key());
  }
  const std::vector<std::string>& shown() const { return shown_; }
  void End() { walked_.reset(); }

 private:
  const Bounds bounds_;
  MapIterator model_;
  std::unique_ptr<OwnIterator> walked_;
  std::vector<std::string> shown_;
};

TEST(OwnIterator, WalksTheStoreWithTheWritesOverIt) {
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    base::Random random(seed);
    Case of = RandomCase(&random);
    Walk walk(&of, RandomBounds(&random), nullptr);
    for (int i = 0; i < 60; ++i) ASSERT_NO_FATAL_FAILURE(walk.Step(&random)) << i;
  }
}

TEST(OwnIterator, TracksEveryKeyThatItHasShown) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    base::Random random(seed);
    Case of = RandomCase(&random);
    ReadSet reads(kWalkReadBytes);
    Walk walk(&of, RandomBounds(&random), &reads);
    for (int i = 0; i < 30; ++i) ASSERT_NO_FATAL_FAILURE(walk.Step(&random)) << i;
    walk.End();
    reads.Normalise();
    for (const std::string& key : walk.shown()) {
      ASSERT_TRUE(reads.Covers(0, key, base::Hash(key))) << key;
    }
  }
}

// One seek and some steps in one direction: what was passed is one interval, both of whose ends are
// known.
TEST(OwnIterator, TracksTheGapsThatItHasPassedAndNothingElse) {
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    base::Random random(seed);
    Case of = RandomCase(&random);
    const Bounds bounds = RandomBounds(&random);
    const std::string target = KeyAt(random.Below(kKeySpan)) + (random.OneIn(2) ? "x" : "");
    const bool forward = random.OneIn(2);
    const uint64_t steps = random.Below(8);
    ReadSet reads(kWalkReadBytes);
    Walk walk(&of, bounds, &reads);
    walk.Move([&](Iterator* it) { forward ? it->Seek(target) : it->SeekForPrev(target); });
    MapIterator model(&of.merged, bounds.lower, bounds.upper);
    forward ? model.Seek(target) : model.SeekForPrev(target);
    for (uint64_t i = 0; i < steps; ++i) {
      walk.Move([&](Iterator* it) { forward ? it->Next() : it->Prev(); });
      forward ? model.Next() : model.Prev();
    }
    walk.End();
    reads.Normalise();
    const auto is_passed = [&](std::string_view key) {
      if (key < bounds.lower || (bounds.upper && key >= *bounds.upper)) return false;
      if (forward) return key >= target && (!model.Valid() || key <= model.key());
      return key <= target && (!model.Valid() || key >= model.key());
    };
    for (uint64_t i = 0; i < kKeySpan; ++i) {
      for (const std::string& key : {KeyAt(i), KeyAt(i) + "x"}) {
        ASSERT_EQ(reads.Covers(0, key, base::Hash(key)), is_passed(key)) << key;
      }
    }
  }
}

TEST(OwnIterator, AnErrorOfTheStoreIsItsOwn) {
  const Content content{{"a", "1"}, {"b", "2"}};
  auto base = std::make_unique<MapIterator>(&content, "", std::nullopt);
  MapIterator* const raw = base.get();
  ReadSet reads(kWalkReadBytes);
  OwnIterator walked(std::move(base), {}, {}, kWalkedAt, &reads, std::make_shared<LiveIterators>());
  walked.SeekToFirst();
  ASSERT_TRUE(walked.Valid());
  raw->FailWith(Status(StatusCode::kIoError, "the disk is gone"));
  walked.Next();
  EXPECT_FALSE(walked.Valid());
  EXPECT_EQ(walked.status().code(), StatusCode::kIoError);
  raw->FailWith(Status());
  walked.SeekToLast();
  EXPECT_TRUE(walked.status().ok());
  EXPECT_EQ(walked.key(), "b");
}

TEST(OwnIterator, IsOverWhenTheTransactionIs) {
  const Content content{{"a", "1"}, {"b", "2"}};
  const auto live = std::make_shared<LiveIterators>();
  std::optional<ReadSet> reads(std::in_place, kWalkReadBytes);
  OwnIterator walked(std::make_unique<MapIterator>(&content, "", std::nullopt), {}, {}, kWalkedAt,
                     &*reads, live);
  ASSERT_EQ(live->size(), 1u);
  walked.SeekToFirst();
  walked.Finish(Status(StatusCode::kFailedPrecondition, "over"));
  reads.reset();
  EXPECT_FALSE(walked.Valid());
  walked.SeekToLast();
  EXPECT_FALSE(walked.Valid());
  EXPECT_EQ(walked.status().code(), StatusCode::kFailedPrecondition);
}

TEST(OwnIterator, TellsWhenWhatItShowsExpires) {
  const Content content{{"a", "1"}, {"b", "2"}};
  const WallTime expiry{milliseconds(kWalkedAt + 5)};
  OwnIterator::Overlay overlay;
  overlay.own.push_back({"a", {.kind = OwnState::Kind::kMerges, .merges = {}}});
  overlay.own.back().state.merges.push_back(
      {std::string(1, static_cast<char>(MergeOperator::kAppend)) + "+", kWalkedAt});
  for (const bool keys_only : {false, true}) {
    auto base = std::make_unique<MapIterator>(&content, "", std::nullopt);
    base->ExpireAt(expiry);
    ReadSet reads(kWalkReadBytes);
    OwnIterator walked(std::move(base), {.keys_only = keys_only}, overlay, kWalkedAt, &reads,
                       std::make_shared<LiveIterators>());
    walked.SeekToFirst();
    EXPECT_EQ(walked.value(), keys_only ? "" : "1+");
    EXPECT_EQ(walked.expiry(), expiry) << "keys_only " << keys_only;
    EXPECT_EQ(reads.earliest_expiry_ms(), kWalkedAt + 5);
    walked.Next();
    EXPECT_EQ(walked.expiry(), expiry);
  }
}

}  // namespace
}  // namespace basalt::transaction

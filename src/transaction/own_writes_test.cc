#include "transaction/own_writes.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/coding.h"
#include "base/random.h"

namespace basalt::transaction {
namespace {

using std::chrono::milliseconds;

constexpr uint64_t kNow = 1'000'000;

std::string NumberOf(uint64_t number) {
  std::string bytes(8, '\0');
  base::Store(bytes.data(), number);
  return bytes;
}

OwnWrites NewOwnWrites() {
  return OwnWrites([](KeyspaceId) { return milliseconds(0); });
}

/// Adds one batch.
template <class Fill>
void Add(const Fill& fill, OwnWrites* own) {
  WriteBatch batch;
  fill(&batch);
  ASSERT_TRUE(own->Append(batch).ok());
}

/// What one key has become: nothing where the transaction has not touched it.
struct KeyModel {
  bool is_touched = false;
  bool is_known = false;  ///< What the store has does not count any more.
  std::optional<std::string> value;
  std::string appended;  ///< To what the store has.
};

/// Puts, deletes, range deletes and appends over the keys a to h of two keyspaces.
struct WritesModel {
  std::map<uint32_t, std::map<std::string, KeyModel>> keyspaces;

  void Set(uint32_t keyspace, const std::string& key, std::optional<std::string> value) {
    keyspaces[keyspace][key] = {
        .is_touched = true, .is_known = true, .value = std::move(value), .appended = {}};
  }
  void Append(uint32_t keyspace, const std::string& key, const std::string& operand) {
    KeyModel& model = keyspaces[keyspace][key];
    model.is_touched = true;
    if (model.is_known) {
      model.value = model.value.value_or("") + operand;
    } else {
      model.appended += operand;
    }
  }
};

std::string KeyNumber(uint64_t number) { return {static_cast<char>('a' + number)}; }
constexpr uint64_t kKeys = 8;

void WriteSomething(base::Random* random, OwnWrites* own, WritesModel* model) {
  const auto keyspace = static_cast<uint32_t>(random->Below(2));
  const auto id = static_cast<KeyspaceId>(keyspace);
  const std::string key = KeyNumber(random->Below(kKeys));
  const std::string value = std::to_string(random->Below(1000)) + ",";
  Add(
      [&](WriteBatch* batch) {
        switch (random->Below(4)) {
          case 0:
            batch->Put(key, value, {.keyspace = id});
            return model->Set(keyspace, key, value);
          case 1:
            batch->Delete(key, id);
            return model->Set(keyspace, key, std::nullopt);
          case 2:
            batch->Merge(key, MergeOperator::kAppend, value, {.keyspace = id});
            return model->Append(keyspace, key, value);
          default: {
            const uint64_t begin = random->Below(kKeys);
            const uint64_t end = random->Between(begin, kKeys);
            batch->DeleteRange(KeyNumber(begin), KeyNumber(end), id);
            for (uint64_t i = begin; i < end; ++i) model->Set(keyspace, KeyNumber(i), {});
          }
        }
      },
      own);
}

/// What the view says of a key over a store that has "stored,".
std::optional<std::string> Read(const OwnWrites::OfKeyspace* view, const std::string& key) {
  const auto found = view == nullptr ? OwnWrites::Keys::const_iterator() : view->keys.find(key);
  if (view == nullptr) return "stored,";
  if (found == view->keys.end()) {
    return view->IsInDeletedRange(key) ? std::nullopt : std::optional<std::string>("stored,");
  }
  const OwnState& state = found->second;
  if (state.kind == OwnState::Kind::kDeleted) return std::nullopt;
  if (state.merges.empty()) return state.value;
  return state.Merged("stored,", 0, kNow).value().value;
}

std::optional<std::string> Read(const WritesModel& model, uint32_t keyspace,
                                const std::string& key) {
  const auto of_keyspace = model.keyspaces.find(keyspace);
  if (of_keyspace == model.keyspaces.end()) return "stored,";
  const auto found = of_keyspace->second.find(key);
  if (found == of_keyspace->second.end()) return "stored,";
  return found->second.is_known ? found->second.value : "stored," + found->second.appended;
}

TEST(OwnWrites, TheViewIsWhatTheRecordsSay) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    base::Random random(seed);
    OwnWrites own = NewOwnWrites();
    WritesModel model;
    struct Point {
      WriteBatch::Mark mark;
      WritesModel model;
    };
    std::vector<Point> points;
    for (int step = 0; step < 60; ++step) {
      WriteSomething(&random, &own, &model);
      if (random.OneIn(8)) points.push_back({own.mark(), model});
      if (random.OneIn(10) && !points.empty()) {
        points.resize(random.Between(1, points.size()));
        own.TruncateTo(points.back().mark);
        model = points.back().model;
      }
      if (!random.OneIn(3)) continue;  // The view takes several records at once.
      for (uint32_t keyspace = 0; keyspace < 2; ++keyspace) {
        const OwnWrites::OfKeyspace* const view = own.Of(static_cast<KeyspaceId>(keyspace), kNow);
        for (uint64_t i = 0; i < kKeys; ++i) {
          ASSERT_EQ(Read(view, KeyNumber(i)), Read(model, keyspace, KeyNumber(i)))
              << "step " << step << ", keyspace " << keyspace << ", key " << KeyNumber(i);
        }
      }
    }
  }
}

TEST(OwnWrites, DeletedRangesStayDisjoint) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    base::Random random(seed);
    OwnWrites::Ranges ranges;
    std::set<char> deleted;
    for (int i = 0; i < 12; ++i) {
      const auto begin = static_cast<char>('a' + random.Below(25));
      const auto end = static_cast<char>(begin + 1 + static_cast<char>(random.Below(4)));
      AddDeletedRange({&begin, 1}, {&end, 1}, &ranges);
      for (char c = begin; c < end; ++c) deleted.insert(c);
      std::set<char> covered;
      std::string last;
      for (const auto& [first, second] : ranges) {
        ASSERT_LT(first, second);
        ASSERT_LT(last, first);
        last = second;
        for (char c = first[0]; c < second[0]; ++c) covered.insert(c);
      }
      ASSERT_EQ(covered, deleted);
    }
  }
}

TEST(OwnWrites, GoingBackKeepsEarlierConditions) {
  OwnWrites own = NewOwnWrites();
  Add([](WriteBatch* batch) { batch->RequireAbsent("early"); }, &own);
  const WriteBatch::Mark mark = own.mark();
  Add(
      [](WriteBatch* batch) {
        batch->Put("k", "v");
        batch->RequireAbsent("late");
      },
      &own);
  own.TruncateTo(mark);
  std::vector<std::string> required;
  ASSERT_TRUE(own.batch()
                  .ForEachCondition([&](const WriteBatch::Requirement& condition) {
                    required.emplace_back(condition.key);
                    return Status();
                  })
                  .ok());
  EXPECT_EQ(required, std::vector<std::string>{"early"});
  EXPECT_TRUE(own.empty());
}

TEST(OwnWrites, AMergeThatCannotBeAppliedSpoilsItsKeyOnly) {
  OwnWrites own = NewOwnWrites();
  const auto number = [](WriteBatch* batch) {
    batch->Merge("k", MergeOperator::kAdd, NumberOf(1));
  };
  Add([](WriteBatch* batch) { batch->Put("k", "no number"); }, &own);
  Add(number, &own);
  Add(number, &own);
  Add([](WriteBatch* batch) { batch->Put("other", "v"); }, &own);
  const OwnWrites::OfKeyspace* view = own.Of(KeyspaceId::kDefault, kNow);
  ASSERT_NE(view, nullptr);
  EXPECT_EQ(view->keys.at("other").value, "v");
  const OwnState& broken = view->keys.at("k");
  ASSERT_FALSE(broken.merges.empty());
  EXPECT_EQ(broken.Merged(std::nullopt, 0, kNow).error().code(), StatusCode::kFailedPrecondition);

  Add([](WriteBatch* batch) { batch->Put("k", NumberOf(5)); }, &own);
  Add(number, &own);
  view = own.Of(KeyspaceId::kDefault, kNow);
  EXPECT_TRUE(view->keys.at("k").merges.empty());
  EXPECT_EQ(view->keys.at("k").value, NumberOf(6));
}

TEST(OwnWrites, AnErrorAddsNothing) {
  OwnWrites own = NewOwnWrites();
  Add([](WriteBatch* batch) { batch->Put("k", "v"); }, &own);
  WriteBatch refused;
  refused.Put("k", "w", {.ttl = milliseconds(-1)});
  EXPECT_EQ(own.Append(refused).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(own.batch().status().ok());
  EXPECT_EQ(own.Of(KeyspaceId::kDefault, kNow)->keys.at("k").value, "v");
}

TEST(OwnWrites, APutExpiresAfterItsTtlOrTheKeyspacesOwn) {
  OwnWrites own([](KeyspaceId keyspace) {
    return keyspace == KeyspaceId::kDefault ? milliseconds(0) : milliseconds(50);
  });
  const auto second = static_cast<KeyspaceId>(1);
  Add(
      [&](WriteBatch* batch) {
        batch->Put("default", "v", {.keyspace = second});
        batch->Put("never", "v", {.keyspace = second, .ttl = milliseconds(0)});
        batch->Put("ttl", "v", {.keyspace = second, .ttl = milliseconds(7)});
        batch->Put("moment", "v", {.keyspace = second, .expiry = WallTime(milliseconds(9))});
        batch->Put("merged", NumberOf(1), {.keyspace = second, .ttl = milliseconds(7)});
        batch->Merge("merged", MergeOperator::kAdd, NumberOf(1), {.keyspace = second});
      },
      &own);
  const auto& keys = own.Of(second, kNow)->keys;
  EXPECT_EQ(keys.at("default").expiry, WallTime(milliseconds(kNow + 50)));
  EXPECT_EQ(keys.at("never").expiry, std::nullopt);
  EXPECT_EQ(keys.at("ttl").expiry, WallTime(milliseconds(kNow + 7)));
  EXPECT_EQ(keys.at("moment").expiry, WallTime(milliseconds(9)));
  EXPECT_EQ(keys.at("merged").expiry, WallTime(milliseconds(kNow + 7)));
}

}  // namespace
}  // namespace basalt::transaction

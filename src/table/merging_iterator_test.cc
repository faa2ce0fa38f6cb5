#include "base/merging_iterator.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "table/test_records.h"

namespace basalt::table {
namespace {

using Children = std::vector<std::unique_ptr<base::RecordIterator>>;

// Deals records out to children, some of which may stay empty.
struct Dealt {
  std::vector<Record> all;
  Children children;
};

Dealt Deal(base::Random* random, size_t count, size_t children) {
  Dealt dealt;
  std::vector<std::vector<Record>> hands(children);
  for (size_t i = 0; i < count; ++i) {
    Record record = Put(RandomBytes(random, random->Below(12), 2), i + 1, std::to_string(i));
    dealt.all.push_back(record);
    hands[random->Below(children)].push_back(std::move(record));
  }
  Sort(&dealt.all);
  for (std::vector<Record>& hand : hands) {
    Sort(&hand);
    dealt.children.push_back(std::make_unique<VectorIterator>(std::move(hand)));
  }
  return dealt;
}

// One move, the same for both.
void Move(base::Random* random, const std::vector<Record>& all, base::RecordIterator* it) {
  base::Random same = *random;
  const auto target = [&]() -> Record {
    if (all.empty() || same.OneIn(3)) return Put(RandomBytes(&same, same.Below(12), 2), 1, "");
    return all[same.Below(all.size())];
  };
  const uint64_t choice = same.Below(it->Valid() ? 40 : 4);
  if (choice == 0) {
    it->SeekToFirst();
  } else if (choice == 1) {
    it->SeekToLast();
  } else if (choice == 2) {
    const Record record = target();
    it->Seek(record.key, record.tag);
  } else if (choice == 3) {
    const Record record = target();
    it->SeekForPrev(record.key, record.tag);
  } else if (choice % 2 == 0) {
    it->Next();
  } else {
    it->Prev();
  }
}

TEST(MergingIterator, RandomMovesMatchASortedVector) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    base::Random random(seed);
    Dealt dealt = Deal(&random, random.Below(200), random.Below(9) + 1);
    VectorIterator model(&dealt.all);
    const auto it = base::NewMergingIterator(std::move(dealt.children));
    for (int step = 0; step < 500; ++step) {
      Move(&random, dealt.all, it.get());
      Move(&random, dealt.all, &model);
      random.Next();
      ASSERT_TRUE(it->status().ok());
      ASSERT_EQ(it->Valid(), model.Valid()) << "step " << step;
      if (!it->Valid()) continue;
      ASSERT_EQ(Present(*it), Present(model)) << "step " << step;
    }
  }
}

TEST(MergingIterator, OfEqualRecordsTheEarlierChildsComesFirstBothWays) {
  Children children;
  for (const char* value : {"first", "second", "third"}) {
    children.push_back(std::make_unique<VectorIterator>(
        std::vector<Record>{Put("a", 2, value), Put("b", 1, value)}));
  }
  const auto it = base::NewMergingIterator(std::move(children));
  const std::vector<std::string> expected = {"first", "second", "third"};
  it->SeekToFirst();
  for (int i = 0; i < 6; ++i, it->Next()) {
    ASSERT_TRUE(it->Valid());
    EXPECT_EQ(it->value(), expected[static_cast<size_t>(i % 3)]);
    if (i == 0) continue;
    // There and back again.
    it->Prev();
    EXPECT_EQ(it->value(), expected[static_cast<size_t>((i - 1) % 3)]);
    it->Next();
    EXPECT_EQ(it->value(), expected[static_cast<size_t>(i % 3)]);
  }
  EXPECT_FALSE(it->Valid());
}

TEST(MergingIterator, AnErrorOfAnyChildEndsTheIteration) {
  for (base::SequenceNumber broken = 1; broken <= 3; ++broken) {
    Children children;
    VectorIterator* victim = nullptr;
    for (int i = 0; i < 3; ++i) {
      const auto sequence = base::SequenceNumber{1} + static_cast<base::SequenceNumber>(i);
      auto child = std::make_unique<VectorIterator>(
          std::vector<Record>{Put("a", sequence, ""), Put("b", sequence, "")});
      if (sequence == broken) victim = child.get();
      children.push_back(std::move(child));
    }
    const auto it = base::NewMergingIterator(std::move(children));
    it->SeekToFirst();
    ASSERT_TRUE(it->Valid());
    victim->Break(Status(StatusCode::kIoError, "broken"));
    int steps = 0;
    for (; it->Valid(); it->Next()) ASSERT_LT(++steps, 6);
    EXPECT_EQ(it->status().code(), StatusCode::kIoError);
    it->SeekToLast();
    EXPECT_FALSE(it->Valid());
    EXPECT_EQ(it->status().code(), StatusCode::kIoError);
    victim->Break(Status());
    it->SeekToLast();
    EXPECT_TRUE(it->Valid());
    EXPECT_TRUE(it->status().ok());
    victim->Break(Status(StatusCode::kIoError, "broken"));
    it->Prev();
    it->Next();
    EXPECT_FALSE(it->Valid());
    EXPECT_EQ(it->status().code(), StatusCode::kIoError);
  }
}

TEST(MergingIterator, ASingleChildIsGivenBack) {
  Children children;
  children.push_back(std::make_unique<VectorIterator>(std::vector<Record>{}));
  const base::RecordIterator* const child = children.front().get();
  EXPECT_EQ(base::NewMergingIterator(std::move(children)).get(), child);
}

TEST(MergingIterator, NoChildrenAreEmpty) {
  const auto it = base::NewMergingIterator({});
  it->SeekToFirst();
  EXPECT_FALSE(it->Valid());
  it->SeekForPrev("a", 1);
  EXPECT_FALSE(it->Valid());
  EXPECT_TRUE(it->status().ok());
}

}  // namespace
}  // namespace basalt::table

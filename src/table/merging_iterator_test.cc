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

// Keys of one kind: how they begin, and which bytes follow.
struct KeyKind {
  std::string stem;
  size_t bytes_max;
  std::string alphabet;

  std::string Draw(base::Random* random) const {
    std::string key = stem;
    for (uint64_t left = random->Below(bytes_max); left > 0; --left) {
      key += alphabet[random->Below(alphabet.size())];
    }
    return key;
  }
};

// Of some kinds at once, so that what all present keys share grows and shrinks on the way. The
// least and the greatest byte make the numbers by which those are compared that have ended.
std::vector<KeyKind> SomeKinds(base::Random* random) {
  const std::string extremes("\0\xFF", 2);
  const std::vector<KeyKind> all = {{"", 12, std::string("\0\1", 2)},
                                    {"", 12, extremes},
                                    {"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 4, extremes},
                                    {std::string(16, '\0'), 12, extremes},
                                    {"table/0000000000/", 9, "0123456789"},
                                    {"table/0000000001/row/0000000000/", 20, "01"}};
  std::vector<KeyKind> kinds;
  for (uint64_t i = random->Below(3) + 1; i > 0; --i)
    kinds.push_back(all[random->Below(all.size())]);
  return kinds;
}

// Deals records out to children, by turns of up to `turn_max`; some children may stay empty.
struct Dealt {
  std::vector<KeyKind> kinds;
  std::vector<Record> all;
  Children children;
  std::vector<VectorIterator*> hands;  // the children

  std::string DrawKey(base::Random* random) const {
    return kinds[random->Below(kinds.size())].Draw(random);
  }
};

Dealt Deal(base::Random* random, size_t count, size_t children, size_t turn_max) {
  Dealt dealt;
  dealt.kinds = SomeKinds(random);
  for (size_t i = 0; i < count; ++i) {
    dealt.all.push_back(Put(dealt.DrawKey(random), i + 1, std::to_string(i)));
  }
  Sort(&dealt.all);
  std::vector<std::vector<Record>> hands(children);
  for (size_t i = 0; i < count;) {
    std::vector<Record>& hand = hands[random->Below(children)];
    for (uint64_t turn = random->Below(turn_max) + 1; turn > 0 && i < count; --turn) {
      hand.push_back(dealt.all[i++]);
    }
  }
  for (std::vector<Record>& hand : hands) {
    auto child = std::make_unique<VectorIterator>(std::move(hand));
    dealt.hands.push_back(child.get());
    dealt.children.push_back(std::move(child));
  }
  return dealt;
}

// Of the next move: 0 to 3 are seeks, then the even numbers are steps forward.
uint64_t DrawMove(base::Random* random, bool often_turns, bool valid, bool* forward) {
  if (!valid || random->OneIn(often_turns ? 10 : 200)) return random->Below(4);
  if (random->OneIn(often_turns ? 3 : 50)) *forward = !*forward;
  return *forward ? 4 : 5;
}

// One move, the same for all that are given a copy of `same`.
void Move(base::Random same, const Dealt& dealt, uint64_t choice, base::RecordIterator* it) {
  const auto target = [&]() -> Record {
    if (dealt.all.empty() || same.OneIn(3)) return Put(dealt.DrawKey(&same), 1, "");
    return dealt.all[same.Below(dealt.all.size())];
  };
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
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    base::Random random(seed);
    const size_t children = random.Below(random.OneIn(4) ? 40 : 9) + 1;
    Dealt dealt = Deal(&random, random.Below(1000), children, random.OneIn(2) ? 1 : 30);
    VectorIterator model(&dealt.all);
    const auto it = base::NewMergingIterator(std::move(dealt.children));
    const bool often_turns = random.OneIn(2);
    bool forward = true;
    for (int step = 0; step < 1000; ++step) {
      const uint64_t choice = DrawMove(&random, often_turns, it->Valid(), &forward);
      Move(random, dealt, choice, it.get());
      Move(random, dealt, choice, &model);
      random.Next();
      ASSERT_TRUE(it->status().ok());
      ASSERT_EQ(it->Valid(), model.Valid()) << "step " << step;
      if (!it->Valid()) continue;
      ASSERT_EQ(Present(*it), Present(model)) << "step " << step;
    }
  }
}

TEST(MergingIterator, AChildThatFailsOnTheWayEndsTheIterationUntilASeek) {
  int failures = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    base::Random random(seed);
    Dealt dealt = Deal(&random, 200 + random.Below(200), random.Below(20) + 2, 4);
    VectorIterator model(&dealt.all);
    const auto it = base::NewMergingIterator(std::move(dealt.children));
    bool forward = true;
    VectorIterator* broken = nullptr;
    for (int step = 0; step < 400; ++step) {
      if (broken == nullptr && random.OneIn(50)) {
        broken = dealt.hands[random.Below(dealt.hands.size())];
        broken->Break(Status(StatusCode::kIoError, "broken"));
      }
      const uint64_t choice = DrawMove(&random, /*often_turns=*/false, it->Valid(), &forward);
      Move(random, dealt, choice, it.get());
      Move(random, dealt, choice, &model);
      random.Next();
      if (!it->status().ok()) {
        ASSERT_NE(broken, nullptr);
        ASSERT_FALSE(it->Valid());
        ASSERT_EQ(it->status().code(), StatusCode::kIoError);
        ++failures;
        it->Next();  // changes nothing
        it->Prev();
        ASSERT_EQ(it->status().code(), StatusCode::kIoError);
        broken->Break(Status());
        broken = nullptr;
        it->SeekToFirst();
        model.SeekToFirst();
        forward = true;
      }
      ASSERT_EQ(it->Valid(), model.Valid()) << "step " << step;
      if (!it->Valid()) continue;
      ASSERT_EQ(Present(*it), Present(model)) << "step " << step;
    }
  }
  EXPECT_GT(failures, 200);
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

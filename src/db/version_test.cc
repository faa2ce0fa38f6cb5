#include "db/version.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"

namespace basalt::db {
namespace {

std::shared_ptr<TableFile> TableOf(const std::string& smallest, const std::string& largest) {
  table::TableProperties properties;
  properties.smallest_key = smallest;
  properties.largest_key = largest;
  return std::make_shared<TableFile>(nullptr, smallest + ".." + largest, TableFile::Place{},
                                     std::move(properties), TableFile::Resources{});
}

/// A level whose tables begin and end with the keys, two for each; an even number of them.
Tree TreeOf(const std::set<std::string>& keys) {
  Tree tree;
  for (auto key = keys.begin(); key != keys.end(); std::advance(key, 2)) {
    tree.levels[1].push_back(TableOf(*key, *std::next(key)));
  }
  tree.IndexLevels();
  return tree;
}

const TableFile* FindOneByOne(const TableFiles& level, std::string_view key) {
  for (const std::shared_ptr<TableFile>& file : level) {
    if (file->properties().smallest_key <= key && key <= file->properties().largest_key) {
      return file.get();
    }
  }
  return nullptr;
}

/// Few different bytes, zeros among them, so that keys are prefixes of others, alike in their first
/// 8 bytes, and alike but for zeros at the end.
std::string KeyBehind(std::string_view shared, base::Random* random) {
  std::string key(shared);
  const size_t bytes = random->Below(14);
  for (size_t i = 0; i < bytes; ++i) {
    const uint64_t dice = random->Below(20);
    key.push_back(static_cast<char>(dice == 0 ? 0xff : dice < 5 ? 'a' : '\0'));
  }
  return key;
}

TEST(RangeDeletes, NearAreAllThatCoverOneOfTheKeysAndFewOthers) {
  base::Random random(1);
  for (int round = 0; round < 200; ++round) {
    const auto key = [&] { return std::string(1, static_cast<char>('a' + random.Below(20))); };
    std::vector<RangeDelete> made;
    for (base::SequenceNumber sequence = 1 + random.Below(30); sequence > 0; --sequence) {
      const auto [begin, end] = std::minmax({key(), key() + "~"});
      made.push_back({sequence, begin, end});
    }
    const RangeDeletePart ranges(made, /*is_shared=*/false);
    ASSERT_EQ(ranges.ranges().size(), made.size());
    const auto [smallest, largest] = std::minmax({key(), key()});
    const std::span<const RangeDelete> near = ranges.Near(smallest, largest);
    for (const RangeDelete& range : ranges.ranges()) {
      const bool overlaps = range.begin <= largest && smallest < range.end;
      const bool is_near = near.data() <= &range && &range < near.data() + near.size();
      ASSERT_TRUE(is_near || !overlaps) << range.begin << ".." << range.end;
    }
    ASSERT_TRUE(near.empty() || near.front().end > smallest);
    const base::SequenceNumber at = random.Below(40);
    base::SequenceNumber newest = 0;
    for (const RangeDelete& range : made) {
      if (range.sequence <= at && range.begin <= smallest && smallest < range.end) {
        newest = std::max(newest, range.sequence);
      }
    }
    ASSERT_EQ(ranges.SequenceAt(smallest, at), newest) << smallest << " at " << at;
    // They have the sequences from 1 to as many as they are.
    ASSERT_EQ(ranges.NewestUpTo(at), std::min<base::SequenceNumber>(at, made.size()));
  }
}

TEST(RangeDeletes, ThoseAddedOneByOneLieInFewParts) {
  base::Random random(2);
  RangeDeletes ranges;
  std::vector<RangeDelete> all;
  uint64_t flattened = 0;
  for (base::SequenceNumber sequence = 1; sequence <= 1000; ++sequence) {
    const uint64_t begin = random.Below(10'000);
    all.push_back({sequence, std::to_string(100'000 + begin),
                   std::to_string(100'000 + begin + 1 + random.Below(100))});
    const RangeDeletes before = ranges;
    ranges.Add({all.back()}, /*is_shared=*/false);
    for (const auto& part : ranges.parts()) {
      const bool is_new = std::ranges::find(before.parts(), part) == before.parts().end();
      if (is_new) flattened += part->ranges().size();
    }
    ASSERT_EQ(ranges.size(), all.size());
    ASSERT_EQ(ranges.newest(), sequence);
    ASSERT_LE(ranges.parts().size(), 6u);
    const std::string key = std::to_string(100'000 + random.Below(10'100));
    const base::SequenceNumber at = 1 + random.Below(sequence);
    base::SequenceNumber newest = 0;
    for (const RangeDelete& range : all) {
      if (range.sequence <= at && range.begin <= key && key < range.end) newest = range.sequence;
    }
    ASSERT_EQ(ranges.SequenceAt(key, at), newest) << key << " at " << at;
  }
  EXPECT_LT(flattened, 30 * all.size());
}

TEST(RangeDeletes, APartIsReplacedByWhatIsLeftOfIt) {
  RangeDeletes ranges;
  std::vector<RangeDelete> many;
  for (base::SequenceNumber sequence = 1; sequence <= 20; ++sequence) {
    many.push_back({sequence, std::to_string(100 + sequence), std::to_string(101 + sequence)});
  }
  ranges.Add(many, /*is_shared=*/false);
  ranges.Add({{30, "a", "b"}, {31, "c", "d"}}, /*is_shared=*/false);
  ASSERT_EQ(ranges.parts().size(), 2u);
  ranges.Replace(0, {many[7]}, /*is_shared=*/false);
  EXPECT_EQ(ranges.size(), 3u);
  EXPECT_EQ(ranges.parts()[0]->ranges().size(), 2u);
  EXPECT_EQ(ranges.SequenceAt("108", 100), 8u);
  EXPECT_EQ(ranges.SequenceAt("109", 100), 0u);
  ranges.Replace(0, {}, /*is_shared=*/false);
  EXPECT_EQ(ranges.SequenceAt("a", 100), 0u);
  ranges.Replace(0, {}, /*is_shared=*/false);
  EXPECT_TRUE(ranges.empty());
  EXPECT_EQ(ranges.newest(), 0u);
}

TEST(Tree, FindsTheTableWhoseRangeHasTheKey) {
  base::Random random(5);
  for (int round = 0; round < 2000; ++round) {
    const std::string shared(random.Below(12), 'p');
    std::set<std::string> keys;
    const uint64_t count = 2 * random.Below(20);
    for (uint64_t i = 0; i < count; ++i) keys.insert(KeyBehind(shared, &random));
    if (keys.size() % 2 != 0) keys.erase(keys.begin());
    const Tree tree = TreeOf(keys);
    std::vector<std::string> asked(keys.begin(), keys.end());
    for (int i = 0; i < 40; ++i) {
      asked.push_back(KeyBehind(i % 8 == 0 ? shared.substr(shared.size() / 2) : shared, &random));
    }
    for (const std::string& key : asked) {
      ASSERT_EQ(tree.Find(1, key), FindOneByOne(tree.levels[1], key))
          << "round " << round << ", " << keys.size() << " keys, one of " << key.size() << " bytes";
      const auto first = std::ranges::find_if(
          tree.levels[1], [&](const auto& file) { return file->properties().largest_key >= key; });
      ASSERT_EQ(tree.FirstNotBelow(1, key), static_cast<size_t>(first - tree.levels[1].begin()))
          << "round " << round;
    }
  }
}

TEST(Tree, FindsATableOfOneKey) {
  Tree tree;
  tree.levels[3] = {TableOf("", ""), TableOf("k", "k"), TableOf("kk", "kk")};
  tree.IndexLevels();
  EXPECT_EQ(tree.Find(3, ""), tree.levels[3][0].get());
  EXPECT_EQ(tree.Find(3, "k"), tree.levels[3][1].get());
  EXPECT_EQ(tree.Find(3, "kk"), tree.levels[3][2].get());
  EXPECT_EQ(tree.Find(3, std::string_view("k\0", 2)), nullptr);
  EXPECT_EQ(tree.Find(3, "l"), nullptr);
  EXPECT_EQ(tree.Find(4, "k"), nullptr) << "an empty level";
  EXPECT_EQ(tree.FirstNotBelow(3, "a"), 1u);
  EXPECT_EQ(tree.FirstNotBelow(3, "kka"), 3u);
  EXPECT_EQ(tree.FirstNotBelow(4, "k"), 0u);
}

TEST(TreeDeath, ALevelChangedSinceItWasIndexedIsNotSearched) {
  Tree tree;
  tree.levels[1] = {TableOf("a", "b")};
  tree.IndexLevels();
  tree.levels[1].push_back(TableOf("c", "d"));
  EXPECT_DEATH(tree.Find(1, "c"), "size");
}

}  // namespace
}  // namespace basalt::db

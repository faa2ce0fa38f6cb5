#include "db/version.h"

#include <gtest/gtest.h>

#include <iterator>
#include <memory>
#include <set>
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
                                     std::move(properties), TableFile::Memory{});
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

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/seeded_hash.h"
#include "base/test_equal_hashes.h"
#include "shared_map/test_map.h"
#include "shared_map/version.h"
#include "shared_map/version_files.h"

// Keys that were chosen to have equal hashes.

namespace basalt::shared_map {
namespace {

/// Through the log, a compaction, changes beside the base, and a build.
void ExpectHeld(const std::vector<std::string>& keys, const SharedMapOptions& options) {
  TestMachine machine(std::make_unique<io::SimFileSystem>(io::SimFileSystem::Durability::kIgnored));
  auto map = machine.Create(options).value();
  Model model;
  for (const std::string& key : keys) model[key] = "value";
  ASSERT_TRUE(PutAll(map.get(), model).ok());
  ExpectHolds(*map, model);
  const Status compacted = map->Compact();
  ASSERT_TRUE(compacted.ok()) << compacted.ToString();
  ExpectHolds(*map, model);
  for (size_t i = 0; i < keys.size(); i += 3) {
    model[keys[i]] = "changed";
    ASSERT_TRUE(map->Put(keys[i], "changed").ok());
  }
  map.reset();
  map = machine.Open(options).value();
  ExpectHolds(*map, model);
  ASSERT_TRUE(map->Compact().ok());
  ExpectHolds(*machine.Attach().value(), model);
  EXPECT_TRUE(CheckMap(TestMachine::kPath, nullptr, machine.environment()).value().ok());

  auto build =
      CreateMapBuilder("/built", options, Duplicates::kRefuse, machine.environment()).value();
  for (const auto& [key, value] : model) ASSERT_TRUE(build->Add(key, value).ok());
  auto built = build->Finish();
  ASSERT_TRUE(built) << built.error().ToString();
  ExpectHolds(**built, model);
}

// Each of them in the way of each other one would take minutes.
TEST(SharedMapHash, KeysThatCollideWithoutASeedAreAsGoodAsOthers) {
  const std::vector<std::string> keys = base::KeysOfOneHash(20'000);
  ASSERT_EQ(base::Hash(keys.front()), base::Hash(keys.back()));
  ExpectHeld(keys, {});
}

// Of somebody who has read the map's files.
TEST(SharedMapHash, KeysThatCollideUnderTheMapsSeedAreHeld) {
  const base::SeededHash hash_of(TestMachine::kMapId);
  const std::vector<std::string> keys = base::KeysOfOneHash(300, hash_of);
  ASSERT_EQ(hash_of(keys.front()), hash_of(keys.back()));
  for (const SharedMapLayout layout : {SharedMapLayout::kFixed, SharedMapLayout::kVariable}) {
    ExpectHeld(keys, {.layout = layout});
  }
}

TEST(SharedMapHash, MapsHaveSeedsOfTheirOwn) {
  TestMachine machine;
  Environment environment = machine.environment();
  environment.new_map_id = 0;
  std::vector<uint64_t> ids;
  for (const char* path : {"/one", "/two"}) {
    ASSERT_TRUE(CreateMap(path, {}, environment));
    const uint64_t number = NewestVersionNumber(&machine.fs(), path).value();
    const auto listed = ListFile::Open(&machine.fs(), path, number, std::nullopt).value();
    ids.push_back(listed.list.hash_seed());
  }
  EXPECT_NE(ids[0], ids[1]);
  EXPECT_NE(std::min(ids[0], ids[1]), 0u);
}

}  // namespace
}  // namespace basalt::shared_map

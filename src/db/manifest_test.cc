#include "db/manifest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "base/hash.h"
#include "db/tree_key.h"
#include "io/sim_file_system.h"
#include "table/table_format.h"

namespace basalt::db {
namespace {

Manifest SampleManifest() {
  Manifest manifest;
  manifest.database_id = 0x1234;
  manifest.next_table_number = 9;
  manifest.flushed_lsn = 77;
  manifest.durable_lsn = 78;
  manifest.last_sequence = 500;
  manifest.wall_ms = 1'770'000'000'000;
  for (uint64_t number = 1; number <= 3; ++number) {
    ManifestTable table;
    table.place = {.number = number,
                   .ranges_applied = number,
                   .created_ms = 5,
                   .half_expired_ms = 6,
                   .retained_bytes = 7};
    table.level = number == 1 ? 0 : 1;
    table.properties.file_id = number * 1000;
    table.properties.file_bytes = 4096;
    table.properties.records = 10;
    table.properties.smallest_sequence = number;
    table.properties.largest_sequence = number * 2;
    table.properties.smallest_key = std::string(number == 1 ? 0 : 1, static_cast<char>(number));
    table.properties.largest_key = std::string(300 * number, static_cast<char>(number + 1));
    table.properties.merges = 3;
    table.properties.expiring = 4;
    manifest.tables.push_back(table);
  }
  manifest.next_keyspace_id = 7;
  manifest.keyspaces = {{.id = 2, .name = "users"},
                        {.id = 6, .durability = Durability::kMemory, .name = "sessions"}};
  manifest.range_deletes = {{0, {17, "a", "b"}}, {2, {18, std::string(1, '\0'), "z"}}};
  return manifest;
}

TEST(Manifest, ComesBackAsItWasWritten) {
  io::SimFileSystem fs;
  ASSERT_TRUE(fs.CreateDirectory("/db").ok());
  const Manifest written = SampleManifest();
  ASSERT_TRUE(WriteManifest(&fs, "/db", written).ok());
  const auto read = ReadManifest(&fs, "/db");
  ASSERT_TRUE(read) << read.error().ToString();
  EXPECT_EQ(EncodeManifest(*read), EncodeManifest(written));
  EXPECT_EQ(read->tables[2].properties.largest_key, written.tables[2].properties.largest_key);
  EXPECT_EQ(read->tables[1].place.ranges_applied, 2U);
  EXPECT_EQ(read->tables[1].place.half_expired_ms, 6U);
  EXPECT_EQ(read->tables[1].place.retained_bytes, 7U);
  EXPECT_EQ(read->keyspaces[1].durability, Durability::kMemory);
  EXPECT_EQ(read->keyspaces[0].durability, std::nullopt);
  EXPECT_EQ(read->range_deletes[1].range.end, "z");
}

uint32_t FeaturesIn(const std::string& bytes) { return base::Load<uint32_t>(bytes.data() + 12); }

Manifest ManifestOfSharedTables() {
  Manifest manifest = SampleManifest();
  table::TableProperties& shared = manifest.tables[2].properties;
  shared.keyspace = table::kSharedKeyspaces;
  shared.smallest_key = TreeKey(2, "");
  shared.largest_key = TreeKey(6, "z");
  manifest.dropped_keyspaces = {{.id = 3, .table_number = 9}, {.id = 5, .table_number = 7}};
  return manifest;
}

TEST(Manifest, NamesTablesOfSeveralKeyspacesAndThoseThatWereDropped) {
  const std::string bytes = EncodeManifest(ManifestOfSharedTables());
  const auto read = DecodeManifest(bytes, "MANIFEST");
  ASSERT_TRUE(read) << read.error().ToString();
  EXPECT_EQ(EncodeManifest(*read), bytes);
  ASSERT_EQ(read->dropped_keyspaces.size(), 2U);
  EXPECT_EQ(read->dropped_keyspaces[1].id, 5U);
  EXPECT_EQ(read->dropped_keyspaces[1].table_number, 7U);
  EXPECT_EQ(KeyspaceOf(read->tables[2].properties.largest_key), 6U);
}

TEST(Manifest, AsksForAsFewFeaturesAsItCan) {
  EXPECT_EQ(FeaturesIn(EncodeManifest(SampleManifest())), 3U);
  EXPECT_EQ(FeaturesIn(EncodeManifest(ManifestOfSharedTables())), 7U);
  Manifest manifest = SampleManifest();
  manifest.dropped_keyspaces = {{.id = 3, .table_number = 9}};
  EXPECT_EQ(FeaturesIn(EncodeManifest(manifest)), 7U);
  manifest.dropped_keyspaces = {{.id = 3, .table_number = 9}, {.id = 3, .table_number = 10}};
  EXPECT_EQ(DecodeManifest(EncodeManifest(manifest), "MANIFEST").status().code(),
            StatusCode::kCorruption);
  manifest = ManifestOfSharedTables();
  manifest.tables[2].properties.smallest_key = "abc";
  EXPECT_EQ(DecodeManifest(EncodeManifest(manifest), "MANIFEST").status().code(),
            StatusCode::kCorruption);
}

/// A version of its tables knows each by the keys of its tree, and writes them as they were.
TEST(Manifest, TablesOfOneKeyspaceBelongToTheTreeThatAllShare) {
  Manifest manifest;
  const auto add = [&](uint64_t number, uint32_t keyspace, uint32_t level, std::string smallest,
                       std::string largest, base::SequenceNumber sequence) {
    ManifestTable table;
    table.place.number = number;
    table.level = level;
    table.properties.keyspace = keyspace;
    table.properties.smallest_key = std::move(smallest);
    table.properties.largest_key = std::move(largest);
    table.properties.smallest_sequence = sequence;
    table.properties.largest_sequence = sequence + 5;
    manifest.tables.push_back(std::move(table));
  };
  // As they stood in the manifest when each keyspace had a tree of its own.
  add(1, 2, 0, "a", "z", 100);
  add(2, 2, 0, "a", "z", 10);
  add(3, 2, 1, "m", "n", 1);
  add(4, 7, 0, "a", "z", 101);
  add(5, 7, 1, "b", "c", 2);
  const auto version = VersionOf(manifest, nullptr, "/db", {});
  ASSERT_TRUE(version->CheckOrder().ok()) << version->CheckOrder().ToString();
  ASSERT_EQ(version->trees().size(), 1U);
  const Tree& tree = *version->tree(7);
  EXPECT_EQ(version->tree(2), &tree);
  EXPECT_EQ(version->tree(0), nullptr);
  ASSERT_EQ(tree.levels[0].size(), 3U);
  EXPECT_EQ(tree.levels[0][0]->number(), 4U) << "the newest first";
  EXPECT_EQ(tree.levels[0][2]->number(), 2U);
  ASSERT_EQ(tree.levels[1].size(), 2U);
  EXPECT_EQ(tree.Find(1, TreeKey(7, "b"))->number(), 5U);
  EXPECT_EQ(tree.Find(1, TreeKey(2, "b")), nullptr);
  EXPECT_EQ(tree.levels[1][0]->properties().smallest_key, TreeKey(2, "m"));
  EXPECT_EQ(tree.levels[1][0]->OwnProperties().smallest_key, "m");
}

TEST(Manifest, RangeDeletesOfTreesAreWrittenAsThoseOfKeyspaces) {
  Manifest manifest = SampleManifest();
  manifest.range_deletes = {{0, {5, "a", "b"}},
                            {0, {9, "a", "d"}},
                            {2, {7, "k", "m"}},
                            {3, {8, std::string(1, '\0'), "\xff"}}};
  const std::string expected = EncodeManifest(manifest);
  ASSERT_TRUE(DecodeManifest(expected, "MANIFEST"));
  std::vector<RangeDelete> own;
  std::vector<RangeDelete> shared;
  for (const ManifestRangeDelete& deleted : manifest.range_deletes) {
    (TreeOf(deleted.keyspace) == kSharedTree ? shared : own).push_back(InTree(deleted));
  }
  manifest.range_deletes.clear();
  manifest.tree_range_deletes = {RangeDeletes(own), RangeDeletes(shared, /*is_shared=*/true)};
  EXPECT_EQ(EncodeManifest(manifest), expected);
  EXPECT_EQ(EncodeReadable(manifest, "/db").value(), expected);
}

/// Many range deletes of both trees, in parts, and the same as a list.
struct ManyRangeDeletes {
  Manifest manifest = SampleManifest();
  std::vector<ManifestRangeDelete> all;

  ManyRangeDeletes() {
    manifest.range_deletes.clear();
    manifest.tree_range_deletes.resize(2);
    base::SequenceNumber sequence = 0;
    const auto add = [&](size_t tree, uint32_t keyspace, size_t count) {
      std::vector<RangeDelete> ranges;
      for (size_t i = 0; i < count; ++i) {
        const std::string begin = "customer/" + std::to_string(1'000'000 + 10 * i);
        all.push_back({keyspace, {++sequence, begin, begin + "5"}});
        ranges.push_back(InTree(all.back()));
      }
      manifest.tree_range_deletes[tree].Add(std::move(ranges), /*is_shared=*/tree == 1);
    };
    add(0, 0, 30'000);  // More than fit into one block.
    add(0, 0, 10);
    add(1, 3, 1000);
    add(1, 2, 3);
    std::ranges::sort(all, {}, [](const ManifestRangeDelete& deleted) {
      return std::tuple(deleted.keyspace, deleted.range.begin, deleted.range.sequence);
    });
  }
};

TEST(Manifest, ManyRangeDeletesTakeFewBytesEach) {
  const ManyRangeDeletes many;
  const std::string bytes = EncodeReadable(many.manifest, "/db").value();
  EXPECT_EQ(bytes, EncodeManifest(many.manifest));
  EXPECT_LT(bytes.size(), 15 * many.all.size());
  const auto read = DecodeManifest(bytes, "MANIFEST");
  ASSERT_TRUE(read) << read.error().ToString();
  ASSERT_EQ(read->range_deletes.size(), many.all.size());
  for (size_t i = 0; i < many.all.size(); ++i) {
    ASSERT_EQ(read->range_deletes[i].keyspace, many.all[i].keyspace);
    ASSERT_EQ(read->range_deletes[i].range.sequence, many.all[i].range.sequence);
    ASSERT_EQ(read->range_deletes[i].range.begin, many.all[i].range.begin);
    ASSERT_EQ(read->range_deletes[i].range.end, many.all[i].range.end);
  }
  EXPECT_EQ(read->tables.size(), many.manifest.tables.size());
}

TEST(Manifest, FewRangeDeletesOfLongKeysTakeFewBytesToo) {
  Manifest manifest = SampleManifest();
  manifest.range_deletes.clear();
  manifest.tree_range_deletes.resize(1);
  std::string prefix;
  for (uint64_t i = 1; prefix.size() < 1000; ++i) prefix += std::to_string(i * i * 7919);
  std::vector<RangeDelete> ranges;
  for (uint64_t i = 0; i < 100; ++i) {
    const std::string begin = prefix + std::to_string(1000 + i);
    ranges.push_back(InTree({0, {i + 1, begin, begin + "5"}}));
  }
  manifest.tree_range_deletes[0].Add(std::move(ranges), /*is_shared=*/false);
  const std::string bytes = EncodeReadable(manifest, "/db").value();
  EXPECT_LT(bytes.size(), 20'000U);
  const auto read = DecodeManifest(bytes, "MANIFEST");
  ASSERT_TRUE(read) << read.error().ToString();
  ASSERT_EQ(read->range_deletes.size(), 100U);
  EXPECT_EQ(read->range_deletes[99].range.begin, prefix + "1099");
}

/// Gives the body another checksum, as somebody does who changed it on purpose.
void Reseal(std::string* bytes) {
  const std::string_view body = std::string_view(*bytes).substr(64);
  const auto id = base::Load<uint64_t>(bytes->data() + 24);
  base::Store(bytes->data() + 40, base::Checksum(id, 64, body));
  base::Store(bytes->data() + 56, base::Checksum(0, 0, std::string_view(*bytes).substr(0, 56)));
}

TEST(Manifest, BlocksOfRangeDeletesThatWereChangedAreRefused) {
  const ManyRangeDeletes many;
  const std::string sound = EncodeManifest(many.manifest);
  const std::string_view first = many.manifest.tree_range_deletes[0].parts()[0]->blocks().bytes();
  const size_t block = sound.find(first);
  ASSERT_NE(block, std::string::npos);
  for (size_t field = 0; field < 3; ++field) {
    const auto value = base::Load<uint32_t>(sound.data() + block + 4 * field);
    for (const uint32_t changed : {0U, value - 1, value + 1, 2 * value, UINT32_MAX}) {
      std::string bytes = sound;
      base::Store(bytes.data() + block + 4 * field, changed);
      Reseal(&bytes);
      const auto read = DecodeManifest(bytes, "MANIFEST");
      ASSERT_FALSE(read) << field << " " << changed;
      EXPECT_EQ(read.error().code(), StatusCode::kCorruption);
    }
  }
}

TEST(Manifest, WhatCouldNotBeReadAgainIsNotWritten) {
  io::SimFileSystem fs;
  ASSERT_TRUE(fs.CreateDirectory("/db").ok());
  ASSERT_TRUE(WriteManifest(&fs, "/db", SampleManifest()).ok());
  Manifest malformed = SampleManifest();
  malformed.keyspaces[0].durability = static_cast<Durability>(4);
  const Status written = WriteManifest(&fs, "/db", malformed);
  EXPECT_EQ(written.code(), StatusCode::kCorruption);
  EXPECT_NE(written.message().find("not written"), std::string_view::npos) << written.ToString();
  const auto read = ReadManifest(&fs, "/db");
  ASSERT_TRUE(read) << read.error().ToString();
  EXPECT_EQ(EncodeManifest(*read), EncodeManifest(SampleManifest()));
}

TEST(Manifest, OneTooLargeToBeReadIsNotWritten) {
  const uint64_t size = EncodeManifest(SampleManifest()).size();
  ASSERT_TRUE(EncodeReadable(SampleManifest(), "/db", size));
  Manifest larger = SampleManifest();
  larger.range_deletes.push_back({2, {19, "a", "b"}});
  const Status refused = EncodeReadable(larger, "/db", size).status();
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(refused.message().find("not written"), std::string_view::npos) << refused.ToString();
}

/// What was written before tables said what expires and what snapshots keep.
std::string WithoutGarbage(const ManifestTable& table) {
  constexpr size_t kGarbageBytes = 16;
  constexpr size_t kEmptyListsBytes = 16;  // of keyspaces and range deletes, behind the table
  Manifest manifest;
  manifest.tables = {table};
  std::string bytes = EncodeManifest(manifest);
  bytes.erase(bytes.size() - kEmptyListsBytes - kGarbageBytes, kGarbageBytes);
  base::Store(bytes.data() + 12, uint32_t{1});
  const std::string body = bytes.substr(64);
  base::Store(bytes.data() + 32, uint64_t{body.size()});
  base::Store(bytes.data() + 40, base::Checksum(0, 64, body));
  base::Store(bytes.data() + 56, base::Checksum(0, 0, bytes.substr(0, 56)));
  return bytes;
}

TEST(Manifest, OfAnEarlierVersionIsReadWithAnEstimateOfItsGarbage) {
  ManifestTable table = SampleManifest().tables[0];
  table.properties.latest_expiry_ms = 7000;
  table.properties.expiring = 6;
  auto read = DecodeManifest(WithoutGarbage(table), "MANIFEST");
  ASSERT_TRUE(read) << read.error().ToString();
  EXPECT_EQ(read->tables[0].place.created_ms, 5U);
  EXPECT_EQ(read->tables[0].place.half_expired_ms, 7000U);
  EXPECT_EQ(read->tables[0].place.retained_bytes, 1U) << "there may be some";
  table.properties.expiring = 5;
  read = DecodeManifest(WithoutGarbage(table), "MANIFEST");
  ASSERT_TRUE(read) << read.error().ToString();
  EXPECT_EQ(read->tables[0].place.half_expired_ms, 0U);
}

TEST(Manifest, IsAbsentAsNotFound) {
  io::SimFileSystem fs;
  ASSERT_TRUE(fs.CreateDirectory("/db").ok());
  EXPECT_EQ(ReadManifest(&fs, "/db").error().code(), StatusCode::kNotFound);
}

TEST(Manifest, AReplacementThatAPowerCutInterruptsLeavesTheOldOrTheNew) {
  const Manifest old_manifest = SampleManifest();
  Manifest new_manifest = old_manifest;
  new_manifest.flushed_lsn = 99;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    io::SimFileSystem fs;
    ASSERT_TRUE(fs.CreateDirectory("/db").ok());
    ASSERT_TRUE(fs.SyncDirectory("/").ok());
    ASSERT_TRUE(WriteManifest(&fs, "/db", old_manifest).ok());
    fs.ResetCalls();
    fs.SetObserver([&](uint64_t call, std::string_view, std::string_view) {
      if (call == 1 + seed % 8) fs.Crash(seed);
    });
    const Status replaced = WriteManifest(&fs, "/db", new_manifest);
    fs.SetObserver({});
    const auto read = ReadManifest(&fs, "/db");
    ASSERT_TRUE(read) << "seed " << seed << ": " << read.error().ToString();
    EXPECT_TRUE(read->flushed_lsn == 77 || read->flushed_lsn == 99) << "seed " << seed;
    if (replaced.ok()) {
      EXPECT_EQ(read->flushed_lsn, 99U) << "seed " << seed;
    }
  }
}

TEST(Manifest, EveryTruncationAndEveryFlippedBitIsRefused) {
  const std::string bytes = EncodeManifest(ManifestOfSharedTables());
  for (size_t size = 0; size < bytes.size(); ++size) {
    ASSERT_FALSE(DecodeManifest(std::string_view(bytes).substr(0, size), "MANIFEST")) << size;
  }
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    ASSERT_FALSE(DecodeManifest(flipped, "MANIFEST")) << "bit " << bit;
  }
}

}  // namespace
}  // namespace basalt::db

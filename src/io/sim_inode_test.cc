#include "io/sim_inode.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

// Random histories of one file, checked against every moment that the history went through.

namespace basalt::io {
namespace {

constexpr uint64_t kSector = 512;

std::string Content(const SimInode& inode) {
  std::string content(inode.size(), '?');
  EXPECT_EQ(inode.Read(0, content), content.size());
  return content;
}

void Write(SimInode* inode, uint64_t offset, std::string_view bytes) {
  inode->Write(offset, {&bytes, 1}, bytes.size());
}

std::string SectorOf(const std::string& content, uint64_t sector) {
  std::string bytes = content.substr(std::min(content.size(), sector * kSector), kSector);
  bytes.resize(kSector);
  return bytes;
}

/// A file and what it held at each moment since its last sync, the moment of that sync first.
struct History {
  SimInode inode{true};
  std::vector<std::string> moments{""};
  base::Random random;

  explicit History(uint64_t seed) : random(seed) {}

  std::string Bytes() {
    return std::string(random.Between(1, 1500), static_cast<char>(random.Between(1, 255)));
  }
  void WriteSomewhere() {
    Write(&inode, random.Below(4000), Bytes());
    moments.push_back(Content(inode));
  }
  void Append() {
    Write(&inode, inode.size(), Bytes());
    moments.push_back(Content(inode));
  }
  void Resize() {
    if (random.OneIn(2)) {
      inode.Truncate(random.Below(5000));
    } else {
      inode.Allocate(random.Below(5000));
    }
    moments.push_back(Content(inode));
  }
  void Sync() {
    inode.Sync();
    moments = {Content(inode)};
  }
  void Run(bool with_sizes) {
    for (uint64_t i = random.Below(30); i > 0; --i) {
      const uint64_t choice = random.Below(10);
      if (choice == 0) {
        Sync();
      } else if (choice == 1 && with_sizes) {
        Resize();
      } else if (choice < 5) {
        Append();
      } else {
        WriteSomewhere();
      }
    }
  }
};

constexpr uint64_t kSeeds = 1000;

TEST(SimInode, NoneLeavesWhatWasSyncedAndAllEverything) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    History history(seed);
    history.Run(true);
    const auto none = history.inode.Clone();
    none->Crash(CrashMode::kNone, &history.random);
    ASSERT_EQ(Content(*none), history.moments.front());
    const auto all = history.inode.Clone();
    all->Crash(CrashMode::kAll, &history.random);
    ASSERT_EQ(Content(*all), history.moments.back());
  }
}

TEST(SimInode, APrefixIsAMomentSinceTheSync) {
  std::set<size_t> distances_from_end;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    History history(seed);
    history.Run(true);
    history.inode.Crash(CrashMode::kPrefix, &history.random);
    const auto moment =
        std::find(history.moments.begin(), history.moments.end(), Content(history.inode));
    ASSERT_NE(moment, history.moments.end());
    distances_from_end.insert(static_cast<size_t>(history.moments.end() - moment));
  }
  EXPECT_GT(distances_from_end.size(), 5u);
}

TEST(SimInode, ATornTailIsAMomentAndABeginningOfTheNextWrite) {
  int torn = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    History history(seed);
    history.Run(true);
    history.inode.Crash(CrashMode::kTornTail, &history.random);
    const std::string content = Content(history.inode);
    bool explained = false;
    for (size_t i = 0; i < history.moments.size() && !explained; ++i) {
      explained = content == history.moments[i];
      if (explained || i + 1 == history.moments.size()) continue;
      // As the next moment up to some byte, and as this one behind.
      const std::string& before = history.moments[i];
      const std::string& after = history.moments[i + 1];
      const auto differs =
          std::mismatch(content.begin(), content.end(), after.begin(), after.end());
      const auto cut = static_cast<size_t>(differs.first - content.begin());
      explained = content.size() >= before.size() && content.size() <= after.size() &&
                  content.substr(cut) == before.substr(std::min(cut, before.size()));
      torn += explained;
    }
    ASSERT_TRUE(explained);
  }
  EXPECT_GT(torn, 100);
}

TEST(SimInode, InASubsetEverySectorAndTheSizeAreOfAMomentOfTheirOwn) {
  int mixed = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    History history(seed);
    history.Run(false);
    history.inode.Crash(CrashMode::kSubset, &history.random);
    const std::string content = Content(history.inode);
    ASSERT_TRUE(std::any_of(history.moments.begin(), history.moments.end(),
                            [&](const std::string& m) { return m.size() == content.size(); }));
    for (uint64_t sector = 0; sector * kSector < content.size(); ++sector) {
      ASSERT_TRUE(std::any_of(history.moments.begin(), history.moments.end(),
                              [&](const std::string& moment) {
                                const uint64_t covered =
                                    std::min(kSector, content.size() - sector * kSector);
                                return SectorOf(content, sector).substr(0, covered) ==
                                       SectorOf(moment, sector).substr(0, covered);
                              }))
          << "sector " << sector;
    }
    mixed +=
        std::find(history.moments.begin(), history.moments.end(), content) == history.moments.end();
  }
  EXPECT_GT(mixed, 100);
}

TEST(SimInode, InASubsetALostTruncationTakesTheLaterWritesAlong) {
  int kept = 0;
  int lost = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    SimInode inode(true);
    Write(&inode, 0, std::string(2000, 'a'));
    inode.Sync();
    inode.Truncate(0);
    Write(&inode, 0, std::string(1000, 'b'));
    base::Random random(seed);
    inode.Crash(CrashMode::kSubset, &random);
    const std::string content = Content(inode);
    if (content.size() == 2000) {
      ++lost;
      ASSERT_EQ(content, std::string(2000, 'a'));
    } else {
      ++kept;
      ASSERT_EQ(content.find('a'), content.npos);
    }
  }
  EXPECT_GT(kept, 20);
  EXPECT_GT(lost, 20);
}

TEST(SimInode, WhatIsSyncedAfterAFailedSyncIsNeverLost) {
  int abandoned_lost = 0;
  int abandoned_kept = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    base::Random random(seed);
    SimInode inode(true);
    Write(&inode, 0, std::string(3000, 's'));
    inode.Sync();
    Write(&inode, random.Below(1000), std::string(1500, 'f'));
    inode.FailSync();
    const uint64_t offset = random.Below(3000);
    Write(&inode, offset, std::string(700, 'k'));
    inode.Sync();
    const auto mode = static_cast<CrashMode>(random.Below(6));
    if (random.OneIn(2)) Write(&inode, random.Below(2000), std::string(900, 'd'));
    inode.Crash(mode, &random);
    const std::string content = Content(inode);
    ASSERT_GE(content.size(), std::max<uint64_t>(3000, offset + 700));
    for (uint64_t at = offset; at < offset + 700; ++at) {
      ASSERT_TRUE(content[at] == 'k' || content[at] == 'd') << at;
    }
    if (mode == CrashMode::kNone) {
      ASSERT_EQ(content.find_first_of("fd"), content.npos);
    }
    ++(content.find('f') == content.npos ? abandoned_lost : abandoned_kept);
    // What is there after the cut is durable.
    inode.Crash(CrashMode::kNone, &random);
    ASSERT_EQ(Content(inode), content);
  }
  EXPECT_GT(abandoned_lost, 100);
  EXPECT_GT(abandoned_kept, 100);
}

TEST(SimInode, WhatWasCutOffByASyncedTruncationStaysAway) {
  SimInode inode(true);
  Write(&inode, 0, std::string(2000, 'a'));
  inode.Sync();
  Write(&inode, 100, "b");
  inode.Truncate(50);
  Write(&inode, 1000, "c");
  inode.Sync();
  base::Random random(1);
  inode.Crash(CrashMode::kNone, &random);
  EXPECT_EQ(Content(inode), std::string(50, 'a') + std::string(950, '\0') + "c");
}

TEST(SimInode, AFlippedBitIsFlippedInEveryImage) {
  for (const bool none : {true, false}) {
    SimInode inode(true);
    Write(&inode, 0, "aaaa");
    inode.Allocate(10);
    inode.Sync();
    Write(&inode, 2, "aaaa");
    for (const uint64_t byte : {0, 2, 9}) inode.FlipBit(byte * 8 + 1);  // 'a' becomes 'c'.
    const std::string all("cacaaa\0\0\0\2", 10);
    EXPECT_EQ(Content(inode), all);
    base::Random random(1);
    inode.Crash(none ? CrashMode::kNone : CrashMode::kAll, &random);
    EXPECT_EQ(Content(inode), none ? std::string("caca\0\0\0\0\0\2", 10) : all);
  }
}

TEST(SimInode, WithoutTrackingEverythingSurvives) {
  SimInode inode(false);
  Write(&inode, 0, "hello");
  inode.Truncate(3);
  base::Random random(1);
  inode.Crash(CrashMode::kNone, &random);
  EXPECT_EQ(Content(inode), "hel");
}

TEST(SimInode, AMappingStaysInPlaceAndFollowsWhileTheFileGrows) {
  SimInode inode(true);
  Write(&inode, 0, "hello");
  const auto first = inode.Map(5);
  const char* const address = first->data();
  Write(&inode, 5, std::string(10000, 'x'));
  const auto second = inode.Map(6);
  Write(&inode, 100000, "y");
  Write(&inode, 4, "0!");
  EXPECT_EQ(first->data(), address);
  EXPECT_EQ(first->substr(0, 5), "hell0");
  EXPECT_EQ(second->substr(0, 6), "hell0!");
  EXPECT_EQ(Content(inode).substr(0, 6), "hell0!");
}

TEST(SimInode, AMappingShowsNothingOfTheTimeAfterAPowerCut) {
  for (const bool synced : {false, true}) {
    SimInode inode(true);
    Write(&inode, 0, "hello");
    const auto mapping = inode.Map(5);
    if (synced) inode.Sync();
    base::Random random(1);
    inode.Crash(CrashMode::kAll, &random);
    Write(&inode, 0, "HELLO");
    EXPECT_EQ(*mapping, "hello");
  }
}

}  // namespace
}  // namespace basalt::io

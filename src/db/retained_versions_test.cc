#include "db/retained_versions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"

namespace basalt::db {
namespace {

using Boundaries = std::vector<base::SequenceNumber>;

TEST(RetainedVersions, AreInVainOnceNoReaderIsLeftThatSeesThem) {
  RetainedVersions retained;
  retained.Add(10, 15, 100);  // seen at 10 to 14
  retained.Add(20, 90, 7);
  EXPECT_EQ(retained.bytes(), 107U);
  EXPECT_EQ(retained.BytesInVain(Boundaries{10, 20, 100}), 0U);
  EXPECT_EQ(retained.BytesInVain(Boundaries{20, 100}), 100U);
  EXPECT_EQ(retained.BytesInVain(Boundaries{10, 100}), 7U);
  EXPECT_EQ(retained.BytesInVain(Boundaries{14, 15, 89}), 0U);
  EXPECT_EQ(retained.BytesInVain(Boundaries{9, 15, 90}), 107U);
  EXPECT_EQ(retained.BytesInVain(Boundaries{}), 107U);
}

TEST(RetainedVersions, OfManySnapshotsAreNeverCalledInVainTooEarly) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    base::Random random(seed);
    struct Version {
      base::SequenceNumber oldest_reader;
      base::SequenceNumber hidden_from;
      uint64_t bytes;
    };
    Boundaries boundaries;
    for (uint64_t i = random.Between(1, 100); i > 0; --i) boundaries.push_back(random.Below(5000));
    std::ranges::sort(boundaries);
    std::vector<Version> versions;
    RetainedVersions retained;
    uint64_t all = 0;
    for (int i = 0; i < 500; ++i) {
      const base::SequenceNumber reader = boundaries[random.Below(boundaries.size())];
      versions.push_back({reader, reader + random.Between(1, 300), random.Below(1000)});
      retained.Add(reader, versions.back().hidden_from, versions.back().bytes);
      all += versions.back().bytes;
    }
    Boundaries left;
    for (const base::SequenceNumber boundary : boundaries) {
      if (random.OneIn(3)) left.push_back(boundary);
    }
    uint64_t in_vain = 0;
    for (const Version& version : versions) {
      const auto is_seen = [&](base::SequenceNumber reader) {
        return reader >= version.oldest_reader && reader < version.hidden_from;
      };
      if (std::ranges::none_of(left, is_seen)) in_vain += version.bytes;
    }
    ASSERT_LE(retained.BytesInVain(left), in_vain) << "seed " << seed;
    ASSERT_EQ(retained.BytesInVain({}), all) << "seed " << seed;
    ASSERT_EQ(retained.bytes(), all) << "seed " << seed;
  }
}

}  // namespace
}  // namespace basalt::db

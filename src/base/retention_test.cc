#include "base/retention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"

namespace basalt::base {
namespace {

struct Version {
  std::string key;
  base::SequenceNumber sequence;
  RecordKind kind;
};

std::vector<Version> Kept(const std::vector<Version>& versions,
                          std::vector<base::SequenceNumber> boundaries, bool at_bottom) {
  Retention retention(std::move(boundaries), at_bottom);
  std::vector<Version> kept;
  for (const Version& version : versions) {
    if (retention.Keep(version.key, base::MakeTag(version.sequence, version.kind))) {
      kept.push_back(version);
    }
  }
  return kept;
}

/// What a reader at `at` sees of versions in internal order.
std::map<std::string, base::SequenceNumber> Seen(const std::vector<Version>& versions,
                                                 base::SequenceNumber at) {
  std::map<std::string, base::SequenceNumber> seen;
  std::optional<std::string> decided;
  for (const Version& version : versions) {
    if (version.sequence > at || version.key == decided) continue;
    decided = version.key;
    if (version.kind == RecordKind::kPut) seen[version.key] = version.sequence;
  }
  return seen;
}

TEST(Retention, OnlyTheNewestVersionStaysWhenNobodyLooksBack) {
  const std::vector<Version> versions = {
      {"a", 9, RecordKind::kPut}, {"a", 5, RecordKind::kPut}, {"b", 3, RecordKind::kPut}};
  EXPECT_EQ(Kept(versions, {10}, true).size(), 2U);
}

TEST(Retention, DeletesStayAboveTheBottomAndGoThere) {
  const std::vector<Version> versions = {{"a", 9, RecordKind::kDelete}, {"a", 5, RecordKind::kPut}};
  EXPECT_EQ(Kept(versions, {10}, false).size(), 1U);
  EXPECT_EQ(Kept(versions, {10}, true).size(), 0U);
}

TEST(Retention, ADeleteThatASnapshotLooksBehindStaysAtTheBottom) {
  const std::vector<Version> versions = {{"a", 9, RecordKind::kDelete}, {"a", 5, RecordKind::kPut}};
  EXPECT_EQ(Kept(versions, {7, 10}, true).size(), 2U);
}

TEST(Retention, EverythingAboveTheLastBoundaryStays) {
  const std::vector<Version> versions = {
      {"a", 12, RecordKind::kPut}, {"a", 11, RecordKind::kPut}, {"a", 9, RecordKind::kPut}};
  EXPECT_EQ(Kept(versions, {10}, true).size(), 3U);
}

TEST(Retention, EveryBoundaryAndEveryLaterReaderSeesTheSameBeforeAndAfter) {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    base::Random random(seed);
    std::vector<Version> versions;
    base::SequenceNumber last = 0;
    for (uint64_t i = random.Between(1, 40); i > 0; --i) {
      versions.push_back({std::string(1, static_cast<char>('a' + random.Below(4))), ++last,
                          random.OneIn(3) ? RecordKind::kDelete : RecordKind::kPut});
    }
    std::sort(versions.begin(), versions.end(), [](const Version& a, const Version& b) {
      return a.key != b.key ? a.key < b.key : a.sequence > b.sequence;
    });
    std::vector<base::SequenceNumber> boundaries;
    for (uint64_t i = random.Below(4); i > 0; --i) boundaries.push_back(random.Below(last + 1));
    std::sort(boundaries.begin(), boundaries.end());
    const base::SequenceNumber visible = random.Between(
        std::max<base::SequenceNumber>(1, boundaries.empty() ? 0 : boundaries.back()), last);
    boundaries.push_back(visible);
    const bool at_bottom = random.OneIn(2);
    const std::vector<Version> kept = Kept(versions, boundaries, at_bottom);
    for (const base::SequenceNumber at : boundaries) {
      ASSERT_EQ(Seen(kept, at), Seen(versions, at)) << "seed " << seed << " at " << at;
    }
    for (base::SequenceNumber at = visible; at <= last; ++at) {
      ASSERT_EQ(Seen(kept, at), Seen(versions, at)) << "seed " << seed << " at " << at;
    }
  }
}

}  // namespace
}  // namespace basalt::base

#include "shared_map/change_set.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "io/sim_file_system.h"

namespace basalt::shared_map {
namespace {

constexpr uint64_t kNoLimit = ReadLimit::kNone;

// A log of several segments with an index, as a writer leaves them.
class Log {
 public:
  void AddSegment(uint64_t capacity_bytes) {
    SegmentEntry entry{.file = entries_.size(), .capacity_bytes = capacity_bytes};
    if (!entries_.empty()) {
      entry.first =
          entries_.back().first + static_cast<Location>(entries_.back().capacity_bytes / kLogUnit);
    }
    entries_.push_back(entry);
    EXPECT_TRUE(LogSegment::Create(&fs_, Path(entry), entry.first, capacity_bytes).ok());
    segments_.push_back(LogSegment::Open(&fs_, Path(entry), entry).value());
    end_ = segments_.back()->begin();
    set_ = std::make_unique<ChangeSet>(index_, segments_);
  }
  // The change's location.
  Location Add(RecordKind kind, std::string_view key, std::string_view value = {}) {
    std::string bytes;
    AppendChange(&bytes, kind, 0, newest_[std::string(key)], 0, key, value);
    const LogSegment& segment = *segments_.back();
    FinishChange(bytes.data(), bytes.size(), segment.file_id(), segment.OffsetOf(end_), 0);
    Write(end_, bytes);
    const Location location = end_;
    end_ += static_cast<Location>(bytes.size() / kLogUnit);
    StoreWord(key, location);
    newest_[std::string(key)] = location;
    return location;
  }
  void StoreWord(std::string_view key, Location location) {
    const uint64_t hash = base::Hash(key);
    const auto [at, is_new] = positions_.try_emplace(std::string(key));
    Change change;
    if (is_new) {
      ASSERT_EQ(set_->FindWord(hash, key, &at->second, &change), Found::kAbsent);
    }
    index_->StoreWord(hash, at->second, location);
  }
  void Flip(Location location, uint64_t byte) {
    const char now = set_->SegmentOf(location)->AddressOf(location)[byte];
    Write(location, std::string(1, static_cast<char>(now ^ 1)), byte);
  }

  const ChangeSet& set() const { return *set_; }
  const LogSegment& segment(size_t i) const { return *segments_[i]; }
  Found Find(std::string_view key, uint64_t end, RecordRef* record) const {
    ReadLimit limit{.end = end};
    return set_->Find(base::Hash(key), key, &limit, record);
  }
  Found Find(std::string_view key) const {
    RecordRef record;
    return Find(key, kNoLimit, &record);
  }

 private:
  static std::string Path(const SegmentEntry& entry) { return "/log" + std::to_string(entry.file); }
  void Write(Location location, std::string_view bytes, uint64_t byte = 0) {
    const LogSegment& segment = *set_->SegmentOf(location);
    const auto file = fs_.Open(segment.path(), io::OpenMode::kReadWrite).value();
    ASSERT_TRUE(file->WriteAt(segment.OffsetOf(location) + byte, bytes).ok());
  }

  io::SimFileSystem fs_;
  std::vector<SegmentEntry> entries_;
  std::vector<std::shared_ptr<const LogSegment>> segments_;
  std::shared_ptr<ChangeIndex> index_ = ChangeIndex::Private(ChangeIndex::kCapacityMin);
  std::unique_ptr<ChangeSet> set_;
  Location end_ = 0;
  std::map<std::string, Location> newest_;
  std::map<std::string, uint64_t> positions_;  // Of their words.
};

TEST(ChangeSet, ALimitThatFollowsStopsWhereChangesAreVisible) {
  Log log;
  log.AddSegment(4096);
  const Location first = log.Add(RecordKind::kPut, "key", "one");
  const Location second = log.Add(RecordKind::kPut, "key", "two");
  const Location third = log.Add(RecordKind::kPut, "other", "three");
  ReadLimit limit{.end = 0, .follows = true};
  RecordRef record;
  const auto find = [&](std::string_view key) {
    return log.set().Find(base::Hash(key), key, &limit, &record);
  };
  const auto make_visible = [&](uint64_t end) {
    log.set().index().StoreState({.visible_end = end, .entries = 0, .changes = 1, .keys = 1});
  };
  make_visible(first);
  EXPECT_EQ(find("key"), Found::kAbsent);
  make_visible(second);
  ASSERT_EQ(find("key"), Found::kPresent);
  EXPECT_EQ(record.value(), "one");
  EXPECT_EQ(limit.end, second);
  EXPECT_EQ(find("other"), Found::kAbsent);
  make_visible(third + 1);
  ASSERT_EQ(find("key"), Found::kPresent);
  EXPECT_EQ(record.value(), "two");
  EXPECT_EQ(find("other"), Found::kPresent);
  // Nobody knows what is visible then.
  make_visible(kGuardedMax + 1);
  limit.end = 0;
  EXPECT_EQ(find("key"), Found::kCorrupt);
}

TEST(ChangeSet, FindsTheNewestChangeBelowTheLimit) {
  Log log;
  log.AddSegment(4096);
  const Location first = log.Add(RecordKind::kPut, "key", "one");
  const Location second = log.Add(RecordKind::kDelete, "key");
  const Location third = log.Add(RecordKind::kPut, "key", "three");

  RecordRef record;
  ASSERT_EQ(log.Find("key", kNoLimit, &record), Found::kPresent);
  EXPECT_EQ(record.value(), "three");
  ASSERT_EQ(log.Find("key", third + 1, &record), Found::kPresent);
  EXPECT_EQ(record.value(), "three");
  ASSERT_EQ(log.Find("key", third, &record), Found::kPresent);
  EXPECT_FALSE(record.is_put());
  ASSERT_EQ(log.Find("key", second, &record), Found::kPresent);
  EXPECT_EQ(record.value(), "one");
  EXPECT_EQ(log.Find("key", first, &record), Found::kAbsent);
  EXPECT_EQ(log.Find("another"), Found::kAbsent);
}

TEST(ChangeSet, KnowsTheSegmentOfALocation) {
  Log log;
  constexpr int kSegments = 7;
  for (int i = 0; i < kSegments; ++i) {
    log.AddSegment(uint64_t{4096} << i);
    log.Add(RecordKind::kPut, "key" + std::to_string(i), "value" + std::to_string(i));
  }
  for (size_t i = 0; i < kSegments; ++i) {
    const LogSegment& segment = log.segment(i);
    EXPECT_EQ(log.set().SegmentOf(segment.begin()), &segment);
    EXPECT_EQ(log.set().SegmentOf(static_cast<Location>(segment.limit() - 1)), &segment);
    // A segment's header holds no changes.
    EXPECT_EQ(log.set().SegmentOf(segment.first()), nullptr);
    EXPECT_EQ(log.set().SegmentOf(segment.begin() - 1), nullptr);
    RecordRef record;
    ASSERT_EQ(log.Find("key" + std::to_string(i), kNoLimit, &record), Found::kPresent);
    EXPECT_EQ(record.value(), "value" + std::to_string(i));
  }
  EXPECT_EQ(log.set().SegmentOf(static_cast<Location>(log.segment(kSegments - 1).limit())),
            nullptr);
  EXPECT_EQ(log.set().SegmentOf(static_cast<Location>(kLocationMax)), nullptr);
}

TEST(ChangeSet, WalkVisitsTheNewestChangeOfEveryKeyOrNamesTheSegmentThatIsDamaged) {
  Log log;
  constexpr int kKeys = 50;
  std::map<std::string, std::string> expected;
  Location last = 0;
  for (const std::string value : {"first", "second"}) {
    log.AddSegment(uint64_t{64} << 10);
    for (int i = 0; i < kKeys; ++i) {
      const std::string key = "key" + std::to_string(i);
      last = log.Add(i % 7 == 0 ? RecordKind::kDelete : RecordKind::kPut, key,
                     i % 7 == 0 ? "" : value);
      expected[key] = i % 7 == 0 ? "deleted" : value;
    }
  }
  std::map<std::string, std::string> visited;
  const auto visit = [&](Location location, const Change& change) {
    EXPECT_EQ(change.location, location);
    const bool is_new =
        visited.emplace(change.record.key(), change.is_put() ? change.record.value() : "deleted")
            .second;
    EXPECT_TRUE(is_new) << change.record.key();
  };
  ASSERT_TRUE(log.set().WalkNewest(visit).ok());
  EXPECT_EQ(visited, expected);

  log.Flip(last, 0);
  visited.clear();
  const Status status = log.set().WalkNewest(visit);
  EXPECT_EQ(status.code(), StatusCode::kCorruption);
  EXPECT_NE(status.message().find(log.segment(1).path()), std::string::npos) << status.ToString();
  EXPECT_LT(visited.size(), expected.size());
}

TEST(ChangeSet, DamagedChangeIsCorruption) {
  const std::string value(100, 'v');
  constexpr uint64_t kBytes =
      kChangeHeaderBytes + kRecordHeaderBytes + 3 + 100 + 1;  // one to fill up
  for (uint64_t byte = 0; byte < kBytes; ++byte) {
    Log log;
    log.AddSegment(4096);
    log.Flip(log.Add(RecordKind::kPut, "key", value), byte);
    EXPECT_EQ(log.Find("key"), Found::kCorrupt) << byte;
  }
}

// What a change was verified for is only where it begins.
TEST(ChangeSet, WordThatLeadsIntoAVerifiedChangeIsDamage) {
  Log log;
  log.AddSegment(4096);
  log.Add(RecordKind::kPut, "before", "value");
  // The value looks like a change of the same key.
  std::string inside;
  AppendChange(&inside, RecordKind::kPut, 0, 0, 0, "key", "wrong");
  inside.insert(0, 5, ' ');  // Header, key and this are a multiple of 8 bytes.
  const Location location = log.Add(RecordKind::kPut, "key", inside);
  ASSERT_EQ(log.Find("key"), Found::kPresent);
  ASSERT_EQ(log.Find("before"), Found::kPresent);
  const uint64_t units = (kChangeHeaderBytes + kRecordHeaderBytes + 3 + inside.size()) / kLogUnit;
  for (Location at = 1; at < units; ++at) {
    log.StoreWord("key", location + at);
    EXPECT_EQ(log.Find("key"), Found::kCorrupt) << at;
    log.StoreWord("key", location);
    ASSERT_EQ(log.Find("key"), Found::kPresent);
  }
}

// What has been read before is believed by lookups, and never by what writes it anew.
TEST(ChangeSet, ChangeThatIsDamagedLaterIsFoundByWhoVerifies) {
  Log log;
  log.AddSegment(4096);
  const Location location = log.Add(RecordKind::kPut, "key", std::string(100, 'v'));
  Change change;
  ASSERT_EQ(log.Find("key"), Found::kPresent);
  ASSERT_TRUE(log.set().At(location, &change));
  log.Flip(location, kChangeHeaderBytes + kRecordHeaderBytes + 50);
  EXPECT_FALSE(log.set().At(location, &change));
  EXPECT_EQ(log.Find("key"), Found::kPresent);
  // But for sizes that lead out of the file.
  log.Flip(location, kChangeHeaderBytes + offsetof(RecordHeader, value_bytes) + 3);
  EXPECT_EQ(log.Find("key"), Found::kCorrupt);
}

// No writer leaves that: an index would be too small, or without end.
TEST(ChangeSet, AFirstChangeOfAKeyThatClaimsToReplaceOneIsCorruption) {
  io::SimFileSystem fs;
  const SegmentEntry entry{.file = 1, .capacity_bytes = 4096};
  ASSERT_TRUE(LogSegment::Create(&fs, "/log", entry.first, entry.capacity_bytes).ok());
  const auto segment = LogSegment::Open(&fs, "/log", entry).value();
  std::string bytes;
  auto checksum = static_cast<uint32_t>(segment->file_id());
  for (const Location replaces : {Location{0}, segment->begin()}) {
    const size_t at = bytes.size();
    AppendChange(&bytes, RecordKind::kPut, 0, replaces, 0, replaces == 0 ? "one" : "other", "");
    checksum = FinishChange(bytes.data() + at, bytes.size() - at, segment->file_id(),
                            kLogHeaderBytes + at, checksum);
  }
  ASSERT_TRUE(
      fs.Open("/log", io::OpenMode::kReadWrite).value()->WriteAt(kLogHeaderBytes, bytes).ok());
  VersionFiles list;
  list.change_sets = {{.index_file = 2, .segments = {entry}}};
  const ChangeSetEntry& set_entry = list.change_sets.front();
  const ChangeSet set(ChangeIndex::Private(ChangeIndex::kCapacityMin), {segment});
  ChangeCount count(list, set_entry);
  const LogEnd end =
      WalkChanges(set.segments(), set_entry, 0, [&](Location location, const Change& change) {
        count.Add(location, change);
      }).value();
  EXPECT_EQ(count.changes(), 2u);
  EXPECT_EQ(FillIndex(set, set_entry, end.end, base::SeededHash(), count).code(),
            StatusCode::kCorruption);
}

}  // namespace
}  // namespace basalt::shared_map

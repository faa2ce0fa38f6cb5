#include "table/read_ahead.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/random.h"
#include "io/sim_file_system.h"
#include "table/table_iterator.h"
#include "table/test_records.h"

namespace basalt::table {
namespace {

struct Range {
  uint64_t begin;
  uint64_t end;
};

/// What a file was asked for, in order.
struct Calls {
  std::vector<Range> hints;
  std::vector<Range> reads;
  std::vector<size_t> hints_before;  ///< For each read: how many hints came before it.
  void Clear() { *this = Calls(); }
};

/// A file to be read that remembers the calls.
class RememberingFile final : public io::File {
 public:
  RememberingFile(std::unique_ptr<io::File> file, Calls* calls)
      : File(file->path()), file_(std::move(file)), calls_(*calls) {}

 private:
  int DoRead(uint64_t offset, std::span<char> out, size_t* done) const override {
    const Result<size_t> read = file_->ReadAt(offset, out);
    if (!read) return EIO;
    *done = *read;
    calls_.reads.push_back({offset, offset + *read});
    calls_.hints_before.push_back(calls_.hints.size());
    return 0;
  }
  void DoWillRead(uint64_t offset, uint64_t size) const noexcept override {
    calls_.hints.push_back({offset, offset + size});
  }
  int DoWrite(uint64_t, std::span<const std::string_view>, size_t*) override { return ENOTSUP; }
  int DoSync() override { return ENOTSUP; }
  int DoTruncate(uint64_t) override { return ENOTSUP; }
  int DoAllocate(uint64_t) override { return ENOTSUP; }
  int DoSize(uint64_t* size) const override {
    *size = file_->Size().value();
    return 0;
  }
  int DoMap(uint64_t, std::unique_ptr<io::Mapping>*) const override { return ENOTSUP; }
  int DoMapForWriting(uint64_t, std::unique_ptr<io::WritableMapping>*) override { return ENOTSUP; }
  int DoMarkInUse() override { return ENOTSUP; }
  int DoIsInUse(bool*) const override { return ENOTSUP; }

  const std::unique_ptr<io::File> file_;
  Calls& calls_;
};

/// A table of some 6 MB, in blocks of 16 KiB.
class ReadAheadOf : public testing::Test {
 protected:
  static constexpr base::SequenceNumber kRecords = 6000;

  void SetUp() override {
    ASSERT_TRUE(WriteTable(spot_, Records(kRecords, 1000)));
    Open(nullptr);
  }

  static std::vector<Record> Records(base::SequenceNumber count, size_t value_bytes) {
    std::vector<Record> records;
    for (base::SequenceNumber i = 0; i < count; ++i) {
      records.push_back(Put(Key(i), i + 1, std::string(value_bytes, 'v')));
    }
    return records;
  }

  static std::string Key(base::SequenceNumber i) { return Numbered("key", 100000 + i); }

  void Open(std::shared_ptr<Cache> cache) {
    auto file = fs_.Open(spot_.path, io::OpenMode::kRead).value();
    table_ = Table::Open(std::make_unique<RememberingFile>(std::move(file), &calls_), spot_.file_id,
                         spot_.keyspace, fs_.FileSize(spot_.path).value(), std::move(cache))
                 .value();
    calls_.Clear();
  }

  /// Each hint goes on where the one before it ended, and is at most twice as long; every block but
  /// the first two was asked for before it was read. Gives all that was asked for.
  Range ExpectOneRun(bool forward) const {
    EXPECT_FALSE(calls_.hints.empty());
    if (calls_.hints.empty()) return {};
    Range all = calls_.hints.front();
    EXPECT_EQ(all.end - all.begin, ReadAhead::kWindowBytesMin);
    uint64_t size_max = 2 * ReadAhead::kWindowBytesMin;
    for (size_t i = 1; i < calls_.hints.size(); ++i) {
      const Range hint = calls_.hints[i];
      EXPECT_EQ(forward ? hint.begin : hint.end, forward ? all.end : all.begin);
      EXPECT_LE(hint.end - hint.begin, size_max);
      size_max = std::min(2 * size_max, ReadAhead::kWindowBytesMax);
      all = {std::min(all.begin, hint.begin), std::max(all.end, hint.end)};
    }
    for (size_t i = 2; i < calls_.reads.size(); ++i) {
      const auto is_asked_for = [&](const Range& part) {
        Range asked = calls_.hints.front();
        for (size_t hint = 0; hint < calls_.hints_before[i]; ++hint) {
          asked = {std::min(asked.begin, calls_.hints[hint].begin),
                   std::max(asked.end, calls_.hints[hint].end)};
        }
        return calls_.hints_before[i] > 0 && asked.begin <= part.begin && part.end <= asked.end;
      };
      EXPECT_TRUE(is_asked_for(calls_.reads[i])) << "read " << i;
    }
    return all;
  }

  io::SimFileSystem fs_;
  const TableSpot spot_{.fs = &fs_, .compression = Compression::kNone};
  Calls calls_;
  std::shared_ptr<Table> table_;
};

TEST_F(ReadAheadOf, AScanForwardIsAskedForAheadToTheEndOfTheBlocks) {
  const auto it = table_->NewIterator(/*fill_cache=*/false);
  size_t records = 0;
  for (it->SeekToFirst(); it->Valid(); it->Next()) ++records;
  EXPECT_EQ(records, kRecords);
  EXPECT_GT(calls_.reads.size(), 300u);
  const Range all = ExpectOneRun(/*forward=*/true);
  EXPECT_EQ(all.begin, calls_.reads[1].end);
  EXPECT_EQ(all.end, calls_.reads.back().end);
  const auto widest =
      std::ranges::max(calls_.hints, {}, [](Range hint) { return hint.end - hint.begin; });
  EXPECT_EQ(widest.end - widest.begin, ReadAhead::kWindowBytesMax);
}

TEST_F(ReadAheadOf, AScanBackwardIsAskedForAheadToTheBeginningOfTheFile) {
  const auto it = table_->NewIterator(/*fill_cache=*/false);
  size_t records = 0;
  for (it->SeekToLast(); it->Valid(); it->Prev()) ++records;
  EXPECT_EQ(records, kRecords);
  const Range all = ExpectOneRun(/*forward=*/false);
  EXPECT_EQ(all.begin, 0u);
  EXPECT_EQ(all.end, calls_.reads[1].begin);
}

TEST_F(ReadAheadOf, AShortScanAsksForLittleMoreThanItReads) {
  for (const size_t blocks : {2, 3, 5, 9, 20, 60}) {
    const auto it = table_->NewIterator(/*fill_cache=*/false);
    calls_.Clear();
    it->Seek(Key(kRecords / 3), base::kNewestTag);
    while (calls_.reads.size() < blocks) it->Next();
    const Range all = ExpectOneRun(/*forward=*/true);
    const uint64_t read = calls_.reads.back().end - calls_.reads.front().begin;
    EXPECT_LE(all.end - calls_.reads.back().end, std::max(2 * read, ReadAhead::kWindowBytesMin));
  }
}

TEST_F(ReadAheadOf, BlocksLargerThanTheWindowAreFollowedToo) {
  constexpr uint64_t kValueBytes = uint64_t{200} << 10;
  ASSERT_TRUE(fs_.RemoveFile(spot_.path).ok());
  ASSERT_TRUE(WriteTable(spot_, Records(40, kValueBytes)));
  for (const bool forward : {true, false}) {
    Open(nullptr);
    const auto it = table_->NewIterator(/*fill_cache=*/false);
    if (forward) {
      for (it->SeekToFirst(); it->Valid(); it->Next()) {
      }
    } else {
      for (it->SeekToLast(); it->Valid(); it->Prev()) {
      }
    }
    ASSERT_EQ(calls_.reads.size(), 40u);
    // The windows soon are larger than blocks: then each one is asked for before it is read.
    EXPECT_GT(calls_.hints.size(), 8u);
    for (size_t i = 10; i < calls_.reads.size(); ++i) {
      const Range last = calls_.hints[calls_.hints_before[i] - 1];
      EXPECT_TRUE(forward ? last.end >= calls_.reads[i].end : last.begin <= calls_.reads[i].begin)
          << "read " << i;
    }
  }
}

TEST_F(ReadAheadOf, PointReadsAndSeeksAskForNothing) {
  base::Random random(2);
  TableRead found;
  for (int i = 0; i < 100; ++i) {
    const std::string key = Key(random.Below(kRecords / 40) * 40);
    EXPECT_TRUE(table_->Get(key, base::Hash(key), base::kMaxSequence, false, &found).value());
  }
  const auto it = table_->NewIterator(/*fill_cache=*/false);
  for (int i = 0; i < 100; ++i) {
    // Blocks hold some 16 records: never the neighbour of the one before.
    const base::SequenceNumber half = (i % 2 == 0 ? 0 : kRecords / 2);
    it->Seek(Key(half + random.Below(kRecords / 2 - 100)), base::kNewestTag);
    EXPECT_TRUE(it->Valid());
  }
  EXPECT_EQ(calls_.reads.size(), 200u);
  EXPECT_TRUE(calls_.hints.empty());
}

TEST_F(ReadAheadOf, BlocksThatAreCachedAreNotAskedFor) {
  Open(NewCache(uint64_t{64} << 20));
  for (const bool first : {true, false}) {
    calls_.Clear();
    const auto it = table_->NewIterator(/*fill_cache=*/true);
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
    }
    EXPECT_EQ(calls_.hints.empty(), !first);
    EXPECT_EQ(calls_.reads.empty(), !first);
  }
}

TEST_F(ReadAheadOf, AfterATurnTheOtherDirectionBeginsWithASmallWindow) {
  const auto it = table_->NewIterator(/*fill_cache=*/false);
  for (it->Seek(Key(kRecords / 2), base::kNewestTag); calls_.reads.size() < 100;) it->Next();
  const uint64_t turn = calls_.reads.back().begin;
  calls_.Clear();
  while (calls_.reads.empty()) it->Prev();
  ASSERT_EQ(calls_.hints.size(), 1u);
  const Range hint = calls_.hints.front();
  EXPECT_EQ(hint.end - hint.begin, ReadAhead::kWindowBytesMin);
  EXPECT_EQ(hint.end, calls_.reads.front().begin);
  EXPECT_EQ(calls_.reads.front().end, turn);
}

}  // namespace
}  // namespace basalt::table

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/hash.h"
#include "base/random.h"
#include "io/memory_file_system.h"
#include "table/table.h"
#include "table/test_records.h"

namespace basalt::table {
namespace {

class TableThreads : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Table, TableThreads, testing::Bool());

// The parameter: whether index and filter are read through it as well.
TEST_P(TableThreads, ManyThreadsReadOneTableThroughASmallCache) {
  const auto fs = io::NewMemoryFileSystem();
  const TableSpot spot{.fs = fs.get(), .budget = GetParam() ? NoRoomAtAll() : nullptr};
  base::Random random(4);
  std::vector<Record> records = RandomRecords(&random, 3000, 20, 300);
  Sort(&records);
  ASSERT_TRUE(WriteTable(spot, records));
  const auto table = OpenTable(spot, NewCache(200 << 10)).value();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    threads.emplace_back([&, seed] {
      base::Random own(seed);
      const auto it = table->NewIterator(seed % 2 == 0);
      for (int i = 0; i < 2000; ++i) {
        const Record& record = records[own.Below(records.size())];
        TableRead found;
        const auto read = table->Get(record.key, base::Hash(record.key),
                                     base::TagSequence(record.tag), true, &found);
        if (!read || !*read || found.tag != record.tag || !(found.value == record.value)) ++wrong;
        it->Seek(record.key, record.tag);
        if (!it->Valid() || Present(*it) != record) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace basalt::table

#include <gtest/gtest.h>

#include <string>

#include "base/hash.h"
#include "base/test_memory.h"
#include "base/test_memory_operators.h"
#include "io/memory_file_system.h"
#include "table/table.h"
#include "table/test_records.h"

namespace basalt::table {
namespace {

TEST(Table, AValueThatFindsNoMemoryForItsCopyPinsItsBlock) {
  const auto fs = io::NewMemoryFileSystem();
  const TableSpot spot{.fs = fs.get()};
  const std::string value(500, 'v');
  ASSERT_TRUE(WriteTable(
      spot, {Put("a", 1, std::string(5'000, 'a')), Put("key", 2, value), Put("z", 3, "z")}));
  const auto cache = NewCache(1 << 20);
  const auto table = OpenTable(spot, cache).value();
  TableRead warm;
  ASSERT_TRUE(table->Get("key", base::Hash("key"), kEver, /*fill_cache=*/true, &warm).value());
  TableRead found;
  {
    const base::MemoryThatFails fails(/*allowed=*/0, /*failing=*/1);
    ASSERT_TRUE(table->Get("key", base::Hash("key"), kEver, /*fill_cache=*/true, &found).value());
    EXPECT_TRUE(fails.has_failed());
  }
  EXPECT_TRUE(found.value == value);
  EXPECT_EQ(cache->GetStats().pinned_entries, 1u);
}

}  // namespace
}  // namespace basalt::table

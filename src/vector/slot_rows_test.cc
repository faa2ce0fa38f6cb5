#include "vector/slot_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

namespace basalt::vector {
namespace {

TEST(SlotRows, GrowWithoutMovingAndBeginAsZeros) {
  for (const size_t stride : {1u, 12u, 64u, 128u, 384u, 3'072u, 131'072u}) {
    SlotRows rows(stride);
    EXPECT_EQ(rows.bytes(), 0u);
    const auto count = static_cast<uint32_t>(std::min<size_t>(20'000, (size_t{3} << 20) / stride));
    std::vector<char*> addresses;
    for (uint32_t slot = 0; slot < count; ++slot) {
      rows.Grow(slot + 1);
      char* const row = rows.Row(slot);
      for (size_t i = 0; i < stride; i += 61) ASSERT_EQ(row[i], 0);
      std::memset(row, static_cast<char>(slot), stride);
      addresses.push_back(row);
    }
    for (uint32_t slot = 0; slot < count; ++slot) {
      ASSERT_EQ(rows.Row(slot), addresses[slot]);
      ASSERT_EQ(rows.Row(slot)[stride - 1], static_cast<char>(slot));
      if (slot % rows.granule_rows() != 0) {
        ASSERT_EQ(addresses[slot], addresses[slot - 1] + stride);
      }
    }
    const size_t granule = stride * rows.granule_rows();
    EXPECT_LE(rows.bytes(), stride * count + granule + 80'000);
  }
}

TEST(SlotRows, AreReadWhileTheyGrow) {
  SlotRows rows(16);
  std::atomic<uint32_t> size{0};
  constexpr uint32_t kRows = 20'000;
  std::thread reader([&] {
    uint32_t seen = 0;
    while (seen < kRows) {
      seen = size.load(std::memory_order_acquire);
      for (uint32_t i = 1; i <= 20 && i <= seen; ++i) {
        uint32_t value = 0;
        std::memcpy(&value, rows.Row(seen - i), sizeof value);
        ASSERT_EQ(value, seen - i);
      }
    }
  });
  for (uint32_t slot = 0; slot < kRows; ++slot) {
    rows.Grow(slot + 1);
    std::memcpy(rows.Row(slot), &slot, sizeof slot);
    size.store(slot + 1, std::memory_order_release);
  }
  reader.join();
}

}  // namespace
}  // namespace basalt::vector

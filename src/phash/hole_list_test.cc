#include "phash/hole_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.h"
#include "phash/packed_bits.h"
#include "phash/test_functions.h"

namespace basalt::phash {
namespace {

/// `count` ascending numbers below `bound`.
std::vector<uint64_t> Ascending(uint64_t count, uint64_t bound, base::Random* random) {
  std::vector<uint64_t> numbers;
  // Each is taken with the chance that the right count is reached.
  uint64_t left = count;
  if (bound <= 1'000'000) {
    for (uint64_t number = 0; number < bound; ++number) {
      if (random->Below(bound - number) >= left) continue;
      numbers.push_back(number);
      --left;
    }
    return numbers;
  }
  while (numbers.size() < count) {
    for (uint64_t i = numbers.size(); i < count; ++i) numbers.push_back(random->Below(bound));
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  }
  return numbers;
}

void ExpectList(const std::vector<uint64_t>& numbers, uint64_t bound) {
  const std::string before = "123";
  std::string form = before;
  HoleList::Append(numbers, bound, &form);
  ASSERT_EQ(form.size(), before.size() + HoleList::Bytes(numbers.size(), bound));
  ASSERT_TRUE(form.starts_with(before));
  const GuardedBytes guarded(std::string_view(form).substr(before.size()));
  const HoleList list(guarded.bytes().data(), numbers.size(), bound);
  for (uint64_t i = 0; i < numbers.size(); ++i) {
    ASSERT_EQ(list.Select(i), numbers[i]) << i << " of " << numbers.size() << " below " << bound;
  }
  EXPECT_EQ(list.Select(numbers.size()), 0u);
  EXPECT_EQ(list.Select(~uint64_t{0}), 0u);
}

TEST(HoleList, RandomNumbersAreFound) {
  const uint64_t seed = base::RandomSeed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  base::Random random(seed);
  for (int i = 0; i < 500; ++i) {
    const uint64_t bound = random.Between(1, uint64_t{2} << random.Below(14));
    ExpectList(Ascending(random.Between(0, bound), bound, &random), bound);
  }
  for (const uint64_t bound : {100'000, 1'000'000, 1'000'000'000}) {
    ExpectList(Ascending(bound == 1'000'000'000 ? 10'000 : bound / 30, bound, &random), bound);
  }
}

TEST(HoleList, NoneOneAndAllAreFound) {
  for (const uint64_t bound : {1, 2, 63, 64, 65, 1'000, 4'096}) {
    ExpectList({}, bound);
    ExpectList({0}, bound);
    ExpectList({bound - 1}, bound);
    std::vector<uint64_t> all;
    for (uint64_t number = 0; number < bound; ++number) all.push_back(number);
    ExpectList(all, bound);
    all.erase(all.begin());
    ExpectList(all, bound);
  }
  EXPECT_EQ(HoleList().Select(0), 0u);
}

TEST(HoleList, NumbersInARowAtEitherEndAreFound) {
  // The high bits of all lie together, and so do long stretches without any.
  for (const uint64_t bound : {100'000, 1'000'000'000}) {
    std::vector<uint64_t> low;
    std::vector<uint64_t> high;
    for (uint64_t i = 0; i < 1'000; ++i) {
      low.push_back(i);
      high.push_back(bound - 1'000 + i);
    }
    ExpectList(low, bound);
    ExpectList(high, bound);
    std::vector<uint64_t> both = low;
    both.insert(both.end(), high.begin(), high.end());
    ExpectList(both, bound);
  }
}

TEST(HoleList, AFewNumbersAmongManyTakeFewBits) {
  base::Random random(1);
  const uint64_t bound = 1'000'000;
  const uint64_t count = bound / 32;
  std::string form;
  HoleList::Append(Ascending(count, bound, &random), bound, &form);
  // 2 + log2(32) bits, and a place of 32 bits for every 16.
  EXPECT_LE(8.0 * static_cast<double>(form.size()) / static_cast<double>(count), 9.1);
}

TEST(HoleList, WhateverTheBytesHoldNumbersAreBelowTheBound) {
  const uint64_t seed = base::RandomSeed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  base::Random random(seed);
  for (int i = 0; i < 3'000; ++i) {
    const uint64_t bound = random.Between(1, uint64_t{2} << random.Below(20));
    const uint64_t count = random.Between(0, std::min<uint64_t>(bound, 2'000));
    std::string form;
    if (bound <= 1'000'000) HoleList::Append(Ascending(count, bound, &random), bound, &form);
    form.resize(HoleList::Bytes(count, bound));
    const uint64_t kind = random.Below(4);
    const uint64_t changes = kind == 0 ? form.size() : std::min<uint64_t>(form.size(), kind);
    for (uint64_t change = 0; change < changes; ++change) {
      form[kind == 0 ? change : random.Below(form.size())] =
          static_cast<char>(random.OneIn(3) ? 0xFF : random.Next());
    }
    const GuardedBytes guarded(form);
    const HoleList list(guarded.bytes().data(), count, bound);
    for (uint64_t at = 0; at <= count; ++at) ASSERT_LT(list.Select(at), bound);
  }
  for (const char fill : {'\0', '\xFF'}) {
    const uint64_t bound = 5'000;
    const uint64_t count = 700;
    const GuardedBytes guarded(std::string(HoleList::Bytes(count, bound), fill));
    const HoleList list(guarded.bytes().data(), count, bound);
    for (uint64_t at = 0; at < count; ++at) ASSERT_LT(list.Select(at), bound);
  }
}

TEST(PackedBits, NumbersOfEveryWidthAreReadBack) {
  base::Random random(2);
  for (uint32_t width = 0; width <= 64; ++width) {
    for (const uint64_t count : {0, 1, 2, 63, 64, 65, 300}) {
      std::vector<uint64_t> numbers(count);
      std::string bytes(8 * PackedBits::Words(count, width), '\0');
      std::vector<uint64_t> order(count);
      for (uint64_t i = 0; i < count; ++i) {
        const uint64_t number = random.OneIn(5) ? ~uint64_t{0} : random.Next();
        numbers[i] = width == 0 ? 0 : number >> (64 - width);
        order[i] = i;
      }
      Shuffle(&order, width);
      for (const uint64_t i : order) PackedBits::Add(bytes.data(), i, width, numbers[i]);
      const GuardedBytes guarded(bytes);
      for (uint64_t i = 0; i < count; ++i) {
        ASSERT_EQ(PackedBits::Get(guarded.bytes().data(), i, width), numbers[i])
            << "number " << i << " of " << count << ", width " << width;
      }
    }
  }
}

TEST(PackedBits, BitsLieFromTheLowestOfTheFirstByteOn) {
  std::string bytes(8 * PackedBits::Words(3, 12), '\0');
  PackedBits::Add(bytes.data(), 0, 12, 0xABC);
  PackedBits::Add(bytes.data(), 1, 12, 0x123);
  PackedBits::Add(bytes.data(), 2, 12, 0xFED);
  EXPECT_EQ(bytes.substr(0, 5), std::string("\xBC\x3A\x12\xED\x0F", 5));
}

}  // namespace
}  // namespace basalt::phash

#include "base/hash.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace basalt::base {
namespace {

// The values are xxHash's own, for XXH3_64bits_withSeed.
TEST(Hash, IsXxh3AndNeverChanges) {
  EXPECT_EQ(Hash(""), 0x2D06800538D394C2u);
  EXPECT_EQ(Hash("basalt"), 0xBE027615949347CDu);
  EXPECT_EQ(Hash("basalt", 1), 0x96C389A4F9267D27u);
  EXPECT_EQ(Hash(std::string(1000, 'b')), 0xAFC6ADD26F7C16A2u);
}

TEST(Checksum, NeverChanges) {
  EXPECT_EQ(Checksum(0x0123456789ABCDEF, 0, "block"), Hash("block", 0x0123456789ABCDEF));
  EXPECT_EQ(Checksum(0x0123456789ABCDEF, 16384, "block"), 0xCD51DFA2F8313678u);
}

TEST(Checksum, DependsOnEveryBitOfBytesFileAndOffset) {
  for (const size_t size : {size_t{1}, size_t{16}, size_t{200}, size_t{5000}}) {
    const std::string bytes(size, 'x');
    std::set<uint64_t> seen = {Checksum(1, 4096, bytes)};
    size_t variants = 1;
    for (int bit = 0; bit < 64; ++bit) {
      seen.insert(Checksum(1 ^ (uint64_t{1} << bit), 4096, bytes));
      seen.insert(Checksum(1, 4096 ^ (uint64_t{1} << bit), bytes));
      variants += 2;
    }
    for (size_t bit = 0; bit < size * 8; ++bit) {
      std::string flipped = bytes;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
      seen.insert(Checksum(1, 4096, flipped));
      ++variants;
    }
    EXPECT_EQ(seen.size(), variants) << "size " << size;
  }
}

}  // namespace
}  // namespace basalt::base

#include "base/coding.h"

#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <vector>

#include "base/internal_key.h"
#include "base/random.h"

namespace basalt::base {
namespace {

std::string RandomKey(Random* random) {
  std::string key(random->Below(20), '\0');
  // Few byte values, so that long common prefixes and zero bytes are frequent.
  for (char& byte : key) byte = static_cast<char>(random->Below(3) * 127);
  return key;
}

TEST(Coding, IntegersAreLittleEndian) {
  std::string out;
  Append(&out, uint8_t{0x01});
  Append(&out, uint16_t{0x0302});
  Append(&out, uint32_t{0x07060504});
  Append(&out, uint64_t{0x0F0E0D0C0B0A0908});
  std::string expected;
  for (char byte = 1; byte <= 15; ++byte) expected.push_back(byte);
  EXPECT_EQ(out, expected);
  EXPECT_EQ(Load<uint32_t>(out.data() + 3), 0x07060504u);
}

TEST(Coding, DecoderReadsFieldsInOrderAndKnowsItsPosition) {
  std::string bytes;
  Append(&bytes, uint32_t{7});
  bytes += "abcdef";
  Decoder in(bytes);
  EXPECT_EQ(in.Read<uint32_t>(), 7u);
  EXPECT_EQ(in.ReadBytes(3), "abc");
  EXPECT_EQ(in.position(), 7u);
  EXPECT_EQ(in.rest(), "def");
  EXPECT_FALSE(in.AtEnd());
  EXPECT_EQ(in.ReadBytes(3), "def");
  EXPECT_TRUE(in.AtEnd());
  EXPECT_TRUE(in.ok());
}

TEST(Coding, DecoderNeverReadsPastTheEnd) {
  for (size_t size = 0; size < 8; ++size) {
    const std::string bytes(size, '\x7F');
    Decoder in(bytes);
    EXPECT_EQ(in.Read<uint64_t>(), 0u);
    EXPECT_FALSE(in.ok());
    EXPECT_EQ(in.Read<uint8_t>(), 0u);  // Also where one byte would have fitted before.
    EXPECT_EQ(in.ReadBytes(0), "");
    EXPECT_FALSE(in.ok());
  }
  Decoder in("abc");
  EXPECT_EQ(in.ReadBytes(UINT64_MAX), "");
  EXPECT_FALSE(in.ok());
}

TEST(Coding, KeyPrefixesOrderAsTheirBytesDo) {
  const uint64_t seed = 20'240'501;
  Random random(seed);
  for (int i = 0; i < 100'000; ++i) {
    const std::string a = RandomKey(&random);
    const std::string b = RandomKey(&random);
    const uint64_t prefix_a = KeyPrefix(a);
    const uint64_t prefix_b = KeyPrefix(b);
    if (prefix_a < prefix_b) {
      ASSERT_LT(a, b) << "seed " << seed;
    } else if (prefix_a > prefix_b) {
      ASSERT_GT(a, b) << "seed " << seed;
    }
    const size_t offset = random.Below(a.size() + 4);
    const std::string padded = a + std::string(32, '\0');
    ASSERT_EQ(KeyPrefix(a, offset), KeyPrefix(std::string_view(padded).substr(offset)));
  }
}

TEST(Coding, RoundUpGoesToTheNextMultiple) {
  EXPECT_EQ(RoundUp(0, 16), 0u);
  EXPECT_EQ(RoundUp(1, 16), 16u);
  EXPECT_EQ(RoundUp(16, 16), 16u);
  EXPECT_EQ(RoundUp(17, 10), 20u);
}

TEST(InternalKey, TagHoldsSequenceAndKind) {
  const Tag tag = MakeTag(kMaxSequence, RecordKind::kDelete);
  EXPECT_EQ(TagSequence(tag), kMaxSequence);
  EXPECT_EQ(TagKind(tag), RecordKind::kDelete);
}

TEST(Coding, KeysAreComparedAsStringsAre) {
  const uint64_t seed = 3;
  SCOPED_TRACE(seed);
  Random random(seed);
  const auto sign = [](int order) { return order < 0 ? -1 : (order > 0 ? 1 : 0); };
  for (int i = 0; i < 200'000; ++i) {
    // Often alike for longer than what is compared without a call.
    const std::string both(random.Below(2) == 0 ? 0 : random.Below(45), 'x');
    const std::string a = both + RandomKey(&random);
    const std::string b = random.Below(4) == 0 ? a : both + RandomKey(&random);
    ASSERT_EQ(sign(CompareKeys(a, b)), sign(a.compare(b))) << a.size() << " and " << b.size();
    ASSERT_EQ(SameBytes(a, b), a == b) << a.size() << " and " << b.size();
  }
}

TEST(Coding, VarintsComeBackAndNothingElseIsOne) {
  for (int bits = 0; bits <= 64; ++bits) {
    const uint64_t power = bits == 64 ? 0 : uint64_t{1} << bits;
    for (const uint64_t value : {power - 1, power, power + 1}) {
      char bytes[kVarintBytesMax];
      const size_t size = static_cast<size_t>(StoreVarint(bytes, value) - bytes);
      ASSERT_LE(size, kVarintBytesMax);
      EXPECT_EQ(size, value == 0 ? 1U : (std::bit_width(value) + 6U) / 7U);
      Decoder whole({bytes, size});
      EXPECT_EQ(whole.ReadVarint(), value);
      EXPECT_TRUE(whole.ok() && whole.AtEnd());
      Decoder cut({bytes, size - 1});
      EXPECT_EQ(cut.ReadVarint(), 0U);
      EXPECT_FALSE(cut.ok());
    }
  }
  for (const char last : {'\2', '\x81'}) {  // a 65th bit; an 11th byte
    const std::string bytes = std::string(9, '\xFF') + last + std::string(9, '\1');
    Decoder decoder(bytes);
    EXPECT_EQ(decoder.ReadVarint(), 0U);
    EXPECT_FALSE(decoder.ok());
  }
}

TEST(Coding, ZigZagKeepsSmallDifferencesSmall) {
  EXPECT_EQ(ToZigZag(0), 0U);
  EXPECT_EQ(ToZigZag(UINT64_MAX), 1U);  // -1
  EXPECT_EQ(ToZigZag(1), 2U);
  for (const uint64_t value : {uint64_t{5}, UINT64_MAX - 5, uint64_t{1} << 63, UINT64_MAX >> 1}) {
    EXPECT_EQ(FromZigZag(ToZigZag(value)), value);
  }
}

TEST(InternalKey, NewerVersionsComeFirst) {
  EXPECT_LT(CompareInternal("a", MakeTag(1, RecordKind::kPut), "b", MakeTag(9, RecordKind::kPut)),
            0);
  EXPECT_LT(CompareInternal("a", MakeTag(9, RecordKind::kPut), "a", MakeTag(1, RecordKind::kPut)),
            0);
  EXPECT_GT(CompareInternal("a", MakeTag(1, RecordKind::kPut), "a", MakeTag(9, RecordKind::kPut)),
            0);
  EXPECT_EQ(CompareInternal("a", MakeTag(1, RecordKind::kPut), "a", MakeTag(1, RecordKind::kPut)),
            0);
  EXPECT_GT(CompareInternal("\xFF", 0, "\x01", 0), 0);
}

TEST(InternalKey, SeekTagStandsBetweenVisibleAndNewerVersions) {
  EXPECT_LT(CompareInternal("a", MakeTag(6, RecordKind::kPut), "a", SeekTag(5)), 0);
  EXPECT_GT(CompareInternal("a", MakeTag(5, RecordKind::kBlobReference), "a", SeekTag(5)), 0);
}

}  // namespace
}  // namespace basalt::base

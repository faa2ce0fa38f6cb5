#include "phash/hole_list.h"

#include <array>
#include <bit>

#include "base/coding.h"
#include "phash/packed_bits.h"

namespace basalt::phash {
namespace {

constexpr uint64_t kWordBits = 64;

constexpr uint64_t Words(uint64_t bits) noexcept { return (bits + kWordBits - 1) / kWordBits; }

// [i][byte]: the place of one bit number i of a byte; 8 when there is none.
constexpr auto kPlaceInByte = [] {
  std::array<std::array<uint8_t, 256>, 8> places = {};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t ones = byte;
    for (auto& place : places) {
      place[byte] = static_cast<uint8_t>(ones == 0 ? 8 : std::countr_zero(ones));
      ones &= ones - 1;
    }
  }
  return places;
}();

// Ones of a word are counted and found without a branch, which no predictor would get right (S.
// Vigna, "Broadword implementation of rank/select queries", 2008).
constexpr uint64_t kEachByte = 0x0101'0101'0101'0101;

// In each byte the ones from the word's first byte up to it: in the last one those of the word.
uint64_t OnesUpToEachByte(uint64_t word) noexcept {
  uint64_t sums = word - ((word >> 1) & 0x5555'5555'5555'5555);
  sums = (sums & 0x3333'3333'3333'3333) + ((sums >> 2) & 0x3333'3333'3333'3333);
  return ((sums + (sums >> 4)) & 0x0F0F'0F0F'0F0F'0F0F) * kEachByte;
}

// The place of one bit number `i` of `word`, which has more; `sums` is OnesUpToEachByte of it.
uint64_t PlaceOfOne(uint64_t word, uint64_t sums, uint64_t i) noexcept {
  constexpr uint64_t kHighBits = 0x8080'8080'8080'8080;
  const uint64_t ended = (((i * kEachByte) | kHighBits) - sums) & kHighBits;  // Bytes before it.
  const uint64_t bit = ((ended >> 7) * kEachByte >> 56) * 8;
  const uint64_t before = (sums << 8) >> bit & 0xFF;
  return bit + kPlaceInByte[i - before][word >> bit & 0xFF];
}

}  // namespace

uint32_t HoleList::LowBits(uint64_t count, uint64_t bound) noexcept {
  return count == 0 ? 0 : static_cast<uint32_t>(std::bit_width(bound / count)) - 1;
}

uint64_t HoleList::Bytes(uint64_t count, uint64_t bound) noexcept {
  if (count == 0) return 0;
  const uint32_t low_bits = LowBits(count, bound);
  const uint64_t samples = (count + kSampleEvery - 1) / kSampleEvery;
  return 8 * (PackedBits::Words(count, low_bits) + Words(count + (bound >> low_bits) + 1)) +
         base::RoundUp(4 * samples, 8);
}

HoleList::HoleList(const char* bytes, uint64_t count, uint64_t bound) noexcept
    : low_(bytes), count_(count), bound_(bound), low_bits_(LowBits(count, bound)) {
  high_ = low_ + 8 * PackedBits::Words(count, low_bits_);
  high_words_ = count == 0 ? 0 : Words(count + (bound >> low_bits_) + 1);
  samples_ = high_ + 8 * high_words_;
}

uint64_t HoleList::HighBits(uint64_t begin) const noexcept {
  const uint64_t word = begin / kWordBits;
  if (word >= high_words_) return 0;
  const uint64_t low = base::Load<uint64_t>(high_ + 8 * word) >> (begin % kWordBits);
  if (word + 1 == high_words_) return low;
  return low | base::Load<uint64_t>(high_ + 8 * word + 8) << 1 << (63 - begin % kWordBits);
}

uint64_t HoleList::Select(uint64_t i) const noexcept {
  if (i >= count_) return 0;
  uint64_t begin = base::Load<uint32_t>(samples_ + 4 * (i / kSampleEvery));
  uint64_t before = i % kSampleEvery;
  uint64_t word = HighBits(begin);
  uint64_t sums = OnesUpToEachByte(word);
  while (sums >> 56 <= before) [[unlikely]] {
    before -= sums >> 56;
    begin += kWordBits;
    if (begin / kWordBits >= high_words_) return 0;
    word = HighBits(begin);
    sums = OnesUpToEachByte(word);
  }
  const uint64_t place = begin + PlaceOfOne(word, sums, before);
  if (place < i) return 0;
  const uint64_t number = ((place - i) << low_bits_) | PackedBits::Get(low_, i, low_bits_);
  return number < bound_ ? number : 0;
}

void HoleList::Append(std::span<const uint64_t> numbers, uint64_t bound, std::string* out) {
  const uint64_t count = numbers.size();
  const size_t begin = out->size();
  out->resize(begin + Bytes(count, bound), '\0');
  const uint32_t low_bits = LowBits(count, bound);
  char* const low = out->data() + begin;
  char* const high = low + 8 * PackedBits::Words(count, low_bits);
  char* const samples = high + 8 * (count == 0 ? 0 : Words(count + (bound >> low_bits) + 1));
  for (uint64_t i = 0; i < count; ++i) {
    PackedBits::Add(low, i, low_bits, numbers[i] & ((uint64_t{1} << low_bits) - 1));
    const uint64_t place = i + (numbers[i] >> low_bits);
    char* const word = high + 8 * (place / kWordBits);
    base::Store(word, base::Load<uint64_t>(word) | uint64_t{1} << (place % kWordBits));
    if (i % kSampleEvery == 0) {
      base::Store(samples + 4 * (i / kSampleEvery), static_cast<uint32_t>(place));
    }
  }
}

}  // namespace basalt::phash

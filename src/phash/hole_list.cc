#include "phash/hole_list.h"

#include <algorithm>
#include <bit>

#include "base/coding.h"
#include "phash/packed_bits.h"

namespace basalt::phash {
namespace {

constexpr uint64_t kWordBits = 64;

constexpr uint64_t Words(uint64_t bits) noexcept { return (bits + kWordBits - 1) / kWordBits; }

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

uint64_t HoleList::Select(uint64_t i) const noexcept {
  if (i >= count_) return 0;
  const auto sample = base::Load<uint32_t>(samples_ + 4 * (i / kSampleEvery));
  uint64_t word = sample / kWordBits;
  if (word >= high_words_) return 0;
  uint64_t ones = base::Load<uint64_t>(high_ + 8 * word) & (~uint64_t{0} << (sample % kWordBits));
  uint64_t before = i % kSampleEvery;
  for (auto count = static_cast<uint64_t>(std::popcount(ones)); count <= before;
       count = static_cast<uint64_t>(std::popcount(ones))) {
    before -= count;
    if (++word == high_words_) return 0;
    ones = base::Load<uint64_t>(high_ + 8 * word);
  }
  for (; before > 0; --before) ones &= ones - 1;
  const uint64_t place = word * kWordBits + static_cast<uint64_t>(std::countr_zero(ones));
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

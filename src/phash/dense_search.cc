#include "phash/dense_search.h"

#include <bit>
#include <limits>

#include "base/coding.h"

// Compiled once for each instruction set; the processor's best is chosen when the program runs.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "phash/dense_search.cc"
#include <hwy/foreach_target.h>
// foreach_target.h comes first.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace basalt::phash {
namespace HWY_NAMESPACE {

// Sets bit s of `taken` for each seed s that puts a key on a taken slot. A slice's bits are read
// relative to the 32-bit word in which it begins.

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL

// The window of 1,024 bits lies in two registers. A slice that begins within the first word ends
// within a 33rd, whose bits take the place of those before the begin: places count modulo 1,024.
void CollectTaken(const DenseKey& key, const uint64_t* words, uint32_t slice_log2,
                  uint64_t* taken) noexcept {
  const auto* const window = reinterpret_cast<const char*>(words) + 4 * (key.begin / 32);
  const uint32_t before = key.begin % 32;
  const uint32_t before_mask = (uint32_t{1} << before) - 1;
  const uint32_t first = (base::Load<uint32_t>(window) & ~before_mask) |
                         (base::Load<uint32_t>(window + 128) & before_mask);
  const __m512i low =
      _mm512_mask_set1_epi32(_mm512_loadu_si512(window), 1, static_cast<int>(first));
  const __m512i high = _mm512_loadu_si512(window + 64);
  const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i step = _mm512_set1_epi32(static_cast<int>(key.step));
  const __m512i step_16 = _mm512_slli_epi32(step, 4);
  const __m512i base = _mm512_set1_epi32(static_cast<int>(before));
  const __m128i drop = _mm_cvtsi32_si128(static_cast<int>(32 - slice_log2));
  const __m512i one = _mm512_set1_epi32(1);
  __m512i place = _mm512_add_epi32(_mm512_set1_epi32(static_cast<int>(key.start)),
                                   _mm512_mullo_epi32(lanes, step));
  for (uint32_t word = 0; word < 4; ++word) {
    uint64_t bits = 0;
    for (uint32_t part = 0; part < 64; part += 16) {
      const __m512i bit = _mm512_add_epi32(_mm512_srl_epi32(place, drop), base);
      const __m512i picked = _mm512_permutex2var_epi32(low, _mm512_srli_epi32(bit, 5), high);
      bits |= uint64_t{_mm512_test_epi32_mask(_mm512_rorv_epi32(picked, bit), one)} << part;
      place = _mm512_add_epi32(place, step_16);
    }
    taken[word] |= bits;
  }
}

#elif HWY_TARGET == HWY_AVX2

void CollectTaken(const DenseKey& key, const uint64_t* words, uint32_t slice_log2,
                  uint64_t* taken) noexcept {
  const auto* const window = reinterpret_cast<const int*>(words) + key.begin / 32;
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i step = _mm256_set1_epi32(static_cast<int>(key.step));
  const __m256i step_8 = _mm256_slli_epi32(step, 3);
  const __m256i base = _mm256_set1_epi32(static_cast<int>(key.begin % 32));
  const __m128i drop = _mm_cvtsi32_si128(static_cast<int>(32 - slice_log2));
  const __m256i last_bit = _mm256_set1_epi32(31);
  __m256i place = _mm256_add_epi32(_mm256_set1_epi32(static_cast<int>(key.start)),
                                   _mm256_mullo_epi32(lanes, step));
  for (uint32_t word = 0; word < 4; ++word) {
    uint64_t bits = 0;
    for (uint32_t part = 0; part < 64; part += 8) {
      const __m256i bit = _mm256_add_epi32(_mm256_srl_epi32(place, drop), base);
      const __m256i picked = _mm256_i32gather_epi32(window, _mm256_srli_epi32(bit, 5), 4);
      // The slot's bit moves to the sign, which is what movemask takes.
      const __m256i sign = _mm256_sllv_epi32(picked, _mm256_andnot_si256(bit, last_bit));
      bits |= static_cast<uint64_t>(_mm256_movemask_ps(_mm256_castsi256_ps(sign))) << part;
      place = _mm256_add_epi32(place, step_8);
    }
    taken[word] |= bits;
  }
}

#else

// Only seeds that no key before has lost are looked at.
void CollectTaken(const DenseKey& key, const uint64_t* words, uint32_t slice_log2,
                  uint64_t* taken) noexcept {
  for (uint32_t word = 0; word < 4; ++word) {
    uint64_t bits = 0;
    for (uint64_t rest = ~taken[word]; rest != 0; rest &= rest - 1) {
      const auto seed = static_cast<uint32_t>(std::countr_zero(rest));
      const uint32_t slot = key.Slot(word * 64 + seed, slice_log2);
      bits |= (words[slot / 64] >> (slot % 64) & 1) << seed;
    }
    taken[word] |= bits;
  }
}

#endif

void CollectTakenByAll(std::span<const DenseKey> keys, const uint64_t* words, uint32_t slice_log2,
                       uint64_t* taken) {
  for (const DenseKey& key : keys) CollectTaken(key, words, slice_log2, taken);
}

}  // namespace HWY_NAMESPACE
}  // namespace basalt::phash
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace basalt::phash {

HWY_EXPORT(CollectTakenByAll);

namespace {

bool Collide(std::span<const DenseKey> keys, uint32_t seed, uint32_t slice_log2) noexcept {
  for (size_t i = 1; i < keys.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (keys[i].Slot(seed, slice_log2) == keys[j].Slot(seed, slice_log2)) return true;
    }
  }
  return false;
}

}  // namespace

uint32_t FindDenseSeed(std::span<const DenseKey> keys, const uint64_t* words,
                       uint32_t slice_log2) noexcept {
  uint64_t taken[4] = {1, 0, 0, 0};  // Seed 0 means something else.
  HWY_DYNAMIC_DISPATCH(CollectTakenByAll)(keys, words, slice_log2, taken);
  uint32_t best = 0;
  uint32_t least = std::numeric_limits<uint32_t>::max();
  for (uint32_t word = 0; word < 4; ++word) {
    for (uint64_t free = ~taken[word]; free != 0; free &= free - 1) {
      const uint32_t seed = 64 * word + static_cast<uint32_t>(std::countr_zero(free));
      uint32_t sum = 0;
      for (const DenseKey& key : keys) sum += (key.start + seed * key.step) >> (32 - slice_log2);
      if (sum < least && !Collide(keys, seed, slice_log2)) {
        least = sum;
        best = seed;
      }
    }
  }
  return best;
}

}  // namespace basalt::phash

#endif  // HWY_ONCE

#include "phash/placer.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "phash/dense_search.h"
#include "phash/level.h"
#include "phash/taken_slots.h"

namespace basalt::phash {
namespace {

constexpr uint32_t kSizes = Placer::kBucketKeysMax + 1;

// How many buckets before its turn a bucket of so many keys is placed (or after it). Found by hill
// climbing on random hashes, for the least bits in all.
constexpr std::array<int32_t, kSizes> kShiftLead = {0,   -27, -13, 41,  69,  89,  106, 117, 129,
                                                    141, 149, 159, 169, 179, 189, 199, 204};
constexpr std::array<int32_t, kSizes> kDenseLead = {0,   -46, 2,   36,  56,  81,  102, 107, 118,
                                                    137, 139, 149, 159, 169, 179, 189, 199};
constexpr int32_t kLeadMax = 204;
constexpr int32_t kLeadMin = -46;

// 255 shifts by 4 slots go once around a slice of 1,024.
constexpr uint32_t kShifts = 256;
constexpr uint32_t kStep = 4;
constexpr uint32_t kShiftWords = kShifts / 64;
constexpr uint32_t kSlice = kShifts * kStep;
static_assert(kSlice == 1 << Level::kSliceLog2);

// Bits `shift` to `shift` + 63 of two words in a row.
uint64_t Joined(uint64_t low, uint64_t high, uint32_t shift) noexcept {
  return low >> shift | high << 1 << (63 - shift);
}

// One key of a bucket: its slots under all shifts, which are the slots of its slice with one
// remainder by 4, from `start` on to the slice's end and on from its begin.
struct ShiftedKey {
  uint32_t begin;
  uint32_t start;

  // The shifts that stay before the slice's end, at least 1.
  uint32_t Unwrapped() const noexcept { return (begin + kSlice - start + kStep - 1) / kStep; }
  uint32_t Slot(uint32_t shift) const noexcept {
    return shift < Unwrapped() ? start + kStep * shift : start + kStep * shift - kSlice;
  }
};

// Sets in `taken` bit s for each shift s whose slot is taken.
inline void CollectTaken(const ShiftedKey& key, const uint64_t* words, uint64_t* taken) noexcept {
  // In the words of its remainder the key's slots are a row of bits: `unwrapped` from `first` on,
  // and before `end` - 256 the rest. Of each word take what lies before `end` from its own place,
  // and what lies behind from 256 bits, 4 words, before.
  const uint64_t first = key.start / kStep;
  const uint64_t end = first + key.Unwrapped();
  const uint64_t first_word = first / 64;
  const auto end_word = static_cast<uint32_t>(end / 64 - first_word);
  const uint64_t* const row = words + TakenSlots::kBlockWords * first_word + key.start % kStep;
  uint64_t joined[kShiftWords + 1];
  for (uint32_t i = 0; i <= kShiftWords; ++i) {
    const uint64_t own = row[TakenSlots::kBlockWords * i];
    const uint64_t wrapped =
        *(row + TakenSlots::kBlockWords * i - TakenSlots::kBlockWords * kShiftWords);
    const uint64_t before_end = i < end_word   ? ~uint64_t{0}
                                : i > end_word ? 0
                                               : (uint64_t{1} << (end % 64)) - 1;
    joined[i] = (own & before_end) | (wrapped & ~before_end);
  }
  const uint32_t shift = first % 64;
  for (uint32_t i = 0; i < kShiftWords; ++i) taken[i] |= Joined(joined[i], joined[i + 1], shift);
}

// The least shift at or above `from` that is not taken; kShifts when there is none.
inline uint32_t NextFree(const uint64_t* taken, uint32_t from) noexcept {
  if (from >= kShifts) return kShifts;
  uint32_t word = from / 64;
  uint64_t free = ~taken[word] & (~uint64_t{0} << (from % 64));
  while (free == 0) {
    if (++word == kShiftWords) return kShifts;
    free = ~taken[word];
  }
  return word * 64 + static_cast<uint32_t>(std::countr_zero(free));
}

bool Collide(std::span<const ShiftedKey> keys, uint32_t shift) noexcept {
  uint32_t slots[Placer::kBucketKeysMax];
  for (size_t i = 0; i < keys.size(); ++i) {
    slots[i] = keys[i].Slot(shift);
    for (size_t j = 0; j < i; ++j) {
      if (slots[i] == slots[j]) return true;
    }
  }
  return false;
}

// What the slots of `count` keys sum up to under `shift`, in steps, but for what is common to all.
int32_t Cost(uint32_t count, uint32_t shift, uint32_t wrapped) noexcept {
  return static_cast<int32_t>(count * shift) - static_cast<int32_t>(wrapped * kShifts);
}

// The shift of least cost that is free for all keys and in which they do not collide; 0: none.
uint32_t BestOfAllShifts(std::span<const ShiftedKey> keys, const uint64_t* taken) noexcept {
  uint32_t best = 0;
  int32_t least = std::numeric_limits<int32_t>::max();
  for (uint32_t shift = NextFree(taken, 1); shift < kShifts; shift = NextFree(taken, shift + 1)) {
    const auto wrapped = static_cast<uint32_t>(std::ranges::count_if(
        keys, [&](const ShiftedKey& key) { return shift >= key.Unwrapped(); }));
    const int32_t cost = Cost(static_cast<uint32_t>(keys.size()), shift, wrapped);
    if (cost < least && !Collide(keys, shift)) {
      least = cost;
      best = shift;
    }
  }
  return best;
}

}  // namespace

Placer::Placer(const LevelShape& shape) : shape_(shape), slice_begins_(shape.slice_begins()) {}

void Placer::Order(const Buckets& buckets) {
  const auto& lead = shape_.dense() ? kDenseLead : kShiftLead;
  const auto turn = [&](uint32_t bucket) {
    const uint32_t size = buckets.begins[bucket + 1] - buckets.begins[bucket];
    return static_cast<uint32_t>(static_cast<int32_t>(bucket) + kLeadMax -
                                 lead[std::min(size, kBucketKeysMax)]);
  };
  const auto count = static_cast<uint32_t>(buckets.count());
  turns_.assign(count + kLeadMax - kLeadMin + 2, 0);
  for (uint32_t bucket = 0; bucket < count; ++bucket) ++turns_[turn(bucket) + 1];
  for (size_t i = 1; i < turns_.size(); ++i) turns_[i] += turns_[i - 1];
  order_.resize(count);
  for (uint32_t bucket = 0; bucket < count; ++bucket) order_[turns_[turn(bucket)]++] = bucket;
}

uint32_t Placer::FindShift(std::span<const uint64_t> hashes, const Slots& slots) noexcept {
  const auto count = static_cast<uint32_t>(hashes.size());
  ShiftedKey keys[kBucketKeysMax];
  // The shifts at which a key wraps, ascending.
  uint32_t wraps[kBucketKeysMax + 1];
  uint64_t taken[kShiftWords] = {1};  // Seed 0 means something else.
  for (uint32_t i = 0; i < count; ++i) {
    const auto begin = static_cast<uint32_t>(MulHigh(hashes[i], slice_begins_) - slots.origin);
    keys[i] = {begin, begin + Level::ShiftOffset(hashes[i], 0)};
    CollectTaken(keys[i], slots.words, taken);
    const uint32_t wrap = keys[i].Unwrapped();
    uint32_t at = i;
    for (; at > 0 && wraps[at - 1] > wrap; --at) wraps[at] = wraps[at - 1];
    wraps[at] = wrap;
  }
  wraps[count] = kShifts;

  // Between two wraps the cost grows with the shift: only the first free one of each stretch
  // counts.
  uint32_t best = 0;
  int32_t least = std::numeric_limits<int32_t>::max();
  uint32_t begin = 1;
  for (uint32_t wrapped = 0; wrapped <= count; begin = wraps[wrapped++]) {
    const uint32_t end = wraps[wrapped];
    if (begin >= end || Cost(count, begin, wrapped) >= least) continue;
    const uint32_t shift = NextFree(taken, begin);
    const int32_t cost = Cost(count, shift, wrapped);
    if (shift < end && cost < least) {
      least = cost;
      best = shift;
    }
  }
  if (best == 0) return 0;
  const std::span<const ShiftedKey> used(keys, count);
  if (Collide(used, best)) [[unlikely]] {
    best = BestOfAllShifts(used, taken);
    if (best == 0) return 0;
  }
  for (const ShiftedKey& key : used) {
    const uint32_t slot = key.Slot(best);
    slots.words[slot / TakenSlots::kBlockSlots * TakenSlots::kBlockWords + slot % kStep] |=
        uint64_t{1} << (slot / kStep % 64);
  }
  return best;
}

uint32_t Placer::FindDense(std::span<const uint64_t> hashes, const Slots& slots) noexcept {
  const auto count = static_cast<uint32_t>(hashes.size());
  DenseKey keys[kBucketKeysMax];
  for (uint32_t i = 0; i < count; ++i) {
    keys[i] = {static_cast<uint32_t>(MulHigh(hashes[i], slice_begins_) - slots.origin),
               static_cast<uint32_t>(hashes[i]), Level::DenseStep(hashes[i])};
  }
  const uint32_t seed = FindDenseSeed({keys, count}, slots.words, shape_.slice_log2());
  if (seed == 0) return 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t slot = keys[i].Slot(seed, shape_.slice_log2());
    slots.words[slot / 64] |= uint64_t{1} << (slot % 64);
  }
  return seed;
}

void Placer::Place(const Buckets& buckets, const Slots& slots, uint8_t* seeds,
                   std::vector<uint64_t>* bumped, std::vector<uint64_t>* repeated) {
  Order(buckets);
  for (const uint32_t bucket : order_) {
    const std::span<const uint64_t> hashes = buckets[bucket];
    uint32_t seed = 0;
    if (!hashes.empty() && hashes.size() <= kBucketKeysMax) {
      seed = shape_.dense() ? FindDense(hashes, slots) : FindShift(hashes, slots);
    }
    seeds[bucket] = static_cast<uint8_t>(seed);
    if (seed != 0 || hashes.empty()) continue;
    // Equal hashes collide under every seed, so that they are always found here.
    const size_t first = bumped->size();
    bumped->insert(bumped->end(), hashes.begin(), hashes.end());
    std::sort(bumped->begin() + static_cast<ptrdiff_t>(first), bumped->end());
    for (size_t i = first + 1; i < bumped->size(); ++i) {
      if ((*bumped)[i] == (*bumped)[i - 1]) repeated->push_back((*bumped)[i]);
    }
  }
}

void GroupByBucket(const LevelShape& shape, uint64_t first_bucket, uint64_t count,
                   std::span<const uint64_t> hashes, uint64_t* grouped, uint32_t first_place,
                   uint32_t* begins) noexcept {
  std::fill_n(begins, count, 0);
  const uint64_t buckets = shape.buckets();
  for (const uint64_t hash : hashes) ++begins[MulHigh(hash, buckets) - first_bucket];
  // From the ends of buckets, hashes are put in backwards: what remains are the begins.
  uint32_t end = 0;
  for (uint64_t i = 0; i < count; ++i) begins[i] = end += begins[i];
  for (const uint64_t hash : hashes)
    grouped[--begins[MulHigh(hash, buckets) - first_bucket]] = hash;
  for (uint64_t i = 0; i < count; ++i) begins[i] += first_place;
}

}  // namespace basalt::phash

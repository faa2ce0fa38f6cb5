#include "bench/shared_map_records.h"

#include <algorithm>
#include <numeric>

#include "base/random.h"

namespace basalt::bench {

SharedMapRecords::SharedMapRecords(uint64_t count, uint64_t seed) : next_(count) {
  std::iota(next_.begin(), next_.end(), uint32_t{0});
  // Sattolo's shuffle gives one cycle of all.
  base::Random random(seed);
  for (uint64_t i = count - 1; i > 0; --i) std::swap(next_[i], next_[random.Below(i)]);
  for (uint64_t number = 0; number < count; ++number) {
    raw_bytes_ += RecordKey::Of(number).view().size() + kSharedMapValueBytes;
  }
}

std::vector<uint32_t> SharedMapRecords::InKeyOrder() const {
  struct Keyed {
    uint64_t begin;
    uint64_t end;
    uint32_t number;
  };
  std::vector<Keyed> keyed(count());
  for (uint32_t number = 0; number < keyed.size(); ++number) {
    const RecordKey key = RecordKey::Of(number);
    keyed[number] = {__builtin_bswap64(LoadWord(key.bytes())),
                     __builtin_bswap64(LoadWord(key.bytes() + 8)), number};
  }
  std::sort(keyed.begin(), keyed.end(), [](const Keyed& a, const Keyed& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  std::vector<uint32_t> numbers(keyed.size());
  std::ranges::transform(keyed, numbers.begin(), &Keyed::number);
  return numbers;
}

}  // namespace basalt::bench

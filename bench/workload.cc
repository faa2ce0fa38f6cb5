#include "bench/workload.h"

#include <numeric>
#include <utility>

#include "base/random.h"

namespace basalt::bench {
namespace {

constexpr size_t kTextBytes = (size_t{1} << 20) / kValueBytes * kValueBytes;

}  // namespace

Key::Key(uint64_t number) noexcept {
  for (size_t i = kKeyBytes; i-- > 0; number /= 10)
    digits_[i] = static_cast<char>('0' + number % 10);
}

Values::Values(uint64_t seed) {
  constexpr size_t kRandomBytes = kValueBytes / 2;
  base::Random random(seed);
  text_.reserve(kTextBytes);
  while (text_.size() < kTextBytes) {
    char piece[kRandomBytes];
    for (char& byte : piece) byte = static_cast<char>(' ' + random.Below(95));
    text_.append(piece, kRandomBytes).append(piece, kRandomBytes);
  }
}

std::string_view Values::At(uint64_t index) const noexcept {
  return {text_.data() + index % (kTextBytes / kValueBytes) * kValueBytes, kValueBytes};
}

std::vector<uint32_t> Permutation(uint32_t count, uint64_t seed) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  base::Random random(seed);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
  return order;
}

}  // namespace basalt::bench

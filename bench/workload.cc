#include "bench/workload.h"

#include <numeric>
#include <utility>

#include "base/random.h"

namespace basalt::bench {

Key::Key(uint64_t number) noexcept {
  for (size_t i = kKeyBytes; i-- > 0; number /= 10)
    digits_[i] = static_cast<char>('0' + number % 10);
}

Values::Values(uint64_t seed) {
  constexpr size_t kTextBytes = 1 << 20;
  constexpr size_t kRandomBytes = kValueBytes / 2;
  base::Random random(seed);
  text_.reserve(kTextBytes + kValueBytes);
  while (text_.size() < kTextBytes) {
    char piece[kRandomBytes];
    for (char& byte : piece) byte = static_cast<char>(' ' + random.Below(95));
    text_.append(piece, kRandomBytes).append(piece, kRandomBytes);
  }
}

std::string_view Values::Next() noexcept {
  if (position_ + kValueBytes > text_.size()) position_ = 0;
  const std::string_view value(text_.data() + position_, kValueBytes);
  position_ += kValueBytes;
  return value;
}

std::vector<uint32_t> Permutation(uint32_t count, uint64_t seed) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  base::Random random(seed);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
  return order;
}

}  // namespace basalt::bench

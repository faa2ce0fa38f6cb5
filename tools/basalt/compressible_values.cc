#include "tools/basalt/compressible_values.h"

#include <algorithm>

#include "base/random.h"

namespace basalt::tools {

CompressibleValues::CompressibleValues(uint64_t seed, size_t value_bytes) {
  constexpr size_t kTextBytes = 1 << 20;
  constexpr size_t kRandomBytes = 50;
  base::Random random(seed);
  const size_t text_bytes = std::max(kTextBytes, value_bytes);
  text_.reserve(text_bytes + 2 * kRandomBytes);
  while (text_.size() < text_bytes) {
    std::string piece;
    for (size_t i = 0; i < kRandomBytes; ++i) {
      piece += static_cast<char>(' ' + random.Below('~' - ' ' + 1));
    }
    text_.append(piece).append(piece);
  }
}

std::string_view CompressibleValues::Next(size_t value_bytes) noexcept {
  if (position_ + value_bytes > text_.size()) position_ = 0;
  const std::string_view value(text_.data() + position_, value_bytes);
  position_ += value_bytes;
  return value;
}

}  // namespace basalt::tools

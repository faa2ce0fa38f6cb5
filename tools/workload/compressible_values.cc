#include "tools/workload/compressible_values.h"

#include <algorithm>

#include "base/random.h"

namespace basalt::workload {

CompressibleValues::CompressibleValues(uint64_t seed, size_t value_bytes)
    : value_bytes_(value_bytes) {
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
  slices_ = text_.size() / std::max<size_t>(value_bytes, 1);
}

}  // namespace basalt::workload

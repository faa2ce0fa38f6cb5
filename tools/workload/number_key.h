#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace basalt::workload {

/// A number as a key: 16 decimal digits with leading zeros, as db_bench writes it. Bytewise order
/// is numeric order.
class NumberKey {
 public:
  static constexpr size_t kBytes = 16;

  explicit NumberKey(uint64_t number) noexcept {
    for (size_t i = kBytes; i-- > 0; number /= 10) {
      digits_[i] = static_cast<char>('0' + number % 10);
    }
  }
  std::string_view view() const noexcept { return {digits_.data(), kBytes}; }

 private:
  std::array<char, kBytes> digits_;
};

}  // namespace basalt::workload

#include "text/character.h"

namespace basalt::text {

Character ReadLongCharacter(std::string_view text, size_t at) noexcept {
  constexpr Character kMalformed = {kReplacementCharacter, 1};
  const auto first = static_cast<uint8_t>(text[at]);
  const uint32_t bytes = first < 0xC2   ? 1
                         : first < 0xE0 ? 2
                         : first < 0xF0 ? 3
                         : first < 0xF5 ? 4
                                        : 1;
  if (bytes == 1 || text.size() - at < bytes) return kMalformed;
  uint32_t code_point = first & (0x7FU >> bytes);
  for (uint32_t i = 1; i < bytes; ++i) {
    const auto byte = static_cast<uint8_t>(text[at + i]);
    if ((byte & 0xC0) != 0x80) return kMalformed;
    code_point = code_point << 6 | (byte & 0x3FU);
  }
  // Overlong forms, surrogates, and what lies behind the last code point.
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code_point >= 0xD800 && code_point < 0xE000;
  if (code_point < kLeast[bytes] || is_surrogate || code_point > 0x10FFFF) return kMalformed;
  return {code_point, bytes};
}

std::string_view CutToBytes(std::string_view text, size_t bytes_max) noexcept {
  if (text.size() <= bytes_max) return text;
  // Only a character that begins up to three bytes before the cut can reach over it, and all of its
  // bytes but the first are 0x80 to 0xBF.
  for (size_t back = 1; back <= 3 && back <= bytes_max; ++back) {
    const size_t at = bytes_max - back;
    if ((static_cast<uint8_t>(text[at]) & 0xC0) == 0x80) continue;
    return text.substr(0, ReadCharacter(text, at).bytes > back ? at : bytes_max);
  }
  return text.substr(0, bytes_max);
}

}  // namespace basalt::text

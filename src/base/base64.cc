#include "base/base64.h"

#include <array>
#include <cstdint>

namespace basalt::base {
namespace {

constexpr std::string_view kBase64Alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr uint8_t kForeignDigit = 0xFF;

constexpr std::array<uint8_t, 256> MakeDigits() {
  std::array<uint8_t, 256> digits{};
  digits.fill(kForeignDigit);
  for (size_t i = 0; i < kBase64Alphabet.size(); ++i) {
    digits[static_cast<uint8_t>(kBase64Alphabet[i])] = static_cast<uint8_t>(i);
  }
  return digits;
}
constexpr std::array<uint8_t, 256> kBase64Digits = MakeDigits();

Status MalformedBase64(std::string_view what, size_t position) {
  return {StatusCode::kInvalidArgument,
          "not base64: " + std::string(what) + " at character " + std::to_string(position + 1)};
}

}  // namespace

void AppendBase64(std::string_view bytes, std::string& out) {
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t present = bytes.size() - i < 3 ? bytes.size() - i : 3;
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j) {
      group = group << 8 | (j < present ? static_cast<uint8_t>(bytes[i + j]) : 0U);
    }
    for (size_t j = 0; j < 4; ++j) {
      out += j <= present ? kBase64Alphabet[group >> (18 - 6 * j) & 63] : '=';
    }
  }
}

Result<std::string> DecodeBase64(std::string_view text) {
  if (text.size() % 4 != 0) {
    return MalformedBase64("the length is not a multiple of four; padding with = is missing",
                           text.size());
  }
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    size_t digits = 4;
    if (i + 4 == text.size() && text[i + 3] == '=') digits = text[i + 2] == '=' ? 2 : 3;
    uint32_t group = 0;
    for (size_t j = 0; j < digits; ++j) {
      const uint8_t digit = kBase64Digits[static_cast<uint8_t>(text[i + j])];
      if (digit == kForeignDigit) return MalformedBase64("a foreign character", i + j);
      group |= static_cast<uint32_t>(digit) << (18 - 6 * j);
    }
    const size_t present = digits - 1;
    if ((group & (0xFFFFFFU >> (8 * present))) != 0) {
      return MalformedBase64("bits beyond the last byte", i + digits - 1);
    }
    for (size_t j = 0; j < present; ++j) bytes += static_cast<char>(group >> (16 - 8 * j) & 0xFF);
  }
  return bytes;
}

}  // namespace basalt::base

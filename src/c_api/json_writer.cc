#include "c_api/json_writer.h"

#include <array>
#include <charconv>
#include <cstddef>

namespace basalt::c_api {

size_t CharacterSize(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // What has a shorter form, surrogates, and what lies above U+10FFFF.
  if (first == 0xE0 && byte(1) < 0xA0) return 0;
  if (first == 0xED && byte(1) > 0x9F) return 0;
  if (first == 0xF0 && byte(1) < 0x90) return 0;
  if (first == 0xF4 && byte(1) > 0x8F) return 0;
  return size;
}

void AppendString(std::string_view text, std::string* json) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  *json += '"';
  while (!text.empty()) {
    const size_t size = CharacterSize(text);
    const auto byte = static_cast<unsigned char>(text[0]);
    if (size == 0) {
      *json += "\xEF\xBF\xBD";
    } else if (byte == '"' || byte == '\\') {
      *json += '\\';
      *json += text[0];
    } else if (byte < 0x20) {
      *json += "\\u00";
      *json += kDigits[byte >> 4];
      *json += kDigits[byte & 15];
    } else {
      *json += text.substr(0, size);
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  *json += '"';
}

void AppendNumber(double number, std::string* json) {
  std::array<char, 40> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  const std::string_view text(digits.data(), static_cast<size_t>(end - digits.data()));
  *json += text;
  if (text.find_first_of(".e") == std::string_view::npos) *json += ".0";
}

}  // namespace basalt::c_api

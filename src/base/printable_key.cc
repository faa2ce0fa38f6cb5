#include "base/printable_key.h"

#include <cstdio>

namespace basalt::base {

std::string PrintableKey(std::string_view key) {
  constexpr size_t kShown = 64;
  std::string text = "'";
  for (const char c : key.substr(0, kShown)) {
    if (c >= ' ' && c <= '~' && c != '\'' && c != '\\') {
      text += c;
    } else {
      char escaped[5];
      std::snprintf(escaped, sizeof escaped, "\\x%02X", static_cast<unsigned char>(c));
      text += escaped;
    }
  }
  text += '\'';
  if (key.size() > kShown) text += "... (" + std::to_string(key.size()) + " bytes)";
  return text;
}

}  // namespace basalt::base

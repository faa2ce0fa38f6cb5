#pragma once

#include <optional>
#include <string>
#include <string_view>

// Keys that bound a set of keys, in bytewise order.

namespace basalt::base {

/// The first key that does not begin with `prefix` and comes behind those that do; nothing: there
/// is none, because the prefix consists of bytes 255 alone.
inline std::optional<std::string> PrefixEnd(std::string_view prefix) {
  while (!prefix.empty() && prefix.back() == '\xFF') prefix.remove_suffix(1);
  if (prefix.empty()) return std::nullopt;
  std::string end(prefix);
  end.back() = static_cast<char>(end.back() + 1);
  return end;
}

/// The key that comes directly behind `key`.
inline std::string KeyBehind(std::string_view key) {
  std::string behind(key);
  behind.push_back('\0');
  return behind;
}

}  // namespace basalt::base

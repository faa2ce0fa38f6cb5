#include "shared_map/file_names.h"

#include <array>
#include <charconv>
#include <cstdio>

namespace basalt::shared_map {
namespace {

constexpr std::array<std::string_view, 5> kPrefixes = {"gen-", "base-", "log-", "index-", "spool-"};

}  // namespace

std::string NameOf(FileKind kind, uint64_t number) {
  std::array<char, 40> text{};
  const std::string_view prefix = kPrefixes[static_cast<size_t>(kind)];
  std::snprintf(text.data(), text.size(), "%s%06llu", prefix.data(),
                static_cast<unsigned long long>(number));
  return text.data();
}

std::optional<FileName> ParseFileName(std::string_view name) {
  for (size_t kind = 0; kind < kPrefixes.size(); ++kind) {
    if (!name.starts_with(kPrefixes[kind])) continue;
    const std::string_view digits = name.substr(kPrefixes[kind].size());
    uint64_t number = 0;
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (parsed.ec != std::errc() || NameOf(static_cast<FileKind>(kind), number) != name) return {};
    return FileName{static_cast<FileKind>(kind), number};
  }
  return {};
}

bool IsMapFileName(std::string_view name) {
  if (name == kControlName || name == kLockName || name == kReserveName || ParseFileName(name)) {
    return true;
  }
  return name.ends_with(".tmp") && IsMapFileName(name.substr(0, name.size() - 4));
}

}  // namespace basalt::shared_map

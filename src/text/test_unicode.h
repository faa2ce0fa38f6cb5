#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/character.h"

// The files of the Unicode character database, for tests: Debian's package unicode-data, or the
// folder that the environment's UNICODE_DATA names.

namespace basalt::text {

/// The lines of a file, without comments and blank ones. Nothing: it is absent, or its first line
/// does not name the version that the tables were written from.
inline std::optional<std::vector<std::string>> UnicodeFileLines(const std::string& name) {
  const char* const folder = std::getenv("UNICODE_DATA");
  std::ifstream in(std::string(folder != nullptr ? folder : "/usr/share/unicode") + "/" + name);
  std::string line;
  if (!std::getline(in, line)) return std::nullopt;
  if (line.find(std::string("-") + internal::kUnicodeVersion + ".txt") == line.npos) {
    return std::nullopt;
  }
  std::vector<std::string> lines;
  while (std::getline(in, line)) {
    line.resize(std::min(line.find('#'), line.size()));
    line.resize(line.find_last_not_of(" \t\r") + 1);
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

/// Leaves the test as skipped where the file is absent.
#define BASALT_UNICODE_LINES(lines, name)                                               \
  const auto lines = ::basalt::text::UnicodeFileLines(name);                            \
  if (!lines) {                                                                         \
    GTEST_SKIP() << name << " of Unicode " << internal::kUnicodeVersion                 \
                 << " is not here: install Debian's unicode-data, or set UNICODE_DATA"; \
  }

/// The code points that a line begins with: one, or a range.
inline std::pair<uint32_t, uint32_t> FirstAndLast(const std::string& line) {
  const size_t dots = line.find("..");
  const uint64_t first = std::stoul(line, nullptr, 16);
  const bool is_range = dots < line.find(';');
  const uint64_t last = is_range ? std::stoul(line.substr(dots + 2), nullptr, 16) : first;
  return {static_cast<uint32_t>(first), static_cast<uint32_t>(last)};
}

inline void AppendUtf8(uint32_t code_point, std::string* out) {
  const auto byte = [&](uint32_t bits) { out->push_back(static_cast<char>(bits)); };
  if (code_point < 0x80) {
    byte(code_point);
    return;
  }
  if (code_point < 0x800) {
    byte(0xC0 | code_point >> 6);
  } else if (code_point < 0x10000) {
    byte(0xE0 | code_point >> 12);
    byte(0x80 | (code_point >> 6 & 0x3F));
  } else {
    byte(0xF0 | code_point >> 18);
    byte(0x80 | (code_point >> 12 & 0x3F));
    byte(0x80 | (code_point >> 6 & 0x3F));
  }
  byte(0x80 | (code_point & 0x3F));
}

/// Code points in hexadecimal, separated by spaces, as UTF-8.
inline std::string Utf8Of(std::string_view hexadecimal) {
  std::string text;
  for (size_t at = 0; at < hexadecimal.size();) {
    const size_t end = std::min(hexadecimal.find(' ', at), hexadecimal.size());
    if (end > at) {
      AppendUtf8(static_cast<uint32_t>(
                     std::stoul(std::string(hexadecimal.substr(at, end - at)), nullptr, 16)),
                 &text);
    }
    at = end + 1;
  }
  return text;
}

}  // namespace basalt::text

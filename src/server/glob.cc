#include "server/glob.h"

#include <cstddef>
#include <utility>

namespace basalt::server {
namespace {

/// Matches one character against the element of the pattern at `*at`, which is no star, and passes
/// the element.
bool MatchOne(std::string_view pattern, size_t* at, char c) {
  const char element = pattern[(*at)++];
  if (element == '?') return true;
  if (element == '\\' && *at < pattern.size()) return pattern[(*at)++] == c;
  if (element != '[') return element == c;
  const bool negated = *at < pattern.size() && pattern[*at] == '^';
  if (negated) ++*at;
  bool found = false;
  while (*at < pattern.size() && pattern[*at] != ']') {
    char low = pattern[(*at)++];
    if (low == '\\' && *at < pattern.size()) {
      found |= pattern[(*at)++] == c;
      continue;
    }
    char high = low;
    if (*at + 1 < pattern.size() && pattern[*at] == '-') {
      high = pattern[*at + 1];
      *at += 2;
    }
    if (low > high) std::swap(low, high);
    found |= c >= low && c <= high;
  }
  if (*at < pattern.size()) ++*at;
  return found != negated;
}

}  // namespace

bool GlobMatches(std::string_view pattern, std::string_view text) {
  size_t at = 0;
  size_t seen = 0;
  size_t star = std::string_view::npos;  // Behind the last star, and the text that it has taken.
  size_t star_seen = 0;
  while (seen < text.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = ++at;
      star_seen = seen;
      continue;
    }
    size_t next = at;
    if (at < pattern.size() && MatchOne(pattern, &next, text[seen])) {
      at = next;
      ++seen;
    } else if (star != std::string_view::npos) {
      at = star;
      seen = ++star_seen;
    } else {
      return false;
    }
  }
  while (at < pattern.size() && pattern[at] == '*') ++at;
  return at == pattern.size();
}

std::string GlobPrefix(std::string_view pattern) {
  std::string prefix;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '*' || c == '?' || c == '[') break;
    if (c == '\\' && i + 1 < pattern.size()) ++i;
    prefix += pattern[i];
  }
  return prefix;
}

}  // namespace basalt::server

#include <algorithm>
#include <cctype>
#include <cstring>
#include <lua.hpp>
#include <string_view>

#include "server/script_interpreter.h"
#include "server/script_libraries.h"

// The patterns of Lua 5.1 (its manual, 5.4.1). Lua's own functions recurse once for each item of a
// pattern and may look at the subject exponentially often; these spend a step for each item that is
// tried, and refuse patterns that nest too deep for the stack.

namespace basalt::server {
namespace {

constexpr size_t kPatternDepthMax = 2000;
constexpr int kCapturesMax = LUA_MAXCAPTURES;
constexpr ptrdiff_t kOpen = -1;      // The length of a capture that is not closed.
constexpr ptrdiff_t kPosition = -2;  // Of one that is a position.

/// One match of one pattern. Places are pointers into subject and pattern; null: no match.
class Matcher {
 public:
  Matcher(lua_State* lua, std::string_view subject, std::string_view pattern)
      : lua_(lua), subject_(subject), pattern_end_(pattern.data() + pattern.size()) {}

  const char* Match(const char* at, const char* pattern);
  void Reset() { level_ = 0; }
  int level() const { return level_; }
  /// Pushes a capture; the whole match where the pattern has none.
  void PushCapture(int index, const char* begin, const char* end);
  int PushCaptures(const char* begin, const char* end);

 private:
  struct Capture {
    const char* begin;
    ptrdiff_t length;
  };

  const char* End() const { return subject_.data() + subject_.size(); }
  const char* ItemEnd(const char* pattern);
  bool MatchesSet(int c, const char* pattern, const char* set_end) const;
  bool MatchesOne(const char* at, const char* pattern, const char* item_end) const;
  const char* MatchItem(const char* at, const char* pattern);
  const char* MatchBalance(const char* at, const char* pattern);
  const char* MatchMost(const char* at, const char* pattern, const char* item_end);
  const char* MatchLeast(const char* at, const char* pattern, const char* item_end);
  const char* StartCapture(const char* at, const char* pattern, ptrdiff_t length);
  const char* EndCapture(const char* at, const char* pattern);
  const char* MatchBackReference(const char* at, int digit);

  lua_State* lua_;
  std::string_view subject_;
  const char* pattern_end_;
  size_t depth_ = 0;
  int level_ = 0;
  Capture captures_[kCapturesMax];
};

int Byte(const char* at) { return static_cast<unsigned char>(*at); }

bool MatchesClass(int c, int kind) {
  bool is = false;
  switch (std::tolower(kind)) {
    case 'a':
      is = std::isalpha(c) != 0;
      break;
    case 'c':
      is = std::iscntrl(c) != 0;
      break;
    case 'd':
      is = std::isdigit(c) != 0;
      break;
    case 'l':
      is = std::islower(c) != 0;
      break;
    case 'p':
      is = std::ispunct(c) != 0;
      break;
    case 's':
      is = std::isspace(c) != 0;
      break;
    case 'u':
      is = std::isupper(c) != 0;
      break;
    case 'w':
      is = std::isalnum(c) != 0;
      break;
    case 'x':
      is = std::isxdigit(c) != 0;
      break;
    case 'z':
      is = c == 0;
      break;
    default:
      return kind == c;
  }
  return std::isupper(kind) != 0 ? !is : is;
}

const char* Matcher::ItemEnd(const char* pattern) {
  const char first = *pattern++;
  if (first == '%') {
    if (pattern == pattern_end_) luaL_error(lua_, "malformed pattern (ends with '%%')");
    return pattern + 1;
  }
  if (first != '[') return pattern;
  if (pattern < pattern_end_ && *pattern == '^') ++pattern;
  do {  // A ']' that comes first is part of the set.
    if (pattern >= pattern_end_) luaL_error(lua_, "malformed pattern (missing ']')");
    if (*pattern++ == '%' && pattern < pattern_end_) ++pattern;
  } while (pattern >= pattern_end_ || *pattern != ']');
  return pattern + 1;
}

/// `set_end`: its closing bracket.
bool Matcher::MatchesSet(int c, const char* pattern, const char* set_end) const {
  bool found = true;
  if (pattern[1] == '^') {
    found = false;
    ++pattern;
  }
  while (++pattern < set_end) {
    if (*pattern == '%') {
      ++pattern;
      if (MatchesClass(c, Byte(pattern))) return found;
    } else if (pattern[1] == '-' && pattern + 2 < set_end) {
      pattern += 2;
      if (Byte(pattern - 2) <= c && c <= Byte(pattern)) return found;
    } else if (Byte(pattern) == c) {
      return found;
    }
  }
  return !found;
}

bool Matcher::MatchesOne(const char* at, const char* pattern, const char* item_end) const {
  if (at >= End()) return false;
  switch (*pattern) {
    case '.':
      return true;
    case '%':
      return MatchesClass(Byte(at), Byte(pattern + 1));
    case '[':
      return MatchesSet(Byte(at), pattern, item_end - 1);
    default:
      return Byte(pattern) == Byte(at);
  }
}

const char* Matcher::MatchBalance(const char* at, const char* pattern) {
  if (pattern + 1 >= pattern_end_) luaL_error(lua_, "unbalanced pattern");
  if (at >= End() || *at != *pattern) return nullptr;
  const char open = pattern[0];
  const char close = pattern[1];
  int depth = 1;
  for (const char* next = at + 1; next < End(); ++next) {
    if (*next == close) {
      if (--depth == 0) {
        ScriptInterpreter::Of(lua_).Spend(lua_, static_cast<uint64_t>(next - at));
        return next + 1;
      }
    } else if (*next == open) {
      ++depth;
    }
  }
  ScriptInterpreter::Of(lua_).Spend(lua_, static_cast<uint64_t>(End() - at));
  return nullptr;
}

const char* Matcher::MatchMost(const char* at, const char* pattern, const char* item_end) {
  ptrdiff_t count = 0;
  while (MatchesOne(at + count, pattern, item_end)) ++count;
  ScriptInterpreter::Of(lua_).Spend(lua_, static_cast<uint64_t>(count));
  for (; count >= 0; --count) {
    if (const char* end = Match(at + count, item_end + 1)) return end;
  }
  return nullptr;
}

const char* Matcher::MatchLeast(const char* at, const char* pattern, const char* item_end) {
  while (true) {
    if (const char* end = Match(at, item_end + 1)) return end;
    if (!MatchesOne(at, pattern, item_end)) return nullptr;
    ++at;
  }
}

const char* Matcher::StartCapture(const char* at, const char* pattern, ptrdiff_t length) {
  if (level_ >= kCapturesMax) luaL_error(lua_, "too many captures");
  captures_[level_++] = {at, length};
  const char* end = Match(at, pattern);
  if (end == nullptr) --level_;
  return end;
}

const char* Matcher::EndCapture(const char* at, const char* pattern) {
  int open = level_ - 1;
  while (open >= 0 && captures_[open].length != kOpen) --open;
  if (open < 0) luaL_error(lua_, "invalid pattern capture");
  captures_[open].length = at - captures_[open].begin;
  const char* end = Match(at, pattern);
  if (end == nullptr) captures_[open].length = kOpen;
  return end;
}

const char* Matcher::MatchBackReference(const char* at, int digit) {
  const int index = digit - '1';
  if (index < 0 || index >= level_ || captures_[index].length == kOpen) {
    luaL_error(lua_, "invalid capture index");
  }
  const Capture& capture = captures_[index];
  if (capture.length < 0) return nullptr;
  const auto length = static_cast<size_t>(capture.length);
  ScriptInterpreter::Of(lua_).Spend(lua_, length / 8);
  const bool equal =
      static_cast<size_t>(End() - at) >= length && std::memcmp(capture.begin, at, length) == 0;
  return equal ? at + length : nullptr;
}

/// An item that is one character, with what follows it.
const char* Matcher::MatchItem(const char* at, const char* pattern) {
  const char* item_end = ItemEnd(pattern);
  const char repeat = item_end < pattern_end_ ? *item_end : '\0';
  switch (repeat) {
    case '?':
      if (MatchesOne(at, pattern, item_end)) {
        if (const char* end = Match(at + 1, item_end + 1)) return end;
      }
      return Match(at, item_end + 1);
    case '*':
      return MatchMost(at, pattern, item_end);
    case '+':
      return MatchesOne(at, pattern, item_end) ? MatchMost(at + 1, pattern, item_end) : nullptr;
    case '-':
      return MatchLeast(at, pattern, item_end);
    default:
      return MatchesOne(at, pattern, item_end) ? Match(at + 1, item_end) : nullptr;
  }
}

const char* Matcher::Match(const char* at, const char* pattern) {
  // Plain characters do not recurse.
  const auto is_plain = [&] {
    return pattern < pattern_end_ && std::strchr("()%[.?*+-$^", *pattern) == nullptr &&
           (pattern + 1 == pattern_end_ || std::strchr("?*+-", pattern[1]) == nullptr ||
            pattern[1] == '\0');
  };
  const char* const begin = at;
  bool is_equal = true;
  for (; is_equal && is_plain(); ++at, ++pattern) is_equal = at < End() && *at == *pattern;
  ScriptInterpreter::Of(lua_).Spend(lua_, static_cast<uint64_t>(at - begin) / 8 + 1);
  if (!is_equal) return nullptr;
  if (pattern == pattern_end_) return at;
  if (++depth_ > kPatternDepthMax) luaL_error(lua_, "pattern too complex");
  const char* end = nullptr;
  const char next = pattern + 1 < pattern_end_ ? pattern[1] : '\0';
  if (*pattern == '(') {
    end = next == ')' ? StartCapture(at, pattern + 2, kPosition)
                      : StartCapture(at, pattern + 1, kOpen);
  } else if (*pattern == ')') {
    end = EndCapture(at, pattern + 1);
  } else if (*pattern == '$' && pattern + 1 == pattern_end_) {
    end = at == End() ? at : nullptr;
  } else if (*pattern == '%' && next == 'b') {
    const char* rest = MatchBalance(at, pattern + 2);
    end = rest == nullptr ? nullptr : Match(rest, pattern + 4);
  } else if (*pattern == '%' && next == 'f') {
    pattern += 2;
    if (pattern >= pattern_end_ || *pattern != '[') {
      luaL_error(lua_, "missing '[' after '%%f' in pattern");
    }
    const char* set_end = ItemEnd(pattern);
    const int before = at == subject_.data() ? 0 : Byte(at - 1);
    const int here = at == End() ? 0 : Byte(at);
    if (!MatchesSet(before, pattern, set_end - 1) && MatchesSet(here, pattern, set_end - 1)) {
      end = Match(at, set_end);
    }
  } else if (*pattern == '%' && std::isdigit(static_cast<unsigned char>(next)) != 0) {
    const char* rest = MatchBackReference(at, next);
    end = rest == nullptr ? nullptr : Match(rest, pattern + 2);
  } else {
    end = MatchItem(at, pattern);
  }
  --depth_;
  return end;
}

void Matcher::PushCapture(int index, const char* begin, const char* end) {
  if (index >= level_) {
    if (index != 0) luaL_error(lua_, "invalid capture index");
    lua_pushlstring(lua_, begin, static_cast<size_t>(end - begin));
    return;
  }
  const Capture& capture = captures_[index];
  if (capture.length == kOpen) luaL_error(lua_, "unfinished capture");
  if (capture.length == kPosition) {
    lua_pushinteger(lua_, capture.begin - subject_.data() + 1);
  } else {
    lua_pushlstring(lua_, capture.begin, static_cast<size_t>(capture.length));
  }
}

int Matcher::PushCaptures(const char* begin, const char* end) {
  const int count = level_ == 0 && begin != nullptr ? 1 : level_;
  luaL_checkstack(lua_, count, "too many captures");
  for (int i = 0; i < count; ++i) PushCapture(i, begin, end);
  return count;
}

/// A place in a string, which may be counted from its end, from 0.
size_t StartOf(lua_Integer place, size_t length) {
  const auto signed_length = static_cast<lua_Integer>(length);
  if (place < 0) place += signed_length + 1;
  return static_cast<size_t>(std::clamp<lua_Integer>(place - 1, 0, signed_length));
}

int FindPlain(lua_State* lua, std::string_view subject, std::string_view text, size_t start) {
  ScriptInterpreter::Of(lua).Spend(lua, subject.size() / 8 + 1);
  const void* found =
      ::memmem(subject.data() + start, subject.size() - start, text.data(), text.size());
  if (found == nullptr) {
    lua_pushnil(lua);
    return 1;
  }
  const ptrdiff_t at = static_cast<const char*>(found) - subject.data();
  lua_pushinteger(lua, at + 1);
  lua_pushinteger(lua, at + static_cast<ptrdiff_t>(text.size()));
  return 2;
}

int FindOrMatch(lua_State* lua, bool is_find) {
  luaL_checkstring(lua, 1);
  luaL_checkstring(lua, 2);
  const std::string_view subject = StringAt(lua, 1);
  std::string_view pattern = StringAt(lua, 2);
  const size_t start = StartOf(luaL_optinteger(lua, 3, 1), subject.size());
  if (is_find && (lua_toboolean(lua, 4) != 0 ||
                  pattern.find_first_of("^$*+?.([%-") == std::string_view::npos)) {
    return FindPlain(lua, subject, pattern, start);
  }
  const bool is_anchored = pattern.starts_with('^');
  if (is_anchored) pattern.remove_prefix(1);
  Matcher matcher(lua, subject, pattern);
  const char* const subject_end = subject.data() + subject.size();
  for (const char* at = subject.data() + start; at <= subject_end; ++at) {
    matcher.Reset();
    if (const char* end = matcher.Match(at, pattern.data())) {
      if (!is_find) return matcher.PushCaptures(at, end);
      lua_pushinteger(lua, at - subject.data() + 1);
      lua_pushinteger(lua, end - subject.data());
      return matcher.PushCaptures(nullptr, nullptr) + 2;
    }
    if (is_anchored) break;
  }
  lua_pushnil(lua);
  return 1;
}

int RunFind(lua_State* lua) { return FindOrMatch(lua, true); }
int RunMatch(lua_State* lua) { return FindOrMatch(lua, false); }

/// The iterator of gmatch; its upvalues are subject, pattern and where it goes on.
int NextMatch(lua_State* lua) {
  const std::string_view subject = StringAt(lua, lua_upvalueindex(1));
  const std::string_view pattern = StringAt(lua, lua_upvalueindex(2));
  const auto start = static_cast<size_t>(lua_tointeger(lua, lua_upvalueindex(3)));
  Matcher matcher(lua, subject, pattern);
  for (size_t at = start; at <= subject.size(); ++at) {
    matcher.Reset();
    const char* begin = subject.data() + at;
    const char* end = matcher.Match(begin, pattern.data());
    if (end == nullptr) continue;
    const ptrdiff_t next = end - subject.data() + (end == begin ? 1 : 0);
    lua_pushinteger(lua, next);
    lua_replace(lua, lua_upvalueindex(3));
    return matcher.PushCaptures(begin, end);
  }
  return 0;
}

int RunGmatch(lua_State* lua) {
  luaL_checkstring(lua, 1);
  luaL_checkstring(lua, 2);
  lua_settop(lua, 2);
  lua_pushinteger(lua, 0);
  lua_pushcclosure(lua, NextMatch, 3);
  return 1;
}

/// Adds a replacement text, whose %0 to %9 are captures.
void AddTemplate(lua_State* lua, Matcher& matcher, luaL_Buffer* buffer, const char* begin,
                 const char* end) {
  const std::string_view text = StringAt(lua, 3);
  ScriptInterpreter::Of(lua).Spend(lua, text.size() / 8);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      luaL_addchar(buffer, text[i]);
      continue;
    }
    const char next = ++i < text.size() ? text[i] : '\0';
    if (std::isdigit(static_cast<unsigned char>(next)) == 0) {
      luaL_addchar(buffer, next);
    } else if (next == '0') {
      luaL_addlstring(buffer, begin, static_cast<size_t>(end - begin));
    } else {
      matcher.PushCapture(next - '1', begin, end);
      luaL_addvalue(buffer);
    }
  }
}

/// Adds what takes the place of a match: by a text, a table or a function.
void AddReplacement(lua_State* lua, Matcher& matcher, luaL_Buffer* buffer, const char* begin,
                    const char* end) {
  const int type = lua_type(lua, 3);
  if (type == LUA_TNUMBER || type == LUA_TSTRING) {
    return AddTemplate(lua, matcher, buffer, begin, end);
  }
  if (type == LUA_TFUNCTION) {
    lua_pushvalue(lua, 3);
    const int count = matcher.PushCaptures(begin, end);
    lua_call(lua, count, 1);
  } else {
    matcher.PushCapture(0, begin, end);
    lua_gettable(lua, 3);
  }
  if (lua_toboolean(lua, -1) == 0) {
    lua_pop(lua, 1);
    lua_pushlstring(lua, begin, static_cast<size_t>(end - begin));
  } else if (lua_isstring(lua, -1) == 0) {
    luaL_error(lua, "invalid replacement value (a %s)", luaL_typename(lua, -1));
  }
  luaL_addvalue(buffer);
}

int RunGsub(lua_State* lua) {
  luaL_checkstring(lua, 1);
  luaL_checkstring(lua, 2);
  const std::string_view subject = StringAt(lua, 1);
  std::string_view pattern = StringAt(lua, 2);
  const int type = lua_type(lua, 3);
  luaL_argcheck(
      lua,
      type == LUA_TNUMBER || type == LUA_TSTRING || type == LUA_TFUNCTION || type == LUA_TTABLE, 3,
      "string/function/table expected");
  const auto most = luaL_optinteger(lua, 4, static_cast<lua_Integer>(subject.size() + 1));
  lua_settop(lua, 4);
  const bool is_anchored = pattern.starts_with('^');
  if (is_anchored) pattern.remove_prefix(1);
  Matcher matcher(lua, subject, pattern);
  luaL_Buffer buffer;
  luaL_buffinit(lua, &buffer);
  const char* at = subject.data();
  const char* const subject_end = at + subject.size();
  lua_Integer count = 0;
  while (count < most) {
    matcher.Reset();
    const char* end = matcher.Match(at, pattern.data());
    if (end != nullptr) {
      ++count;
      AddReplacement(lua, matcher, &buffer, at, end);
    }
    if (end != nullptr && end > at) {
      at = end;
    } else if (at < subject_end) {
      luaL_addchar(&buffer, *at++);
    } else {
      break;
    }
    if (is_anchored) break;
  }
  luaL_addlstring(&buffer, at, static_cast<size_t>(subject_end - at));
  luaL_pushresult(&buffer);
  lua_pushinteger(lua, count);
  return 2;
}

}  // namespace

void OpenPatternFunctions(lua_State* lua) {
  SetFunction(lua, "find", RunFind);
  SetFunction(lua, "match", RunMatch);
  SetFunction(lua, "gmatch", RunGmatch);
  SetFunction(lua, "gsub", RunGsub);
}

}  // namespace basalt::server

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <lua.hpp>
#include <string>

#include "server/numbers.h"
#include "server/script_interpreter.h"
#include "server/script_libraries.h"

namespace basalt::server {
namespace {

constexpr int kReplyDepthMax = 128;

/// Reads one reply after another from bytes in wire form, and pushes its value.
class WireReader {
 public:
  WireReader(lua_State* lua, std::string_view wire) : lua_(lua), rest_(wire) {}
  bool PushValue(int depth);
  size_t left() const { return rest_.size(); }

 private:
  bool TakeLine(std::string_view* line);
  bool TakeBytes(std::string_view count, std::string_view* bytes);
  void PushField(const char* name, std::string_view text);
  bool PushBulk(std::string_view count);
  bool PushVerbatim(std::string_view count);
  bool PushArray(std::string_view count, int depth);
  /// A map, or a set whose members are keys of `true`, in a table with the field `name`.
  bool PushKeyed(const char* name, std::string_view count, int depth);

  lua_State* lua_;
  std::string_view rest_;
};

bool WireReader::TakeLine(std::string_view* line) {
  const size_t end = rest_.find("\r\n");
  if (end == std::string_view::npos) return false;
  *line = rest_.substr(0, end);
  rest_.remove_prefix(end + 2);
  return true;
}

bool WireReader::TakeBytes(std::string_view count, std::string_view* bytes) {
  const std::optional<int64_t> length = ParseInteger(count);
  if (!length || *length < 0 || static_cast<uint64_t>(*length) + 2 > rest_.size()) return false;
  *bytes = rest_.substr(0, static_cast<size_t>(*length));
  rest_.remove_prefix(bytes->size() + 2);
  return true;
}

void WireReader::PushField(const char* name, std::string_view text) {
  lua_createtable(lua_, 0, 1);
  PushString(lua_, text);
  lua_setfield(lua_, -2, name);
}

bool WireReader::PushBulk(std::string_view count) {
  if (count == "-1") {
    lua_pushboolean(lua_, 0);
    return true;
  }
  std::string_view bytes;
  if (!TakeBytes(count, &bytes)) return false;
  PushString(lua_, bytes);
  return true;
}

bool WireReader::PushVerbatim(std::string_view count) {
  std::string_view bytes;
  if (!TakeBytes(count, &bytes) || bytes.size() < 4) return false;
  lua_createtable(lua_, 0, 1);
  PushField("string", bytes.substr(4));
  PushString(lua_, bytes.substr(0, 3));
  lua_setfield(lua_, -2, "format");
  lua_setfield(lua_, -2, "verbatim_string");
  return true;
}

bool WireReader::PushArray(std::string_view count, int depth) {
  if (count == "-1") {
    lua_pushboolean(lua_, 0);
    return true;
  }
  const std::optional<int64_t> elements = ParseInteger(count);
  if (!elements || *elements < 0 || static_cast<uint64_t>(*elements) > rest_.size()) return false;
  lua_createtable(lua_, static_cast<int>(*elements), 0);
  for (int i = 1; i <= *elements; ++i) {
    if (!PushValue(depth + 1)) return false;
    lua_rawseti(lua_, -2, i);
  }
  return true;
}

bool WireReader::PushKeyed(const char* name, std::string_view count, int depth) {
  const std::optional<int64_t> elements = ParseInteger(count);
  if (!elements || *elements < 0 || static_cast<uint64_t>(*elements) > rest_.size()) return false;
  const bool is_map = std::string_view(name) == "map";
  lua_createtable(lua_, 0, 1);
  lua_createtable(lua_, 0, static_cast<int>(*elements));
  for (int64_t i = 0; i < *elements; ++i) {
    if (!PushValue(depth + 1)) return false;
    if (!is_map) {
      lua_pushboolean(lua_, 1);
    } else if (!PushValue(depth + 1)) {
      return false;
    }
    lua_rawset(lua_, -3);
  }
  lua_setfield(lua_, -2, name);
  return true;
}

bool WireReader::PushValue(int depth) {
  std::string_view line;
  if (depth > kReplyDepthMax || !TakeLine(&line) || line.empty()) return false;
  luaL_checkstack(lua_, 8, "the reply nests too deep");
  const char kind = line.front();
  line.remove_prefix(1);
  switch (kind) {
    case ':': {
      const std::optional<int64_t> number = ParseInteger(line);
      if (number) lua_pushnumber(lua_, static_cast<lua_Number>(*number));
      return number.has_value();
    }
    case '$':
      return PushBulk(line);
    case '+':
      PushField("ok", line);
      return true;
    case '-':
      PushError(lua_, line);
      return true;
    case '*':
    case '>':
      return PushArray(line, depth);
    case '%':
      return PushKeyed("map", line, depth);
    case '~':
      return PushKeyed("set", line, depth);
    case ',': {
      const std::optional<double> number = ParseDouble(line);
      lua_createtable(lua_, 0, 1);
      lua_pushnumber(lua_, number.value_or(std::numeric_limits<double>::quiet_NaN()));
      lua_setfield(lua_, -2, "double");
      return true;
    }
    case '(':
      PushField("big_number", line);
      return true;
    case '#':
      lua_pushboolean(lua_, line == "t" ? 1 : 0);
      return true;
    case '=':
      return PushVerbatim(line);
    case '_':
      lua_pushnil(lua_);
      return true;
    default:
      return false;
  }
}

/// Replies with values, as long as the reply is within its limit.
class ValueWriter {
 public:
  ValueWriter(lua_State* lua, int resp_version, Reply& reply)
      : lua_(lua), resp_version_(resp_version), reply_(reply) {}
  /// Replies with the value on top, and pops it.
  void Write(int depth);

 private:
  /// Whether the table on top has this field with this type; then it is pushed.
  bool PushTyped(const char* name, int type);
  bool WriteSpecial(int depth);
  void WriteTable(int depth);
  void WriteArray(int depth);
  void WriteMap(int depth);
  void WriteSet(int depth);
  size_t CountFields() const;

  lua_State* lua_;
  int resp_version_;
  Reply& reply_;
};

bool ValueWriter::PushTyped(const char* name, int type) {
  lua_pushstring(lua_, name);
  lua_rawget(lua_, -2);
  if (lua_type(lua_, -1) == type) return true;
  lua_pop(lua_, 1);
  return false;
}

std::string OneLine(std::string_view text) {
  std::string line(text);
  std::replace_if(line.begin(), line.end(), [](char c) { return c == '\r' || c == '\n'; }, ' ');
  return line;
}

size_t ValueWriter::CountFields() const {
  size_t count = 0;
  for (lua_pushnil(lua_); lua_next(lua_, -2) != 0; lua_pop(lua_, 1)) ++count;
  return count;
}

void ValueWriter::WriteMap(int depth) {
  reply_.Map(CountFields());
  lua_pushnil(lua_);
  while (lua_next(lua_, -2) != 0 && !reply_.is_over_limit()) {
    lua_pushvalue(lua_, -2);
    Write(depth + 1);
    Write(depth + 1);
  }
}

void ValueWriter::WriteSet(int depth) {
  reply_.Set(CountFields());
  lua_pushnil(lua_);
  while (lua_next(lua_, -2) != 0 && !reply_.is_over_limit()) {
    lua_pop(lua_, 1);
    lua_pushvalue(lua_, -1);
    Write(depth + 1);
  }
}

void ValueWriter::WriteArray(int depth) {
  size_t count = 0;
  while (true) {
    lua_rawgeti(lua_, -1, static_cast<int>(count + 1));
    const bool is_end = lua_isnil(lua_, -1);
    lua_pop(lua_, 1);
    if (is_end) break;
    ++count;
  }
  ScriptInterpreter::Of(lua_).Spend(lua_, count);
  reply_.Array(count);
  for (size_t i = 1; i <= count && !reply_.is_over_limit(); ++i) {
    lua_rawgeti(lua_, -1, static_cast<int>(i));
    Write(depth + 1);
  }
}

/// A table that stands for something else than an array.
bool ValueWriter::WriteSpecial(int depth) {
  if (PushTyped("err", LUA_TSTRING)) {
    std::string_view text = StringAt(lua_, -1);
    if (text.starts_with('-')) text.remove_prefix(1);
    reply_.Error(text);
  } else if (PushTyped("ok", LUA_TSTRING)) {
    reply_.Simple(OneLine(StringAt(lua_, -1)));
  } else if (PushTyped("double", LUA_TNUMBER)) {
    reply_.Double(lua_tonumber(lua_, -1));
  } else if (PushTyped("map", LUA_TTABLE)) {
    WriteMap(depth);
  } else if (PushTyped("set", LUA_TTABLE)) {
    WriteSet(depth);
  } else if (PushTyped("big_number", LUA_TSTRING)) {
    const std::string digits = OneLine(StringAt(lua_, -1));
    reply_.version() == 3 ? reply_.Raw("(" + digits + "\r\n") : reply_.Bulk(digits);
  } else if (PushTyped("verbatim_string", LUA_TTABLE)) {
    if (PushTyped("string", LUA_TSTRING)) {
      reply_.Verbatim(StringAt(lua_, -1));
      lua_pop(lua_, 1);
    } else {
      reply_.Null();
    }
  } else {
    return false;
  }
  lua_pop(lua_, 1);
  return true;
}

void ValueWriter::WriteTable(int depth) {
  if (depth > kReplyDepthMax) {
    PushError(lua_, "ERR the value that the script returns nests too deep");
    lua_error(lua_);
  }
  luaL_checkstack(lua_, 8, "the value nests too deep");
  if (!WriteSpecial(depth)) WriteArray(depth);
}

void ValueWriter::Write(int depth) {
  ScriptInterpreter::Of(lua_).Spend(lua_, 1);
  switch (lua_type(lua_, -1)) {
    case LUA_TSTRING:
      reply_.Bulk(StringAt(lua_, -1));
      break;
    case LUA_TNUMBER: {
      const double number = lua_tonumber(lua_, -1);
      constexpr double kLimit = 9.2233720368547758e18;
      const bool fits = number < kLimit && number >= -kLimit;
      reply_.Integer(fits ? static_cast<int64_t>(number) : std::numeric_limits<int64_t>::min());
      break;
    }
    case LUA_TBOOLEAN:
      if (resp_version_ == 3) {
        reply_.Boolean(lua_toboolean(lua_, -1) != 0);
      } else if (lua_toboolean(lua_, -1) != 0) {
        reply_.Integer(1);
      } else {
        reply_.Null();
      }
      break;
    case LUA_TTABLE:
      WriteTable(depth);
      break;
    default:
      reply_.Null();
  }
  lua_pop(lua_, 1);
}

}  // namespace

size_t PushReply(lua_State* lua, std::string_view wire) {
  const int top = lua_gettop(lua);
  WireReader reader(lua, wire);
  if (reader.PushValue(0)) return wire.size() - reader.left();
  lua_settop(lua, top);
  return 0;
}

void ReplyWithValue(lua_State* lua, int resp_version, Reply& reply) {
  ValueWriter(lua, resp_version, reply).Write(0);
}

}  // namespace basalt::server

#include <bit>
#include <cmath>
#include <cstdint>
#include <lua.hpp>
#include <string>

#include "server/script_interpreter.h"
#include "server/script_libraries.h"

// cmsgpack: MessagePack, with the choices of lua-cmsgpack. A number that is whole becomes an
// integer of the smallest size; one that a float holds exactly becomes a float. A table whose keys
// are 1 to its size becomes an array. Tables that nest deeper than kPackDepthMax become nil.

namespace basalt::server {
namespace {

constexpr int kPackDepthMax = 16;
constexpr int kUnpackDepthMax = 128;
/// Of what pack has written and Lua does not count yet.
constexpr size_t kPackBytesMax = size_t{32} << 20;

void AppendMsgpackInteger(std::string* out, uint64_t number, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    out->push_back(static_cast<char>(number >> shift));
  }
}

class Packer {
 public:
  Packer(lua_State* lua, std::string* out) : lua_(lua), out_(out) {}
  /// Appends the value on top, and pops it.
  void Pack(int depth);

 private:
  void Head(int code, uint64_t number, int bytes) {
    out_->push_back(static_cast<char>(code));
    AppendMsgpackInteger(out_, number, bytes);
  }
  void PackInteger(int64_t number);
  void PackNumber(double number);
  void PackString(std::string_view text);
  void PackTable(int depth);
  bool IsArray(size_t* count);

  lua_State* lua_;
  std::string* out_;
};

void Packer::PackInteger(int64_t number) {
  const auto bits = static_cast<uint64_t>(number);
  if (number >= 0) {
    if (number <= 127) return Head(static_cast<int>(number), 0, 0);
    if (number <= 0xFF) return Head(0xCC, bits, 1);
    if (number <= 0xFFFF) return Head(0xCD, bits, 2);
    if (number <= 0xFFFFFFFF) return Head(0xCE, bits, 4);
    return Head(0xCF, bits, 8);
  }
  if (number >= -32) return Head(static_cast<int>(number) & 0xFF, 0, 0);
  if (number >= INT8_MIN) return Head(0xD0, bits, 1);
  if (number >= INT16_MIN) return Head(0xD1, bits, 2);
  if (number >= INT32_MIN) return Head(0xD2, bits, 4);
  Head(0xD3, bits, 8);
}

void Packer::PackNumber(double number) {
  constexpr double kLimit = 9.2233720368547758e18;
  if (std::floor(number) == number && number >= -kLimit && number < kLimit) {
    return PackInteger(static_cast<int64_t>(number));
  }
  const auto narrow = static_cast<float>(number);
  if (static_cast<double>(narrow) == number) {
    return Head(0xCA, std::bit_cast<uint32_t>(narrow), 4);
  }
  Head(0xCB, std::bit_cast<uint64_t>(number), 8);
}

void Packer::PackString(std::string_view text) {
  if (text.size() < 32) {
    Head(static_cast<int>(0xA0 | text.size()), 0, 0);
  } else if (text.size() <= 0xFF) {
    Head(0xD9, text.size(), 1);
  } else if (text.size() <= 0xFFFF) {
    Head(0xDA, text.size(), 2);
  } else {
    Head(0xDB, text.size(), 4);
  }
  out_->append(text);
}

bool Packer::IsArray(size_t* count) {
  *count = 0;
  size_t most = 0;
  bool is_array = true;
  for (lua_pushnil(lua_); lua_next(lua_, -2) != 0; lua_pop(lua_, 1)) {
    ++*count;
    const double key = lua_type(lua_, -2) == LUA_TNUMBER ? lua_tonumber(lua_, -2) : 0;
    constexpr double kKeysMax = 1e9;
    if (key < 1 || key > kKeysMax || std::floor(key) != key) {
      is_array = false;
    } else if (static_cast<size_t>(key) > most) {
      most = static_cast<size_t>(key);
    }
  }
  ScriptInterpreter::Of(lua_).Spend(lua_, *count);
  return is_array && most == *count;
}

void Packer::PackTable(int depth) {
  luaL_checkstack(lua_, 8, "in function table_to_msgpack");
  size_t count = 0;
  if (IsArray(&count)) {
    count < 16 ? Head(static_cast<int>(0x90 | count), 0, 0)
               : Head(count <= 0xFFFF ? 0xDC : 0xDD, count, count <= 0xFFFF ? 2 : 4);
    for (size_t i = 1; i <= count; ++i) {
      lua_rawgeti(lua_, -1, static_cast<int>(i));
      Pack(depth + 1);
    }
    return;
  }
  count < 16 ? Head(static_cast<int>(0x80 | count), 0, 0)
             : Head(count <= 0xFFFF ? 0xDE : 0xDF, count, count <= 0xFFFF ? 2 : 4);
  lua_pushnil(lua_);
  while (lua_next(lua_, -2) != 0) {
    lua_pushvalue(lua_, -2);
    Pack(depth + 1);
    Pack(depth + 1);
  }
}

void Packer::Pack(int depth) {
  if (out_->size() > kPackBytesMax) luaL_error(lua_, "the packed value is too large");
  ScriptInterpreter::Of(lua_).Spend(lua_, 1);
  switch (lua_type(lua_, -1)) {
    case LUA_TSTRING:
      PackString(StringAt(lua_, -1));
      break;
    case LUA_TNUMBER:
      PackNumber(lua_tonumber(lua_, -1));
      break;
    case LUA_TBOOLEAN:
      Head(lua_toboolean(lua_, -1) != 0 ? 0xC3 : 0xC2, 0, 0);
      break;
    case LUA_TTABLE:
      depth < kPackDepthMax ? PackTable(depth) : Head(0xC0, 0, 0);
      break;
    default:
      Head(0xC0, 0, 0);
  }
  lua_pop(lua_, 1);
}

class Unpacker {
 public:
  Unpacker(lua_State* lua, std::string_view bytes, size_t at) : lua_(lua), bytes_(bytes), at_(at) {}
  void PushValue(int depth);
  size_t at() const { return at_; }
  bool has_more() const { return at_ < bytes_.size(); }

 private:
  uint64_t Take(int bytes);
  void PushText(uint64_t length);
  void PushArray(uint64_t count, int depth);
  void PushMap(uint64_t count, int depth);
  void PushByCode(int code, int depth);

  lua_State* lua_;
  std::string_view bytes_;
  size_t at_;
};

uint64_t Unpacker::Take(int bytes) {
  if (bytes_.size() - at_ < static_cast<size_t>(bytes)) {
    luaL_error(lua_, "Missing bytes in input.");
  }
  uint64_t number = 0;
  for (int i = 0; i < bytes; ++i) number = number << 8 | static_cast<unsigned char>(bytes_[at_++]);
  return number;
}

void Unpacker::PushText(uint64_t length) {
  if (bytes_.size() - at_ < length) luaL_error(lua_, "Missing bytes in input.");
  PushString(lua_, bytes_.substr(at_, length));
  at_ += length;
}

void Unpacker::PushArray(uint64_t count, int depth) {
  lua_newtable(lua_);
  for (uint64_t i = 1; i <= count; ++i) {
    PushValue(depth + 1);
    lua_rawseti(lua_, -2, static_cast<int>(i));
  }
}

void Unpacker::PushMap(uint64_t count, int depth) {
  lua_newtable(lua_);
  for (uint64_t i = 0; i < count; ++i) {
    PushValue(depth + 1);
    PushValue(depth + 1);
    const bool is_nan = lua_type(lua_, -2) == LUA_TNUMBER && std::isnan(lua_tonumber(lua_, -2));
    if (lua_isnil(lua_, -2) || is_nan) luaL_error(lua_, "Bad data format in input.");
    lua_rawset(lua_, -3);
  }
}

void Unpacker::PushByCode(int code, int depth) {
  const auto push = [this](double number) { lua_pushnumber(lua_, number); };
  switch (code) {
    case 0xC0:
      return lua_pushnil(lua_);
    case 0xC2:
    case 0xC3:
      return lua_pushboolean(lua_, code & 1);
    case 0xC4:
    case 0xD9:
      return PushText(Take(1));
    case 0xC5:
    case 0xDA:
      return PushText(Take(2));
    case 0xC6:
    case 0xDB:
      return PushText(Take(4));
    case 0xCA:
      return push(static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(Take(4)))));
    case 0xCB:
      return push(std::bit_cast<double>(Take(8)));
    case 0xCC:
    case 0xCD:
    case 0xCE:
    case 0xCF:
      return push(static_cast<double>(Take(1 << (code - 0xCC))));
    case 0xD0:
      return push(static_cast<int8_t>(Take(1)));
    case 0xD1:
      return push(static_cast<int16_t>(Take(2)));
    case 0xD2:
      return push(static_cast<int32_t>(Take(4)));
    case 0xD3:
      return push(static_cast<double>(static_cast<int64_t>(Take(8))));
    case 0xDC:
      return PushArray(Take(2), depth);
    case 0xDD:
      return PushArray(Take(4), depth);
    case 0xDE:
      return PushMap(Take(2), depth);
    case 0xDF:
      return PushMap(Take(4), depth);
    default:
      luaL_error(lua_, "Bad data format in input.");
  }
}

void Unpacker::PushValue(int depth) {
  if (depth > kUnpackDepthMax) luaL_error(lua_, "Bad data format in input.");
  luaL_checkstack(lua_, 8, "too many return values at once");
  ScriptInterpreter::Of(lua_).Spend(lua_, 1);
  const auto code = static_cast<int>(Take(1));
  if (code <= 0x7F) return lua_pushnumber(lua_, code);
  if (code >= 0xE0) return lua_pushnumber(lua_, code - 0x100);
  if (code <= 0x8F) return PushMap(static_cast<uint64_t>(code) & 0xF, depth);
  if (code <= 0x9F) return PushArray(static_cast<uint64_t>(code) & 0xF, depth);
  if (code <= 0xBF) return PushText(static_cast<uint64_t>(code) & 0x1F);
  PushByCode(code, depth);
}

int RunMsgpackPack(lua_State* lua) {
  const int count = lua_gettop(lua);
  if (count == 0) return luaL_argerror(lua, 0, "MessagePack pack needs input.");
  std::string out;
  Packer packer(lua, &out);
  for (int i = 1; i <= count; ++i) {
    luaL_checkstack(lua, 1, "in function MessagePack pack");
    lua_pushvalue(lua, i);
    packer.Pack(0);
  }
  PushString(lua, out);
  return 1;
}

/// Pushes up to `limit` values (0: all) from `offset`; with `tells_place` first where it stopped,
/// or -1 at the end.
int Unpack(lua_State* lua, lua_Integer limit, lua_Integer offset, bool tells_place) {
  luaL_checkstring(lua, 1);
  const std::string_view bytes = StringAt(lua, 1);
  if (limit < 0 || offset < 0) return luaL_error(lua, "Invalid request to unpack.");
  if (static_cast<size_t>(offset) > bytes.size()) {
    return luaL_error(lua, "Start offset greater than input length.");
  }
  lua_settop(lua, 1);
  Unpacker unpacker(lua, bytes, static_cast<size_t>(offset));
  int count = 0;
  while (unpacker.has_more() && (limit == 0 || count < limit)) {
    unpacker.PushValue(0);
    ++count;
  }
  if (!tells_place) return count;
  lua_pushinteger(lua, unpacker.has_more() ? static_cast<lua_Integer>(unpacker.at()) : -1);
  lua_insert(lua, 2);
  return count + 1;
}

int RunMsgpackUnpack(lua_State* lua) { return Unpack(lua, 0, 0, false); }
int RunMsgpackUnpackOne(lua_State* lua) { return Unpack(lua, 1, luaL_optinteger(lua, 2, 0), true); }
int RunMsgpackUnpackLimit(lua_State* lua) {
  return Unpack(lua, luaL_checkinteger(lua, 2), luaL_optinteger(lua, 3, 0), true);
}

}  // namespace

void OpenMsgpackLibrary(lua_State* lua) {
  lua_newtable(lua);
  SetFunction(lua, "pack", RunMsgpackPack);
  SetFunction(lua, "unpack", RunMsgpackUnpack);
  SetFunction(lua, "unpack_one", RunMsgpackUnpackOne);
  SetFunction(lua, "unpack_limit", RunMsgpackUnpackLimit);
}

}  // namespace basalt::server

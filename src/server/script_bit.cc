#include <cmath>
#include <cstdint>
#include <lua.hpp>

#include "server/script_libraries.h"

// The module bit of LuaJIT and Redis: numbers are taken modulo 2^32, results are signed.

namespace basalt::server {
namespace {

uint32_t BitsAt(lua_State* lua, int index) {
  // Adding this number leaves the low 32 bits of the nearest whole number in the mantissa.
  constexpr double kShift = 6755399441055744.0;
  const double number = luaL_checknumber(lua, index) + kShift;
  return static_cast<uint32_t>(__builtin_bit_cast(uint64_t, number));
}

int PushBits(lua_State* lua, uint32_t bits) {
  lua_pushnumber(lua, static_cast<int32_t>(bits));
  return 1;
}

template <class Combine>
int FoldBits(lua_State* lua, Combine combine) {
  uint32_t bits = BitsAt(lua, 1);
  for (int i = lua_gettop(lua); i > 1; --i) bits = combine(bits, BitsAt(lua, i));
  return PushBits(lua, bits);
}

int RunTobit(lua_State* lua) { return PushBits(lua, BitsAt(lua, 1)); }
int RunBnot(lua_State* lua) { return PushBits(lua, ~BitsAt(lua, 1)); }
int RunBand(lua_State* lua) {
  return FoldBits(lua, [](uint32_t a, uint32_t b) { return a & b; });
}
int RunBor(lua_State* lua) {
  return FoldBits(lua, [](uint32_t a, uint32_t b) { return a | b; });
}
int RunBxor(lua_State* lua) {
  return FoldBits(lua, [](uint32_t a, uint32_t b) { return a ^ b; });
}
int RunLshift(lua_State* lua) { return PushBits(lua, BitsAt(lua, 1) << (BitsAt(lua, 2) & 31)); }
int RunRshift(lua_State* lua) { return PushBits(lua, BitsAt(lua, 1) >> (BitsAt(lua, 2) & 31)); }
int RunArshift(lua_State* lua) {
  const auto number = static_cast<int32_t>(BitsAt(lua, 1));
  return PushBits(lua, static_cast<uint32_t>(number >> (BitsAt(lua, 2) & 31)));
}
int Rotate(lua_State* lua, uint32_t left) {
  const uint32_t bits = BitsAt(lua, 1);
  left &= 31;
  return PushBits(lua, bits << left | bits >> ((32 - left) & 31));
}
int RunRol(lua_State* lua) { return Rotate(lua, BitsAt(lua, 2)); }
int RunRor(lua_State* lua) { return Rotate(lua, 32 - (BitsAt(lua, 2) & 31)); }
int RunBswap(lua_State* lua) { return PushBits(lua, __builtin_bswap32(BitsAt(lua, 1))); }

int RunTohex(lua_State* lua) {
  uint32_t bits = BitsAt(lua, 1);
  auto digits = lua_isnone(lua, 2) ? 8 : static_cast<int32_t>(BitsAt(lua, 2));
  const char* letters = "0123456789abcdef";
  if (digits < 0) {
    letters = "0123456789ABCDEF";
    digits = digits == INT32_MIN ? 8 : -digits;
  }
  digits = digits > 8 ? 8 : digits;
  char text[8];
  for (int i = digits - 1; i >= 0; --i, bits >>= 4) text[i] = letters[bits & 15];
  lua_pushlstring(lua, text, static_cast<size_t>(digits));
  return 1;
}

}  // namespace

void OpenBitLibrary(lua_State* lua) {
  lua_newtable(lua);
  SetFunction(lua, "tobit", RunTobit);
  SetFunction(lua, "bnot", RunBnot);
  SetFunction(lua, "band", RunBand);
  SetFunction(lua, "bor", RunBor);
  SetFunction(lua, "bxor", RunBxor);
  SetFunction(lua, "lshift", RunLshift);
  SetFunction(lua, "rshift", RunRshift);
  SetFunction(lua, "arshift", RunArshift);
  SetFunction(lua, "rol", RunRol);
  SetFunction(lua, "ror", RunRor);
  SetFunction(lua, "bswap", RunBswap);
  SetFunction(lua, "tohex", RunTohex);
}

}  // namespace basalt::server

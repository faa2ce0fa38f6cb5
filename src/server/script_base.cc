#include <algorithm>
#include <cstdint>
#include <lua.hpp>

#include "server/script_interpreter.h"
#include "server/script_libraries.h"

// Lua's own functions as scripts have them. Those that can run for long inside one call (table.sort
// of Lua 5.1 is quadratic at worst, string.rep of an empty string counts to its end) are written
// anew so that they spend steps. The function unpack is written anew because it is unsafe in
// Lua 5.1.

namespace basalt::server {
namespace {

constexpr char kProtectedMark = 0;  // Its address is the key in protected metatables.

// --- Functions of the base library.

/// Of an error that a command has raised, pcall gives the text alone, as in Redis.
void UnwrapError(lua_State* lua) {
  if (lua_type(lua, -1) != LUA_TTABLE) return;
  lua_pushliteral(lua, "err");
  lua_rawget(lua, -2);
  if (lua_isstring(lua, -1)) {
    lua_replace(lua, -2);
  } else {
    lua_pop(lua, 1);
  }
}

/// Unwinding the stack takes as long as so many instructions.
constexpr uint64_t kStepsOfError = 100;

int RunPcall(lua_State* lua) {
  luaL_checkany(lua, 1);
  const int failed = lua_pcall(lua, lua_gettop(lua) - 1, LUA_MULTRET, 0);
  if (failed != 0) {
    UnwrapError(lua);
    ScriptInterpreter::Of(lua).Spend(lua, kStepsOfError);
  }
  lua_pushboolean(lua, failed == 0 ? 1 : 0);
  lua_insert(lua, 1);
  return lua_gettop(lua);
}

/// Calls the handler after the stack was unwound: inside Lua's own xpcall a handler runs without
/// the hook that limits it.
int RunXpcall(lua_State* lua) {
  luaL_checkany(lua, 2);
  lua_settop(lua, 2);
  lua_insert(lua, 1);
  if (lua_pcall(lua, 0, LUA_MULTRET, 0) == 0) {
    lua_pushboolean(lua, 1);
    lua_replace(lua, 1);
    return lua_gettop(lua);
  }
  UnwrapError(lua);
  ScriptInterpreter::Of(lua).Spend(lua, kStepsOfError);
  const int failed = lua_pcall(lua, 1, 1, 0);
  if (failed != 0) UnwrapError(lua);
  lua_pushboolean(lua, 0);
  lua_insert(lua, -2);
  return 2;
}

/// Lua 5.1 counts in an int, which overflows for ranges like -2^31 to 1: it then writes behind its
/// stack.
int RunUnpack(lua_State* lua) {
  constexpr uint64_t kValuesMax = 8000;
  luaL_checktype(lua, 1, LUA_TTABLE);
  const int64_t begin = luaL_optinteger(lua, 2, 1);
  const int64_t end = lua_isnoneornil(lua, 3) ? static_cast<int64_t>(lua_objlen(lua, 1))
                                              : luaL_checkinteger(lua, 3);
  if (begin > end) return 0;
  const uint64_t steps = static_cast<uint64_t>(end) - static_cast<uint64_t>(begin);
  if (steps >= kValuesMax || lua_checkstack(lua, static_cast<int>(steps) + 2) == 0) {
    return luaL_error(lua, "too many results to unpack");
  }
  ScriptInterpreter::Of(lua).Spend(lua, steps);
  for (int64_t index = begin;; ++index) {
    lua_pushnumber(lua, static_cast<lua_Number>(index));
    lua_rawget(lua, 1);
    if (index == end) return static_cast<int>(steps) + 1;
  }
}

int RunRawset(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  luaL_checkany(lua, 2);
  luaL_checkany(lua, 3);
  lua_settop(lua, 3);
  if (IsProtected(lua, 1)) return RefuseChange(lua);
  lua_rawset(lua, 1);
  return 1;
}

int RunSetmetatable(lua_State* lua) {
  const int type = lua_type(lua, 2);
  luaL_checktype(lua, 1, LUA_TTABLE);
  luaL_argcheck(lua, type == LUA_TNIL || type == LUA_TTABLE, 2, "nil or table expected");
  if (IsProtected(lua, 1)) return RefuseChange(lua);
  if (luaL_getmetafield(lua, 1, "__metatable") != 0) {
    return luaL_error(lua, "cannot change a protected metatable");
  }
  lua_settop(lua, 2);
  lua_setmetatable(lua, 1);
  return 1;
}

int RunCollectgarbage(lua_State* lua) {
  const std::string_view what = luaL_optstring(lua, 1, "collect");
  if (what != "count") {
    lua_pushinteger(lua, 0);
    return 1;
  }
  lua_pushnumber(lua, lua_gc(lua, LUA_GCCOUNT, 0));
  return 1;
}

// --- table

int CheckedTable(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  if (IsProtected(lua, 1)) RefuseChange(lua);
  return static_cast<int>(lua_objlen(lua, 1));
}

int RunInsert(lua_State* lua) {
  const int end = CheckedTable(lua) + 1;
  const int count = lua_gettop(lua);
  if (count != 2 && count != 3) return luaL_error(lua, "wrong number of arguments to 'insert'");
  int at = end;
  if (count == 3) {
    at = static_cast<int>(luaL_checkinteger(lua, 2));
    if (at < end) {
      const auto moved = static_cast<uint64_t>(int64_t{end} - at);
      ScriptInterpreter::Of(lua).Spend(lua, moved);
    }
    for (int i = end; i > at; --i) {
      lua_rawgeti(lua, 1, i - 1);
      lua_rawseti(lua, 1, i);
    }
  }
  lua_rawseti(lua, 1, at);
  return 0;
}

int RunRemove(lua_State* lua) {
  const int end = CheckedTable(lua);
  const int at = static_cast<int>(luaL_optinteger(lua, 2, end));
  if (at < 1 || at > end) return 0;
  ScriptInterpreter::Of(lua).Spend(lua, static_cast<uint64_t>(end - at));
  lua_rawgeti(lua, 1, at);
  for (int i = at; i < end; ++i) {
    lua_rawgeti(lua, 1, i + 1);
    lua_rawseti(lua, 1, i);
  }
  lua_pushnil(lua);
  lua_rawseti(lua, 1, end);
  return 1;
}

/// Whether the value at stack place `a` belongs before the one at `b`.
bool SortsBefore(lua_State* lua, int a, int b) {
  ScriptInterpreter::Of(lua).Spend(lua, 1);
  if (lua_isnil(lua, 2)) return lua_lessthan(lua, a, b) != 0;
  lua_pushvalue(lua, 2);
  lua_pushvalue(lua, a);
  lua_pushvalue(lua, b);
  lua_call(lua, 2, 1);
  const bool before = lua_toboolean(lua, -1) != 0;
  lua_pop(lua, 1);
  return before;
}

/// Lets the value on top sink into the heap t[1..end] from the free place `at`, and pops it.
void SiftDown(lua_State* lua, int at, int end) {
  const int value = lua_gettop(lua);
  while (at <= end / 2) {
    int child = 2 * at;
    lua_rawgeti(lua, 1, child);
    if (child < end) {
      lua_rawgeti(lua, 1, child + 1);
      if (SortsBefore(lua, value + 1, value + 2)) {
        ++child;
        lua_replace(lua, value + 1);
      }
      lua_settop(lua, value + 1);
    }
    if (!SortsBefore(lua, value, value + 1)) {
      lua_settop(lua, value);
      break;
    }
    lua_rawseti(lua, 1, at);
    at = child;
  }
  lua_rawseti(lua, 1, at);
}

/// Heapsort.
int RunSort(lua_State* lua) {
  const int count = CheckedTable(lua);
  if (!lua_isnoneornil(lua, 2)) luaL_checktype(lua, 2, LUA_TFUNCTION);
  lua_settop(lua, 2);
  for (int at = count / 2; at >= 1; --at) {
    lua_rawgeti(lua, 1, at);
    SiftDown(lua, at, count);
  }
  for (int end = count; end > 1; --end) {
    lua_rawgeti(lua, 1, end);
    lua_rawgeti(lua, 1, 1);
    lua_rawseti(lua, 1, end);
    SiftDown(lua, 1, end - 1);
  }
  return 0;
}

// --- string and math

/// Characters that a function copies for one step. Strings that are there already are found and
/// not allocated, so that the allocator does not count this work.
constexpr uint64_t kCharactersPerStep = 16;

/// Spends steps for the length of the first argument, and calls the function in the upvalue.
int CallCharged(lua_State* lua) {
  luaL_checkstring(lua, 1);
  ScriptInterpreter::Of(lua).Spend(lua, lua_objlen(lua, 1) / kCharactersPerStep);
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_insert(lua, 1);
  lua_call(lua, lua_gettop(lua) - 1, LUA_MULTRET);
  return lua_gettop(lua);
}

/// Makes a function of the table on top spend steps.
void Charge(lua_State* lua, const char* name) {
  lua_getfield(lua, -1, name);
  lua_pushcclosure(lua, CallCharged, 1);
  lua_setfield(lua, -2, name);
}

int RunRep(lua_State* lua) {
  size_t length = 0;
  const char* text = luaL_checklstring(lua, 1, &length);
  const lua_Integer times = luaL_checkinteger(lua, 2);
  luaL_Buffer buffer;
  luaL_buffinit(lua, &buffer);
  for (lua_Integer i = 0; i < times && length > 0; ++i) {
    if (i % static_cast<lua_Integer>(kCharactersPerStep) == 0) {
      ScriptInterpreter::Of(lua).Spend(lua, length);
    }
    luaL_addlstring(&buffer, text, length);
  }
  luaL_pushresult(&buffer);
  return 1;
}

constexpr uint64_t kRandomMask = (uint64_t{1} << 48) - 1;

/// math.random of Redis: the generator of lrand48, which begins anew with each script.
int RunRandom(lua_State* lua) {
  constexpr double kRange = 2147483647;
  uint64_t& state = ScriptInterpreter::Of(lua).random_state;
  state = (state * 0x5DEECE66DULL + 0xB) & kRandomMask;
  const double fraction = static_cast<double>((state >> 17) % 2147483647) / kRange;
  const int count = lua_gettop(lua);
  if (count == 0) {
    lua_pushnumber(lua, fraction);
    return 1;
  }
  if (count > 2) return luaL_error(lua, "wrong number of arguments");
  const auto low = count == 1 ? 1 : static_cast<int64_t>(luaL_checkinteger(lua, 1));
  const auto high = static_cast<int64_t>(luaL_checkinteger(lua, count));
  luaL_argcheck(lua, low <= high, count, "interval is empty");
  const double span = static_cast<double>(high) - static_cast<double>(low) + 1;
  lua_pushnumber(
      lua, static_cast<double>(static_cast<int64_t>(fraction * span)) + static_cast<double>(low));
  return 1;
}

int RunRandomseed(lua_State* lua) {
  const auto seed = static_cast<uint64_t>(luaL_checkint(lua, 1));
  ScriptInterpreter::Of(lua).random_state = ((seed & 0xFFFFFFFF) << 16) + 0x330E;
  return 0;
}

// --- The table of globals.

void RemoveFields(lua_State* lua, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    lua_pushnil(lua);
    lua_setfield(lua, -2, name);
  }
}

/// Moves fields of the table below into the one on top.
void TakeFields(lua_State* lua, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    lua_getfield(lua, -2, name);
    lua_setfield(lua, -2, name);
  }
}

void OpenStandard(lua_State* lua, lua_CFunction open, const char* name) {
  lua_pushcfunction(lua, open);
  lua_pushstring(lua, name);
  lua_call(lua, 1, 0);
}

/// Calls `change` with a standard library on top, protects it, and puts it into the globals.
template <class Change>
void AddLibrary(lua_State* lua, const char* name, Change change) {
  lua_getglobal(lua, name);
  change();
  Protect(lua);
  lua_setfield(lua, -2, name);
}

}  // namespace

int RefuseChange(lua_State* lua) {
  luaL_where(lua, 1);
  lua_pushliteral(lua, "Attempt to modify a readonly table");
  lua_concat(lua, 2);
  return lua_error(lua);
}

void MarkProtected(lua_State* lua) {
  lua_pushboolean(lua, 0);
  lua_setfield(lua, -2, "__metatable");
  lua_pushlightuserdata(lua, const_cast<char*>(&kProtectedMark));
  lua_pushboolean(lua, 1);
  lua_rawset(lua, -3);
}

bool IsProtected(lua_State* lua, int index) {
  if (lua_getmetatable(lua, index) == 0) return false;
  lua_pushlightuserdata(lua, const_cast<char*>(&kProtectedMark));
  lua_rawget(lua, -2);
  const bool is = lua_toboolean(lua, -1) != 0;
  lua_pop(lua, 2);
  return is;
}

void Protect(lua_State* lua) {
  lua_newtable(lua);
  lua_newtable(lua);
  lua_pushvalue(lua, -3);
  lua_setfield(lua, -2, "__index");
  SetFunction(lua, "__newindex", RefuseChange);
  MarkProtected(lua);
  lua_setmetatable(lua, -2);
  lua_remove(lua, -2);
}

void OpenBaseLibrary(lua_State* lua) {
  OpenStandard(lua, luaopen_base, "");
  OpenStandard(lua, luaopen_table, LUA_TABLIBNAME);
  OpenStandard(lua, luaopen_string, LUA_STRLIBNAME);
  OpenStandard(lua, luaopen_math, LUA_MATHLIBNAME);
  lua_pushvalue(lua, LUA_GLOBALSINDEX);
  lua_newtable(lua);
  TakeFields(lua, {"assert", "error", "getmetatable", "ipairs", "next", "pairs", "rawequal",
                   "rawget", "select", "tonumber", "tostring", "type", "_VERSION"});
  lua_remove(lua, -2);
  SetFunction(lua, "pcall", RunPcall);
  SetFunction(lua, "xpcall", RunXpcall);
  SetFunction(lua, "unpack", RunUnpack);
  SetFunction(lua, "rawset", RunRawset);
  SetFunction(lua, "setmetatable", RunSetmetatable);
  SetFunction(lua, "collectgarbage", RunCollectgarbage);
  AddLibrary(lua, "table", [&] {
    SetFunction(lua, "insert", RunInsert);
    SetFunction(lua, "remove", RunRemove);
    SetFunction(lua, "sort", RunSort);
  });
  AddLibrary(lua, "string", [&] {
    RemoveFields(lua, {"dump", "gfind"});
    SetFunction(lua, "rep", RunRep);
    Charge(lua, "upper");
    Charge(lua, "lower");
    Charge(lua, "reverse");
    OpenPatternFunctions(lua);
  });
  AddLibrary(lua, "math", [&] {
    SetFunction(lua, "random", RunRandom);
    SetFunction(lua, "randomseed", RunRandomseed);
  });
  AddLibrary(lua, "coroutine", [] {});
  // The methods of strings come from the table that the proxy hides.
  lua_pushliteral(lua, "");
  lua_getmetatable(lua, -1);
  MarkProtected(lua);
  lua_pop(lua, 2);
}

}  // namespace basalt::server

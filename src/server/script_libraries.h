#pragma once

#include <lua.hpp>
#include <string_view>

#include "server/reply.h"

namespace basalt::server {

// What scripts have besides Lua's own functions. Each Open pushes a table of functions. Debian's
// modules for JSON, bits and so on are not used: they allocate outside the memory limit of scripts,
// and lua-cjson ends the process when there is no memory.

/// The base, string, table, math and coroutine functions that a script may have, as one table of
/// globals.
void OpenBaseLibrary(lua_State* lua);
/// string.find, match, gmatch and gsub, put into the table on top. Their patterns spend steps.
void OpenPatternFunctions(lua_State* lua);
void OpenRedisLibrary(lua_State* lua);
void OpenJsonLibrary(lua_State* lua);
void OpenMsgpackLibrary(lua_State* lua);
void OpenStructLibrary(lua_State* lua);
void OpenBitLibrary(lua_State* lua);

/// Puts a proxy for the table on top in its place: it reads through, and cannot be changed.
void Protect(lua_State* lua);
/// Raises "Attempt to modify a readonly table"; a metamethod.
int RefuseChange(lua_State* lua);
/// Whether the table at `index` must not be changed by scripts.
bool IsProtected(lua_State* lua, int index);
/// Marks the metatable on top: tables that have it must not be changed.
void MarkProtected(lua_State* lua);

/// Pushes the value that a reply in wire form stands for. Gives how many bytes it has; 0: it is
/// malformed.
size_t PushReply(lua_State* lua, std::string_view wire);
/// Replies with the value on top, and pops it. `resp_version`: of the script.
void ReplyWithValue(lua_State* lua, int resp_version, Reply& reply);

/// Pushes {err = text}.
void PushError(lua_State* lua, std::string_view text);

inline std::string_view StringAt(lua_State* lua, int index) {
  size_t length = 0;
  const char* text = lua_tolstring(lua, index, &length);
  return {text, length};
}
inline void PushString(lua_State* lua, std::string_view text) {
  lua_pushlstring(lua, text.data(), text.size());
}
inline void SetFunction(lua_State* lua, const char* name, lua_CFunction function) {
  lua_pushcfunction(lua, function);
  lua_setfield(lua, -2, name);
}

}  // namespace basalt::server

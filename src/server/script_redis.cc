#include <cmath>
#include <cstdio>
#include <lua.hpp>
#include <string>
#include <vector>

#include "server/script_interpreter.h"
#include "server/script_libraries.h"
#include "server/sha1.h"
#include "server/version.h"

namespace basalt::server {
namespace {

constexpr char kNoArgument[] = "ERR Please specify at least one argument for this redis lib call";
constexpr char kBadArgument[] = "ERR Lua redis lib command arguments must be strings or integers";

/// The error on top, raised or returned.
int FinishCall(lua_State* lua, bool raises) { return raises ? lua_error(lua) : 1; }

int FailInScript(lua_State* lua, bool raises, std::string_view text) {
  PushError(lua, text);
  return FinishCall(lua, raises);
}

/// The arguments on the stack. Empty: one is no text and no number.
std::vector<std::string_view> TakeArguments(lua_State* lua) {
  std::vector<std::string_view> args;
  const int count = lua_gettop(lua);
  for (int i = 1; i <= count; ++i) {
    if (lua_type(lua, i) == LUA_TNUMBER) {
      char digits[32];
      const int length = std::snprintf(digits, sizeof digits, "%.17g", lua_tonumber(lua, i));
      lua_pushlstring(lua, digits, static_cast<size_t>(length));
      lua_replace(lua, i);
    }
    if (lua_type(lua, i) != LUA_TSTRING) return {};
    args.push_back(StringAt(lua, i));
  }
  return args;
}

/// redis.call and redis.pcall.
int CallCommand(lua_State* lua, bool raises) {
  ScriptInterpreter& interpreter = ScriptInterpreter::Of(lua);
  if (lua_gettop(lua) == 0) return FailInScript(lua, raises, kNoArgument);
  const std::vector<std::string_view> args = TakeArguments(lua);
  if (args.empty()) return FailInScript(lua, raises, kBadArgument);
  constexpr uint64_t kStepsOfCommand = 100;
  constexpr size_t kReplyBytesMax = size_t{32} << 20;
  interpreter.Spend(lua, kStepsOfCommand);
  std::string wire;
  Reply reply(&wire, kReplyBytesMax);
  reply.set_version(interpreter.resp_version);
  interpreter.host()->RunCommand(args, reply);
  if (reply.is_over_limit()) {
    return FailInScript(lua, raises, "ERR the reply of a command is too large for a script");
  }
  interpreter.Spend(lua, wire.size() / 64);
  if (PushReply(lua, wire) == 0) return FailInScript(lua, raises, "ERR the reply cannot be read");
  const bool failed = wire.starts_with('-');
  return FinishCall(lua, raises && failed);
}

int RunCall(lua_State* lua) { return CallCommand(lua, true); }
int RunPcallOfCommand(lua_State* lua) { return CallCommand(lua, false); }

int SingleField(lua_State* lua, const char* name) {
  if (lua_gettop(lua) != 1 || lua_type(lua, 1) != LUA_TSTRING) {
    return FailInScript(lua, false, "ERR wrong number or type of arguments");
  }
  lua_newtable(lua);
  lua_pushvalue(lua, 1);
  lua_setfield(lua, -2, name);
  return 1;
}

int RunStatusReply(lua_State* lua) { return SingleField(lua, "ok"); }

int RunErrorReply(lua_State* lua) {
  if (lua_gettop(lua) == 1 && lua_type(lua, 1) == LUA_TSTRING) {
    const std::string_view text = StringAt(lua, 1);
    // A text without an error code, as Redis 7 takes it.
    if (text.starts_with('-')) {
      PushString(lua, text.substr(1));
    } else {
      lua_pushliteral(lua, "ERR ");
      lua_pushvalue(lua, 1);
      lua_concat(lua, 2);
    }
    lua_replace(lua, 1);
  }
  return SingleField(lua, "err");
}

int RunSha1hex(lua_State* lua) {
  if (lua_gettop(lua) != 1) return FailInScript(lua, true, "ERR wrong number of arguments");
  const std::string_view text = lua_isstring(lua, 1) != 0 ? StringAt(lua, 1) : "";
  ScriptInterpreter::Of(lua).Spend(lua, text.size());
  PushString(lua, Sha1Hex(text));
  return 1;
}

/// There is no log that a script could write: the arguments are checked.
int RunRedisLog(lua_State* lua) {
  if (lua_gettop(lua) < 2) {
    return FailInScript(lua, true, "ERR redis.log() requires two arguments or more.");
  }
  if (lua_type(lua, 1) != LUA_TNUMBER) {
    return FailInScript(lua, true, "ERR First argument must be a number (log level).");
  }
  const double level = lua_tonumber(lua, 1);
  if (level < 0 || level > 3) return FailInScript(lua, true, "ERR Invalid log level.");
  return 0;
}

int RunSetresp(lua_State* lua) {
  if (lua_gettop(lua) != 1) {
    return FailInScript(lua, true, "ERR redis.setresp() requires one argument.");
  }
  const double version = lua_tonumber(lua, 1);
  if (version != 2 && version != 3)
    return FailInScript(lua, true, "ERR RESP version must be 2 or 3.");
  ScriptInterpreter::Of(lua).resp_version = static_cast<int>(version);
  return 0;
}

int RunAclCheckCmd(lua_State* lua) {
  if (lua_gettop(lua) == 0) return FailInScript(lua, true, kNoArgument);
  const std::vector<std::string_view> args = TakeArguments(lua);
  if (args.empty()) return FailInScript(lua, true, kBadArgument);
  lua_pushboolean(lua, ScriptInterpreter::Of(lua).host()->MayRun(args) ? 1 : 0);
  return 1;
}

/// Effects are all that is ever kept here: the functions about replication change nothing.
int RunReplicateCommands(lua_State* lua) {
  lua_pushboolean(lua, 1);
  return 1;
}
int RunSetRepl(lua_State* /*lua*/) { return 0; }
int RunBreakpoint(lua_State* lua) {
  lua_pushboolean(lua, 0);
  return 1;
}
int RunRedisDebug(lua_State* /*lua*/) { return 0; }

/// The version as 0xMMmmpp.
lua_Number VersionNumber() {
  int major = 0;
  int minor = 0;
  int patch = 0;
  std::sscanf(std::string(kRedisVersion).c_str(), "%d.%d.%d", &major, &minor, &patch);
  return major << 16 | minor << 8 | patch;
}

}  // namespace

void PushError(lua_State* lua, std::string_view text) {
  lua_createtable(lua, 0, 1);
  PushString(lua, text);
  lua_setfield(lua, -2, "err");
}

void OpenRedisLibrary(lua_State* lua) {
  lua_newtable(lua);
  SetFunction(lua, "call", RunCall);
  SetFunction(lua, "pcall", RunPcallOfCommand);
  SetFunction(lua, "error_reply", RunErrorReply);
  SetFunction(lua, "status_reply", RunStatusReply);
  SetFunction(lua, "sha1hex", RunSha1hex);
  SetFunction(lua, "log", RunRedisLog);
  SetFunction(lua, "setresp", RunSetresp);
  SetFunction(lua, "acl_check_cmd", RunAclCheckCmd);
  SetFunction(lua, "replicate_commands", RunReplicateCommands);
  SetFunction(lua, "set_repl", RunSetRepl);
  SetFunction(lua, "breakpoint", RunBreakpoint);
  SetFunction(lua, "debug", RunRedisDebug);
  const auto number = [&](const char* name, lua_Number value) {
    lua_pushnumber(lua, value);
    lua_setfield(lua, -2, name);
  };
  number("LOG_DEBUG", 0);
  number("LOG_VERBOSE", 1);
  number("LOG_NOTICE", 2);
  number("LOG_WARNING", 3);
  number("REPL_NONE", 0);
  number("REPL_AOF", 1);
  number("REPL_SLAVE", 2);
  number("REPL_REPLICA", 2);
  number("REPL_ALL", 3);
  number("REDIS_VERSION_NUM", VersionNumber());
  PushString(lua, kRedisVersion);
  lua_setfield(lua, -2, "REDIS_VERSION");
}

}  // namespace basalt::server

#include "server/script_interpreter.h"

#include <algorithm>
#include <cstdlib>
#include <lua.hpp>
#include <new>

#include "server/script_libraries.h"

namespace basalt::server {
namespace {

/// Instructions between two looks at the limits.
constexpr int kHookInterval = 100;
constexpr uint64_t kClockInterval = 100;
/// Allocated bytes for one step.
constexpr size_t kBytesPerStep = 64;
/// Smaller blocks are given even when no steps are left: the hook ends the script.
constexpr size_t kSmallBytes = 4096;
/// A script may catch the error of a refused allocation, and try again.
constexpr uint64_t kStepsOfRefusal = 1000;
constexpr size_t kChunksMax = 512;
constexpr char kChunks = 0;       // Its address is the key of the compiled chunks in the registry.
constexpr char kBase = 0;         // Of the globals that all scripts share.
constexpr char kMetatable = 0;    // Of the metatable of a run's globals.
constexpr char kEnvironment = 0;  // Of the globals of this run.

void PushRegistered(lua_State* lua, const char* key) {
  lua_pushlightuserdata(lua, const_cast<char*>(key));
  lua_rawget(lua, LUA_REGISTRYINDEX);
}

/// Takes the value on top.
void Register(lua_State* lua, const char* key) {
  lua_pushlightuserdata(lua, const_cast<char*>(key));
  lua_insert(lua, -2);
  lua_rawset(lua, LUA_REGISTRYINDEX);
}

void OnCount(lua_State* lua, lua_Debug* /*at*/) {
  ScriptInterpreter::Of(lua).Spend(lua, kHookInterval);
}

int RefuseGlobal(lua_State* lua) {
  const char* name = lua_type(lua, 2) == LUA_TSTRING ? lua_tostring(lua, 2) : "?";
  return luaL_error(lua, "Script attempted to access nonexistent global variable '%s'", name);
}

/// load and loadstring: text alone, with the globals of the script.
int LoadText(lua_State* lua, std::string_view text, const char* name) {
  if (text.starts_with('\x1b')) {
    lua_pushnil(lua);
    lua_pushliteral(lua, "binary chunks are not loaded");
    return 2;
  }
  // The parser of Lua 5.1 does not keep the name alive itself.
  lua_pushstring(lua, name);
  if (luaL_loadbuffer(lua, text.data(), text.size(), lua_tostring(lua, -1)) != 0) {
    lua_pushnil(lua);
    lua_insert(lua, -2);
    return 2;
  }
  PushRegistered(lua, &kEnvironment);
  lua_setfenv(lua, -2);
  return 1;
}

int RunLoadstring(lua_State* lua) {
  luaL_checkstring(lua, 1);
  const std::string_view text = StringAt(lua, 1);
  return LoadText(lua, text, luaL_optstring(lua, 2, text.data()));
}

int RunLoad(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TFUNCTION);
  const char* name = luaL_optstring(lua, 2, "=(load)");
  lua_settop(lua, 2);
  lua_pushliteral(lua, "");
  while (true) {
    lua_pushvalue(lua, 1);
    lua_call(lua, 0, 1);
    if (lua_isnil(lua, -1)) break;
    if (lua_type(lua, -1) != LUA_TSTRING) {
      return luaL_error(lua, "reader function must return a string");
    }
    if (lua_objlen(lua, -1) == 0) break;
    lua_concat(lua, 2);
  }
  lua_pop(lua, 1);
  return LoadText(lua, StringAt(lua, 3), name);
}

/// Makes the globals of all runs and the metatables around them.
int OpenLibraries(lua_State* lua) {
  lua_newtable(lua);
  Register(lua, &kChunks);
  OpenBaseLibrary(lua);
  SetFunction(lua, "load", RunLoad);
  SetFunction(lua, "loadstring", RunLoadstring);
  const auto add = [&](const char* name, void (*open)(lua_State*)) {
    open(lua);
    Protect(lua);
    lua_setfield(lua, -2, name);
  };
  add("redis", OpenRedisLibrary);
  add("cjson", OpenJsonLibrary);
  add("cmsgpack", OpenMsgpackLibrary);
  add("struct", OpenStructLibrary);
  add("bit", OpenBitLibrary);
  lua_getfield(lua, -1, "redis");
  lua_setfield(lua, -2, "server");
  lua_newtable(lua);
  SetFunction(lua, "__index", RefuseGlobal);
  lua_setmetatable(lua, -2);
  lua_pushvalue(lua, -1);
  Register(lua, &kBase);
  lua_newtable(lua);
  lua_insert(lua, -2);
  lua_setfield(lua, -2, "__index");
  SetFunction(lua, "__newindex", RefuseChange);
  MarkProtected(lua);
  Register(lua, &kMetatable);
  return 0;
}

/// Makes an error {err, source, line}, as the message handler of a script.
int OnError(lua_State* lua) {
  if (lua_type(lua, 1) != LUA_TTABLE) {
    const std::string_view text = lua_isstring(lua, 1) ? StringAt(lua, 1) : "(no message)";
    lua_newtable(lua);
    lua_pushliteral(lua, "ERR ");
    PushString(lua, text);
    lua_concat(lua, 2);
    lua_setfield(lua, -2, "err");
    lua_replace(lua, 1);
  }
  lua_settop(lua, 1);
  lua_Debug at{};
  bool found = false;
  for (int level = 1; level <= 2 && !found; ++level) {
    found = lua_getstack(lua, level, &at) == 1 && lua_getinfo(lua, "Sl", &at) != 0 &&
            at.currentline >= 0;
  }
  if (found) {
    lua_pushfstring(lua, "%s:%d", at.source, at.currentline);
    lua_pushliteral(lua, "source");
    lua_insert(lua, -2);
    lua_rawset(lua, 1);
  }
  return 1;
}

}  // namespace

std::string ParseShebang(std::string_view text, bool* may_write) {
  if (!text.starts_with("#!")) return {};
  std::string_view line = text.substr(0, text.find('\n'));
  const auto next_word = [&line] {
    const size_t begin = std::min(line.find_first_not_of(' '), line.size());
    const size_t end = std::min(line.find(' ', begin), line.size());
    const std::string_view word = line.substr(begin, end - begin);
    line.remove_prefix(end);
    return word;
  };
  const std::string_view engine = next_word();
  if (engine != "#!lua") {
    return "ERR Unexpected engine in script shebang: " + std::string(engine);
  }
  for (std::string_view word = next_word(); !word.empty(); word = next_word()) {
    if (!word.starts_with("flags=")) {
      return "ERR Unknown lua shebang option: " + std::string(word);
    }
    word.remove_prefix(6);
    while (!word.empty()) {
      const size_t comma = std::min(word.find(','), word.size());
      const std::string_view flag = word.substr(0, comma);
      word.remove_prefix(std::min(comma + 1, word.size()));
      if (flag == "no-writes") {
        *may_write = false;
      } else if (flag != "allow-oom" && flag != "allow-stale" && flag != "no-cluster" &&
                 flag != "allow-cross-slot-keys") {
        return "ERR Unexpected flag in script shebang: " + std::string(flag);
      }
    }
  }
  return {};
}

/// What runs inside lua_cpcall, where Lua may raise errors.
struct ScriptInterpreter::Body {
  ScriptInterpreter* self;
  const ScriptRun* run;
  Reply* reply;          // Null: compile alone.
  std::string error{};   // Of the compiler.
  bool is_whole = true;  // The script came to its end.

  static Body& From(lua_State* lua) { return *static_cast<Body*>(lua_touserdata(lua, 1)); }

  /// Pushes the chunk. False: `error` is set.
  bool PushChunk(lua_State* lua);
  void PushGlobals(lua_State* lua) const;
  /// Of the value on top; without one, of the limit that was reached.
  void ReplyError(lua_State* lua, bool has_value);

  static int RunScript(lua_State* lua);
};

bool ScriptInterpreter::Body::PushChunk(lua_State* lua) {
  PushRegistered(lua, &kChunks);
  PushString(lua, run->sha1);
  lua_rawget(lua, -2);
  if (!lua_isnil(lua, -1)) {
    lua_remove(lua, -2);
    return true;
  }
  lua_pop(lua, 1);
  std::string_view text = run->text;
  bool may_write = true;
  error = ParseShebang(text, &may_write);
  if (!error.empty()) return false;
  // Lines keep their numbers.
  if (text.starts_with("#!")) text.remove_prefix(std::min(text.find('\n'), text.size()));
  if (text.starts_with('\x1b')) {
    error = "ERR Error compiling script (new function): binary chunks are not loaded";
    return false;
  }
  lua_pushliteral(lua, "@user_script");
  if (luaL_loadbuffer(lua, text.data(), text.size(), "@user_script") != 0) {
    error = "ERR Error compiling script (new function): " + std::string(StringAt(lua, -1));
    return false;
  }
  lua_remove(lua, -2);
  PushString(lua, run->sha1);
  lua_pushvalue(lua, -2);
  lua_rawset(lua, -4);
  lua_remove(lua, -2);
  ++self->chunks_;
  return true;
}

void ScriptInterpreter::Body::PushGlobals(lua_State* lua) const {
  const auto push_list = [&](std::span<const std::string_view> texts, const char* name) {
    lua_pushstring(lua, name);
    lua_createtable(lua, static_cast<int>(texts.size()), 0);
    for (size_t i = 0; i < texts.size(); ++i) {
      PushString(lua, texts[i]);
      lua_rawseti(lua, -2, static_cast<int>(i + 1));
    }
    lua_rawset(lua, -3);
  };
  lua_createtable(lua, 0, 3);
  push_list(run->keys, "KEYS");
  push_list(run->args, "ARGV");
  lua_pushliteral(lua, "_G");
  lua_pushvalue(lua, -2);
  lua_rawset(lua, -3);
  PushRegistered(lua, &kMetatable);
  lua_setmetatable(lua, -2);
  lua_pushvalue(lua, -1);
  Register(lua, &kEnvironment);
}

void ScriptInterpreter::Body::ReplyError(lua_State* lua, bool has_value) {
  std::string text = "ERR ";
  if (has_value && lua_type(lua, -1) == LUA_TTABLE) {
    lua_pushliteral(lua, "err");
    lua_rawget(lua, -2);
    text = lua_isstring(lua, -1) ? std::string(StringAt(lua, -1)) : "ERR unknown error";
    lua_pop(lua, 1);
    text += " script: " + std::string(run->sha1);
    lua_pushliteral(lua, "source");
    lua_rawget(lua, -2);
    if (lua_isstring(lua, -1)) text += ", on " + std::string(StringAt(lua, -1)) + ".";
  } else if (has_value && lua_type(lua, -1) == LUA_TSTRING) {
    text += StringAt(lua, -1);
  } else {
    text += self->Why();
  }
  if (text.starts_with('-')) text.erase(0, 1);
  reply->Error(text);
}

int ScriptInterpreter::Body::RunScript(lua_State* lua) {
  Body& body = From(lua);
  lua_settop(lua, 0);
  lua_pushcfunction(lua, OnError);
  if (!body.PushChunk(lua)) {
    body.is_whole = false;
    if (body.reply != nullptr) body.reply->Error(body.error);
    return 0;
  }
  if (body.reply == nullptr) return 0;
  body.PushGlobals(lua);
  lua_setfenv(lua, -2);
  const size_t mark = body.reply->size();
  if (lua_pcall(lua, 0, 1, 1) != 0) {
    body.is_whole = false;
    body.ReplyError(lua, true);
    return 0;
  }
  ReplyWithValue(lua, body.self->resp_version, *body.reply);
  if (body.reply->is_over_limit()) body.reply->TruncateTo(mark);
  return 0;
}

std::unique_ptr<ScriptInterpreter> ScriptInterpreter::Create(const ScriptLimits& limits) {
  std::unique_ptr<ScriptInterpreter> self(new ScriptInterpreter(limits));
  self->lua_ = lua_newstate(Allocate, self.get());
  if (self->lua_ == nullptr) return nullptr;
  if (lua_cpcall(self->lua_, OpenLibraries, nullptr) != 0) return nullptr;
  return self;
}

ScriptInterpreter::~ScriptInterpreter() {
  if (lua_ != nullptr) lua_close(lua_);
}

ScriptInterpreter& ScriptInterpreter::Of(lua_State* lua) {
  void* self = nullptr;
  lua_getallocf(lua, &self);
  return *static_cast<ScriptInterpreter*>(self);
}

bool ScriptInterpreter::MayAllocate(size_t old_bytes, size_t new_bytes) noexcept {
  const size_t more = new_bytes - old_bytes;
  if (more > limits_.memory_bytes || used_bytes_ > limits_.memory_bytes - more) {
    steps_left_ -= std::min(kStepsOfRefusal, steps_left_);
    return false;
  }
  if (!is_running_) return true;
  const uint64_t cost = new_bytes / kBytesPerStep;
  const bool is_affordable = cost <= steps_left_;
  steps_left_ -= std::min(cost, steps_left_);
  return is_affordable || new_bytes <= kSmallBytes;
}

void* ScriptInterpreter::Allocate(void* interpreter, void* block, size_t old_bytes,
                                  size_t new_bytes) noexcept {
  auto* self = static_cast<ScriptInterpreter*>(interpreter);
  if (new_bytes == 0) {
    std::free(block);
    self->used_bytes_ -= old_bytes;
    return nullptr;
  }
  if (new_bytes > old_bytes && !self->MayAllocate(old_bytes, new_bytes)) return nullptr;
  void* moved = std::realloc(block, new_bytes);
  if (moved == nullptr) return new_bytes <= old_bytes ? block : nullptr;
  self->used_bytes_ = self->used_bytes_ - old_bytes + new_bytes;
  return moved;
}

std::string ScriptInterpreter::Why() const {
  if (killed_.load(std::memory_order_relaxed)) return "Script killed by user with SCRIPT KILL.";
  if (is_late_) {
    return "the script ran for more than " + std::to_string(limits_.time.count()) + " ms";
  }
  if (steps_left_ == 0) {
    return "the script took more than " + std::to_string(limits_.steps) + " steps";
  }
  return "the script needs more than " + std::to_string(limits_.memory_bytes) + " bytes of memory";
}

void ScriptInterpreter::Spend(lua_State* lua, uint64_t steps) {
  steps_left_ -= std::min(steps, steps_left_);
  steps_to_clock_ -= std::min(steps, steps_to_clock_);
  if (steps_to_clock_ == 0) {
    steps_to_clock_ = kClockInterval;
    is_late_ = is_late_ || std::chrono::steady_clock::now() > deadline_;
  }
  if (steps_left_ > 0 && !is_late_ && !killed_.load(std::memory_order_relaxed)) return;
  // Whoever catches the error gets it again with the next instruction.
  lua_sethook(lua, OnCount, LUA_MASKCOUNT, 1);
  lua_pushstring(lua, Why().c_str());
  lua_error(lua);
}

void ScriptInterpreter::BeginRun(ScriptHost* host) {
  host_ = host;
  resp_version = 2;
  random_state = 0x330E;
  json_options = {};
  steps_left_ = limits_.steps;
  steps_to_clock_ = kClockInterval;
  deadline_ = std::chrono::steady_clock::now() + limits_.time;
  is_late_ = false;
  killed_.store(false, std::memory_order_relaxed);
  lua_settop(lua_, 0);
  if (used_bytes_ > limits_.memory_bytes / 4) lua_gc(lua_, LUA_GCCOLLECT, 0);
  lua_sethook(lua_, OnCount, LUA_MASKCOUNT, kHookInterval);
  is_running_ = true;
}

bool ScriptInterpreter::Run(const ScriptRun& run, ScriptHost& host, Reply& reply) {
  BeginRun(&host);
  const size_t mark = reply.size();
  Body body{this, &run, &reply};
  const int failed = lua_cpcall(lua_, Body::RunScript, &body);
  is_running_ = false;
  lua_sethook(lua_, nullptr, 0, 0);
  if (failed != 0) {
    reply.TruncateTo(mark);
    body.ReplyError(lua_, failed == LUA_ERRRUN);
  }
  host_ = nullptr;
  return failed == 0 && body.is_whole;
}

std::string ScriptInterpreter::Compile(std::string_view sha1, std::string_view text) {
  BeginRun(nullptr);
  const ScriptRun run{sha1, text, {}, {}};
  Body body{this, &run, nullptr};
  const int failed = lua_cpcall(lua_, Body::RunScript, &body);
  is_running_ = false;
  return failed != 0 ? "ERR " + Why() : body.error;
}

bool ScriptInterpreter::is_worn() const noexcept {
  return chunks_ > kChunksMax || used_bytes_ > limits_.memory_bytes / 2;
}

}  // namespace basalt::server

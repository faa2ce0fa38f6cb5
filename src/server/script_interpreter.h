#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "server/reply.h"

struct lua_State;

namespace basalt::server {

// Runs scripts in Lua 5.1 as Redis does. A script is a chunk with the globals KEYS and ARGV, a
// table `redis` and the libraries that script_libraries.h lists. It reaches the world through
// ScriptHost alone: there is no os, io, require, debug or bytecode.
//
// Isolation: each run has a table of globals of its own, which the script cannot change. Libraries
// are reached through proxies that refuse writes. So nothing of a run is left for the next one,
// except compiled chunks.
//
// Limits, all of which end the script with an error that pcall cannot keep it alive after:
// - memory: the interpreter's allocator refuses what exceeds ScriptLimits::memory_bytes. Garbage
//   that is not collected yet counts.
// - steps: one for each instruction of the virtual machine (a hook counts them), and for the work
//   that library functions do inside: bytes that they allocate, characters that patterns look at,
//   elements that sort and insert move. So no single call runs for long unnoticed.
// - time: looked at every hundred steps or so, and before each command.
//
// The library is Debian's liblua5.1-c++, whose errors are C++ exceptions: destructors run.

struct ScriptLimits {
  size_t memory_bytes = size_t{64} << 20;
  uint64_t steps = 1'000'000'000;
  std::chrono::milliseconds time{5000};
};

/// What a script has set in cjson.
struct JsonOptions {
  bool sparse_becomes_object = false;  ///< Else a sparse array is an error.
  int sparse_ratio = 2;
  int sparse_safe = 10;
  int encode_depth = 1000;
  int decode_depth = 1000;
  int number_precision = 14;
  bool encodes_invalid_numbers = false;
  bool decodes_invalid_numbers = true;
};

/// Reads the first line of a script, "#!lua flags=no-writes", if it has one. Gives an error, or
/// nothing.
std::string ParseShebang(std::string_view text, bool* may_write);

/// What a script calls.
class ScriptHost {
 public:
  virtual ~ScriptHost() = default;
  ScriptHost(const ScriptHost&) = delete;
  ScriptHost& operator=(const ScriptHost&) = delete;

  /// Runs a command, and appends its reply in wire form.
  virtual void RunCommand(std::span<const std::string_view> args, Reply& reply) = 0;
  /// Whether the client may run a command.
  virtual bool MayRun(std::span<const std::string_view> args) = 0;

 protected:
  ScriptHost() = default;
};

/// One run of a script.
struct ScriptRun {
  std::string_view sha1;
  std::string_view text;
  std::span<const std::string_view> keys;
  std::span<const std::string_view> args;
};

/// One Lua state. One thread at a time, except Kill.
class ScriptInterpreter {
 public:
  /// Null: there is no memory for it.
  static std::unique_ptr<ScriptInterpreter> Create(const ScriptLimits& limits);
  ~ScriptInterpreter();
  ScriptInterpreter(const ScriptInterpreter&) = delete;
  ScriptInterpreter& operator=(const ScriptInterpreter&) = delete;

  /// Replies with what the script returns. False: it did not come to its end, and the reply is the
  /// error.
  bool Run(const ScriptRun& run, ScriptHost& host, Reply& reply);
  /// Empty, or the error of a script that is none.
  std::string Compile(std::string_view sha1, std::string_view text);
  /// Ends the script that runs with an error. Any thread.
  void Kill() noexcept { killed_.store(true, std::memory_order_relaxed); }
  /// Whether it has become large: a new one should take its place.
  bool is_worn() const noexcept;
  /// That the Lua state has allocated.
  size_t used_bytes() const noexcept { return used_bytes_; }

  // For the libraries.

  /// The interpreter of a state.
  static ScriptInterpreter& Of(lua_State* lua);
  /// Takes steps from what is left; raises an error when there are too few.
  void Spend(lua_State* lua, uint64_t steps);
  ScriptHost* host() noexcept { return host_; }
  int resp_version = 2;            ///< Of the replies that the script receives.
  uint64_t random_state = 0x330E;  ///< Of math.random.
  JsonOptions json_options;

 private:
  struct Body;
  explicit ScriptInterpreter(const ScriptLimits& limits) : limits_(limits) {}
  static void* Allocate(void* self, void* block, size_t old_bytes, size_t new_bytes) noexcept;
  bool MayAllocate(size_t old_bytes, size_t new_bytes) noexcept;
  void BeginRun(ScriptHost* host);
  std::string Why() const;

  const ScriptLimits limits_;
  lua_State* lua_ = nullptr;
  size_t used_bytes_ = 0;
  size_t chunks_ = 0;  // That are compiled.
  bool is_running_ = false;
  ScriptHost* host_ = nullptr;
  uint64_t steps_left_ = 0;
  uint64_t steps_to_clock_ = 0;
  std::chrono::steady_clock::time_point deadline_;
  bool is_late_ = false;
  std::atomic<bool> killed_{false};
};

}  // namespace basalt::server

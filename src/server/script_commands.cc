#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "server/access.h"
#include "server/attempt.h"
#include "server/command_table.h"
#include "server/executor.h"
#include "server/hub.h"
#include "server/numbers.h"
#include "server/scripts.h"
#include "server/session.h"
#include "server/sha1.h"

namespace basalt::server {
namespace {

/// Runs the commands of a script in the transaction of the command that runs the script.
class CallHost final : public ScriptHost {
 public:
  CallHost(Call* call, bool may_write)
      : call_(*call), may_write_(may_write), db_(call->session.db()) {}
  /// What the script has selected is not the client's.
  ~CallHost() override {
    call_.session.set_db(db_);
    call_.view.set_db(db_);
  }

  void RunCommand(Args args, Reply& reply) override;
  bool MayRun(Args args) override { return RefusalOf(FindCommand(args.front()), args).empty(); }

 private:
  std::string RefusalOf(const Command* command, Args args) const;
  /// Counts what a command leaves in memory until the commit besides its records, which the
  /// transaction bounds. False: it is too much.
  bool Charge(const Command& command, Args args);

  Call& call_;
  const bool may_write_;
  const uint8_t db_;
  size_t effect_bytes_ = 0;
};

std::string CallHost::RefusalOf(const Command* command, Args args) const {
  if (command == nullptr) return "ERR Unknown Redis command called from script";
  if (!HasArity(*command, args.size())) {
    return "ERR Wrong number of args calling Redis command from script";
  }
  if ((command->flags & kNoScript) != 0) return "ERR This Redis command is not allowed from script";
  if (!may_write_ && (command->flags & kWrite) != 0) {
    return "ERR Write commands are not allowed from read-only scripts.";
  }
  return AccessError(*call_.session.user(), *command, args);
}

bool CallHost::Charge(const Command& command, Args args) {
  const size_t most = call_.hub.settings().queued_bytes;
  if ((command.flags & kReadOnly) == 0) {
    effect_bytes_ += sizeof(Queued);
    for (const std::string_view arg : args) effect_bytes_ += arg.size();
  }
  return effect_bytes_ <= most;
}

void CallHost::RunCommand(Args args, Reply& reply) {
  const Command* command = FindCommand(args.front());
  if (const std::string refusal = RefusalOf(command, args); !refusal.empty()) {
    return reply.Error(refusal);
  }
  if (!call_.view.ok()) return reply.Error("ERR the transaction of the script has failed");
  if (!Charge(*command, args)) {
    return reply.Error("ERR the commands of the script are too large for one transaction");
  }
  call_.view.set_db(call_.session.db());
  Call inner{*command, args, call_.session, call_.hub, call_.view, reply, true};
  RunOrUndo(&inner);
  if (inner.wait) inner.wait->null_is_array ? reply.NullArray() : reply.Null();
  std::move(inner.after_commit.begin(), inner.after_commit.end(),
            std::back_inserter(call_.after_commit));
}

/// The number of keys, which is the third argument; nothing, and an error is replied: it is none.
std::optional<size_t> CountOfKeys(Call& call) {
  const std::optional<int64_t> count = call.Integer(2);
  if (!count) return std::nullopt;
  if (*count < 0) {
    call.reply.Error("ERR Number of keys can't be negative");
    return std::nullopt;
  }
  if (static_cast<uint64_t>(*count) > call.count() - 3) {
    call.reply.Error("ERR Number of keys can't be greater than number of args");
    return std::nullopt;
  }
  return static_cast<size_t>(*count);
}

bool MayRunScripts(Call& call) {
  if (call.hub.settings().allows_scripts) return true;
  call.reply.Error("ERR scripts are not allowed on this server: start it with --scripts on");
  return false;
}

void RunText(Call& call, std::string_view sha1, std::string_view text, bool may_write) {
  const std::optional<size_t> keys = CountOfKeys(call);
  if (!keys) return;
  if (const std::string error = ParseShebang(text, &may_write); !error.empty()) {
    return call.reply.Error(error);
  }
  const Scripts::Lease lease = call.hub.scripts().Borrow();
  if (lease.get() == nullptr) return call.reply.Error("ERR there is no memory for a script");
  CallHost host(&call, may_write);
  const ScriptRun run{sha1, text, call.args.subspan(3, *keys), call.args.subspan(3 + *keys)};
  call.keeps_changes = lease.get()->Run(run, host, call.reply);
}

void RunScriptOfText(Call& call, bool may_write) {
  if (!MayRunScripts(call)) return;
  const std::string sha1 = Sha1Hex(call.arg(1));
  call.hub.scripts().Add(sha1, call.arg(1));
  RunText(call, sha1, call.arg(1), may_write);
}

void RunScriptOfSha1(Call& call, bool may_write) {
  if (!MayRunScripts(call)) return;
  const std::string sha1 = ToLower(call.arg(1));
  const Scripts::Text text = call.hub.scripts().Find(sha1);
  if (text == nullptr) {
    return call.reply.Error("NOSCRIPT No matching script. Please use EVAL.");
  }
  RunText(call, sha1, *text, may_write);
}

void RunEval(Call& call) { RunScriptOfText(call, true); }
void RunEvalRo(Call& call) { RunScriptOfText(call, false); }
void RunEvalsha(Call& call) { RunScriptOfSha1(call, true); }
void RunEvalshaRo(Call& call) { RunScriptOfSha1(call, false); }

void ScriptLoad(Call& call) {
  if (!MayRunScripts(call)) return;
  const std::string sha1 = Sha1Hex(call.arg(2));
  const Scripts::Lease lease = call.hub.scripts().Borrow();
  if (lease.get() == nullptr) return call.reply.Error("ERR there is no memory for a script");
  if (const std::string error = lease.get()->Compile(sha1, call.arg(2)); !error.empty()) {
    return call.reply.Error(error);
  }
  call.hub.scripts().Add(sha1, call.arg(2));
  call.reply.Bulk(sha1);
}

void ScriptExists(Call& call) {
  call.reply.Array(call.count() - 2);
  for (size_t i = 2; i < call.count(); ++i) {
    call.reply.Integer(call.hub.scripts().Find(ToLower(call.arg(i))) == nullptr ? 0 : 1);
  }
}

void ScriptFlush(Call& call) {
  if (call.count() > 3 || (call.count() == 3 && !call.Is(2, "sync") && !call.Is(2, "async"))) {
    return call.reply.Error("ERR SCRIPT FLUSH only support SYNC|ASYNC option");
  }
  call.hub.scripts().Clear();
  call.reply.Ok();
}

void KillScripts(Call& call) {
  if (!call.hub.scripts().KillRunning()) {
    return call.reply.Error("NOTBUSY No scripts in execution right now.");
  }
  call.reply.Ok();
}

void RunScript(Call& call) {
  if (call.Is(1, "load") && call.count() == 3) return ScriptLoad(call);
  if (call.Is(1, "exists") && call.count() > 2) return ScriptExists(call);
  if (call.Is(1, "flush")) return ScriptFlush(call);
  if (call.Is(1, "kill") && call.count() == 2) return KillScripts(call);
  const std::string sub = ToLower(call.arg(1));
  if (sub == "load" || sub == "exists" || sub == "kill") {
    return call.reply.Error("ERR wrong number of arguments for 'script|" + sub + "' command");
  }
  UnknownSubcommand(call);
}

/// There are no libraries of functions: the commands about them answer as an empty Redis does.
void RunFunction(Call& call) {
  if (call.Is(1, "list")) return call.reply.Array(0);
  if (call.Is(1, "flush")) return call.reply.Ok();
  if (call.Is(1, "kill") && call.count() == 2) return KillScripts(call);
  if (call.Is(1, "delete") && call.count() == 3) {
    return call.reply.Error("ERR Library not found");
  }
  if (call.Is(1, "load") || call.Is(1, "restore") || call.Is(1, "dump")) {
    return call.reply.Error("ERR functions are not supported: use EVAL");
  }
  if (!call.Is(1, "stats") || call.count() != 2) return UnknownSubcommand(call);
  call.reply.Map(2);
  call.reply.Bulk("running_script");
  call.reply.Null();
  call.reply.Bulk("engines");
  call.reply.Map(1);
  call.reply.Bulk("LUA");
  call.reply.Map(2);
  call.reply.Bulk("libraries_count");
  call.reply.Integer(0);
  call.reply.Bulk("functions_count");
  call.reply.Integer(0);
}

void RunFcall(Call& call) { call.reply.Error("ERR Function not found"); }

constexpr uint32_t kEvalFlags = kNoScript | kSlow | kScript | kMovableKeys;

constexpr Command kScriptCommands[] = {
    {"eval", "script numkeys [key [key ...]] [arg [arg ...]]", -3, kEvalFlags, 0, 0, 0,
     Group::kScripting, "Runs a script in Lua as one transaction.", RunEval},
    {"eval_ro", "script numkeys [key [key ...]] [arg [arg ...]]", -3, kEvalFlags | kReadOnly, 0, 0,
     0, Group::kScripting, "Runs a script that writes nothing.", RunEvalRo},
    {"evalsha", "sha1 numkeys [key [key ...]] [arg [arg ...]]", -3, kEvalFlags, 0, 0, 0,
     Group::kScripting, "Runs a script that was sent before.", RunEvalsha},
    {"evalsha_ro", "sha1 numkeys [key [key ...]] [arg [arg ...]]", -3, kEvalFlags | kReadOnly, 0, 0,
     0, Group::kScripting, "Runs a script that was sent before and writes nothing.", RunEvalshaRo},
    {"script", "LOAD script | EXISTS sha1 [sha1 ...] | FLUSH [ASYNC | SYNC] | KILL", -2,
     kNoData | kNoScript | kScript, 0, 0, 0, Group::kScripting,
     "Loads scripts, forgets them, and ends those that run.", RunScript},
    {"function", "LIST | FLUSH | DELETE library | STATS | KILL", -2, kNoData | kNoScript | kScript,
     0, 0, 0, Group::kScripting, "Answers as a server without functions.", RunFunction},
    {"fcall", "function numkeys [key [key ...]] [arg [arg ...]]", -3,
     kNoData | kNoScript | kScript | kMovableKeys, 0, 0, 0, Group::kScripting,
     "Answers that there is no such function.", RunFcall},
    {"fcall_ro", "function numkeys [key [key ...]] [arg [arg ...]]", -3,
     kNoData | kNoScript | kScript | kMovableKeys | kReadOnly, 0, 0, 0, Group::kScripting,
     "Answers that there is no such function.", RunFcall},
};

}  // namespace

std::span<const Command> ScriptCommands() { return kScriptCommands; }

}  // namespace basalt::server

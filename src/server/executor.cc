#include "server/executor.h"

#include <algorithm>

#include "server/access.h"
#include "server/attempt.h"
#include "server/command_table.h"

namespace basalt::server {
namespace {

using Outcome = Execution::Outcome;

/// Conflicts on an event loop after which a command goes to the pool, where it may pause.
constexpr int kLoopAttempts = 4;
constexpr int kPoolAttempts = 64;
/// Conflicts on the pool after which a transaction waits for its turn.
constexpr int kFreeAttempts = 4;

std::string UnknownCommand(Args args) {
  constexpr size_t kShownBytesMax = 128;
  std::string text = "ERR unknown command '" + std::string(args[0].substr(0, kShownBytesMax)) +
                     "', with args beginning with: ";
  std::string shown;
  for (size_t i = 1; i < args.size() && shown.size() < kShownBytesMax; ++i) {
    shown += "'" + std::string(args[i].substr(0, kShownBytesMax - shown.size())) + "' ";
  }
  return text + shown;
}

void Queue(Hub& hub, Session& session, const Command* command, Args args, Reply& reply) {
  size_t bytes = sizeof(Queued);
  for (const std::string_view arg : args) bytes += arg.size() + sizeof(std::string);
  if (session.queued_bytes + bytes > hub.settings().queued_bytes) {
    session.multi_failed = true;
    return reply.Error("ERR the commands of the transaction are too large");
  }
  session.queued_bytes += bytes;
  session.queue.push_back({command, {args.begin(), args.end()}});
  reply.Simple("QUEUED");
}

/// Runs `attempt` until it neither conflicts nor fails.
template <class Run>
Execution Retry(Hub& hub, Session& session, Reply& reply, Mode mode, bool single_read, Run run) {
  const uint8_t db = session.db();
  const int attempts = mode == Mode::kLoop ? kLoopAttempts : kPoolAttempts;
  Status status;
  std::unique_lock<std::mutex> turn;
  for (int i = 0; i < attempts; ++i) {
    session.set_db(db);  // An earlier attempt may have selected another.
    Attempt attempt(hub, session, reply, mode, single_read);
    run(attempt);
    status = attempt.Finish();
    if (status.ok()) {
      if (attempt.wait()) return {Outcome::kWait, std::move(attempt.wait())};
      return {};
    }
    if (status.code() == StatusCode::kWouldBlock && mode == Mode::kLoop) break;
    if (status.code() != StatusCode::kAborted) {
      reply.Error("ERR " + std::string(status.message()));
      return {};
    }
    hub.counters().conflicts.fetch_add(1, std::memory_order_relaxed);
    if (mode != Mode::kPool) continue;
    PauseAfterConflict(i);
    if (i + 1 >= kFreeAttempts && !turn) turn = std::unique_lock(hub.turn());
  }
  session.set_db(db);
  if (mode == Mode::kLoop) return {Outcome::kToPool, {}};
  reply.Error("ERR too many conflicts with other clients: try again");
  return {};
}

Execution ExecuteMulti(Hub& hub, Session& session, Reply& reply, Mode mode) {
  if (!session.in_multi) {
    reply.Error("ERR EXEC without MULTI");
    return {};
  }
  if (session.multi_failed) {
    session.EndMulti();
    reply.Error("EXECABORT Transaction discarded because of previous errors.");
    return {};
  }
  const bool is_slow =
      std::any_of(session.queue.begin(), session.queue.end(),
                  [](const Queued& queued) { return (queued.command->flags & kSlow) != 0; });
  if (is_slow && mode == Mode::kLoop) return {Outcome::kToPool, {}};
  session.in_multi = false;
  Execution done =
      Retry(hub, session, reply, mode, false, [](Attempt& attempt) { attempt.RunQueued(); });
  session.in_multi = true;
  if (done.outcome != Outcome::kToPool) session.EndMulti();
  return done;
}

}  // namespace

bool HasArity(const Command& command, size_t count) noexcept {
  const auto wanted = static_cast<size_t>(std::abs(command.arity));
  return command.arity < 0 ? count >= wanted : count == wanted;
}

std::string Refusal(const Session& session, const Command* command, Args args) {
  if (command == nullptr) return UnknownCommand(args);
  if (!HasArity(*command, args.size())) {
    return "ERR wrong number of arguments for '" + std::string(command->name) + "' command";
  }
  if (!session.is_authenticated() && (command->flags & kNoAuth) == 0) {
    return "NOAUTH Authentication required.";
  }
  if (session.is_authenticated()) {
    std::string error = AccessError(*session.user(), *command, args);
    if (!error.empty()) return error;
  }
  if (session.resp_version() == 2 && session.subscriptions() > 0 &&
      (command->flags & kSubscribed) == 0) {
    return "ERR Can't execute '" + std::string(command->name) +
           "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this "
           "context";
  }
  if (session.in_multi && (command->flags & kNoMulti) != 0) {
    return "ERR Command not allowed inside a transaction";
  }
  return {};
}

Execution Execute(Hub& hub, Session& session, Args args, Reply& reply, Mode mode) {
  const Command* command = FindCommand(args[0]);
  reply.set_version(session.resp_version());
  if (const std::string refusal = Refusal(session, command, args); !refusal.empty()) {
    if (session.in_multi) session.multi_failed = true;
    reply.Error(refusal);
    return {};
  }
  session.set_last_command(command);
  if (command->name == "exec") return ExecuteMulti(hub, session, reply, mode);
  if (session.in_multi && (command->flags & kInMultiNow) == 0) {
    Queue(hub, session, command, args, reply);
    return {};
  }
  if ((command->flags & kSlow) != 0 && mode == Mode::kLoop) return {Outcome::kToPool, {}};
  if ((command->flags & kNoData) != 0) {
    Attempt attempt(hub, session, reply, mode, true);
    attempt.Run(*command, args);
    if (Status status = attempt.Finish(); !status.ok()) {
      reply.Error("ERR " + std::string(status.message()));
    }
    return {};
  }
  return Retry(hub, session, reply, mode, (command->flags & kSingleRead) != 0,
               [&](Attempt& attempt) { attempt.Run(*command, args); });
}

void Disconnect(Hub& hub, Session& session) {
  for (const std::string& channel : session.channels) {
    hub.pub_sub().Unsubscribe(session.peer(), channel);
  }
  for (const std::string& pattern : session.patterns) {
    hub.pub_sub().UnsubscribePattern(session.peer(), pattern);
  }
  session.channels.clear();
  session.patterns.clear();
  hub.snapshots().RemoveOwner(session.id());
  session.EndMulti();
}

}  // namespace basalt::server

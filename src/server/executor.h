#pragma once

#include <optional>
#include <string>

#include "server/command.h"
#include "server/hub.h"
#include "server/session.h"

namespace basalt::server {

/// What became of a command.
struct Execution {
  enum class Outcome : uint8_t {
    kDone,    ///< The reply is appended.
    kToPool,  ///< Nothing has happened: run it again in Mode::kPool.
    kWait,    ///< Nothing has happened: run it again when one of the keys in `wait` has changed.
  };
  Outcome outcome = Outcome::kDone;
  std::optional<Wait> wait{};
};

/// Runs one command of a session: checks its arity and rights, queues it inside MULTI, or runs it
/// as one transaction, which is run again when it conflicts with another. `args` is not empty.
Execution Execute(Hub& hub, Session& session, Args args, Reply& reply, Mode mode);

/// The error of a command that cannot run now; empty: it can. `command`: what args[0] names, or
/// null.
std::string Refusal(const Session& session, const Command* command, Args args);

/// Whether a command takes so many arguments, its name included.
bool HasArity(const Command& command, size_t count) noexcept;

/// Ends everything that the session has in the hub's tables.
void Disconnect(Hub& hub, Session& session);

}  // namespace basalt::server

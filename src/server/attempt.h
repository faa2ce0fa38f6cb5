#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "server/command.h"
#include "server/hub.h"
#include "server/session.h"

namespace basalt::server {

/// One attempt at a transaction of commands: a single command, the commands of a MULTI block, or
/// consecutive commands of a pipeline. Replies are appended as the commands run; Finish commits.
class Attempt {
 public:
  Attempt(Hub& hub, Session& session, Reply& reply, Mode mode, bool single_read)
      : hub_(hub),
        session_(session),
        reply_(reply),
        mark_(reply.size()),
        view_(&hub.dataset(), session.db(), mode, single_read) {}

  /// Runs the only command. If it fails or waits, Finish commits nothing.
  void Run(const Command& command, Args args);

  /// Runs a command beside others of the same transaction. If it fails, it changes nothing, and the
  /// others take effect. Gives what it would wait for.
  std::optional<Wait> RunBesideOthers(const Command& command, Args args, bool in_exec = false);

  /// Runs the commands that the session has queued, unless a watched key has changed.
  void RunQueued();

  /// Commits. Not ok: the replies are taken back, and nothing has changed.
  Status Finish();

  /// What the only command waits for.
  std::optional<Wait>& wait() { return wait_; }
  View& view() noexcept { return view_; }
  /// Bytes of the replies so far.
  size_t reply_bytes() const noexcept { return reply_.size() - mark_; }

 private:
  void Keep(Call* call);
  bool WatchedAreUnchanged();

  Hub& hub_;
  Session& session_;
  Reply& reply_;
  size_t mark_;
  View view_;
  bool has_failed_ = false;
  std::optional<Wait> wait_;
  std::vector<std::function<void()>> after_commit_;
};

/// Runs a command beside others of a transaction. If it fails, it changes nothing.
void RunOrUndo(Call* call);

/// Sleeps for a random time that grows with the number of conflicts so far. Not on an event loop.
void PauseAfterConflict(int conflicts);

}  // namespace basalt::server

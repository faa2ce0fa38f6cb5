#pragma once

#include <cstddef>
#include <string_view>

#include "server/attempt.h"

namespace basalt::server {

/// A pipeline ends with the command whose reply reaches this size, on the loop and on the pool, so
/// that large replies are sent before the next ones are made.
inline constexpr size_t kPipelineReplyBytes = 256 * 1024;

// Consecutive commands of a client that sends several before it reads a reply. They run as one
// transaction, so that a snapshot, a commit and a record in the log are paid once for all of them.
//
// - Replies are those of the commands run one by one. A command that fails changes nothing, and the
//   others take effect.
// - All replies are taken back when the transaction does not commit. Then the same commands run on
//   the pool: as one transaction again, and one by one if that conflicts too often or cannot be.
// - Only commands that look at keys, wait for nobody and change nothing of the session belong into
//   one: no MULTI block, WATCH, subscription or blocking command.
//
// Bounds: kCommandsMax or kCommandsMaxPower, kArgumentBytesMax, kPipelineReplyBytes, kStepsMax
// records; IsFull says when one is reached.
class Pipeline {
 public:
  Pipeline(Hub& hub, Session& session, Reply& reply, Mode mode)
      : session_(session), attempt_(hub, session, reply, mode, false) {}

  /// Whether a command of this session may run in a pipeline.
  static bool Admits(const Session& session, const Command* command, Args args);
  /// Whether a pipeline may begin with it. A read of one record is cheaper alone.
  static bool BeginsWith(const Session& session, const Command* command, Args args) {
    return command != nullptr && (command->flags & kSingleRead) == 0 &&
           Admits(session, command, args);
  }

  /// Runs a command that Admits allows.
  void Add(const Command& command, Args args);
  bool IsFull() noexcept;
  bool IsReplyFull() const noexcept { return attempt_.reply_bytes() >= kPipelineReplyBytes; }
  size_t count() const noexcept { return count_; }
  /// Commits. Not ok: the replies are taken back, and nothing has changed.
  Status Finish() { return attempt_.Finish(); }

 private:
  /// More gain little: a transaction looks for a key among those that it has written.
  static constexpr size_t kCommandsMax = 16;
  /// Each commit waits for the disk.
  static constexpr size_t kCommandsMaxPower = 256;
  static constexpr size_t kArgumentBytesMax = 256 * 1024;
  static constexpr uint64_t kStepsMax = 512;

  Session& session_;
  Attempt attempt_;
  size_t count_ = 0;
  size_t argument_bytes_ = 0;
};

/// Runs commands of a pipeline that was not committed on its event loop: all, or the first ones
/// until their replies have kPipelineReplyBytes. `bytes` are the commands in the protocol, whole.
/// Returns the size of those that ran. On a thread of the pool.
size_t ExecutePipeline(Hub& hub, Session& session, std::string_view bytes, Reply& reply);

}  // namespace basalt::server

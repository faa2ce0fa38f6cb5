#include "server/pipeline.h"

#include <optional>

#include "base/check.h"
#include "server/command_table.h"
#include "server/executor.h"
#include "server/resp_parser.h"

namespace basalt::server {
namespace {

/// Conflicts after which the commands run one by one.
constexpr int kAttempts = 8;

/// Calls `run` with the arguments of one command after another until it returns false. Returns the
/// size of the commands that were run.
template <class Run>
size_t RunCommands(const Hub& hub, std::string_view bytes, Run run) {
  RespParser parser(hub.settings().request);
  size_t done = 0;
  bool goes_on = true;
  while (goes_on && parser.Next(bytes.substr(done)) == RespParser::Outcome::kCommand) {
    if (!parser.args().empty()) goes_on = run(parser.args());
    done += parser.consumed();
  }
  return done;
}

void CountPoolCommands(Hub& hub, size_t count) {
  hub.counters().commands.fetch_add(count, std::memory_order_relaxed);
  hub.counters().pool_commands.fetch_add(count, std::memory_order_relaxed);
}

}  // namespace

bool Pipeline::Admits(const Session& session, const Command* command, Args args) {
  constexpr uint32_t kNotAdmitted =
      kNoData | kBlocking | kSlow | kInMultiNow | kNoMulti | kPubSubFlag | kAdmin;
  return command != nullptr && (command->flags & kNotAdmitted) == 0 && !session.in_multi &&
         Refusal(session, command, args).empty();
}

void Pipeline::Add(const Command& command, Args args) {
  ++count_;
  for (const std::string_view arg : args) argument_bytes_ += arg.size();
  session_.set_last_command(&command);
  const std::optional<Wait> wait = attempt_.RunBesideOthers(command, args);
  BASALT_CHECK(!wait);  // Only blocking commands wait.
}

bool Pipeline::IsFull() noexcept {
  const bool waits_for_disk = attempt_.view().dataset().is_power_durable();
  return count_ >= (waits_for_disk ? kCommandsMaxPower : kCommandsMax) ||
         argument_bytes_ >= kArgumentBytesMax || IsReplyFull() ||
         attempt_.view().steps() >= kStepsMax;
}

size_t ExecutePipeline(Hub& hub, Session& session, std::string_view bytes, Reply& reply) {
  reply.set_version(session.resp_version());
  for (int conflicts = 0; conflicts < kAttempts; ++conflicts) {
    Pipeline pipeline(hub, session, reply, Mode::kPool);
    const size_t done = RunCommands(hub, bytes, [&](Args args) {
      pipeline.Add(*FindCommand(args.front()), args);
      return !pipeline.IsReplyFull();
    });
    const Status status = pipeline.Finish();
    if (status.ok()) {
      hub.counters().pipelines.fetch_add(1, std::memory_order_relaxed);
      CountPoolCommands(hub, pipeline.count());
      return done;
    }
    if (status.code() != StatusCode::kAborted) break;
    hub.counters().conflicts.fetch_add(1, std::memory_order_relaxed);
    PauseAfterConflict(conflicts);
  }
  const size_t reply_begin = reply.size();
  size_t count = 0;
  const size_t done = RunCommands(hub, bytes, [&](Args args) {
    Execute(hub, session, args, reply, Mode::kPool);
    ++count;
    return reply.size() - reply_begin < kPipelineReplyBytes;
  });
  CountPoolCommands(hub, count);
  return done;
}

}  // namespace basalt::server

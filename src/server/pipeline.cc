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

/// Calls `run` with the arguments of each command.
template <class Run>
void ForEachCommand(const Hub& hub, std::string_view bytes, Run run) {
  RespParser parser(hub.settings().request);
  while (parser.Next(bytes) == RespParser::Outcome::kCommand) {
    if (!parser.args().empty()) run(parser.args());
    bytes.remove_prefix(parser.consumed());
  }
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
         argument_bytes_ >= kBytesMax || attempt_.reply_bytes() >= kBytesMax ||
         attempt_.view().steps() >= kStepsMax;
}

void ExecutePipeline(Hub& hub, Session& session, std::string_view bytes, Reply& reply) {
  reply.set_version(session.resp_version());
  for (int conflicts = 0; conflicts < kAttempts; ++conflicts) {
    Pipeline pipeline(hub, session, reply, Mode::kPool);
    ForEachCommand(hub, bytes, [&](Args args) { pipeline.Add(*FindCommand(args.front()), args); });
    const Status status = pipeline.Finish();
    if (status.ok()) {
      hub.counters().pipelines.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    if (status.code() != StatusCode::kAborted) break;
    hub.counters().conflicts.fetch_add(1, std::memory_order_relaxed);
    PauseAfterConflict(conflicts);
  }
  ForEachCommand(hub, bytes, [&](Args args) { Execute(hub, session, args, reply, Mode::kPool); });
}

}  // namespace basalt::server

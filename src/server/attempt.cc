#include "server/attempt.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <string_view>
#include <thread>
#include <utility>

#include "base/random.h"
#include "server/notifications.h"

namespace basalt::server {
namespace {

/// Whether the reply that begins at `mark` is an error that takes the command's changes back.
bool HasFailed(const Call& call, size_t mark) {
  return !call.keeps_changes && call.reply.size() > mark && (*call.reply.out())[mark] == '-';
}

/// Lets subscribers know, once it is committed, what a command has changed. Scripts have noted
/// their commands' changes themselves.
void NoteEvents(Call* call, size_t changed_before) {
  Notifications& notifications = call->hub.notifications();
  if (!notifications.are_on() || (call->command.flags & kScript) != 0) return;
  const std::span<const ChangedKey> changed =
      std::span(call->view.changed()).subspan(changed_before);
  if (changed.empty()) return;
  call->after_commit.emplace_back([&notifications, &hub = call->hub,
                                   events = EventsOf(call->command, call->args, changed),
                                   keys = std::vector<ChangedKey>(changed.begin(), changed.end())] {
    notifications.Tell(&hub.pub_sub(), events);
    notifications.NoteExpiries(keys);
  });
}

}  // namespace

void RunOrUndo(Call* call) {
  const size_t begin = call->reply.size();
  const View::Mark before = call->view.SetMark();
  call->command.run(*call);
  if (HasFailed(*call, begin)) call->view.RollbackTo(before);
  NoteEvents(call, before.changed);
}

void Attempt::Run(const Command& command, Args args) {
  Call call{command, args, session_, hub_, view_, reply_};
  command.run(call);
  wait_ = std::move(call.wait);
  has_failed_ = HasFailed(call, mark_);
  if (!has_failed_) NoteEvents(&call, 0);
  Keep(&call);
}

std::optional<Wait> Attempt::RunBesideOthers(const Command& command, Args args, bool in_exec) {
  Call call{command, args, session_, hub_, view_, reply_, in_exec};
  RunOrUndo(&call);
  Keep(&call);
  return std::move(call.wait);
}

void Attempt::RunQueued() {
  if (!WatchedAreUnchanged()) return reply_.NullArray();
  reply_.Array(session_.queue.size());
  std::vector<std::string_view> args;
  for (const Queued& queued : session_.queue) {
    if (!view_.ok()) return;
    args.assign(queued.args.begin(), queued.args.end());
    view_.set_db(session_.db());
    const std::optional<Wait> wait = RunBesideOthers(*queued.command, args, true);
    if (wait) wait->null_is_array ? reply_.NullArray() : reply_.Null();
  }
}

Status Attempt::Finish() {
  Status status = view_.status();
  if (status.ok() && !wait_ && !has_failed_) status = view_.Commit();
  if (!status.ok()) {
    reply_.TruncateTo(mark_);
    return status;
  }
  if (wait_ || has_failed_) return {};
  hub_.waiting().Signal(view_.changed());
  for (const auto& effect : after_commit_) effect();
  return {};
}

void Attempt::Keep(Call* call) {
  std::move(call->after_commit.begin(), call->after_commit.end(),
            std::back_inserter(after_commit_));
}

bool Attempt::WatchedAreUnchanged() {
  return std::all_of(session_.watched.begin(), session_.watched.end(), [&](const Watched& w) {
    const Key key = view_.FindIn(w.db, w.key);
    return (key.exists ? key.version : 0) == w.version;
  });
}

void PauseAfterConflict(int conflicts) {
  static thread_local base::Random random(base::RandomSeed());
  const uint64_t most_us = uint64_t{50} << std::min(conflicts, 8);
  std::this_thread::sleep_for(std::chrono::microseconds(random.Next() % most_us));
}

}  // namespace basalt::server

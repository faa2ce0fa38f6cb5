#include "server/command.h"
#include "server/session.h"

namespace basalt::server {
namespace {

void RunMulti(Call& call) {
  if (call.session.in_multi) return call.reply.Error("ERR MULTI calls can not be nested");
  call.session.in_multi = true;
  call.reply.Ok();
}

/// EXEC itself is the executor's.
void RunExec(Call& call) { call.reply.Error("ERR EXEC without MULTI"); }

void RunDiscard(Call& call) {
  if (!call.session.in_multi) return call.reply.Error("ERR DISCARD without MULTI");
  call.session.EndMulti();
  call.reply.Ok();
}

void RunWatch(Call& call) {
  if (call.session.in_multi) return call.reply.Error("ERR WATCH inside MULTI is not allowed");
  std::vector<Watched> watched;
  for (size_t i = 1; i < call.count(); ++i) {
    const Key key = call.view.Find(call.arg(i));
    watched.push_back({call.view.db(), std::string(call.arg(i)), key.exists ? key.version : 0});
  }
  call.reply.Ok();
  call.after_commit.emplace_back([&session = call.session, watched = std::move(watched)] {
    constexpr size_t kWatchedMax = 100'000;
    for (const Watched& key : watched) {
      if (session.watched.size() < kWatchedMax) session.watched.push_back(key);
    }
  });
}

void RunUnwatch(Call& call) {
  call.session.watched.clear();
  call.reply.Ok();
}

constexpr Command kTransactionCommands[] = {
    {"multi", "", 1, kNoScript | kNoData | kFast | kInMultiNow, 0, 0, 0, Group::kTransactions,
     "Begins a transaction: the following commands are queued.", RunMulti},
    {"exec", "", 1, kNoScript | kInMultiNow, 0, 0, 0, Group::kTransactions,
     "Runs the queued commands as one transaction.", RunExec},
    {"discard", "", 1, kNoScript | kNoData | kFast | kInMultiNow, 0, 0, 0, Group::kTransactions,
     "Drops the queued commands.", RunDiscard},
    {"watch", "key [key ...]", -2, kNoScript | kFast | kInMultiNow | kReadOnly, 1, -1, 1,
     Group::kTransactions, "Makes the next EXEC do nothing when one of the keys changes before it.",
     RunWatch},
    {"unwatch", "", 1, kNoScript | kNoData | kFast, 0, 0, 0, Group::kTransactions,
     "Forgets watched keys.", RunUnwatch},
};

}  // namespace

std::span<const Command> TransactionCommands() { return kTransactionCommands; }

}  // namespace basalt::server

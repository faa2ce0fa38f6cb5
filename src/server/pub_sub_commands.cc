#include "server/access.h"
#include "server/command.h"
#include "server/hub.h"
#include "server/session.h"

namespace basalt::server {
namespace {

void ReplySubscription(Call& call, std::string_view kind, std::optional<std::string_view> name) {
  call.reply.Push(3);
  call.reply.Bulk(kind);
  name ? call.reply.Bulk(*name) : call.reply.Null();
  call.reply.Integer(static_cast<int64_t>(call.session.subscriptions()));
}

/// Channels and patterns that one client may subscribe to.
constexpr size_t kSubscriptionsMax = 100'000;

void RunSubscribe(Call& call) {
  for (size_t i = 1; i < call.count(); ++i) {
    const std::string channel(call.arg(i));
    if (call.session.subscriptions() >= kSubscriptionsMax) {
      return call.reply.Error("ERR too many subscriptions");
    }
    if (call.session.channels.insert(channel).second) {
      call.hub.pub_sub().Subscribe(call.session.peer(), channel);
    }
    ReplySubscription(call, "subscribe", channel);
  }
}

void RunPsubscribe(Call& call) {
  for (size_t i = 1; i < call.count(); ++i) {
    const std::string pattern(call.arg(i));
    if (call.session.subscriptions() >= kSubscriptionsMax) {
      return call.reply.Error("ERR too many subscriptions");
    }
    if (call.session.patterns.insert(pattern).second) {
      call.hub.pub_sub().SubscribePattern(call.session.peer(), pattern);
    }
    ReplySubscription(call, "psubscribe", pattern);
  }
}

/// The names that are given, or all that there are.
std::vector<std::string> NamesToEnd(Call& call, const std::set<std::string>& all) {
  if (call.count() == 1) return {all.begin(), all.end()};
  return {call.args.begin() + 1, call.args.end()};
}

void RunUnsubscribe(Call& call) {
  const std::vector<std::string> channels = NamesToEnd(call, call.session.channels);
  if (channels.empty()) return ReplySubscription(call, "unsubscribe", std::nullopt);
  for (const std::string& channel : channels) {
    if (call.session.channels.erase(channel) > 0) {
      call.hub.pub_sub().Unsubscribe(call.session.peer(), channel);
    }
    ReplySubscription(call, "unsubscribe", channel);
  }
}

void RunPunsubscribe(Call& call) {
  const std::vector<std::string> patterns = NamesToEnd(call, call.session.patterns);
  if (patterns.empty()) return ReplySubscription(call, "punsubscribe", std::nullopt);
  for (const std::string& pattern : patterns) {
    if (call.session.patterns.erase(pattern) > 0) {
      call.hub.pub_sub().UnsubscribePattern(call.session.peer(), pattern);
    }
    ReplySubscription(call, "punsubscribe", pattern);
  }
}

void RunPublish(Call& call) {
  call.reply.Integer(static_cast<int64_t>(call.hub.pub_sub().CountReceivers(call.arg(1))));
  call.after_commit.emplace_back(
      [&hub = call.hub, channel = std::string(call.arg(1)), text = std::string(call.arg(2))] {
        hub.pub_sub().Publish(channel, text);
      });
}

void RunPubsub(Call& call) {
  PubSub& pub_sub = call.hub.pub_sub();
  if (call.Is(1, "channels") && call.count() <= 3) {
    std::vector<std::string> names =
        pub_sub.Channels(call.count() == 3 ? call.arg(2) : std::string_view("*"));
    // Names of channels may have names of keys in them.
    std::erase_if(names, [&](const std::string& name) {
      return !MaySeeMessage(*call.session.user(), name, {}) && !name.starts_with("__keyevent@");
    });
    call.reply.Array(names.size());
    for (const std::string& name : names) call.reply.Bulk(name);
  } else if (call.Is(1, "numsub")) {
    call.reply.Map(call.count() - 2);
    for (size_t i = 2; i < call.count(); ++i) {
      call.reply.Bulk(call.arg(i));
      call.reply.Integer(static_cast<int64_t>(pub_sub.CountSubscribers(std::string(call.arg(i)))));
    }
  } else if (call.Is(1, "numpat") && call.count() == 2) {
    call.reply.Integer(static_cast<int64_t>(pub_sub.CountPatterns()));
  } else {
    UnknownSubcommand(call);
  }
}

constexpr Command kPubSubCommands[] = {
    {"subscribe", "channel [channel ...]", -2, kNoScript | kNoData | kPubSubFlag | kSubscribed, 0,
     0, 0, Group::kPubSub, "Listens to channels.", RunSubscribe},
    {"psubscribe", "pattern [pattern ...]", -2, kNoScript | kNoData | kPubSubFlag | kSubscribed, 0,
     0, 0, Group::kPubSub, "Listens to channels that match patterns.", RunPsubscribe},
    {"unsubscribe", "[channel [channel ...]]", -1, kNoScript | kNoData | kPubSubFlag | kSubscribed,
     0, 0, 0, Group::kPubSub, "Stops listening to channels.", RunUnsubscribe},
    {"punsubscribe", "[pattern [pattern ...]]", -1, kNoScript | kNoData | kPubSubFlag | kSubscribed,
     0, 0, 0, Group::kPubSub, "Stops listening to channels that match patterns.", RunPunsubscribe},
    {"publish", "channel message", 3, kNoData | kPubSubFlag | kFast, 0, 0, 0, Group::kPubSub,
     "Sends a message to a channel.", RunPublish},
    {"pubsub", "CHANNELS [pattern] | NUMSUB [channel [channel ...]] | NUMPAT", -2,
     kNoData | kPubSubFlag, 0, 0, 0, Group::kPubSub, "Returns the channels that have subscribers.",
     RunPubsub},
};

}  // namespace

std::span<const Command> PubSubCommands() { return kPubSubCommands; }

}  // namespace basalt::server

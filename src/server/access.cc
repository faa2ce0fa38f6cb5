#include "server/access.h"

#include <algorithm>

#include "server/numbers.h"

namespace basalt::server {
namespace {

constexpr std::string_view kKeyspacePrefix = "__keyspace@";
constexpr std::string_view kKeyeventPrefix = "__keyevent@";

/// The keys behind their number, which is at `index`.
bool AddNumbered(Args args, size_t index, std::vector<std::string_view>* keys) {
  const std::optional<int64_t> count =
      index < args.size() ? ParseInteger(args[index]) : std::nullopt;
  if (!count || *count < 0 || static_cast<uint64_t>(*count) >= args.size() - index) return false;
  for (size_t i = 1; i <= static_cast<size_t>(*count); ++i) keys->push_back(args[index + i]);
  return true;
}

/// The first half of what follows STREAMS.
bool AddStreams(Args args, std::vector<std::string_view>* keys) {
  const auto word = std::find_if(args.begin() + 1, args.end(), [](std::string_view arg) {
    return EqualsIgnoreCase(arg, "streams");
  });
  if (word == args.end() || (args.end() - word) % 2 == 0) return false;
  keys->insert(keys->end(), word + 1, word + 1 + (args.end() - word) / 2);
  return true;
}

bool AddMovable(const Command& command, Args args, std::vector<std::string_view>* keys) {
  if (command.name == "xread" || command.name == "xreadgroup") return AddStreams(args, keys);
  const bool is_second =
      command.group == Group::kScripting || command.first_key == 1 || command.name.starts_with('b');
  return AddNumbered(args, is_second ? 2 : 1, keys);
}

/// Commands without keys that tell nothing about them, or that look at the user themselves.
bool TellsNothingOfOthers(const Command& command) {
  constexpr std::string_view kOthers[] = {"scan", "keys", "command", "info", "time", "acl"};
  return command.group == Group::kConnection || command.group == Group::kTransactions ||
         command.group == Group::kPubSub || command.group == Group::kScripting ||
         std::find(std::begin(kOthers), std::end(kOthers), command.name) != std::end(kOthers);
}

uint32_t RightsFor(const Command& command) {
  uint32_t rights = 0;
  if ((command.flags & kReadOnly) != 0) rights |= kRightRead;
  if ((command.flags & kWrite) != 0) rights |= kRightWrite;
  if ((command.flags & kAdmin) != 0) rights |= kRightAdmin;
  if ((command.flags & kScript) != 0) rights |= kRightScripts;
  return rights;
}

}  // namespace

std::optional<std::vector<std::string_view>> KeysOf(const Command& command, Args args) {
  std::vector<std::string_view> keys;
  if (command.first_key > 0) {
    const auto count = static_cast<int>(args.size());
    const int last = command.last_key < 0 ? count + command.last_key : command.last_key;
    for (int i = command.first_key; i <= last && i < count; i += command.key_step) {
      keys.push_back(args[static_cast<size_t>(i)]);
    }
  }
  if ((command.flags & kMovableKeys) != 0 && !AddMovable(command, args, &keys)) return {};
  return keys;
}

std::string AccessError(const User& user, const Command& command, Args args) {
  if (user.rights == kAllRights && user.has_all_keys) return {};
  const uint32_t wanted = RightsFor(command);
  const bool is_blind = command.first_key == 0 && (command.flags & kMovableKeys) == 0;
  if ((user.rights & wanted) != wanted ||
      (!user.has_all_keys && is_blind && !TellsNothingOfOthers(command))) {
    return "NOPERM this user has no permissions to run the '" + std::string(command.name) +
           "' command";
  }
  if (user.has_all_keys || is_blind) return {};
  const auto keys = KeysOf(command, args);
  if (keys && std::all_of(keys->begin(), keys->end(),
                          [&](std::string_view key) { return user.MayReach(key); })) {
    return {};
  }
  return "NOPERM this user has no permissions to access one of the keys used as arguments";
}

void SkipForeign(const User& user, std::string_view prefix, Walk* walk) {
  while (walk->Valid() && !user.has_all_keys) {
    const std::string name = std::string(prefix) + std::string(walk->key());
    const std::optional<std::string> next = user.NextReachable(name);
    if (next == name) return;
    if (next && next->starts_with(prefix)) {
      walk->Seek(std::string_view(*next).substr(prefix.size()));
    } else {
      // Nothing of its own follows below this prefix.
      return walk->Finish();
    }
  }
}

bool MaySeeMessage(const User& user, std::string_view channel, std::string_view text) {
  if (user.has_all_keys) return true;
  if (channel.starts_with(kKeyeventPrefix)) return user.MayReach(text);
  if (!channel.starts_with(kKeyspacePrefix)) return true;
  const size_t colon = channel.find("__:", kKeyspacePrefix.size());
  return colon != std::string_view::npos && user.MayReach(channel.substr(colon + 3));
}

}  // namespace basalt::server

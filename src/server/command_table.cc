#include "server/command_table.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "server/numbers.h"

namespace basalt::server {
namespace {

constexpr size_t kNameBytesMax = 32;

using CommandsByName = std::unordered_map<std::string_view, const Command*>;

const CommandsByName& ByName() {
  static const CommandsByName commands = [] {
    CommandsByName all;
    for (const auto group : {
#ifdef BASALT_LUA
             ScriptCommands(),
#endif
             AclCommands(), ConnectionCommands(), ServerCommands(), KeyCommands(), StringCommands(),
             BitCommands(), HashCommands(), ListCommands(), SetCommands(), SortedSetCommands(),
             SortedSetRangeCommands(), StreamCommands(), PubSubCommands(), TransactionCommands(),
             StoreCommands()}) {
      for (const Command& command : group) all.emplace(command.name, &command);
    }
    return all;
  }();
  return commands;
}

std::vector<std::string> FlagsOf(const Command& command) {
  std::vector<std::string> flags;
  const auto add = [&](uint32_t flag, const char* name) {
    if ((command.flags & flag) != 0) flags.emplace_back(name);
  };
  add(kWrite, "write");
  add(kReadOnly, "readonly");
  add(kAdmin, "admin");
  add(kPubSubFlag, "pubsub");
  add(kBlocking, "blocking");
  add(kFast, "fast");
  add(kNoAuth, "no_auth");
  add(kNoMulti, "no_multi");
  add(kNoScript, "noscript");
  add(kMovableKeys, "movablekeys");
  return flags;
}

std::vector<std::string> CategoriesOf(const Command& command) {
  std::vector<std::string> categories;
  if ((command.flags & kWrite) != 0) categories.emplace_back("@write");
  if ((command.flags & kReadOnly) != 0) categories.emplace_back("@read");
  if ((command.flags & kAdmin) != 0) categories.emplace_back("@admin");
  if ((command.flags & kBlocking) != 0) categories.emplace_back("@blocking");
  std::string group(GroupName(command.group));
  if (command.group == Group::kSortedSet) group = "sortedset";
  if (command.group == Group::kGeneric) group = "keyspace";
  if (command.group == Group::kTransactions) group = "transaction";
  if (command.group != Group::kServer) categories.push_back("@" + group);
  categories.emplace_back((command.flags & kFast) != 0 ? "@fast" : "@slow");
  return categories;
}

}  // namespace

const Command* FindCommand(std::string_view name) noexcept {
  if (name.empty() || name.size() > kNameBytesMax) return nullptr;
  std::array<char, kNameBytesMax> lower;
  for (size_t i = 0; i < name.size(); ++i) {
    lower[i] = name[i] >= 'A' && name[i] <= 'Z' ? static_cast<char>(name[i] - 'A' + 'a') : name[i];
  }
  const auto found = ByName().find(std::string_view(lower.data(), name.size()));
  return found == ByName().end() ? nullptr : found->second;
}

const std::vector<const Command*>& AllCommands() {
  static const std::vector<const Command*> sorted = [] {
    std::vector<const Command*> all;
    for (const auto& [name, command] : ByName()) all.push_back(command);
    std::sort(all.begin(), all.end(),
              [](const Command* a, const Command* b) { return a->name < b->name; });
    return all;
  }();
  return sorted;
}

void ReplyCommandInfo(const Command* command, Reply& reply) {
  if (command == nullptr) return reply.NullArray();
  reply.Array(10);
  reply.Bulk(command->name);
  reply.Integer(command->arity);
  const std::vector<std::string> flags = FlagsOf(*command);
  reply.Set(flags.size());
  for (const std::string& flag : flags) reply.Simple(flag);
  reply.Integer(command->first_key);
  reply.Integer(command->last_key);
  reply.Integer(command->key_step);
  const std::vector<std::string> categories = CategoriesOf(*command);
  reply.Set(categories.size());
  for (const std::string& category : categories) reply.Simple(category);
  reply.Array(0);  // Hints.
  reply.Array(0);  // Key specifications.
  reply.Array(0);  // Subcommands.
}

void ReplyCommandDocs(const Command& command, Reply& reply) {
  reply.Bulk(command.name);
  reply.Map(4);
  reply.Bulk("summary");
  reply.Bulk(command.summary);
  reply.Bulk("since");
  reply.Bulk("1.0.0");
  reply.Bulk("group");
  reply.Bulk(GroupName(command.group));
  reply.Bulk("syntax");
  reply.Bulk(ToUpper(command.name) + (command.syntax.empty() ? "" : " ") +
             std::string(command.syntax));
}

std::string CommandsPage() {
  std::string page =
      "# Commands of the server\n\n"
      "These are the commands of the Redis protocol that `basalt serve` has. The table that the\n"
      "server dispatches by has written this page. [server.md](server.md) says how they differ "
      "from Redis.\n";
  for (const Group group :
       {Group::kConnection, Group::kServer, Group::kGeneric, Group::kString, Group::kBitmap,
        Group::kHash, Group::kList, Group::kSet, Group::kSortedSet, Group::kStream, Group::kPubSub,
        Group::kTransactions, Group::kScripting, Group::kStore}) {
    std::string rows;
    for (const Command* command : AllCommands()) {
      if (command->group != group) continue;
      std::string syntax(command->syntax);
      for (size_t at = 0; (at = syntax.find('|', at)) != std::string::npos; at += 2) {
        syntax.insert(at, "\\");
      }
      rows += "| `" + ToUpper(command->name) + (syntax.empty() ? "" : " ") + syntax + "` | " +
              std::string(command->summary) + " |\n";
    }
    if (rows.empty()) continue;
    page += "\n## " + std::string(GroupName(group)) + "\n\n| command | |\n|---|---|\n" + rows;
  }
  return page;
}

}  // namespace basalt::server

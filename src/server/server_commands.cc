#include <unistd.h>

#include <chrono>
#include <map>

#include "server/command.h"
#include "server/command_table.h"
#include "server/glob.h"
#include "server/hub.h"
#include "server/numbers.h"
#include "server/session.h"
#include "server/version.h"

namespace basalt::server {
namespace {

void RunCommand(Call& call) {
  const std::string sub = call.count() > 1 ? ToLower(call.arg(1)) : "";
  const bool named = call.count() > 2;
  if (sub == "count" && !named) {
    return call.reply.Integer(static_cast<int64_t>(AllCommands().size()));
  }
  std::vector<const Command*> commands;
  if (named) {
    for (size_t i = 2; i < call.count(); ++i) commands.push_back(FindCommand(call.arg(i)));
  } else {
    commands = AllCommands();
  }
  if (sub.empty() || sub == "info") {
    call.reply.Array(commands.size());
    for (const Command* command : commands) ReplyCommandInfo(command, call.reply);
  } else if (sub == "docs") {
    std::erase(commands, nullptr);
    call.reply.Map(commands.size());
    for (const Command* command : commands) ReplyCommandDocs(*command, call.reply);
  } else if (sub == "list" && !named) {
    call.reply.Array(commands.size());
    for (const Command* command : commands) call.reply.Bulk(command->name);
  } else {
    UnknownSubcommand(call);
  }
}

struct Figure {
  const char* name;
  std::string value;
};

void AppendSection(std::string* text, std::string_view title, const std::vector<Figure>& figures) {
  if (!text->empty()) *text += "\r\n";
  *text += "# " + std::string(title) + "\r\n";
  for (const Figure& figure : figures) {
    *text += figure.name;
    *text += ":" + figure.value + "\r\n";
  }
}

std::string Text(uint64_t number) { return std::to_string(number); }

std::vector<Figure> StatsFigures(Hub& hub) {
  const Counters& counters = hub.counters();
  return {{"total_connections_received", Text(counters.connections)},
          {"total_commands_processed", Text(counters.commands)},
          {"rejected_connections", Text(counters.refused)},
          {"total_error_replies", Text(counters.errors)},
          {"pubsub_channels", Text(hub.pub_sub().Channels("*").size())},
          {"pubsub_patterns", Text(hub.pub_sub().CountPatterns())},
          {"basalt_transaction_conflicts", Text(counters.conflicts)},
          {"basalt_pipelines", Text(counters.pipelines)},
          {"basalt_pool_commands", Text(counters.pool_commands)},
          {"basalt_http_requests", Text(counters.http_requests)},
          {"basalt_swept_collections", Text(counters.swept)}};
}

std::vector<Figure> KeyspaceFigures(Hub& hub) {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (int db = 0; db < kDatabases; ++db) all.push_back("db" + std::to_string(db));
    return all;
  }();
  std::vector<Figure> figures;
  for (uint8_t db = 0; db < kDatabases; ++db) {
    const uint64_t keys = hub.dataset().ApproximateKeys(db);
    if (keys == 0) continue;
    figures.push_back({names[db].c_str(), "keys=" + Text(keys) + ",expires=0,avg_ttl=0"});
  }
  return figures;
}

/// `counts_keys`: also how many keys there are.
std::string InfoText(Hub& hub, const std::vector<std::string>& wanted, bool counts_keys) {
  const auto has = [&](std::string_view section) {
    for (const std::string& name : wanted) {
      if (name == section || name == "all" || name == "everything" || name == "default") {
        return true;
      }
    }
    return wanted.empty();
  };
  const DBStats stats = hub.dataset().db().GetStats();
  std::string text;
  if (has("server")) {
    AppendSection(&text, "Server",
                  {{"redis_version", std::string(kRedisVersion)},
                   {"redis_mode", "standalone"},
                   {"server_name", "basalt"},
                   {"process_id", Text(static_cast<uint64_t>(::getpid()))},
                   {"tcp_port", Text(hub.port())},
                   {"uptime_in_seconds", Text(hub.uptime_seconds())},
                   {"uptime_in_days", Text(hub.uptime_seconds() / 86'400)}});
  }
  if (has("clients")) {
    AppendSection(&text, "Clients",
                  {{"connected_clients", Text(hub.CountClients())},
                   {"maxclients", Text(hub.clients_max())},
                   {"blocked_clients", Text(hub.waiting().count())}});
  }
  if (has("memory")) {
    AppendSection(&text, "Memory",
                  {{"used_memory", Text(stats.memtable_bytes + stats.cache_bytes)},
                   {"maxmemory", Text(stats.memory_budget)},
                   {"maxmemory_policy", "noeviction"}});
  }
  if (has("persistence")) {
    AppendSection(&text, "Persistence",
                  {{"loading", "0"},
                   {"aof_enabled", "1"},
                   {"rdb_bgsave_in_progress", "0"},
                   {"basalt_last_lsn", Text(stats.last_lsn)},
                   {"basalt_durable_lsn", Text(stats.durable_lsn)}});
  }
  if (has("stats")) AppendSection(&text, "Stats", StatsFigures(hub));
  if (has("replication")) {
    AppendSection(&text, "Replication", {{"role", "master"}, {"connected_slaves", "0"}});
  }
  if (has("cluster")) AppendSection(&text, "Cluster", {{"cluster_enabled", "0"}});
  if (has("keyspace") && counts_keys) AppendSection(&text, "Keyspace", KeyspaceFigures(hub));
  return text;
}

void RunInfo(Call& call) {
  std::vector<std::string> sections;
  for (size_t i = 1; i < call.count(); ++i) sections.push_back(ToLower(call.arg(i)));
  call.reply.Verbatim(InfoText(call.hub, sections, call.session.user()->has_all_keys));
}

/// What CONFIG GET tells.
std::map<std::string, std::string> Parameters(Hub& hub) {
  const Settings& settings = hub.settings();
  return {{"appendfsync", settings.is_power_durable ? "always" : "no"},
          {"appendonly", "yes"},
          {"databases", std::to_string(kDatabases)},
          {"maxclients", std::to_string(hub.clients_max())},
          {"maxmemory", "0"},
          {"maxmemory-policy", "noeviction"},
          {"notify-keyspace-events", hub.notifications().flags()},
          {"busy-reply-threshold", "5000"},
          {"lua-time-limit", "5000"},
          {"tcp-keepalive", "300"},
          {"port", std::to_string(hub.port())},
          {"proto-max-bulk-len", std::to_string(settings.request.argument_bytes)},
          {"save", ""},
          {"timeout", "0"}};
}

void ConfigGet(Call& call) {
  std::map<std::string, std::string> found;
  for (const auto& [name, value] : Parameters(call.hub)) {
    for (size_t i = 2; i < call.count(); ++i) {
      if (GlobMatches(ToLower(call.arg(i)), name)) found[name] = value;
    }
  }
  call.reply.Map(found.size());
  for (const auto& [name, value] : found) {
    call.reply.Bulk(name);
    call.reply.Bulk(value);
  }
}

void ConfigSet(Call& call) {
  constexpr int64_t kClientsMost = 1'000'000;
  const std::map<std::string, std::string> parameters = Parameters(call.hub);
  std::optional<uint32_t> clients;
  std::optional<std::string_view> events;
  for (size_t i = 2; i < call.count(); i += 2) {
    const std::string name = ToLower(call.arg(i));
    const auto present = parameters.find(name);
    if (present == parameters.end()) {
      return call.reply.Error("ERR Unknown option or number of arguments for CONFIG SET - '" +
                              std::string(call.arg(i)) + "'");
    }
    if (name == "maxclients") {
      const std::optional<int64_t> number = ParseInteger(call.arg(i + 1));
      if (!number || *number < 1 || *number > kClientsMost) {
        return call.reply.Error(
            "ERR CONFIG SET failed (possibly related to argument 'maxclients') "
            "- argument must be between 1 and 1000000 inclusive");
      }
      clients = static_cast<uint32_t>(*number);
    } else if (name == "notify-keyspace-events") {
      if (!Notifications::AreFlags(call.arg(i + 1))) {
        return call.reply.Error(
            "ERR CONFIG SET failed (possibly related to argument 'notify-keyspace-events') - "
            "Invalid event class character. Use 'Ag$lshzxeKEtd'.");
      }
      events = call.arg(i + 1);
    } else if (call.arg(i + 1) != present->second) {
      return call.reply.Error("ERR CONFIG SET failed (possibly related to argument '" + name +
                              "') - can't set immutable config");
    }
  }
  if (clients) call.hub.set_clients_max(*clients);
  if (events) call.hub.notifications().set_flags(*events);
  call.reply.Ok();
}

void RunConfig(Call& call) {
  if (call.Is(1, "get") && call.count() > 2) return ConfigGet(call);
  if (call.Is(1, "set") && call.count() > 3 && call.count() % 2 == 0) return ConfigSet(call);
  if (call.Is(1, "resetstat") && call.count() == 2) {
    call.hub.counters().commands = 0;
    call.hub.counters().errors = 0;
    call.hub.counters().conflicts = 0;
    return call.reply.Ok();
  }
  UnknownSubcommand(call);
}

void RunDbsize(Call& call) {
  uint64_t keys = 0;
  for (Walk walk(&call.view, MetadataKey(call.view.db(), {}), true); walk.Valid(); walk.Next()) {
    ++keys;
  }
  call.reply.Integer(static_cast<int64_t>(keys));
}

/// ASYNC and SYNC mean the same here.
bool HasFlushOptions(Call& call) {
  if (call.count() == 1) return true;
  if (call.count() == 2 && (call.Is(1, "async") || call.Is(1, "sync"))) return true;
  call.SyntaxError();
  return false;
}

void RunFlushdb(Call& call) {
  if (!HasFlushOptions(call)) return;
  call.view.RemoveAll(call.view.db());
  call.reply.Ok();
}

void RunFlushall(Call& call) {
  if (!HasFlushOptions(call)) return;
  call.view.RemoveAll(std::nullopt);
  call.reply.Ok();
}

void RunTime(Call& call) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  call.reply.Array(2);
  call.reply.Bulk(std::to_string(micros / 1'000'000));
  call.reply.Bulk(std::to_string(micros % 1'000'000));
}

void RunModule(Call& call) {
  if (!call.Is(1, "list") || call.count() != 2) return UnknownSubcommand(call);
  call.reply.Array(0);
}

/// Every acknowledged write is in the log; what is left to do is to sync it.
void RunSave(Call& call) {
  if (Status synced = call.hub.dataset().db().Sync(); !synced.ok()) {
    return call.reply.Error("ERR " + std::string(synced.message()));
  }
  call.reply.Ok();
}

constexpr Command kServerCommands[] = {
    {"command", "[COUNT | DOCS [name ...] | INFO [name ...] | LIST]", -1, kNoData, 0, 0, 0,
     Group::kServer, "Describes commands.", RunCommand},
    {"info", "[section [section ...]]", -1, kNoData | kSlow, 0, 0, 0, Group::kServer,
     "Returns figures of the server.", RunInfo},
    {"config", "GET parameter [parameter ...] | SET parameter value [...] | RESETSTAT", -2,
     kNoScript | kNoData | kAdmin, 0, 0, 0, Group::kServer, "Reads and sets parameters.",
     RunConfig},
    {"dbsize", "", 1, kReadOnly, 0, 0, 0, Group::kServer,
     "Counts the keys of the database, in a time that grows with their number.", RunDbsize},
    {"flushdb", "[ASYNC | SYNC]", -1, kWrite, 0, 0, 0, Group::kServer,
     "Deletes all keys of the database.", RunFlushdb},
    {"flushall", "[ASYNC | SYNC]", -1, kWrite, 0, 0, 0, Group::kServer,
     "Deletes all keys of all databases.", RunFlushall},
    {"time", "", 1, kNoData | kFast, 0, 0, 0, Group::kServer, "Returns the server's time.",
     RunTime},
    {"module", "LIST", -2, kNoScript | kNoData | kAdmin, 0, 0, 0, Group::kServer,
     "Lists modules: there are none.", RunModule},
    {"save", "", 1, kNoScript | kNoData | kAdmin | kSlow | kNoMulti, 0, 0, 0, Group::kServer,
     "Makes all acknowledged writes survive a power cut.", RunSave},
};

}  // namespace

std::span<const Command> ServerCommands() { return kServerCommands; }

}  // namespace basalt::server

#include "server/metrics.h"

#include <cstdint>

namespace basalt::server {

std::string MetricsText(Hub& hub) {
  std::string text;
  const auto add = [&](const char* name, const char* kind, const char* what, uint64_t value) {
    const std::string full = std::string("basalt_") + name;
    text += "# HELP " + full + " " + what + "\n# TYPE " + full + " " + kind + "\n" + full + " " +
            std::to_string(value) + "\n";
  };
  const Counters& counters = hub.counters();
  const DBStats stats = hub.dataset().db().GetStats();
  uint64_t table_bytes = 0;
  for (const LevelStats& level : stats.levels) table_bytes += level.bytes;
  add("uptime_seconds", "gauge", "Seconds since the server started.", hub.uptime_seconds());
  add("connections", "gauge", "Open connections.", hub.CountClients());
  add("blocked_clients", "gauge", "Clients in a blocking command.", hub.waiting().count());
  add("connections_total", "counter", "Connections that were accepted.", counters.connections);
  add("connections_refused_total", "counter", "Connections above the limit.", counters.refused);
  add("commands_total", "counter", "Commands of the Redis protocol.", counters.commands);
  add("http_requests_total", "counter", "Requests of HTTP.", counters.http_requests);
  add("transaction_conflicts_total", "counter", "Transactions that ran again.", counters.conflicts);
  add("pipelines_total", "counter", "Transactions of several commands of a pipeline.",
      counters.pipelines);
  add("pool_commands_total", "counter", "Commands that left their event loop.",
      counters.pool_commands);
  add("swept_collections_total", "counter", "Expired collections that were removed.",
      counters.swept);
  add("memory_budget_bytes", "gauge", "Bytes for memtables and cache.", stats.memory_budget);
  add("memtable_bytes", "gauge", "Bytes of memtables.", stats.memtable_bytes);
  add("cache_bytes", "gauge", "Bytes of cached blocks.", stats.cache_bytes);
  add("table_bytes", "gauge", "Bytes of tables on disk.", table_bytes);
  add("last_lsn", "counter", "The newest record of the log.", stats.last_lsn);
  add("durable_lsn", "counter", "Records up to it survive a power cut.", stats.durable_lsn);
  return text;
}

}  // namespace basalt::server

#include "basalt/json.h"

#include "c_api/json_writer.h"

namespace basalt {
namespace {

using c_api::ObjectWriter;

std::string ToJson(const FileFinding& finding) {
  return ObjectWriter()
      .Add("file", finding.file)
      .Add("offset", finding.offset)
      .Add("status", finding.status.ToString())
      .Finish();
}

}  // namespace

std::string ToJson(const DBStats& stats) {
  return ObjectWriter()
      .Add("last_sequence", stats.last_sequence)
      .Add("last_lsn", stats.last_lsn)
      .Add("durable_lsn", stats.durable_lsn)
      .Add("flushed_lsn", stats.flushed_lsn)
      .Add("oldest_snapshot", stats.oldest_snapshot)
      .Add("snapshots", stats.snapshots)
      .Add("memory_budget", stats.memory_budget)
      .Add("memtable_bytes", stats.memtable_bytes)
      .Add("keyspaces", stats.keyspaces)
      .Add("cache_bytes", stats.cache_bytes)
      .Add("cache_capacity", stats.cache_capacity)
      .Add("cache_hits", stats.cache_hits)
      .Add("cache_misses", stats.cache_misses)
      .Add("table_metadata_bytes", stats.table_metadata_bytes)
      .Add("tables_in_parts", stats.tables_in_parts)
      .Add("log_bytes", stats.log_bytes)
      .AddObjects("levels", stats.levels,
                  [](const LevelStats& level) {
                    return ObjectWriter()
                        .Add("tables", level.tables)
                        .Add("bytes", level.bytes)
                        .Add("records", level.records)
                        .Add("deletes", level.deletes)
                        .Finish();
                  })
      .Add("writes", stats.writes)
      .Add("records_written", stats.records_written)
      .Add("bytes_written", stats.bytes_written)
      .Add("log_bytes_written", stats.log_bytes_written)
      .Add("syncs", stats.syncs)
      .Add("flushes", stats.flushes)
      .Add("flush_bytes", stats.flush_bytes)
      .Add("compactions", stats.compactions)
      .Add("compaction_bytes_read", stats.compaction_bytes_read)
      .Add("compaction_bytes_written", stats.compaction_bytes_written)
      .Add("compaction_debt", stats.compaction_debt)
      .Add("compactions_running", stats.compactions_running)
      .Add("range_deletes", stats.range_deletes)
      .Add("write_waits", stats.write_waits)
      .Add("write_wait_us", stats.write_wait_us)
      .Add("write_delays", stats.write_delays)
      .Add("write_delay_us", stats.write_delay_us)
      .Add("background_errors", stats.background_errors)
      .Add("background_error", stats.background_error)
      .Add("recovered_records", stats.recovered_records)
      .Add("log_tail_bytes_cut", stats.log_tail_bytes_cut)
      .Finish();
}

std::string ToJson(const MemTableStats& stats) {
  return ObjectWriter()
      .Add("memory_budget", stats.memory_budget)
      .Add("memory_bytes", stats.memory_bytes)
      .Add("logical_bytes", stats.logical_bytes)
      .Add("records", stats.records)
      .Add("range_deletes", stats.range_deletes)
      .Add("last_sequence", stats.last_sequence)
      .Add("snapshots", stats.snapshots)
      .Add("sealed_generations", stats.sealed_generations)
      .Add("sorted_records", stats.sorted_records)
      .Add("sorted_runs", stats.sorted_runs)
      .Add("seals", stats.seals)
      .Add("compactions", stats.compactions)
      .Add("compacted_records", stats.compacted_records)
      .Add("dropped_records", stats.dropped_records)
      .Add("waits", stats.waits)
      .Add("wait_us", stats.wait_us)
      .Finish();
}

std::string ToJson(const CacheStats& stats) {
  return ObjectWriter()
      .Add("hits", stats.hits)
      .Add("misses", stats.misses)
      .Add("inserts", stats.inserts)
      .Add("evicted", stats.evicted)
      .Add("expired", stats.expired)
      .Add("replaced", stats.replaced)
      .Add("erased", stats.erased)
      .Add("refused", stats.refused)
      .Add("computed", stats.computed)
      .Add("entries", stats.entries)
      .Add("capacity_bytes", stats.capacity_bytes)
      .Add("bytes", stats.bytes)
      .Add("entry_bytes", stats.entry_bytes)
      .Add("index_bytes", stats.index_bytes)
      .Add("retired_bytes", stats.retired_bytes)
      .Add("pinned_bytes", stats.pinned_bytes)
      .Add("reserved_bytes", stats.reserved_bytes)
      .Add("pinned_entries", stats.pinned_entries)
      .Add("shards", stats.shards)
      .Finish();
}

std::string ToJson(const SharedMapStats& stats) {
  return ObjectWriter()
      .Add("entries", stats.entries)
      .Add("version", stats.version)
      .Add("shards", stats.shards)
      .Add("base_records", stats.base_records)
      .Add("fixed_shards", stats.fixed_shards)
      .Add("changes", stats.changes)
      .Add("changed_keys", stats.changed_keys)
      .Add("base_bytes", stats.base_bytes)
      .Add("function_bytes", stats.function_bytes)
      .Add("log_bytes", stats.log_bytes)
      .Add("log_capacity_bytes", stats.log_capacity_bytes)
      .Add("index_bytes", stats.index_bytes)
      .Add("compacting", stats.compacting)
      .Add("optimizations", stats.optimizations)
      .Add("compact_waits", stats.compact_waits)
      .Add("versions_held", stats.versions_held)
      .Add("writer_pid", stats.writer_pid)
      .Add("compact_error", stats.compact_error)
      .Finish();
}

std::string ToJson(const CheckReport& report) {
  return ObjectWriter()
      .Add("files", report.files)
      .Add("bytes", report.bytes)
      .Add("tables", report.tables)
      .Add("blocks", report.blocks)
      .Add("records", report.records)
      .Add("log_records", report.log_records)
      .Add("torn_tail_bytes", report.torn_tail_bytes)
      .AddObjects("findings", report.findings,
                  [](const FileFinding& finding) { return ToJson(finding); })
      .Add("ok", report.ok())
      .Finish();
}

std::string ToJson(const RepairReport& report) {
  return ObjectWriter()
      .Add("last_lsn_kept", report.last_lsn_kept)
      .Add("first_lsn_lost", report.first_lsn_lost)
      .Add("last_lsn_lost", report.last_lsn_lost)
      .Add("moved_to_lost", report.moved_to_lost)
      .AddObjects("findings", report.findings,
                  [](const FileFinding& finding) { return ToJson(finding); })
      .Add("ok", report.ok())
      .Finish();
}

std::string ToJson(const SharedMapReport& report) {
  return ObjectWriter()
      .Add("records", report.records)
      .Add("bytes", report.bytes)
      .Add("problems", report.problems)
      .Add("ok", report.ok())
      .Finish();
}

}  // namespace basalt

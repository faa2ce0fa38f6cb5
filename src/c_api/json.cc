#include "basalt/json.h"

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace basalt {
namespace {

/// Bytes of the character of UTF-8 that `text` begins with; 0: it begins with none.
size_t CharacterSize(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // What has a shorter form, surrogates, and what lies above U+10FFFF.
  if (first == 0xE0 && byte(1) < 0xA0) return 0;
  if (first == 0xED && byte(1) > 0x9F) return 0;
  if (first == 0xF0 && byte(1) < 0x90) return 0;
  if (first == 0xF4 && byte(1) > 0x8F) return 0;
  return size;
}

/// Writes one object. Members are added in order.
class ObjectWriter {
 public:
  ObjectWriter& Add(std::string_view name, std::string_view text) {
    Begin(name);
    String(text);
    return *this;
  }
  ObjectWriter& Add(std::string_view name, const std::string& text) {
    return Add(name, std::string_view(text));
  }
  ObjectWriter& Add(std::string_view name, std::same_as<bool> auto value) {
    Begin(name);
    json_ += value ? "true" : "false";
    return *this;
  }
  ObjectWriter& Add(std::string_view name, std::unsigned_integral auto value)
    requires(!std::same_as<decltype(value), bool>)
  {
    Begin(name);
    json_ += std::to_string(value);
    return *this;
  }
  ObjectWriter& Add(std::string_view name, const std::vector<std::string>& texts) {
    return AddArray(name, texts, [this](const std::string& text) { String(text); });
  }
  /// `write(element)` gives the JSON of one.
  template <class Element, class Write>
  ObjectWriter& AddObjects(std::string_view name, const std::vector<Element>& elements,
                           const Write& write) {
    return AddArray(name, elements, [&](const Element& element) { json_ += write(element); });
  }
  std::string Finish() { return json_ + '}'; }

 private:
  void Begin(std::string_view name) {
    if (json_.size() > 1) json_ += ',';
    String(name);
    json_ += ':';
  }

  template <class Element, class Write>
  ObjectWriter& AddArray(std::string_view name, const std::vector<Element>& elements,
                         const Write& write) {
    Begin(name);
    char separator = '[';
    for (const Element& element : elements) {
      json_ += separator;
      write(element);
      separator = ',';
    }
    json_ += elements.empty() ? "[]" : "]";
    return *this;
  }

  void String(std::string_view text) {
    static constexpr std::string_view kDigits = "0123456789abcdef";
    json_ += '"';
    while (!text.empty()) {
      const size_t size = CharacterSize(text);
      const auto byte = static_cast<unsigned char>(text[0]);
      if (size == 0) {
        json_ += "\xEF\xBF\xBD";
      } else if (byte == '"' || byte == '\\') {
        json_ += '\\';
        json_ += text[0];
      } else if (byte < 0x20) {
        json_ += "\\u00";
        json_ += kDigits[byte >> 4];
        json_ += kDigits[byte & 15];
      } else {
        json_ += text.substr(0, size);
      }
      text.remove_prefix(size == 0 ? 1 : size);
    }
    json_ += '"';
  }

  std::string json_ = "{";
};

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
      .Add("generation", stats.generation)
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
      .Add("optimizing", stats.optimizing)
      .Add("optimizations", stats.optimizations)
      .Add("optimize_waits", stats.optimize_waits)
      .Add("generations_held", stats.generations_held)
      .Add("writer_pid", stats.writer_pid)
      .Add("optimize_error", stats.optimize_error)
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

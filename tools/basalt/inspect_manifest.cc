#include <utility>

#include "base/coding.h"
#include "db/manifest.h"
#include "table/table_format.h"
#include "tools/basalt/inspection.h"

namespace basalt::tools {
namespace {

constexpr size_t kHeaderBytes = 64;

/// The header's fields as they stand, sound or not.
Document HeaderDocument(std::string_view bytes) {
  base::Decoder in(bytes.substr(0, kHeaderBytes));
  Document header;
  header["magic"] = BytesValue(in.ReadBytes(8));
  header["version"] = in.Read<uint32_t>();
  header["required_features"] = in.Read<uint32_t>();
  header["optional_features"] = in.Read<uint32_t>();
  in.Read<uint32_t>();
  header["database_id"] = HexValue(in.Read<uint64_t>());
  header["body_bytes"] = in.Read<uint64_t>();
  header["body_checksum"] = HexValue(in.Read<uint64_t>());
  in.Read<uint64_t>();
  header["checksum"] = HexValue(in.Read<uint64_t>());
  return header;
}

/// The body's first fields as they stand, sound or not.
Document BodyDocument(std::string_view bytes) {
  base::Decoder in(bytes);
  in.ReadBytes(kHeaderBytes);
  Document body;
  for (const char* name :
       {"next_table_number", "flushed_lsn", "durable_lsn", "last_sequence", "wall_ms"}) {
    body[name] = in.Read<uint64_t>();
  }
  body["tables"] = in.Read<uint32_t>();
  return in.ok() ? body : Document();
}

/// Of a table: one of several begins its keys with theirs.
boost::json::value KeyspaceValue(uint32_t keyspace) {
  if (keyspace == table::kSharedKeyspaces) return "several";
  return keyspace;
}

Document TableDocument(const db::ManifestTable& table) {
  const table::TableProperties& properties = table.properties;
  Document document{{"number", table.place.number},
                    {"level", table.level},
                    {"file_id", HexValue(properties.file_id)},
                    {"keyspace", KeyspaceValue(properties.keyspace)},
                    {"created_ms", table.place.created_ms},
                    {"ranges_applied", table.place.ranges_applied},
                    {"half_expired_ms", table.place.half_expired_ms},
                    {"retained_bytes", table.place.retained_bytes},
                    {"bytes", properties.file_bytes},
                    {"records", properties.records},
                    {"deletes", properties.deletes},
                    {"merges", properties.merges},
                    {"expiring", properties.expiring},
                    {"key_bytes", properties.raw_key_bytes},
                    {"value_bytes", properties.raw_value_bytes},
                    {"smallest_sequence", properties.smallest_sequence},
                    {"largest_sequence", properties.largest_sequence}};
  if (properties.latest_expiry_ms != 0) {
    document["earliest_expiry_ms"] = properties.earliest_expiry_ms;
    document["latest_expiry_ms"] = properties.latest_expiry_ms;
  }
  ShowKey("smallest_key", properties.smallest_key, document);
  ShowKey("largest_key", properties.largest_key, document);
  return document;
}

std::string_view DurabilityName(Durability durability) {
  switch (durability) {
    case Durability::kMemory:
      return "memory";
    case Durability::kInterval:
      return "interval";
    case Durability::kProcess:
      return "process";
    case Durability::kPower:
      return "power";
  }
  return "unknown";
}

Document KeyspaceDocument(const db::Keyspace& keyspace) {
  Document document{{"id", keyspace.id}, {"name", BytesValue(keyspace.name)}};
  if (keyspace.durability) document["durability"] = DurabilityName(*keyspace.durability);
  return document;
}

Document DroppedDocument(const db::DroppedKeyspace& dropped) {
  return {{"id", dropped.id}, {"table_number", dropped.table_number}};
}

Document RangeDeleteDocument(const db::ManifestRangeDelete& deleted) {
  Document document{{"keyspace", deleted.keyspace}, {"sequence", deleted.range.sequence}};
  ShowKey("begin", deleted.range.begin, document);
  ShowKey("end", deleted.range.end, document);
  return document;
}

template <class Elements, class Describe>
void ShowAll(std::string_view name, const Elements& elements, const Describe& describe,
             Inspection& inspection) {
  boost::json::array documents;
  for (const auto& element : elements) documents.push_back(describe(element));
  inspection.Show(name, std::move(documents));
}

}  // namespace

void InspectManifest(std::string_view bytes, Inspection& inspection) {
  if (bytes.size() >= kHeaderBytes) inspection.Show("header", HeaderDocument(bytes));
  if (Document body = BodyDocument(bytes); !body.empty()) inspection.Show("body", std::move(body));
  const Result<db::Manifest> manifest = db::DecodeManifest(bytes, inspection.path());
  if (!manifest) return inspection.Find(0, manifest.error());
  ShowAll("tables", manifest->tables, TableDocument, inspection);
  ShowAll("keyspaces", manifest->keyspaces, KeyspaceDocument, inspection);
  ShowAll("range_deletes", manifest->range_deletes, RangeDeleteDocument, inspection);
  if (!manifest->dropped_keyspaces.empty()) {
    ShowAll("dropped_keyspaces", manifest->dropped_keyspaces, DroppedDocument, inspection);
  }
}

}  // namespace basalt::tools

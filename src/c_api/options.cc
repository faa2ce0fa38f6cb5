#include "c_api/options.h"

#include <string>

#include "c_api/call.h"
#include "c_api/handles.h"

namespace basalt::c_api {
namespace {

Status OutOfRange(const char* field, int64_t value, const char* allowed) {
  return Status(StatusCode::kInvalidArgument,
                std::string(field) + " is " + std::to_string(value) + ", and must be " + allowed);
}

/// Unset for BASALT_DURABILITY_DEFAULT.
Status ToDurability(uint32_t from, std::optional<Durability>* to) {
  if (from > BASALT_DURABILITY_POWER)
    return OutOfRange("durability", from, "one of BASALT_DURABILITY_...");
  if (from != BASALT_DURABILITY_DEFAULT) *to = static_cast<Durability>(from - 1);
  return {};
}

Status ToCompression(uint32_t from, std::optional<Compression>* to) {
  if (from > BASALT_COMPRESSION_LZ4_THEN_ZSTD)
    return OutOfRange("compression", from, "one of BASALT_COMPRESSION_...");
  if (from != BASALT_COMPRESSION_DEFAULT) *to = static_cast<Compression>(from - 1);
  return {};
}

Status ToExpiry(int64_t expiry_ms, std::optional<WallTime>* to) {
  if (expiry_ms < 0) return OutOfRange("expiry_ms", expiry_ms, "0, or milliseconds since 1970 UTC");
  if (expiry_ms != 0) *to = WallTime(std::chrono::milliseconds(expiry_ms));
  return {};
}

Status ToBound(const char* name, const void* bytes, size_t size,
               std::optional<std::string_view>* to) {
  BASALT_C_REQUIRE(IsBytes(bytes, size), name);
  if (bytes != nullptr) *to = ViewOf(bytes, size);
  return {};
}

}  // namespace

Status WrongSize(const char* name, size_t size, size_t expected) {
  return Status(StatusCode::kInvalidArgument,
                std::string(name) + ".struct_size is " + std::to_string(size) +
                    ", and must be sizeof(" + name + "), here " + std::to_string(expected) +
                    ": set it, or use a library as new as the header");
}

Status ToTtl(int64_t ttl_ms, std::optional<std::chrono::milliseconds>* to) {
  if (ttl_ms < BASALT_NO_TTL) return OutOfRange("ttl_ms", ttl_ms, "0, positive or BASALT_NO_TTL");
  if (ttl_ms != 0) *to = std::chrono::milliseconds(ttl_ms == BASALT_NO_TTL ? 0 : ttl_ms);
  return {};
}

Status ToMergeOperator(int from, MergeOperator* to) {
  if (from < BASALT_MERGE_ADD || from > BASALT_MERGE_APPEND)
    return OutOfRange("merge_operator", from, "one of BASALT_MERGE_...");
  *to = static_cast<MergeOperator>(from);
  return {};
}

Status ToReadOptions(const basalt_read_options& given, ReadOptions* to) {
  basalt_read_options from;
  BASALT_C_RETURN_IF_ERROR(Complete(&given, "basalt_read_options", &from));
  if (from.snapshot != nullptr) to->snapshot = &from.snapshot->snapshot;
  to->keyspace = static_cast<KeyspaceId>(from.keyspace);
  to->fill_cache = !from.no_cache_fill;
  to->memory_only = from.memory_only;
  to->track = !from.untracked;
  to->keys_only = from.keys_only;
  BASALT_C_RETURN_IF_ERROR(ToBound("lower", from.lower, from.lower_size, &to->lower));
  BASALT_C_RETURN_IF_ERROR(ToBound("upper", from.upper, from.upper_size, &to->upper));
  return ToBound("prefix", from.prefix, from.prefix_size, &to->prefix);
}

Status ToWriteOptions(const basalt_write_options& given, WriteOptions* to) {
  basalt_write_options from;
  BASALT_C_RETURN_IF_ERROR(Complete(&given, "basalt_write_options", &from));
  to->keyspace = static_cast<KeyspaceId>(from.keyspace);
  to->may_wait = !from.no_wait;
  BASALT_C_RETURN_IF_ERROR(ToDurability(from.durability, &to->durability));
  BASALT_C_RETURN_IF_ERROR(ToTtl(from.ttl_ms, &to->ttl));
  return ToExpiry(from.expiry_ms, &to->expiry);
}

Status ToRecordOptions(const basalt_record_options* given, RecordOptions* to) {
  basalt_record_options from;
  BASALT_C_RETURN_IF_ERROR(Complete(given, "basalt_record_options", &from));
  to->keyspace = static_cast<KeyspaceId>(from.keyspace);
  BASALT_C_RETURN_IF_ERROR(ToTtl(from.ttl_ms, &to->ttl));
  return ToExpiry(from.expiry_ms, &to->expiry);
}

Status ToKeyspaceOptions(const basalt_keyspace_options* given, KeyspaceOptions* to) {
  basalt_keyspace_options from;
  BASALT_C_RETURN_IF_ERROR(Complete(given, "basalt_keyspace_options", &from));
  BASALT_C_RETURN_IF_ERROR(ToDurability(from.durability, &to->durability));
  BASALT_C_RETURN_IF_ERROR(ToCompression(from.compression, &to->compression));
  return ToTtl(from.default_ttl_ms, &to->default_ttl);
}

Status ToDbOptions(const basalt_db_options* given, DBOptions* to) {
  basalt_db_options from;
  BASALT_C_RETURN_IF_ERROR(Complete(given, "basalt_db_options", &from));
  std::optional<Durability> durability;
  std::optional<Compression> compression;
  BASALT_C_RETURN_IF_ERROR(ToDurability(from.durability, &durability));
  BASALT_C_RETURN_IF_ERROR(ToCompression(from.compression, &compression));
  to->create_if_missing = !from.must_exist;
  to->memory_budget = from.memory_budget;
  to->durability = durability.value_or(to->durability);
  to->compression = compression.value_or(to->compression);
  to->default_ttl = std::chrono::milliseconds(from.default_ttl_ms);
  to->background_threads = from.background_threads;
  to->log_keep_bytes = from.log_keep_bytes;
  return {};
}

Status ToMemTableOptions(const basalt_memtable_options* given, MemTableOptions* to) {
  basalt_memtable_options from;
  BASALT_C_RETURN_IF_ERROR(Complete(given, "basalt_memtable_options", &from));
  if (from.memory_budget != 0) to->memory_budget = from.memory_budget;
  if (from.refuse_at_budget) to->at_budget = AtBudget::kRefuse;
  to->compaction = !from.no_background_merges;
  return {};
}

Status ToTransactionOptions(const basalt_transaction_options* given, TransactionOptions* to) {
  basalt_transaction_options from;
  BASALT_C_RETURN_IF_ERROR(Complete(given, "basalt_transaction_options", &from));
  if (from.memory_limit != 0) to->memory_limit = from.memory_limit;
  return {};
}

Status ToCacheOptions(const basalt_cache_options* given, CacheOptions* to) {
  basalt_cache_options from;
  BASALT_C_RETURN_IF_ERROR(Complete(given, "basalt_cache_options", &from));
  if (from.capacity_bytes != 0) to->capacity_bytes = from.capacity_bytes;
  to->default_ttl = std::chrono::milliseconds(from.default_ttl_ms);
  to->shards = from.shards;
  if (from.s3_fifo) to->eviction = Eviction::kS3Fifo;
  return {};
}

Status ToMapOptions(const basalt_map_options* given, SharedMapOptions* to, Duplicates* duplicates) {
  basalt_map_options from;
  BASALT_C_RETURN_IF_ERROR(Complete(given, "basalt_map_options", &from));
  std::optional<Durability> durability;
  BASALT_C_RETURN_IF_ERROR(ToDurability(from.durability, &durability));
  to->overwrite = from.overwrite;
  to->durability = durability.value_or(to->durability);
  to->lock_timeout = std::chrono::milliseconds(from.lock_timeout_ms);
  to->compact_in_background = !from.no_background_compact;
  to->threads = from.threads;
  if (from.build_memory != 0) to->build_memory = from.build_memory;
  *duplicates = from.keep_last_of_duplicates ? Duplicates::kKeepLast : Duplicates::kRefuse;
  return {};
}

Status ToGraphOptions(const basalt_graph_options* given, GraphOptions* to) {
  basalt_graph_options from;
  BASALT_C_RETURN_IF_ERROR(Complete(given, "basalt_graph_options", &from));
  BASALT_C_REQUIRE(IsBytes(from.name, from.name_size), "name");
  if (from.name_size != 0) to->name = ViewOf(from.name, from.name_size);
  to->create_if_missing = !from.must_exist;
  return {};
}

Status ToEdgeFilter(const basalt_edge_filter* given, EdgeFilter* to) {
  basalt_edge_filter from;
  BASALT_C_RETURN_IF_ERROR(Complete(given, "basalt_edge_filter", &from));
  if (from.direction > BASALT_EDGES_BOTH)
    return OutOfRange("direction", from.direction, "one of BASALT_EDGES_...");
  if (from.type_count != 0)
    BASALT_C_REQUIRE(from.types != nullptr && from.type_sizes != nullptr, "types");
  for (size_t i = 0; i < from.type_count; ++i) {
    BASALT_C_REQUIRE(IsBytes(from.types[i], from.type_sizes[i]), "types");
    to->types.emplace_back(ViewOf(from.types[i], from.type_sizes[i]));
  }
  to->direction = static_cast<EdgeDirection>(from.direction);
  return ToExpiry(from.as_of_ms, &to->as_of);
}

ReadLimits ToReadLimits(const basalt_edge_filter* from) {
  ReadLimits limits;
  if (from == nullptr) return limits;
  if (from->visited_max != 0) limits.visited_max = from->visited_max;
  if (from->fan_out_max != 0) limits.fan_out_max = from->fan_out_max;
  return limits;
}

Status ToCorpusOptions(const basalt_corpus_options* given, CorpusOptions* to) {
  basalt_corpus_options from;
  BASALT_C_RETURN_IF_ERROR(Complete(given, "basalt_corpus_options", &from));
  BASALT_C_REQUIRE(IsBytes(from.name, from.name_size), "name");
  if (from.name_size != 0) to->name = ViewOf(from.name, from.name_size);
  if (from.stemmer != nullptr) to->stemmer = from.stemmer;
  if (from.passage_bytes_max != 0) to->passage_bytes_max = from.passage_bytes_max;
  to->create_if_missing = !from.must_exist;
  return {};
}

Status ToRetrieveOptions(const basalt_retrieve_options* given, RetrieveOptions* to) {
  basalt_retrieve_options from;
  BASALT_C_RETURN_IF_ERROR(Complete(given, "basalt_retrieve_options", &from));
  if (from.k != 0) to->k = from.k;
  if (from.max_tokens != 0) to->max_tokens = from.max_tokens;
  to->explain = from.explain;
  if (from.without_links) to->link_weight = 0;
  return {};
}

}  // namespace basalt::c_api

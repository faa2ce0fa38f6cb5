#pragma once

// Options of the C API as those of the C++ API.
//
// A struct begins with its size, which says what the caller was compiled against. A size between
// that of the first release (kFirstSize) and ours is copied over zeros, so that fields which were
// added since have their default. A larger size is of a newer header, whose fields we do not know.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "basalt/c.h"
#include "basalt/cache.h"
#include "basalt/db.h"
#include "basalt/graph.h"
#include "basalt/memtable.h"
#include "basalt/options.h"
#include "basalt/retrieve.h"
#include "basalt/shared_map.h"
#include "basalt/status.h"
#include "basalt/write_batch.h"

namespace basalt::c_api {

/// InvalidArgument: no header of ours has a struct of this size.
Status WrongSize(const char* name, size_t size, size_t expected);

/// The size in the first release. A field that is added later goes to the end of its struct, whose
/// first size then becomes a specialisation of this.
template <class Options>
inline constexpr size_t kFirstSize = sizeof(Options);

/// A copy of `*from` in the present layout; zeros for null.
template <class Options>
Status Complete(const Options* from, const char* name, Options* to) {
  std::memset(to, 0, sizeof *to);
  if (from == nullptr) return {};
  const size_t size = from->struct_size;
  if (size < kFirstSize<Options> || size > sizeof(Options)) [[unlikely]]
    return WrongSize(name, size, sizeof(Options));
  std::memcpy(to, from, size);
  return {};
}

/// The options of a read; views into those of the caller.
Status ToReadOptions(const basalt_read_options& from, ReadOptions* to);
Status ToWriteOptions(const basalt_write_options& from, WriteOptions* to);
Status ToRecordOptions(const basalt_record_options* from, RecordOptions* to);
Status ToKeyspaceOptions(const basalt_keyspace_options* from, KeyspaceOptions* to);
Status ToDbOptions(const basalt_db_options* from, DBOptions* to);
Status ToMemTableOptions(const basalt_memtable_options* from, MemTableOptions* to);
Status ToTransactionOptions(const basalt_transaction_options* from, TransactionOptions* to);
Status ToCacheOptions(const basalt_cache_options* from, CacheOptions* to);
Status ToMapOptions(const basalt_map_options* from, SharedMapOptions* to, Duplicates* duplicates);
Status ToGraphOptions(const basalt_graph_options* from, GraphOptions* to);
Status ToEdgeFilter(const basalt_edge_filter* from, EdgeFilter* to);
/// Of a filter that ToEdgeFilter has accepted.
ReadLimits ToReadLimits(const basalt_edge_filter* from);
Status ToCorpusOptions(const basalt_corpus_options* from, CorpusOptions* to);
Status ToRetrieveOptions(const basalt_retrieve_options* from, RetrieveOptions* to);
Status ToTtl(int64_t ttl_ms, std::optional<std::chrono::milliseconds>* to);
Status ToMergeOperator(int from, MergeOperator* to);

}  // namespace basalt::c_api

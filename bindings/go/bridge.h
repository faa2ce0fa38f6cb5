/* What Go calls instead of basalt/c.h, where one call of C would need several of cgo's, or structs
 * with pointers into Go's memory. A cgo call costs tens of nanoseconds. */
#ifndef BASALT_GO_BRIDGE_H_
#define BASALT_GO_BRIDGE_H_

#include <stdlib.h>
#include <string.h>

#include "basalt/c.h"

/* A call's answers, in memory of Go. Short values are copied into `small`; longer ones are in
 * `large`, which Go copies and frees. */
typedef struct bridge_result {
  bool found;
  size_t size;
  char* large;
  uint64_t version;
  int64_t expiry_ms;
  basalt_error error;
  char small[1024];
} bridge_result;

/* How a read or a write is made; without pointers into Go's memory. */
typedef struct bridge_options {
  const basalt_snapshot* snapshot;
  int64_t ttl_ms;
  uint32_t durability;
  uint32_t keyspace;
} bridge_options;

static inline basalt_read_options bridge_read(const bridge_options* options) {
  const basalt_read_options read = {
      .struct_size = sizeof read, .snapshot = options->snapshot, .keyspace = options->keyspace};
  return read;
}

static inline basalt_write_options bridge_write(const bridge_options* options) {
  const basalt_write_options write = {.struct_size = sizeof write,
                                      .ttl_ms = options->ttl_ms,
                                      .durability = options->durability,
                                      .keyspace = options->keyspace};
  return write;
}

static inline int bridge_give(int code, basalt_value* value, bridge_result* result) {
  result->found = value->data != NULL;
  result->size = value->size;
  result->large = NULL;
  if (value->data != NULL && value->size <= sizeof result->small) {
    memcpy(result->small, value->data, value->size);
  } else if (value->data != NULL) {
    result->large = malloc(value->size);
    if (result->large != NULL) {
      memcpy(result->large, value->data, value->size);
    } else {
      code = result->error.code = BASALT_RESOURCE_EXHAUSTED;
      result->error.sub_code = BASALT_SUB_MEMORY;
      strcpy(result->error.message, "get: the system has no memory left for the value");
    }
  }
  basalt_value_release(value);
  return code;
}

static inline int bridge_get(basalt_store* store, const void* key, size_t key_size,
                             bridge_options options, bridge_result* result) {
  const basalt_read_options read = bridge_read(&options);
  basalt_value value;
  const int code = basalt_get(store, key, key_size, &read, &value, &result->error);
  return bridge_give(code, &value, result);
}

static inline int bridge_get_entry(basalt_store* store, const void* key, size_t key_size,
                                   bridge_options options, bridge_result* result) {
  const basalt_read_options read = bridge_read(&options);
  basalt_entry entry;
  const int code = basalt_get_entry(store, key, key_size, &read, &entry, &result->error);
  result->version = entry.version;
  result->expiry_ms = entry.expiry_ms;
  return bridge_give(code, &entry.value, result);
}

static inline int bridge_transaction_get(basalt_transaction* transaction, const void* key,
                                         size_t key_size, bridge_options options,
                                         bridge_result* result) {
  const basalt_read_options read = bridge_read(&options);
  basalt_value value;
  const int code =
      basalt_transaction_get(transaction, key, key_size, &read, &value, &result->error);
  return bridge_give(code, &value, result);
}

static inline int bridge_put(basalt_store* store, const void* key, size_t key_size,
                             const void* value, size_t value_size, bridge_options options,
                             bridge_result* result) {
  const basalt_write_options write = bridge_write(&options);
  return basalt_put(store, key, key_size, value, value_size, &write, NULL, &result->error);
}

static inline int bridge_put_if_absent(basalt_store* store, const void* key, size_t key_size,
                                       const void* value, size_t value_size, bridge_options options,
                                       bridge_result* result) {
  const basalt_write_options write = bridge_write(&options);
  return basalt_put_if_absent(store, key, key_size, value, value_size, &write, &result->found, NULL,
                              &result->error);
}

static inline int bridge_delete(basalt_store* store, const void* key, size_t key_size,
                                bridge_options options, bridge_result* result) {
  const basalt_write_options write = bridge_write(&options);
  return basalt_delete(store, key, key_size, &write, NULL, &result->error);
}

static inline int bridge_delete_range(basalt_store* store, const void* begin, size_t begin_size,
                                      const void* end, size_t end_size, bridge_options options,
                                      bridge_result* result) {
  const basalt_write_options write = bridge_write(&options);
  return basalt_delete_range(store, begin, begin_size, end, end_size, &write, NULL, &result->error);
}

static inline int bridge_merge(basalt_store* store, const void* key, size_t key_size, int op,
                               const void* operand, size_t operand_size, bridge_options options,
                               bridge_result* result) {
  const basalt_write_options write = bridge_write(&options);
  return basalt_merge(store, key, key_size, op, operand, operand_size, &write, NULL,
                      &result->error);
}

static inline int bridge_write_batch(basalt_store* store, const basalt_batch* batch,
                                     bridge_options options, bridge_result* result) {
  const basalt_write_options write = bridge_write(&options);
  return basalt_write(store, batch, &write, NULL, &result->error);
}

static inline int bridge_transaction_put(basalt_transaction* transaction, const void* key,
                                         size_t key_size, const void* value, size_t value_size,
                                         bridge_options options, bridge_result* result) {
  const basalt_write_options write = bridge_write(&options);
  return basalt_transaction_put(transaction, key, key_size, value, value_size, &write,
                                &result->error);
}

static inline int bridge_transaction_delete(basalt_transaction* transaction, const void* key,
                                            size_t key_size, bridge_options options,
                                            bridge_result* result) {
  const basalt_write_options write = bridge_write(&options);
  return basalt_transaction_delete(transaction, key, key_size, &write, &result->error);
}

static inline int bridge_transaction_delete_range(basalt_transaction* transaction,
                                                  const void* begin, size_t begin_size,
                                                  const void* end, size_t end_size,
                                                  bridge_options options, bridge_result* result) {
  const basalt_write_options write = bridge_write(&options);
  return basalt_transaction_delete_range(transaction, begin, begin_size, end, end_size, &write,
                                         &result->error);
}

static inline int bridge_transaction_commit(basalt_transaction* transaction, bridge_options options,
                                            bridge_result* result) {
  const basalt_write_options write = bridge_write(&options);
  return basalt_transaction_commit(transaction, &write, NULL, &result->error);
}

static inline int bridge_batch_put(basalt_batch* batch, const void* key, size_t key_size,
                                   const void* value, size_t value_size, bridge_options options,
                                   bridge_result* result) {
  const basalt_record_options record = {
      .struct_size = sizeof record, .ttl_ms = options.ttl_ms, .keyspace = options.keyspace};
  return basalt_batch_put(batch, key, key_size, value, value_size, &record, &result->error);
}

static inline int bridge_batch_delete(basalt_batch* batch, const void* key, size_t key_size,
                                      bridge_options options, bridge_result* result) {
  const basalt_record_options record = {.struct_size = sizeof record, .keyspace = options.keyspace};
  return basalt_batch_delete(batch, key, key_size, &record, &result->error);
}

static inline int bridge_batch_delete_range(basalt_batch* batch, const void* begin,
                                            size_t begin_size, const void* end, size_t end_size,
                                            bridge_options options, bridge_result* result) {
  const basalt_record_options record = {.struct_size = sizeof record, .keyspace = options.keyspace};
  return basalt_batch_delete_range(batch, begin, begin_size, end, end_size, &record,
                                   &result->error);
}

/* Bounds of a scan: bits of those that are set. */
enum { BRIDGE_PREFIX = 1, BRIDGE_LOWER = 2, BRIDGE_UPPER = 4 };

/* An iterator at the first record, or the last. One of `store` and `transaction` is given. */
static inline int bridge_scan(basalt_store* store, basalt_transaction* transaction,
                              const void* prefix, size_t prefix_size, const void* lower,
                              size_t lower_size, const void* upper, size_t upper_size, int bounds,
                              bool reverse, bridge_options options, basalt_iterator** iterator,
                              bridge_result* result) {
  basalt_read_options read = bridge_read(&options);
  /* An empty bound has no address in Go. */
  if (bounds & BRIDGE_PREFIX) {
    read.prefix = prefix != NULL ? prefix : "";
    read.prefix_size = prefix_size;
  }
  if (bounds & BRIDGE_LOWER) {
    read.lower = lower != NULL ? lower : "";
    read.lower_size = lower_size;
  }
  if (bounds & BRIDGE_UPPER) {
    read.upper = upper != NULL ? upper : "";
    read.upper_size = upper_size;
  }
  const int code = transaction != NULL
                       ? basalt_transaction_iterator(transaction, &read, iterator, &result->error)
                       : basalt_iterator_create(store, &read, iterator, &result->error);
  if (code == BASALT_OK && reverse) basalt_iterator_seek_to_last(*iterator);
  if (code == BASALT_OK && !reverse) basalt_iterator_seek_to_first(*iterator);
  return code;
}

/* Copies records to `buffer` while they fit, and moves behind them. Each is the size of its key and
 * of its value, four bytes each, then key and value. `result->size` is the number of bytes;
 * `result->version` the bytes that the next record needs, 0 at the end. */
static inline int bridge_fill(basalt_iterator* iterator, char* buffer, size_t capacity,
                              bool reverse, bridge_result* result) {
  size_t used = 0;
  result->version = 0;
  while (basalt_iterator_valid(iterator)) {
    size_t key_size, value_size;
    const char* key = basalt_iterator_key(iterator, &key_size);
    const char* value = basalt_iterator_value(iterator, &value_size);
    const size_t needed = 8 + key_size + value_size;
    if (needed > capacity - used) {
      result->version = needed;
      break;
    }
    const uint32_t sizes[2] = {(uint32_t)key_size, (uint32_t)value_size};
    memcpy(buffer + used, sizes, 8);
    memcpy(buffer + used + 8, key, key_size);
    memcpy(buffer + used + 8 + key_size, value, value_size);
    used += needed;
    if (reverse) {
      basalt_iterator_prev(iterator);
    } else {
      basalt_iterator_next(iterator);
    }
  }
  result->size = used;
  return basalt_iterator_status(iterator, &result->error);
}

/* A name of an edge, in memory of Go. */
static inline basalt_edge_name bridge_edge(const void* from, size_t from_size, const void* type,
                                           size_t type_size, const void* to, size_t to_size,
                                           const void* discriminator, size_t discriminator_size) {
  const basalt_edge_name edge = {from, from_size, type,          type_size,
                                 to,   to_size,   discriminator, discriminator_size};
  return edge;
}

static inline int bridge_graph_open(basalt_store* store, const void* name, size_t name_size,
                                    bool must_exist, basalt_graph** graph, bridge_result* result) {
  const basalt_graph_options options = {.struct_size = sizeof options,
                                        .name = name,
                                        .name_size = name_size,
                                        .must_exist = must_exist};
  return basalt_graph_open(store, &options, graph, &result->error);
}

static inline int bridge_graph_put_edge(basalt_graph* graph, basalt_transaction* transaction,
                                        const void* from, size_t from_size, const void* type,
                                        size_t type_size, const void* to, size_t to_size,
                                        const void* discriminator, size_t discriminator_size,
                                        const void* content, size_t content_size,
                                        bridge_result* result) {
  const basalt_edge_name edge =
      bridge_edge(from, from_size, type, type_size, to, to_size, discriminator, discriminator_size);
  return basalt_graph_put_edge(graph, transaction, &edge, content, content_size, &result->error);
}

static inline int bridge_graph_remove_edge(basalt_graph* graph, basalt_transaction* transaction,
                                           const void* from, size_t from_size, const void* type,
                                           size_t type_size, const void* to, size_t to_size,
                                           const void* discriminator, size_t discriminator_size,
                                           bridge_result* result) {
  const basalt_edge_name edge =
      bridge_edge(from, from_size, type, type_size, to, to_size, discriminator, discriminator_size);
  return basalt_graph_remove_edge(graph, transaction, &edge, &result->found, &result->error);
}

/* Texts that a call gives are in `result->large`, to be freed. */
static inline int bridge_graph_get_edge(basalt_graph* graph, basalt_transaction* transaction,
                                        const void* from, size_t from_size, const void* type,
                                        size_t type_size, const void* to, size_t to_size,
                                        const void* discriminator, size_t discriminator_size,
                                        bridge_result* result) {
  const basalt_edge_name edge =
      bridge_edge(from, from_size, type, type_size, to, to_size, discriminator, discriminator_size);
  return basalt_graph_get_edge(graph, transaction, &edge, &result->large, &result->error);
}

static inline int bridge_corpus_open(basalt_store* store, const void* name, size_t name_size,
                                     const char* stemmer, bool must_exist, basalt_corpus** corpus,
                                     bridge_result* result) {
  const basalt_corpus_options options = {.struct_size = sizeof options,
                                         .name = name,
                                         .name_size = name_size,
                                         .stemmer = stemmer,
                                         .must_exist = must_exist};
  return basalt_corpus_open(store, &options, corpus, &result->error);
}

static inline int bridge_corpus_ingest(basalt_corpus* corpus, basalt_transaction* transaction,
                                       const void* source, size_t source_size, const void* title,
                                       size_t title_size, const void* text, size_t text_size,
                                       basalt_ingested* ingested, bridge_result* result) {
  const basalt_document document = {source, source_size, title, title_size, text, text_size};
  return basalt_corpus_ingest(corpus, transaction, &document, ingested, &result->error);
}

#endif

/* The C API: everything that libbasalt.so exports. C11, and C++.
 *
 *     basalt_error error;
 *     basalt_store* db;
 *     if (basalt_open("/var/lib/app/db", NULL, &db, &error) != BASALT_OK)
 *       return fprintf(stderr, "%s\n", error.message), 1;
 *     basalt_put(db, "user/42", 7, "Ada", 3, NULL, NULL, &error);
 *     basalt_value value;
 *     if (basalt_get(db, "user/42", 7, NULL, &value, &error) == BASALT_OK && value.data != NULL)
 *       printf("%.*s\n", (int)value.size, value.data);
 *     basalt_value_release(&value);
 *     basalt_store_free(db);
 *
 * Calls. A function that can fail returns BASALT_OK (0) or a code. If it fails, it fills the
 * basalt_error that was passed; NULL is allowed. On success the basalt_error is not written. On
 * failure results are set to NULL or 0. No C++ exception leaves a function. No argument ends the
 * process: a NULL handle or result, or a NULL key with a size above 0, is BASALT_INVALID_ARGUMENT.
 *
 * Options. NULL means the defaults. A struct of options begins with its size. Every other field may
 * be zero, which is its default:
 *
 *     basalt_write_options options = {.struct_size = sizeof options, .ttl_ms = 60000};
 *
 * A program that was compiled with an older header passes a smaller size, and gets the defaults of
 * the fields that were added since. A size that no released header had is BASALT_INVALID_ARGUMENT.
 *
 * Handles. A handle `X*` is freed by the function `basalt_X_free`, which accepts NULL. The parent
 * of a handle may be freed first: iterators, snapshots, transactions, graphs, corpora and values
 * keep alive what they need. A handle must not be freed twice, or while another thread is inside a
 * call with it.
 *
 * Threads. basalt_store, basalt_snapshot, basalt_graph, basalt_corpus, basalt_cache and basalt_map
 * may be used from any threads at once. A batch, iterator, transaction, change reader, map builder
 * or map reader belongs to one thread at a time.
 *
 * Processes. In a child after fork() the parent's handles return BASALT_FAILED_PRECONDITION with
 * BASALT_SUB_FORKED. A map reader continues to work if the parent had one thread. The child may
 * free the handles and create its own.
 *
 * Keys and values are bytes: a pointer and a size. Keys have at most 65,535 bytes. Only paths are
 * strings that end with a zero byte. The C++ headers (basalt/store.h, db.h, transaction.h, graph.h,
 * retrieve.h, cache.h, shared_map.h) describe what each call promises. docs/c.md is the manual.
 */
#ifndef BASALT_C_H_
#define BASALT_C_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "basalt/version.h"

#if defined(__GNUC__)
#define BASALT_API __attribute__((visibility("default")))
#else
#define BASALT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Versions and errors -------------------------------------------------------------------- */

/* The version of the library, for example "0.1.0". BASALT_VERSION is that of the headers. */
BASALT_API const char* basalt_version(void);

/* Why a call failed. The numbers are those of basalt::StatusCode, and never change. */
enum {
  BASALT_OK = 0,
  BASALT_INVALID_ARGUMENT = 1,
  BASALT_NOT_FOUND = 2, /* A file, database or keyspace. An absent key is not an error. */
  BASALT_ALREADY_EXISTS = 3,
  BASALT_FAILED_PRECONDITION = 4, /* The handle is closed, read-only, or the parent process's. */
  BASALT_RESOURCE_EXHAUSTED = 5,
  BASALT_BUSY = 6,
  BASALT_ABORTED = 7, /* A conflict with a concurrent change, or a condition that does not hold. */
  BASALT_CANCELLED = 8,
  BASALT_UNSUPPORTED = 9,
  BASALT_IO_ERROR = 10,
  BASALT_CORRUPTION = 11,
  BASALT_TYPE_MISMATCH = 12,
  BASALT_WOULD_BLOCK = 13,
  BASALT_UNAVAILABLE = 14,
  BASALT_DEADLINE_EXCEEDED = 15,
  BASALT_PERMISSION_DENIED = 16,
  BASALT_OUT_OF_RANGE = 17
};

/* The exact cause. The numbers are those of basalt::SubCode, and never change. */
enum {
  BASALT_SUB_NONE = 0,
  BASALT_SUB_DISK_FULL = 1,
  BASALT_SUB_MEMORY = 2,
  BASALT_SUB_DESCRIPTORS = 3,
  BASALT_SUB_BUDGET = 4,
  BASALT_SUB_BATCH_TOO_LARGE = 5,
  BASALT_SUB_PINS = 6,
  BASALT_SUB_CLOSED = 7,
  BASALT_SUB_READ_ONLY = 8,
  BASALT_SUB_FORKED = 9,
  BASALT_SUB_LOCKED = 10,
  BASALT_SUB_CONFLICT = 11,
  BASALT_SUB_CONDITION = 12,
  BASALT_SUB_LOG_GONE = 13,
  BASALT_SUB_NOT_DURABLE = 14,
  BASALT_SUB_KEYSPACE = 15
};

/* Filled by a call that failed. Nothing in it has to be freed. */
typedef struct basalt_error {
  int32_t code;
  int32_t sub_code;
  char message[1016]; /* Ends with a zero byte; a longer one is cut. */
} basalt_error;

/* The name of a code, for example "InvalidArgument"; "Unknown" for other numbers. */
BASALT_API const char* basalt_code_name(int code);
/* For example "DiskFull"; "" for BASALT_SUB_NONE. */
BASALT_API const char* basalt_sub_code_name(int sub_code);

/* Frees a string or an array that a function returned. Accepts NULL. */
BASALT_API void basalt_free(void* memory);

/* ---- Types ---------------------------------------------------------------------------------- */

typedef struct basalt_store basalt_store; /* A database or a memtable. */
typedef struct basalt_snapshot basalt_snapshot;
typedef struct basalt_iterator basalt_iterator;
typedef struct basalt_batch basalt_batch;
typedef struct basalt_transaction basalt_transaction;
typedef struct basalt_change_reader basalt_change_reader;
typedef struct basalt_cache basalt_cache;
typedef struct basalt_map basalt_map;
typedef struct basalt_map_reader basalt_map_reader;
typedef struct basalt_map_builder basalt_map_builder;

/* A value that a call returned: `size` bytes at `data`. `data` is NULL if the key is absent or the
 * call failed. The caller allocates the struct. It must not copy or move it while it is in use,
 * because short values lie in `storage`. It may be released on any thread. The store may be freed
 * before. */
typedef struct basalt_value {
  const char* data;
  size_t size;
  uint64_t storage[16];
} basalt_value;

/* Releases a value and sets `data` to NULL. Does nothing if `data` is NULL. */
BASALT_API void basalt_value_release(basalt_value* value);

/* A value with version and expiry of its record. Released by basalt_value_release(&e.value). */
typedef struct basalt_entry {
  uint64_t version;  /* Changes with each write; for basalt_batch_require_unchanged. */
  int64_t expiry_ms; /* Milliseconds since 1970 UTC; 0: it does not expire. */
  basalt_value value;
} basalt_entry;

/* The place of a write in the order of its store. */
typedef struct basalt_commit {
  uint64_t sequence; /* Of its last operation. 0: the write changed nothing. */
  uint64_t lsn;      /* Of its log record. 0: it has none. */
} basalt_commit;

/* How much of an acknowledged write may be lost (basalt/options.h). */
enum {
  BASALT_DURABILITY_DEFAULT = 0, /* The keyspace's, or else the store's: PROCESS. */
  BASALT_DURABILITY_MEMORY = 1,  /* All that is not flushed. Only for a store or keyspace. */
  BASALT_DURABILITY_INTERVAL = 2,
  BASALT_DURABILITY_PROCESS = 3, /* Nothing, when the process is killed. */
  BASALT_DURABILITY_POWER = 4    /* Nothing, when the power is cut. */
};

enum {
  BASALT_COMPRESSION_DEFAULT = 0, /* LZ4 */
  BASALT_COMPRESSION_NONE = 1,
  BASALT_COMPRESSION_LZ4 = 2,
  BASALT_COMPRESSION_LZ4_THEN_ZSTD = 3
};

/* As `ttl_ms`: the record does not expire, whatever the keyspace's default is. */
#define BASALT_NO_TTL INT64_C(-1)

/* The keyspace that every store has. */
#define BASALT_DEFAULT_KEYSPACE 0

typedef struct basalt_db_options {
  size_t struct_size;
  uint64_t memory_budget;      /* Bytes, at least 1 MiB. 0: a quarter of the memory. */
  uint64_t log_keep_bytes;     /* Of the log, kept for basalt_changes. */
  int64_t default_ttl_ms;      /* 0: records do not expire. */
  uint32_t durability;         /* BASALT_DURABILITY_...; MEMORY: no log. */
  uint32_t compression;        /* BASALT_COMPRESSION_... */
  uint32_t background_threads; /* 0: derived. */
  bool must_exist;             /* An absent database is BASALT_NOT_FOUND and is not created. */
} basalt_db_options;

typedef struct basalt_memtable_options {
  size_t struct_size;
  uint64_t memory_budget;    /* Bytes, at least 256 KiB. 0: 256 MiB. */
  bool refuse_at_budget;     /* BASALT_RESOURCE_EXHAUSTED at once, without waiting. */
  bool no_background_merges; /* Versions are dropped by basalt_compact only. */
} basalt_memtable_options;

typedef struct basalt_read_options {
  size_t struct_size;
  const basalt_snapshot* snapshot; /* NULL: the newest state. */
  /* For iterators; NULL: no bound. `prefix` excludes the other two. The bytes are copied. */
  const void* lower; /* Inclusive. */
  size_t lower_size;
  const void* upper; /* Exclusive. */
  size_t upper_size;
  const void* prefix;
  size_t prefix_size;
  uint32_t keyspace;
  bool keys_only;     /* For iterators: values are empty, and are not read. */
  bool no_cache_fill; /* Blocks read for this call are not kept in the cache. */
  bool memory_only;   /* A call that would read a disk is BASALT_WOULD_BLOCK. */
  bool untracked;     /* In a transaction: the commit does not check this read. */
} basalt_read_options;

typedef struct basalt_write_options {
  size_t struct_size;
  int64_t ttl_ms;      /* Of puts. 0: the keyspace's default; BASALT_NO_TTL: never. */
  int64_t expiry_ms;   /* Milliseconds since 1970 UTC, instead of ttl_ms. 0: unset. */
  uint32_t durability; /* BASALT_DURABILITY_..., but not MEMORY. */
  uint32_t keyspace;   /* Not for basalt_write: the records of a batch have their own. */
  bool no_wait;        /* A write that would wait is BASALT_WOULD_BLOCK. */
} basalt_write_options;

/* How a record is added to a batch. */
typedef struct basalt_record_options {
  size_t struct_size;
  int64_t ttl_ms;    /* As in basalt_write_options. */
  int64_t expiry_ms; /* The same. */
  uint32_t keyspace;
} basalt_record_options;

typedef struct basalt_keyspace_options {
  size_t struct_size;
  int64_t default_ttl_ms; /* 0: as the store; BASALT_NO_TTL: records do not expire. */
  uint32_t durability;    /* BASALT_DURABILITY_... */
  uint32_t compression;   /* BASALT_COMPRESSION_... */
} basalt_keyspace_options;

typedef struct basalt_transaction_options {
  size_t struct_size;
  uint64_t memory_limit; /* Bytes of writes and of the record of reads. 0: 64 MiB. */
} basalt_transaction_options;

enum {
  BASALT_MERGE_ADD = 1, /* ADD, MIN and MAX: 8 bytes, a signed little-endian integer. */
  BASALT_MERGE_MIN = 2,
  BASALT_MERGE_MAX = 3,
  BASALT_MERGE_APPEND = 4
};

/* ---- Stores: open, close, maintenance ------------------------------------------------------- */

/* Opens a database, or creates one. ":memory:" is a database that ends with the handle. */
BASALT_API int basalt_open(const char* path, const basalt_db_options* options, basalt_store** store,
                           basalt_error* error);
/* Opens a database read-only, as it is now. Another process may write to it. */
BASALT_API int basalt_open_read_only(const char* path, const basalt_db_options* options,
                                     basalt_store** store, basalt_error* error);
/* A store in memory. */
BASALT_API int basalt_memtable_create(const basalt_memtable_options* options, basalt_store** store,
                                      basalt_error* error);
/* Finishes background work, syncs the log, releases the lock, and reports what could not be saved.
 * Later calls are BASALT_FAILED_PRECONDITION. A second close returns the first result. The handle
 * must still be freed. A memtable has nothing to save: it is closed with BASALT_OK. */
BASALT_API int basalt_close(basalt_store* store, basalt_error* error);
/* Frees the handle. Closes the store if it is open, and drops the result. */
BASALT_API void basalt_store_free(basalt_store* store);

/* Makes every write acknowledged before the call survive a power cut. */
BASALT_API int basalt_sync(basalt_store* store, basalt_error* error);
/* Returns when log record `lsn` and all before it survive a power cut. */
BASALT_API int basalt_wait_durable(basalt_store* store, uint64_t lsn, basalt_error* error);
/* Writes the records in memory to tables. BASALT_UNSUPPORTED: a memtable. */
BASALT_API int basalt_flush(basalt_store* store, basalt_error* error);
/* Merges tables with keys in [begin, end) and drops hidden versions; NULL: no bound. A memtable is
 * always compacted as a whole, without bounds. */
BASALT_API int basalt_compact(basalt_store* store, uint32_t keyspace, const void* begin,
                              size_t begin_size, const void* end, size_t end_size,
                              basalt_error* error);
/* About how many bytes on disk the keys in [begin, end) take. BASALT_UNSUPPORTED: a memtable. */
BASALT_API int basalt_approximate_size(const basalt_store* store, uint32_t keyspace,
                                       const void* begin, size_t begin_size, const void* end,
                                       size_t end_size, uint64_t* bytes, basalt_error* error);
/* The store's statistics as a JSON object, with the names of basalt::DBStats or MemTableStats. Free
 * it with basalt_free. */
BASALT_API int basalt_stats(const basalt_store* store, char** json, basalt_error* error);
/* Reads every byte of a database that no process has open. `report` (may be NULL) is set to a JSON
 * object with the names of basalt::CheckReport; free it with basalt_free. Damage is
 * BASALT_CORRUPTION, with a report. */
BASALT_API int basalt_check(const char* path, char** report, basalt_error* error);
/* Makes a database with a gap in its log openable. `report` (may be NULL) is as for basalt_check,
 * with the names of basalt::RepairReport. BASALT_CORRUPTION: it still cannot be opened. */
BASALT_API int basalt_repair(const char* path, char** report, basalt_error* error);
/* Removes a database that no process has open. */
BASALT_API int basalt_destroy(const char* path, basalt_error* error);

/* ---- Stores: reads -------------------------------------------------------------------------- */

BASALT_API int basalt_get(const basalt_store* store, const void* key, size_t key_size,
                          const basalt_read_options* options, basalt_value* value,
                          basalt_error* error);
/* Like basalt_get, with version and expiry. */
BASALT_API int basalt_get_entry(const basalt_store* store, const void* key, size_t key_size,
                                const basalt_read_options* options, basalt_entry* entry,
                                basalt_error* error);
BASALT_API int basalt_contains(const basalt_store* store, const void* key, size_t key_size,
                               const basalt_read_options* options, bool* found,
                               basalt_error* error);
/* `count` lookups at one moment. values[i] is the answer for key i, and codes[i] its BASALT_OK or
 * code (`codes` may be NULL). The result is the first code that is not BASALT_OK. All values are
 * set. */
BASALT_API int basalt_multi_get(const basalt_store* store, size_t count, const void* const* keys,
                                const size_t* key_sizes, const basalt_read_options* options,
                                basalt_value* values, int32_t* codes, basalt_error* error);

BASALT_API int basalt_snapshot_create(const basalt_store* store, basalt_snapshot** snapshot,
                                      basalt_error* error);
/* 0: NULL. */
BASALT_API uint64_t basalt_snapshot_sequence(const basalt_snapshot* snapshot);
BASALT_API void basalt_snapshot_free(basalt_snapshot* snapshot);

/* Iterates over keys in bytewise order, as they are now. It has no position before a seek. */
BASALT_API int basalt_iterator_create(const basalt_store* store, const basalt_read_options* options,
                                      basalt_iterator** iterator, basalt_error* error);
/* Each returns whether the iterator then is at a record. false: beyond either end, after an error
 * (see basalt_iterator_status), or NULL. */
BASALT_API bool basalt_iterator_valid(const basalt_iterator* iterator);
BASALT_API bool basalt_iterator_seek_to_first(basalt_iterator* iterator);
BASALT_API bool basalt_iterator_seek_to_last(basalt_iterator* iterator);
/* To the first key >= `key`. */
BASALT_API bool basalt_iterator_seek(basalt_iterator* iterator, const void* key, size_t key_size);
/* To the last key <= `key`. */
BASALT_API bool basalt_iterator_seek_for_prev(basalt_iterator* iterator, const void* key,
                                              size_t key_size);
BASALT_API bool basalt_iterator_next(basalt_iterator* iterator);
BASALT_API bool basalt_iterator_prev(basalt_iterator* iterator);
/* The current record, until the next move. NULL and 0 if the iterator is not at a record. */
BASALT_API const char* basalt_iterator_key(const basalt_iterator* iterator, size_t* size);
BASALT_API const char* basalt_iterator_value(const basalt_iterator* iterator, size_t* size);
/* Milliseconds since 1970 UTC; 0: it does not expire. */
BASALT_API int64_t basalt_iterator_expiry(const basalt_iterator* iterator);
/* BASALT_OK, or the error that ended the iteration. */
BASALT_API int basalt_iterator_status(const basalt_iterator* iterator, basalt_error* error);
BASALT_API void basalt_iterator_free(basalt_iterator* iterator);

/* ---- Stores: writes. `commit` and `created` may be NULL ------------------------------------- */

BASALT_API int basalt_put(basalt_store* store, const void* key, size_t key_size, const void* value,
                          size_t value_size, const basalt_write_options* options,
                          basalt_commit* commit, basalt_error* error);
/* `created`: whether the key was absent. */
BASALT_API int basalt_put_if_absent(basalt_store* store, const void* key, size_t key_size,
                                    const void* value, size_t value_size,
                                    const basalt_write_options* options, bool* created,
                                    basalt_commit* commit, basalt_error* error);
BASALT_API int basalt_delete(basalt_store* store, const void* key, size_t key_size,
                             const basalt_write_options* options, basalt_commit* commit,
                             basalt_error* error);
/* All keys in [begin, end). */
BASALT_API int basalt_delete_range(basalt_store* store, const void* begin, size_t begin_size,
                                   const void* end, size_t end_size,
                                   const basalt_write_options* options, basalt_commit* commit,
                                   basalt_error* error);
/* `merge_operator`: BASALT_MERGE_... */
BASALT_API int basalt_merge(basalt_store* store, const void* key, size_t key_size,
                            int merge_operator, const void* operand, size_t operand_size,
                            const basalt_write_options* options, basalt_commit* commit,
                            basalt_error* error);
/* Applies a batch atomically. BASALT_ABORTED: a condition does not hold, and nothing changed. */
BASALT_API int basalt_write(basalt_store* store, const basalt_batch* batch,
                            const basalt_write_options* options, basalt_commit* commit,
                            basalt_error* error);

/* ---- Batches -------------------------------------------------------------------------------- */

BASALT_API int basalt_batch_create(basalt_batch** batch, basalt_error* error);
BASALT_API void basalt_batch_free(basalt_batch* batch);
/* A record that no store accepts is an error here, and basalt_write then refuses the batch. */
BASALT_API int basalt_batch_put(basalt_batch* batch, const void* key, size_t key_size,
                                const void* value, size_t value_size,
                                const basalt_record_options* options, basalt_error* error);
BASALT_API int basalt_batch_delete(basalt_batch* batch, const void* key, size_t key_size,
                                   const basalt_record_options* options, basalt_error* error);
BASALT_API int basalt_batch_delete_range(basalt_batch* batch, const void* begin, size_t begin_size,
                                         const void* end, size_t end_size,
                                         const basalt_record_options* options, basalt_error* error);
BASALT_API int basalt_batch_merge(basalt_batch* batch, const void* key, size_t key_size,
                                  int merge_operator, const void* operand, size_t operand_size,
                                  const basalt_record_options* options, basalt_error* error);
/* Conditions: the batch is applied only if all of them hold. */
BASALT_API int basalt_batch_require_absent(basalt_batch* batch, const void* key, size_t key_size,
                                           uint32_t keyspace, basalt_error* error);
BASALT_API int basalt_batch_require_present(basalt_batch* batch, const void* key, size_t key_size,
                                            uint32_t keyspace, basalt_error* error);
/* The key was not written since it had this version (basalt_entry). */
BASALT_API int basalt_batch_require_unchanged(basalt_batch* batch, const void* key, size_t key_size,
                                              uint64_t version, uint32_t keyspace,
                                              basalt_error* error);
BASALT_API int basalt_batch_append(basalt_batch* batch, const basalt_batch* other,
                                   basalt_error* error);
BASALT_API void basalt_batch_clear(basalt_batch* batch);
/* The number of records, and their bytes in serialised form. 0 for NULL. */
BASALT_API size_t basalt_batch_count(const basalt_batch* batch);
BASALT_API size_t basalt_batch_bytes(const basalt_batch* batch);

/* ---- Keyspaces ------------------------------------------------------------------------------ */

BASALT_API int basalt_keyspace_create(basalt_store* store, const void* name, size_t name_size,
                                      const basalt_keyspace_options* options, uint32_t* keyspace,
                                      basalt_error* error);
BASALT_API int basalt_keyspace_open(const basalt_store* store, const void* name, size_t name_size,
                                    uint32_t* keyspace, basalt_error* error);
BASALT_API int basalt_keyspace_open_or_create(basalt_store* store, const void* name,
                                              size_t name_size,
                                              const basalt_keyspace_options* options,
                                              uint32_t* keyspace, basalt_error* error);
BASALT_API int basalt_keyspace_drop(basalt_store* store, uint32_t keyspace, basalt_error* error);

typedef struct basalt_keyspace_info {
  const char* name; /* Ends with a zero byte, which is not counted. "": the default one. */
  size_t name_size;
  uint32_t id;
} basalt_keyspace_info;

/* All keyspaces by id, as an array. basalt_free frees it together with the names. */
BASALT_API int basalt_keyspace_list(const basalt_store* store, basalt_keyspace_info** infos,
                                    size_t* count, basalt_error* error);

/* ---- Transactions (basalt/transaction.h) ---------------------------------------------------- */

BASALT_API int basalt_begin(basalt_store* store, const basalt_transaction_options* options,
                            basalt_transaction** transaction, basalt_error* error);
/* Frees the transaction. Rolls it back if it is not committed. */
BASALT_API void basalt_transaction_free(basalt_transaction* transaction);
BASALT_API int basalt_transaction_get(basalt_transaction* transaction, const void* key,
                                      size_t key_size, const basalt_read_options* options,
                                      basalt_value* value, basalt_error* error);
BASALT_API int basalt_transaction_contains(basalt_transaction* transaction, const void* key,
                                           size_t key_size, const basalt_read_options* options,
                                           bool* found, basalt_error* error);
/* Sees the transaction's writes up to this call. Valid until the transaction ends. */
BASALT_API int basalt_transaction_iterator(basalt_transaction* transaction,
                                           const basalt_read_options* options,
                                           basalt_iterator** iterator, basalt_error* error);
BASALT_API int basalt_transaction_put(basalt_transaction* transaction, const void* key,
                                      size_t key_size, const void* value, size_t value_size,
                                      const basalt_write_options* options, basalt_error* error);
BASALT_API int basalt_transaction_put_if_absent(basalt_transaction* transaction, const void* key,
                                                size_t key_size, const void* value,
                                                size_t value_size,
                                                const basalt_write_options* options, bool* created,
                                                basalt_error* error);
BASALT_API int basalt_transaction_delete(basalt_transaction* transaction, const void* key,
                                         size_t key_size, const basalt_write_options* options,
                                         basalt_error* error);
BASALT_API int basalt_transaction_delete_range(basalt_transaction* transaction, const void* begin,
                                               size_t begin_size, const void* end, size_t end_size,
                                               const basalt_write_options* options,
                                               basalt_error* error);
BASALT_API int basalt_transaction_merge(basalt_transaction* transaction, const void* key,
                                        size_t key_size, int merge_operator, const void* operand,
                                        size_t operand_size, const basalt_write_options* options,
                                        basalt_error* error);
BASALT_API int basalt_transaction_write(basalt_transaction* transaction, const basalt_batch* batch,
                                        basalt_error* error);
BASALT_API int basalt_transaction_savepoint(basalt_transaction* transaction, uint64_t* savepoint,
                                            basalt_error* error);
BASALT_API int basalt_transaction_rollback_to(basalt_transaction* transaction, uint64_t savepoint,
                                              basalt_error* error);
/* Ends the transaction, with either result. BASALT_ABORTED: a key that it read has changed. Uses
 * durability and no_wait of `options`. */
BASALT_API int basalt_transaction_commit(basalt_transaction* transaction,
                                         const basalt_write_options* options, basalt_commit* commit,
                                         basalt_error* error);
/* Ends the transaction without a change. */
BASALT_API int basalt_transaction_rollback(basalt_transaction* transaction, basalt_error* error);

/* ---- Changes (basalt/changes.h) ------------------------------------------------------------- */

enum {
  BASALT_CHANGE_PUT = 1,
  BASALT_CHANGE_DELETE = 2,
  BASALT_CHANGE_DELETE_RANGE = 3,
  BASALT_CHANGE_MERGE = 4
};

/* One record of a committed batch. */
typedef struct basalt_change {
  const char* key;
  size_t key_size;
  const char* value; /* Of a put; the end of a range; a merge's operand. */
  size_t value_size;
  int64_t expiry_ms; /* 0: it does not expire. */
  uint64_t sequence;
  uint64_t lsn; /* Of its batch. */
  uint32_t keyspace;
  int32_t kind;           /* BASALT_CHANGE_... */
  int32_t merge_operator; /* Of a merge: BASALT_MERGE_... */
} basalt_change;

/* Reads committed writes from the log, from record `from_lsn` on; the first is 1.
 * BASALT_OUT_OF_RANGE: the log does not have it (basalt_db_options.log_keep_bytes). */
BASALT_API int basalt_changes(const basalt_store* store, uint64_t from_lsn,
                              basalt_change_reader** reader, basalt_error* error);
/* Moves to the next batch and returns its records, valid until the next call. `count` 0: there is
 * none yet; call again later. */
BASALT_API int basalt_change_reader_next(basalt_change_reader* reader,
                                         const basalt_change** changes, size_t* count,
                                         basalt_error* error);
BASALT_API void basalt_change_reader_free(basalt_change_reader* reader);

/* ---- Graph (basalt/graph.h) ----------------------------------------------------------------- */

/* Content is passed and returned as JSON. A node is
 *
 *     {"id": "ada", "labels": ["Person"], "properties": {"born": 1815}}
 *
 * and the content of an edge is
 *
 *     {"weight": 1.0, "valid_from_ms": 0, "valid_to_ms": 0, "expiry_ms": 0, "properties": {}}
 *
 * In arguments all members are optional, and "id" is not passed. Times are milliseconds since 1970
 * UTC. A value of a property is null, a boolean, a string, an array, an object, or a number. A
 * number without fraction and exponent is a 64-bit integer. The objects are {"$hex": "00ff"} for
 * bytes,
 * {"$time_ms": 0} for a time, and {"$double": "nan"}, "inf" or "-inf" for such doubles. Arguments
 * must be UTF-8; stored bytes that are not UTF-8 are returned as U+FFFD. Ids are the external ids.
 *
 * Calls with a `transaction` are a part of it. With NULL they are a transaction of their own, and
 * reads see the current state. Free the result `*json` with basalt_free; NULL: there is no such
 * node or edge. */

typedef struct basalt_graph basalt_graph; /* May be used from any threads. */

typedef struct basalt_graph_options {
  size_t struct_size;
  const void* name; /* The keyspace, up to 200 bytes. NULL: "graph". */
  size_t name_size;
  bool must_exist; /* An absent graph is BASALT_NOT_FOUND and is not created. */
} basalt_graph_options;

/* There is one edge for each combination of these. */
typedef struct basalt_edge_name {
  const void* from;
  size_t from_size;
  const void* type;
  size_t type_size;
  const void* to;
  size_t to_size;
  const void* discriminator; /* Distinguishes parallel edges of one type. NULL: "". */
  size_t discriminator_size;
} basalt_edge_name;

enum { BASALT_EDGES_OUT = 0, BASALT_EDGES_IN = 1, BASALT_EDGES_BOTH = 2 };

/* The edges that a read follows, and its limits. */
typedef struct basalt_edge_filter {
  size_t struct_size;
  const void* const* types; /* `type_count` names. */
  const size_t* type_sizes;
  size_t type_count;    /* 0: all types. */
  int64_t as_of_ms;     /* Only edges that were valid at this time. 0: all stored edges. */
  uint64_t visited_max; /* Nodes; 0: a million. At a limit the result has "truncated". */
  uint64_t fan_out_max; /* Edges followed from one node; the same. */
  uint32_t direction;   /* BASALT_EDGES_... */
} basalt_edge_filter;

BASALT_API int basalt_graph_open(basalt_store* store, const basalt_graph_options* options,
                                 basalt_graph** graph, basalt_error* error);
BASALT_API void basalt_graph_free(basalt_graph* graph);
/* Adds a node, or replaces its labels and properties. */
BASALT_API int basalt_graph_put_node(basalt_graph* graph, basalt_transaction* transaction,
                                     const void* id, size_t id_size, const char* content,
                                     size_t content_size, basalt_error* error);
/* Removes a node with its edges. `found` (may be NULL): whether it was there. */
BASALT_API int basalt_graph_remove_node(basalt_graph* graph, basalt_transaction* transaction,
                                        const void* id, size_t id_size, bool* found,
                                        basalt_error* error);
/* Adds an edge, or replaces its content. BASALT_NOT_FOUND: one of the nodes is absent. */
BASALT_API int basalt_graph_put_edge(basalt_graph* graph, basalt_transaction* transaction,
                                     const basalt_edge_name* edge, const char* content,
                                     size_t content_size, basalt_error* error);
BASALT_API int basalt_graph_remove_edge(basalt_graph* graph, basalt_transaction* transaction,
                                        const basalt_edge_name* edge, bool* found,
                                        basalt_error* error);
/* Removes the remaining records of nodes that transactions have removed. */
BASALT_API int basalt_graph_finish_removals(basalt_graph* graph, basalt_error* error);
BASALT_API int basalt_graph_get_node(const basalt_graph* graph, basalt_transaction* transaction,
                                     const void* id, size_t id_size, char** json,
                                     basalt_error* error);
BASALT_API int basalt_graph_get_edge(const basalt_graph* graph, basalt_transaction* transaction,
                                     const basalt_edge_name* edge, char** json,
                                     basalt_error* error);
/* Up to `limit` edges of a node: {"neighbors": [{"id", "type", "direction": "out" or "in",
 * "discriminator" unless empty, "weight"}...], "next": STRING}. `from`: the "next" of the
 * previous page; NULL or "": the first page. "next" is "" at the end. An absent node has no
 * neighbours. */
BASALT_API int basalt_graph_neighbors(const basalt_graph* graph, basalt_transaction* transaction,
                                      const void* id, size_t id_size,
                                      const basalt_edge_filter* filter, size_t limit,
                                      const char* from, char** json, basalt_error* error);
/* Up to `count_max` paths of up to `hops` edges, shorter ones first:
 * {"paths": [{"nodes": [ID...], "edges": [as neighbors...], "cost"}...], "truncated": BOOL}. */
BASALT_API int basalt_graph_paths(const basalt_graph* graph, const void* from, size_t from_size,
                                  const void* to, size_t to_size, uint32_t hops, size_t count_max,
                                  const basalt_edge_filter* filter, char** json,
                                  basalt_error* error);
/* The `limit` nodes of the greatest personalised PageRank, with `count` nodes as seeds:
 * {"nodes": [{"id", "score"}...], "truncated": BOOL}. `filter` NULL: all edges, both ways. */
BASALT_API int basalt_graph_page_rank(const basalt_graph* graph, size_t count,
                                      const void* const* ids, const size_t* id_sizes,
                                      const basalt_edge_filter* filter, size_t limit, char** json,
                                      basalt_error* error);
/* A JSON object with the names of basalt::GraphStats. It reads all keys. */
BASALT_API int basalt_graph_stats(const basalt_graph* graph, char** json, basalt_error* error);

/* ---- Corpus (basalt/retrieve.h) ------------------------------------------------------------- */

typedef struct basalt_corpus basalt_corpus; /* May be used from any threads. */

typedef struct basalt_corpus_options {
  size_t struct_size;
  const void* name; /* The keyspace, up to 200 bytes. NULL: "corpus". */
  size_t name_size;
  const char* stemmer; /* For example "english"; "": none. NULL: as it was made; none if new. */
  size_t passage_bytes_max; /* 0: 1200. */
  bool must_exist;          /* An absent corpus is BASALT_NOT_FOUND and is not created. */
} basalt_corpus_options;

/* A document to be searched. A document with the same source replaces it. */
typedef struct basalt_document {
  const void* source; /* Up to 900 bytes. */
  size_t source_size;
  const void* title;
  size_t title_size;
  const void* text; /* UTF-8. */
  size_t text_size;
} basalt_document;

typedef struct basalt_ingested {
  uint64_t passages;
  uint64_t entities; /* Entities that the passages name; new and known ones. */
} basalt_ingested;

typedef struct basalt_retrieve_options {
  size_t struct_size;
  size_t k;            /* Passages; 0: 10. */
  uint64_t max_tokens; /* Of all passages, 4 bytes each; 0: a million. */
  bool explain;        /* With "evidence". */
  bool without_links;  /* Rank by words alone. */
} basalt_retrieve_options;

BASALT_API int basalt_corpus_open(basalt_store* store, const basalt_corpus_options* options,
                                  basalt_corpus** corpus, basalt_error* error);
BASALT_API void basalt_corpus_free(basalt_corpus* corpus);
/* Adds or replaces a document; as a part of `transaction`, unless it is NULL. `ingested` may be
 * NULL. */
BASALT_API int basalt_corpus_ingest(basalt_corpus* corpus, basalt_transaction* transaction,
                                    const basalt_document* document, basalt_ingested* ingested,
                                    basalt_error* error);
/* Removes a document. `found` (may be NULL): whether it was there. */
BASALT_API int basalt_corpus_forget(basalt_corpus* corpus, basalt_transaction* transaction,
                                    const void* source, size_t source_size, bool* found,
                                    basalt_error* error);
/* Finishes the work of committed transactions: packs postings, and removes records of removed
 * nodes. Call it periodically after such commits. It does not change results. */
BASALT_API int basalt_corpus_finish(basalt_corpus* corpus, basalt_error* error);
/* The passages that fit the query best: {"passages": [{"source", "title", "text", "begin", "end",
 * "score", "parts": {...}, "tokens", "evidence": [ID...]}...], "tokens", "truncated"}, with the
 * names of basalt::RetrievedPassage. Free it with basalt_free. */
BASALT_API int basalt_corpus_retrieve(const basalt_corpus* corpus, const char* query,
                                      size_t query_size, const basalt_retrieve_options* options,
                                      char** json, basalt_error* error);

/* ---- Cache (basalt/cache.h) ----------------------------------------------------------------- */

typedef struct basalt_cache_options {
  size_t struct_size;
  uint64_t capacity_bytes; /* At least 64 KiB. 0: 64 MiB. */
  int64_t default_ttl_ms;  /* 0: entries do not expire. */
  uint32_t shards;         /* A power of two up to 128; 0: derived. */
  bool s3_fifo;            /* Evict by S3-FIFO instead of CLOCK. */
} basalt_cache_options;

BASALT_API int basalt_cache_create(const basalt_cache_options* options, basalt_cache** cache,
                                   basalt_error* error);
BASALT_API void basalt_cache_free(basalt_cache* cache);
/* `ttl_ms`: 0: the cache's default; BASALT_NO_TTL: never. */
BASALT_API int basalt_cache_put(basalt_cache* cache, const void* key, size_t key_size,
                                const void* value, size_t value_size, int64_t ttl_ms,
                                basalt_error* error);
BASALT_API int basalt_cache_put_if_absent(basalt_cache* cache, const void* key, size_t key_size,
                                          const void* value, size_t value_size, int64_t ttl_ms,
                                          bool* created, basalt_error* error);
BASALT_API int basalt_cache_get(basalt_cache* cache, const void* key, size_t key_size,
                                basalt_value* value, basalt_error* error);
/* Removes the key and returns its value. */
BASALT_API int basalt_cache_take(basalt_cache* cache, const void* key, size_t key_size,
                                 basalt_value* value, basalt_error* error);
/* `found` (may be NULL): whether it was there. */
BASALT_API int basalt_cache_delete(basalt_cache* cache, const void* key, size_t key_size,
                                   bool* found, basalt_error* error);
/* Gives the value a new time to live, counted from now. BASALT_NO_TTL: it does not expire. `found`
 * may be NULL. */
BASALT_API int basalt_cache_touch(basalt_cache* cache, const void* key, size_t key_size,
                                  int64_t ttl_ms, bool* found, basalt_error* error);
BASALT_API int basalt_cache_clear(basalt_cache* cache, basalt_error* error);
BASALT_API int basalt_cache_set_capacity(basalt_cache* cache, uint64_t capacity_bytes,
                                         basalt_error* error);
/* A JSON object with the names of basalt::CacheStats. Free it with basalt_free. */
BASALT_API int basalt_cache_stats(const basalt_cache* cache, char** json, basalt_error* error);

/* ---- Shared map (basalt/shared_map.h) ------------------------------------------------------- */

typedef struct basalt_map_options {
  size_t struct_size;
  int64_t lock_timeout_ms;      /* How long to wait for another writer's lock. */
  uint64_t build_memory;        /* For a builder; at least 1 MiB. 0: 256 MiB. */
  uint32_t durability;          /* BASALT_DURABILITY_..., but not MEMORY. */
  uint32_t threads;             /* For builds; 0: one for each processor. */
  bool overwrite;               /* Create: replaces an existing map. */
  bool no_background_compact;   /* Only basalt_map_compact compacts changes. */
  bool keep_last_of_duplicates; /* For a builder: a key may be added twice. */
} basalt_map_options;

/* For the single writing process. */
BASALT_API int basalt_map_create(const char* path, const basalt_map_options* options,
                                 basalt_map** map, basalt_error* error);
BASALT_API int basalt_map_open(const char* path, const basalt_map_options* options,
                               basalt_map** map, basalt_error* error);
/* For any number of reading processes. */
BASALT_API int basalt_map_attach(const char* path, basalt_map** map, basalt_error* error);
/* As basalt_close. */
BASALT_API int basalt_map_close(basalt_map* map, basalt_error* error);
BASALT_API void basalt_map_free(basalt_map* map);
BASALT_API int basalt_map_put(basalt_map* map, const void* key, size_t key_size, const void* value,
                              size_t value_size, basalt_error* error);
BASALT_API int basalt_map_delete(basalt_map* map, const void* key, size_t key_size,
                                 basalt_error* error);
/* Puts and deletes, without keyspaces and expiry. Readers see all of them or none. */
BASALT_API int basalt_map_write(basalt_map* map, const basalt_batch* batch, basalt_error* error);
BASALT_API int basalt_map_sync(basalt_map* map, basalt_error* error);
/* Compacts changes into the base files. */
BASALT_API int basalt_map_compact(basalt_map* map, basalt_error* error);
/* A JSON object with the names of basalt::SharedMapStats. Free it with basalt_free. */
BASALT_API int basalt_map_stats(const basalt_map* map, char** json, basalt_error* error);
/* As basalt_check and basalt_destroy; the report has the names of basalt::SharedMapReport. */
BASALT_API int basalt_map_check(const char* path, char** report, basalt_error* error);
BASALT_API int basalt_map_destroy(const char* path, basalt_error* error);

BASALT_API int basalt_map_reader_create(const basalt_map* map, basalt_map_reader** reader,
                                        basalt_error* error);
BASALT_API void basalt_map_reader_free(basalt_map_reader* reader);
/* The value inside the map's files, valid until the reader's next call. NULL: absent. */
BASALT_API int basalt_map_reader_get(basalt_map_reader* reader, const void* key, size_t key_size,
                                     const char** value, size_t* value_size, basalt_error* error);
/* Many lookups at one moment. NULL: absent. */
BASALT_API int basalt_map_reader_multi_get(basalt_map_reader* reader, size_t count,
                                           const void* const* keys, const size_t* key_sizes,
                                           const char** values, size_t* value_sizes,
                                           basalt_error* error);
/* Calls `visit` with every record, in no order, on this thread. If `visit` does not return 0, the
 * scan stops with BASALT_CANCELLED. `visit` must not use the reader. */
BASALT_API int basalt_map_reader_scan(basalt_map_reader* reader,
                                      int (*visit)(void* context, const char* key, size_t key_size,
                                                   const char* value, size_t value_size),
                                      void* context, basalt_error* error);

/* Builds a map from many records: several times as fast as puts. */
BASALT_API int basalt_map_builder_create(const char* path, const basalt_map_options* options,
                                         basalt_map_builder** builder, basalt_error* error);
/* Frees the builder. Without basalt_map_builder_finish it leaves no map. */
BASALT_API void basalt_map_builder_free(basalt_map_builder* builder);
BASALT_API int basalt_map_builder_add(basalt_map_builder* builder, const void* key, size_t key_size,
                                      const void* value, size_t value_size, basalt_error* error);
/* Returns the map, open for writing. The builder cannot be used afterwards, and must be freed. */
BASALT_API int basalt_map_builder_finish(basalt_map_builder* builder, basalt_map** map,
                                         basalt_error* error);

#ifdef __cplusplus
}
#endif

#endif

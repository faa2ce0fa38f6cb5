/* Every function of the C API, from C11, on stores in a directory of the test. Takes a directory
 * that it may fill. */

#define _POSIX_C_SOURCE 200809L

#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* In null_arguments.c. */
void TestNullArguments(void);
/* In graph_test.c. */
void TestGraph(void);
void TestGraphNullArguments(void);

static char path[4096];

static const char* Path(const char* directory, const char* name) {
  CHECK((size_t)snprintf(path, sizeof path, "%s/%s", directory, name) < sizeof path);
  return path;
}

static void ExpectValue(const basalt_store* store, const char* key,
                        const basalt_read_options* options, const char* expected) {
  basalt_value value;
  OK(basalt_get(store, S(key), options, &value, &error));
  CHECK(expected == NULL ? value.data == NULL : Is(value.data, value.size, expected));
  basalt_value_release(&value);
  CHECK(value.data == NULL);
  basalt_value_release(&value);
}

static void TestNames(void) {
  CHECK(strcmp(basalt_version(), BASALT_VERSION) == 0);
  CHECK(strcmp(basalt_code_name(BASALT_CORRUPTION), "Corruption") == 0);
  CHECK(strcmp(basalt_code_name(-1), "Unknown") == 0);
  CHECK(strcmp(basalt_code_name(1000), "Unknown") == 0);
  CHECK(strcmp(basalt_sub_code_name(BASALT_SUB_DISK_FULL), "DiskFull") == 0);
  CHECK(strcmp(basalt_sub_code_name(BASALT_SUB_NONE), "") == 0);
  CHECK(strcmp(basalt_sub_code_name(99), "Unknown") == 0);
  basalt_free(NULL);
}

static void TestReadsAndWrites(basalt_store* store) {
  basalt_commit commit;
  OK(basalt_put(store, S("a"), S("1"), NULL, &commit, &error));
  CHECK(commit.sequence > 0);
  OK(basalt_put(store, S("b"), "", 0, NULL, NULL, NULL));
  OK(basalt_put(store, NULL, 0, S("of the empty key"), NULL, NULL, NULL));
  ExpectValue(store, "a", NULL, "1");
  ExpectValue(store, "b", NULL, "");
  ExpectValue(store, "", NULL, "of the empty key");
  ExpectValue(store, "absent", NULL, NULL);

  /* A value that is longer than what lies in basalt_value. */
  char large[100000];
  memset(large, 'x', sizeof large);
  OK(basalt_put(store, S("large"), large, sizeof large, NULL, NULL, &error));
  basalt_value value;
  OK(basalt_get(store, S("large"), NULL, &value, &error));
  OK(basalt_delete(store, S("large"), NULL, &commit, &error));
  CHECK(value.size == sizeof large && memcmp(value.data, large, sizeof large) == 0);
  basalt_value_release(&value);

  bool created = false, found = false;
  OK(basalt_put_if_absent(store, S("once"), S("first"), NULL, &created, &commit, &error));
  CHECK(created && commit.sequence > 0);
  OK(basalt_put_if_absent(store, S("once"), S("second"), NULL, &created, &commit, &error));
  CHECK(!created && commit.sequence == 0);
  ExpectValue(store, "once", NULL, "first");
  OK(basalt_contains(store, S("once"), NULL, &found, &error));
  CHECK(found);
  OK(basalt_contains(store, S("absent"), NULL, &found, &error));
  CHECK(!found);

  OK(basalt_merge(store, S("list"), BASALT_MERGE_APPEND, S("x"), NULL, &commit, &error));
  OK(basalt_merge(store, S("list"), BASALT_MERGE_APPEND, S("y"), NULL, NULL, &error));
  ExpectValue(store, "list", NULL, "xy");
  const char one[8] = {1};
  OK(basalt_merge(store, S("sum"), BASALT_MERGE_ADD, one, 8, NULL, NULL, &error));
  FAILS(BASALT_INVALID_ARGUMENT,
        basalt_merge(store, S("sum"), BASALT_MERGE_ADD, one, 7, NULL, NULL, &error));
  FAILS(BASALT_INVALID_ARGUMENT, basalt_merge(store, S("sum"), 9, one, 8, NULL, NULL, &error));
  OK(basalt_delete_range(store, S("li"), S("lj"), NULL, &commit, &error));
  ExpectValue(store, "list", NULL, NULL);

  /* Expiry: an hour, a moment, never; and one that has passed. */
  const basalt_write_options hour = {.struct_size = sizeof hour, .ttl_ms = 3600 * 1000};
  const basalt_write_options moment = {.struct_size = sizeof moment,
                                       .expiry_ms = INT64_C(4102444800000)};
  const basalt_write_options never = {.struct_size = sizeof never, .ttl_ms = BASALT_NO_TTL};
  const basalt_write_options past = {.struct_size = sizeof past, .expiry_ms = 1};
  basalt_entry entry;
  OK(basalt_put(store, S("expires"), S("v"), &hour, NULL, &error));
  OK(basalt_get_entry(store, S("expires"), NULL, &entry, &error));
  CHECK(entry.version > 0 && entry.expiry_ms > INT64_C(1600000000000));
  basalt_value_release(&entry.value);
  OK(basalt_put(store, S("expires"), S("v"), &moment, NULL, &error));
  OK(basalt_get_entry(store, S("expires"), NULL, &entry, &error));
  CHECK(entry.expiry_ms == INT64_C(4102444800000) && Is(entry.value.data, entry.value.size, "v"));
  basalt_value_release(&entry.value);
  OK(basalt_put(store, S("expires"), S("v"), &never, NULL, &error));
  OK(basalt_get_entry(store, S("expires"), NULL, &entry, &error));
  CHECK(entry.expiry_ms == 0);
  basalt_value_release(&entry.value);
  OK(basalt_put(store, S("expires"), S("v"), &past, NULL, &error));
  OK(basalt_get_entry(store, S("expires"), NULL, &entry, &error));
  CHECK(entry.value.data == NULL && entry.version == 0);

  const void* keys[] = {"a", "absent", "once"};
  const size_t sizes[] = {1, 6, 4};
  basalt_value values[3];
  int32_t codes[3] = {-1, -1, -1};
  OK(basalt_multi_get(store, 3, keys, sizes, NULL, values, codes, &error));
  CHECK(Is(values[0].data, values[0].size, "1") && values[1].data == NULL &&
        values[2].data != NULL);
  CHECK(codes[0] == BASALT_OK && codes[1] == BASALT_OK && codes[2] == BASALT_OK);
  for (int i = 0; i < 3; ++i) basalt_value_release(&values[i]);
  const basalt_read_options nowhere = {.struct_size = sizeof nowhere, .keyspace = 77};
  FAILS(BASALT_NOT_FOUND, basalt_multi_get(store, 3, keys, sizes, &nowhere, values, NULL, &error));
  CHECK(values[0].data == NULL && values[2].data == NULL);

  OK(basalt_sync(store, &error));
  OK(basalt_wait_durable(store, 0, &error));
  OK(basalt_compact(store, 0, NULL, 0, NULL, 0, &error));
  char* json;
  OK(basalt_stats(store, &json, &error));
  CHECK(json[0] == '{' && json[strlen(json) - 1] == '}' &&
        strstr(json, "\"memory_budget\":") != NULL);
  basalt_free(json);
}

static void TestSnapshotsAndIterators(basalt_store* store) {
  for (int i = 0; i < 100; ++i) {
    char key[16], value[16];
    snprintf(key, sizeof key, "k/%02d", i);
    snprintf(value, sizeof value, "%d", i);
    OK(basalt_put(store, S(key), S(value), NULL, NULL, &error));
  }
  basalt_snapshot* snapshot;
  OK(basalt_snapshot_create(store, &snapshot, &error));
  CHECK(basalt_snapshot_sequence(snapshot) > 0);
  OK(basalt_put(store, S("k/00"), S("new"), NULL, NULL, &error));
  const basalt_read_options before = {.struct_size = sizeof before, .snapshot = snapshot};
  ExpectValue(store, "k/00", &before, "0");
  ExpectValue(store, "k/00", NULL, "new");

  basalt_iterator* it;
  const basalt_read_options under = {
      .struct_size = sizeof under, .snapshot = snapshot, .prefix = "k/", .prefix_size = 2};
  OK(basalt_iterator_create(store, &under, &it, &error));
  basalt_snapshot_free(snapshot);
  CHECK(!basalt_iterator_valid(it));
  size_t size = 9;
  CHECK(basalt_iterator_key(it, &size) == NULL && size == 0);
  CHECK(basalt_iterator_expiry(it) == 0);
  int count = 0;
  for (bool at = basalt_iterator_seek_to_first(it); at; at = basalt_iterator_next(it)) {
    const char* value = basalt_iterator_value(it, &size);
    CHECK(value != NULL && atoi(value) >= 0);
    CHECK(basalt_iterator_valid(it) && basalt_iterator_expiry(it) == 0);
    ++count;
  }
  CHECK(count == 100);
  OK(basalt_iterator_status(it, &error));
  count = 0;
  for (bool at = basalt_iterator_seek_to_last(it); at; at = basalt_iterator_prev(it)) ++count;
  CHECK(count == 100);
  CHECK(basalt_iterator_seek(it, S("k/505")));
  CHECK(Is(basalt_iterator_key(it, &size), 4, "k/51") && size == 4);
  CHECK(basalt_iterator_seek_for_prev(it, S("k/505")));
  CHECK(Is(basalt_iterator_key(it, &size), 4, "k/50"));
  basalt_iterator_free(it);

  const basalt_read_options range = {.struct_size = sizeof range,
                                     .lower = "k/10",
                                     .lower_size = 4,
                                     .upper = "k/20",
                                     .upper_size = 4,
                                     .keys_only = true};
  OK(basalt_iterator_create(store, &range, &it, &error));
  count = 0;
  for (bool at = basalt_iterator_seek_to_first(it); at; at = basalt_iterator_next(it)) {
    CHECK(basalt_iterator_value(it, &size) != NULL && size == 0);
    ++count;
  }
  CHECK(count == 10);
  basalt_iterator_free(it);

  const basalt_read_options both = {.struct_size = sizeof both, .lower = "", .prefix = "k"};
  FAILS(BASALT_INVALID_ARGUMENT, basalt_iterator_create(store, &both, &it, &error));
  CHECK(it == NULL);
}

static void TestBatches(basalt_store* store) {
  basalt_batch *batch, *other;
  OK(basalt_batch_create(&batch, &error));
  OK(basalt_batch_create(&other, &error));
  OK(basalt_batch_put(batch, S("p"), S("1"), NULL, &error));
  OK(basalt_batch_put(batch, S("q"), S("2"), NULL, &error));
  OK(basalt_batch_delete(batch, S("p"), NULL, &error));
  OK(basalt_batch_merge(other, S("r"), BASALT_MERGE_APPEND, S("3"), NULL, &error));
  OK(basalt_batch_append(batch, other, &error));
  CHECK(basalt_batch_count(batch) == 4 && basalt_batch_bytes(batch) > 0);
  OK(basalt_write(store, batch, NULL, NULL, &error));
  ExpectValue(store, "p", NULL, NULL);
  ExpectValue(store, "q", NULL, "2");
  ExpectValue(store, "r", NULL, "3");

  basalt_batch_clear(batch);
  CHECK(basalt_batch_count(batch) == 0);
  OK(basalt_batch_delete_range(batch, S("q"), S("s"), NULL, &error));
  OK(basalt_batch_require_absent(batch, S("q"), 0, &error));
  FAILS(BASALT_ABORTED, basalt_write(store, batch, NULL, NULL, &error));
  CHECK(error.sub_code == BASALT_SUB_CONDITION);
  ExpectValue(store, "q", NULL, "2");

  basalt_entry entry;
  OK(basalt_get_entry(store, S("q"), NULL, &entry, &error));
  basalt_value_release(&entry.value);
  basalt_batch_clear(batch);
  OK(basalt_batch_put(batch, S("q"), S("3"), NULL, &error));
  OK(basalt_batch_require_unchanged(batch, S("q"), entry.version, 0, &error));
  OK(basalt_batch_require_present(batch, S("r"), 0, &error));
  OK(basalt_write(store, batch, NULL, NULL, &error));
  FAILS(BASALT_ABORTED, basalt_write(store, batch, NULL, NULL, &error));
  ExpectValue(store, "q", NULL, "3");

  /* A record that no store takes is refused at once, and so is the batch. */
  static char huge_key[70000];
  FAILS(BASALT_INVALID_ARGUMENT,
        basalt_batch_put(batch, huge_key, sizeof huge_key, S(""), NULL, &error));
  FAILS(BASALT_INVALID_ARGUMENT, basalt_write(store, batch, NULL, NULL, &error));
  const basalt_record_options ttl = {.struct_size = sizeof ttl, .ttl_ms = 1};
  basalt_batch_clear(batch);
  FAILS(BASALT_INVALID_ARGUMENT, basalt_batch_delete(batch, S("a"), &ttl, &error));
  basalt_batch_free(other);
  basalt_batch_free(batch);
}

static void TestKeyspaces(basalt_store* store) {
  uint32_t users, again, other;
  const basalt_keyspace_options options = {.struct_size = sizeof options,
                                           .default_ttl_ms = 3600 * 1000};
  if (basalt_keyspace_create(store, S("users"), &options, &users, &error) != BASALT_OK) {
    CHECK(error.code == BASALT_UNSUPPORTED); /* A database has one for all. */
    OK(basalt_keyspace_create(store, S("users"), NULL, &users, &error));
  }
  FAILS(BASALT_ALREADY_EXISTS, basalt_keyspace_create(store, S("users"), NULL, &other, &error));
  OK(basalt_keyspace_open(store, S("users"), &again, &error));
  CHECK(users == again && users != BASALT_DEFAULT_KEYSPACE);
  OK(basalt_keyspace_open_or_create(store, S("others"), NULL, &other, &error));
  FAILS(BASALT_NOT_FOUND, basalt_keyspace_open(store, S("nobody"), &again, &error));

  const basalt_write_options into = {.struct_size = sizeof into, .keyspace = users};
  const basalt_read_options from = {.struct_size = sizeof from, .keyspace = users};
  OK(basalt_put(store, S("7"), S("Ada"), &into, NULL, &error));
  ExpectValue(store, "7", &from, "Ada");
  ExpectValue(store, "7", NULL, NULL);
  basalt_keyspace_info* infos;
  size_t count;
  OK(basalt_keyspace_list(store, &infos, &count, &error));
  CHECK(count == 3 && infos[0].id == 0 && infos[0].name_size == 0);
  CHECK(Is(infos[1].name, infos[1].name_size, "users") && infos[1].name[5] == '\0' &&
        infos[1].id == users);
  basalt_free(infos);
  OK(basalt_keyspace_drop(store, users, &error));
  basalt_value value;
  FAILS(BASALT_NOT_FOUND, basalt_get(store, S("7"), &from, &value, &error));
  CHECK(error.sub_code == BASALT_SUB_KEYSPACE && value.data == NULL);
  FAILS(BASALT_INVALID_ARGUMENT, basalt_keyspace_drop(store, 0, &error));
}

static void TestTransactions(basalt_store* store) {
  basalt_transaction *tx, *rival;
  basalt_commit commit;
  basalt_value value;
  bool flag;
  uint64_t savepoint;
  OK(basalt_put(store, S("account"), S("100"), NULL, NULL, &error));
  const basalt_transaction_options options = {.struct_size = sizeof options,
                                              .memory_limit = 1 << 20};
  OK(basalt_begin(store, &options, &tx, &error));
  OK(basalt_transaction_get(tx, S("account"), NULL, &value, &error));
  CHECK(Is(value.data, value.size, "100"));
  basalt_value_release(&value);
  OK(basalt_transaction_put(tx, S("account"), S("70"), NULL, &error));
  OK(basalt_transaction_put_if_absent(tx, S("account"), S("1"), NULL, &flag, &error));
  CHECK(!flag);
  OK(basalt_transaction_put_if_absent(tx, S("log"), S(""), NULL, &flag, &error));
  CHECK(flag);
  OK(basalt_transaction_merge(tx, S("log"), BASALT_MERGE_APPEND, S("m"), NULL, &error));
  OK(basalt_transaction_savepoint(tx, &savepoint, &error));
  OK(basalt_transaction_delete(tx, S("account"), NULL, &error));
  OK(basalt_transaction_contains(tx, S("account"), NULL, &flag, &error));
  CHECK(!flag);
  OK(basalt_transaction_delete_range(tx, S("a"), S("b"), NULL, &error));
  OK(basalt_transaction_rollback_to(tx, savepoint, &error));
  basalt_batch* batch;
  OK(basalt_batch_create(&batch, &error));
  OK(basalt_batch_put(batch, S("other"), S("30"), NULL, &error));
  OK(basalt_transaction_write(tx, batch, &error));
  basalt_batch_free(batch);
  basalt_iterator* it;
  const basalt_read_options under = {
      .struct_size = sizeof under, .prefix = "other", .prefix_size = 5};
  OK(basalt_transaction_iterator(tx, &under, &it, &error));
  CHECK(basalt_iterator_seek_to_first(it) && !basalt_iterator_next(it));
  basalt_iterator_free(it);
  ExpectValue(store, "account", NULL, "100");
  OK(basalt_transaction_commit(tx, NULL, &commit, &error));
  CHECK(commit.sequence > 0);
  ExpectValue(store, "account", NULL, "70");
  ExpectValue(store, "log", NULL, "m");
  FAILS(BASALT_FAILED_PRECONDITION, basalt_transaction_put(tx, S("a"), S("b"), NULL, &error));
  CHECK(error.sub_code == BASALT_SUB_CLOSED);
  basalt_transaction_free(tx);

  /* Both read the account and write it: the second commit is refused. */
  OK(basalt_begin(store, NULL, &tx, &error));
  OK(basalt_begin(store, NULL, &rival, &error));
  OK(basalt_transaction_contains(tx, S("account"), NULL, &flag, &error));
  OK(basalt_transaction_contains(rival, S("account"), NULL, &flag, &error));
  OK(basalt_transaction_put(tx, S("account"), S("1"), NULL, &error));
  OK(basalt_transaction_put(rival, S("account"), S("2"), NULL, &error));
  OK(basalt_transaction_commit(tx, NULL, NULL, &error));
  FAILS(BASALT_ABORTED, basalt_transaction_commit(rival, NULL, NULL, &error));
  CHECK(error.sub_code == BASALT_SUB_CONFLICT);
  ExpectValue(store, "account", NULL, "1");
  basalt_transaction_free(rival);
  basalt_transaction_free(tx);

  OK(basalt_begin(store, NULL, &tx, &error));
  OK(basalt_transaction_put(tx, S("account"), S("3"), NULL, &error));
  OK(basalt_transaction_rollback(tx, &error));
  basalt_transaction_free(tx);
  OK(basalt_begin(store, NULL, &tx, &error)); /* Freed without an end: rolled back. */
  OK(basalt_transaction_put(tx, S("account"), S("4"), NULL, &error));
  basalt_transaction_free(tx);
  ExpectValue(store, "account", NULL, "1");
}

/* What a handle of the parent answers in a child. */
static void TestFork(basalt_store* store, basalt_cache* cache) {
  basalt_iterator* it;
  basalt_transaction* tx;
  OK(basalt_iterator_create(store, NULL, &it, &error));
  CHECK(basalt_iterator_seek_to_first(it));
  OK(basalt_begin(store, NULL, &tx, &error));
  fflush(NULL);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    basalt_value value;
    FAILS(BASALT_FAILED_PRECONDITION, basalt_get(store, S("a"), NULL, &value, &error));
    CHECK(error.sub_code == BASALT_SUB_FORKED && value.data == NULL);
    FAILS(BASALT_FAILED_PRECONDITION, basalt_put(store, S("a"), S("b"), NULL, NULL, &error));
    FAILS(BASALT_FAILED_PRECONDITION, basalt_close(store, &error));
    FAILS(BASALT_FAILED_PRECONDITION, basalt_cache_put(cache, S("a"), S("b"), 0, &error));
    FAILS(BASALT_FAILED_PRECONDITION, basalt_transaction_put(tx, S("a"), S("b"), NULL, &error));
    CHECK(!basalt_iterator_valid(it) && !basalt_iterator_next(it));
    FAILS(BASALT_FAILED_PRECONDITION, basalt_iterator_status(it, &error));
    basalt_store* own;
    OK(basalt_memtable_create(NULL, &own, &error));
    OK(basalt_put(own, S("a"), S("b"), NULL, NULL, &error));
    ExpectValue(own, "a", NULL, "b");
    basalt_store_free(own);
    _exit(0);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  basalt_transaction_free(tx);
  basalt_iterator_free(it);
}

static void TestDatabase(const char* directory) {
  const char* db_path = Path(directory, "db");
  basalt_store *db, *reader;
  const basalt_db_options must_exist = {.struct_size = sizeof must_exist, .must_exist = true};
  FAILS(BASALT_NOT_FOUND, basalt_open(db_path, &must_exist, &db, &error));
  CHECK(db == NULL && strstr(error.message, "db") != NULL);
  const basalt_db_options options = {.struct_size = sizeof options,
                                     .memory_budget = 16 << 20,
                                     .log_keep_bytes = 1 << 20,
                                     .durability = BASALT_DURABILITY_PROCESS,
                                     .compression = BASALT_COMPRESSION_LZ4_THEN_ZSTD};
  OK(basalt_open(db_path, &options, &db, &error));
  FAILS(BASALT_BUSY, basalt_open(db_path, &options, &reader, &error));
  TestReadsAndWrites(db);
  TestSnapshotsAndIterators(db);
  TestBatches(db);
  TestKeyspaces(db);
  TestTransactions(db);

  basalt_cache* cache;
  OK(basalt_cache_create(NULL, &cache, &error));
  TestFork(db, cache);
  basalt_cache_free(cache);

  const basalt_write_options power = {.struct_size = sizeof power,
                                      .durability = BASALT_DURABILITY_POWER};
  basalt_commit commit;
  OK(basalt_put(db, S("durable"), S("yes"), &power, &commit, &error));
  OK(basalt_wait_durable(db, commit.lsn, &error));
  FAILS(BASALT_INVALID_ARGUMENT, basalt_wait_durable(db, commit.lsn + 1000, &error));
  const basalt_write_options memory = {.struct_size = sizeof memory,
                                       .durability = BASALT_DURABILITY_MEMORY};
  FAILS(BASALT_INVALID_ARGUMENT, basalt_put(db, S("x"), S("y"), &memory, NULL, &error));

  basalt_change_reader* changes;
  const basalt_change* records;
  size_t count;
  OK(basalt_changes(db, commit.lsn, &changes, &error));
  OK(basalt_change_reader_next(changes, &records, &count, &error));
  CHECK(count == 1 && records[0].kind == BASALT_CHANGE_PUT && records[0].lsn == commit.lsn);
  CHECK(Is(records[0].key, records[0].key_size, "durable") &&
        records[0].sequence == commit.sequence);
  OK(basalt_change_reader_next(changes, &records, &count, &error));
  CHECK(count == 0 && records == NULL);
  basalt_change_reader_free(changes);
  FAILS(BASALT_OUT_OF_RANGE, basalt_changes(db, commit.lsn + 1000, &changes, &error));

  OK(basalt_flush(db, &error));
  uint64_t bytes;
  OK(basalt_approximate_size(db, 0, NULL, 0, NULL, 0, &bytes, &error));
  CHECK(bytes > 0);
  OK(basalt_compact(db, 0, S("a"), S("z"), &error));
  OK(basalt_open_read_only(db_path, NULL, &reader, &error));
  ExpectValue(reader, "durable", NULL, "yes");
  FAILS(BASALT_FAILED_PRECONDITION, basalt_put(reader, S("a"), S("b"), NULL, NULL, &error));
  CHECK(error.sub_code == BASALT_SUB_READ_ONLY);
  basalt_store_free(reader);

  basalt_iterator* it;
  OK(basalt_iterator_create(db, NULL, &it, &error));
  CHECK(basalt_iterator_seek_to_first(it));
  OK(basalt_close(db, &error));
  OK(basalt_close(db, &error));
  basalt_value value;
  FAILS(BASALT_FAILED_PRECONDITION, basalt_get(db, S("a"), NULL, &value, &error));
  CHECK(error.sub_code == BASALT_SUB_CLOSED);
  CHECK(!basalt_iterator_seek(it, S("k")));
  FAILS(BASALT_FAILED_PRECONDITION, basalt_iterator_status(it, &error));
  basalt_store_free(db);
  basalt_iterator_free(it);

  OK(basalt_open(db_path, &must_exist, &db, &error));
  ExpectValue(db, "durable", NULL, "yes");
  ExpectValue(db, "k/99", NULL, "99");
  /* In any order: the iterator keeps what it needs. */
  OK(basalt_iterator_create(db, NULL, &it, &error));
  basalt_store_free(db);
  CHECK(basalt_iterator_seek(it, S("k/99")));
  basalt_iterator_free(it);

  char* report;
  OK(basalt_check(db_path, &report, &error));
  CHECK(strstr(report, "\"findings\":[]") != NULL && strstr(report, "\"ok\":true") != NULL);
  basalt_free(report);
  OK(basalt_check(db_path, NULL, &error));
  OK(basalt_repair(db_path, &report, &error));
  CHECK(strstr(report, "\"first_lsn_lost\":0") != NULL);
  basalt_free(report);
  OK(basalt_destroy(db_path, &error));
  FAILS(BASALT_NOT_FOUND, basalt_destroy(db_path, &error));
}

static void TestMemTable(void) {
  basalt_store* table;
  const basalt_memtable_options options = {.struct_size = sizeof options,
                                           .memory_budget = 64 << 20};
  OK(basalt_memtable_create(&options, &table, &error));
  TestReadsAndWrites(table);
  TestSnapshotsAndIterators(table);
  TestBatches(table);
  TestKeyspaces(table);
  TestTransactions(table);
  uint64_t bytes;
  FAILS(BASALT_UNSUPPORTED, basalt_flush(table, &error));
  FAILS(BASALT_UNSUPPORTED, basalt_approximate_size(table, 0, NULL, 0, NULL, 0, &bytes, &error));
  FAILS(BASALT_UNSUPPORTED, basalt_compact(table, 0, S("a"), NULL, 0, &error));
  OK(basalt_close(table, &error));
  FAILS(BASALT_FAILED_PRECONDITION, basalt_put(table, S("a"), S("b"), NULL, NULL, &error));
  CHECK(error.sub_code == BASALT_SUB_CLOSED);
  basalt_store_free(table);

  const basalt_memtable_options small = {.struct_size = sizeof small, .memory_budget = 1};
  FAILS(BASALT_INVALID_ARGUMENT, basalt_memtable_create(&small, &table, &error));
}

static void TestCache(void) {
  basalt_cache* cache;
  basalt_value value, held;
  bool flag;
  const basalt_cache_options options = {
      .struct_size = sizeof options, .capacity_bytes = 1 << 20, .s3_fifo = true};
  OK(basalt_cache_create(&options, &cache, &error));
  OK(basalt_cache_put(cache, S("k"), S("v"), 0, &error));
  OK(basalt_cache_get(cache, S("k"), &value, &error));
  CHECK(Is(value.data, value.size, "v"));
  basalt_value_release(&value);
  OK(basalt_cache_put_if_absent(cache, S("k"), S("w"), BASALT_NO_TTL, &flag, &error));
  CHECK(!flag);
  OK(basalt_cache_touch(cache, S("k"), 3600000, &flag, &error));
  CHECK(flag);
  FAILS(BASALT_INVALID_ARGUMENT, basalt_cache_touch(cache, S("k"), 0, NULL, &error));
  FAILS(BASALT_INVALID_ARGUMENT, basalt_cache_put(cache, S("k"), S("v"), -2, &error));
  OK(basalt_cache_take(cache, S("k"), &value, &error));
  CHECK(Is(value.data, value.size, "v"));
  basalt_value_release(&value);
  OK(basalt_cache_get(cache, S("k"), &value, &error));
  CHECK(value.data == NULL);
  OK(basalt_cache_put(cache, S("short"), S("v"), 1, &error));
  do {
    OK(basalt_cache_get(cache, S("short"), &value, &error));
    flag = value.data != NULL;
    basalt_value_release(&value);
  } while (flag);

  char large[4096];
  memset(large, 'y', sizeof large);
  OK(basalt_cache_put(cache, S("large"), large, sizeof large, 0, &error));
  OK(basalt_cache_get(cache, S("large"), &held, &error));
  OK(basalt_cache_delete(cache, S("large"), &flag, &error));
  CHECK(flag);
  OK(basalt_cache_delete(cache, S("large"), NULL, &error));
  OK(basalt_cache_set_capacity(cache, 128 << 10, &error));
  OK(basalt_cache_clear(cache, &error));
  char* json;
  OK(basalt_cache_stats(cache, &json, &error));
  CHECK(strstr(json, "\"capacity_bytes\":131072") != NULL);
  basalt_free(json);
  basalt_cache_free(cache);
  CHECK(held.size == sizeof large && held.data[4095] == 'y'); /* It outlives the cache. */
  basalt_value_release(&held);
}

static int CountRecord(void* context, const char* key, size_t key_size, const char* value,
                       size_t value_size) {
  int* left = context;
  (void)key;
  (void)value;
  CHECK(key_size > 0 && value_size > 0);
  return --*left == 0;
}

static void TestMap(const char* directory) {
  const char* map_path = Path(directory, "map");
  basalt_map *map, *attached, *second;
  basalt_map_reader* reader;
  basalt_map_builder* builder;
  const basalt_map_options options = {.struct_size = sizeof options,
                                      .keep_last_of_duplicates = true};
  OK(basalt_map_builder_create(map_path, &options, &builder, &error));
  for (int i = 0; i < 1000; ++i) {
    char key[16];
    snprintf(key, sizeof key, "k%d", i % 900);
    OK(basalt_map_builder_add(builder, S(key), S(key), &error));
  }
  OK(basalt_map_builder_finish(builder, &map, &error));
  basalt_map_builder_free(builder);

  OK(basalt_map_attach(map_path, &attached, &error));
  OK(basalt_map_reader_create(attached, &reader, &error));
  const char* value;
  size_t size;
  OK(basalt_map_reader_get(reader, S("k42"), &value, &size, &error));
  CHECK(Is(value, size, "k42"));
  OK(basalt_map_put(map, S("new"), S("1"), &error));
  OK(basalt_map_delete(map, S("k1"), &error));
  basalt_batch* batch;
  OK(basalt_batch_create(&batch, &error));
  OK(basalt_batch_put(batch, S("b1"), S("2"), NULL, &error));
  OK(basalt_batch_delete(batch, S("k2"), NULL, &error));
  OK(basalt_map_write(map, batch, &error));
  basalt_batch_free(batch);
  OK(basalt_map_sync(map, &error));
  const void* keys[] = {"new", "k1", "b1", "k2", "k3"};
  const size_t sizes[] = {3, 2, 2, 2, 2};
  const char* values[5];
  size_t value_sizes[5];
  OK(basalt_map_reader_multi_get(reader, 5, keys, sizes, values, value_sizes, &error));
  CHECK(Is(values[0], value_sizes[0], "1") && values[1] == NULL &&
        Is(values[2], value_sizes[2], "2"));
  CHECK(values[3] == NULL && Is(values[4], value_sizes[4], "k3"));
  OK(basalt_map_compact(map, &error));
  OK(basalt_map_reader_get(reader, S("k1"), &value, &size, &error));
  CHECK(value == NULL && size == 0);
  int left = -1;
  OK(basalt_map_reader_scan(reader, CountRecord, &left, &error));
  CHECK(left == -1 - 900);
  left = 10;
  FAILS(BASALT_CANCELLED, basalt_map_reader_scan(reader, CountRecord, &left, &error));
  FAILS(BASALT_FAILED_PRECONDITION, basalt_map_put(attached, S("x"), S("y"), &error));
  FAILS(BASALT_BUSY, basalt_map_open(map_path, NULL, &second, &error));
  CHECK(second == NULL);
  basalt_map_free(attached);

  char* json;
  OK(basalt_map_stats(map, &json, &error));
  CHECK(strstr(json, "\"entries\":900") != NULL);
  basalt_free(json);
  OK(basalt_map_reader_get(reader, S("new"), &value, &size, &error));
  OK(basalt_map_close(map, &error));
  basalt_map_free(map);
  CHECK(Is(value, size, "1"));
  basalt_map_reader_free(reader);

  OK(basalt_map_check(map_path, &json, &error));
  CHECK(strstr(json, "\"problems\":[]") != NULL);
  basalt_free(json);
  OK(basalt_map_open(map_path, NULL, &map, &error));
  basalt_map_free(map);
  FAILS(BASALT_ALREADY_EXISTS, basalt_map_create(map_path, NULL, &map, &error));
  const basalt_map_options anew = {.struct_size = sizeof anew, .overwrite = true};
  OK(basalt_map_create(map_path, &anew, &map, &error));
  basalt_map_free(map);
  OK(basalt_map_destroy(map_path, &error));
}

/* What a program was compiled with stays: 64-bit layouts are part of the ABI. */
_Static_assert(sizeof(void*) != 8 || sizeof(basalt_error) == 1024, "basalt_error");
_Static_assert(sizeof(void*) != 8 || sizeof(basalt_value) == 144, "basalt_value");
_Static_assert(sizeof(void*) != 8 || sizeof(basalt_entry) == 160, "basalt_entry");
_Static_assert(sizeof(void*) != 8 || sizeof(basalt_commit) == 16, "basalt_commit");
_Static_assert(sizeof(void*) != 8 || sizeof(basalt_db_options) == 48, "basalt_db_options");
_Static_assert(sizeof(void*) != 8 || sizeof(basalt_memtable_options) == 24,
               "basalt_memtable_options");
_Static_assert(sizeof(void*) != 8 || sizeof(basalt_read_options) == 72, "basalt_read_options");
_Static_assert(sizeof(void*) != 8 || sizeof(basalt_write_options) == 40, "basalt_write_options");
_Static_assert(sizeof(void*) != 8 || sizeof(basalt_record_options) == 32, "basalt_record_options");
_Static_assert(sizeof(void*) != 8 || sizeof(basalt_keyspace_options) == 24,
               "basalt_keyspace_options");
_Static_assert(sizeof(void*) != 8 || sizeof(basalt_transaction_options) == 16,
               "basalt_transaction_options");
_Static_assert(sizeof(void*) != 8 || sizeof(basalt_keyspace_info) == 24, "basalt_keyspace_info");
_Static_assert(sizeof(void*) != 8 || sizeof(basalt_change) == 72, "basalt_change");
_Static_assert(sizeof(void*) != 8 || sizeof(basalt_cache_options) == 32, "basalt_cache_options");
_Static_assert(sizeof(void*) != 8 || sizeof(basalt_map_options) == 40, "basalt_map_options");
_Static_assert(sizeof(void*) != 8 || sizeof(basalt_graph_options) == 32, "basalt_graph_options");
_Static_assert(sizeof(void*) != 8 || sizeof(basalt_edge_name) == 64, "basalt_edge_name");
_Static_assert(sizeof(void*) != 8 || sizeof(basalt_edge_filter) == 64, "basalt_edge_filter");
_Static_assert(sizeof(void*) != 8 || sizeof(basalt_corpus_options) == 48, "basalt_corpus_options");
_Static_assert(sizeof(void*) != 8 || sizeof(basalt_document) == 48, "basalt_document");
_Static_assert(sizeof(void*) != 8 || sizeof(basalt_ingested) == 16, "basalt_ingested");
_Static_assert(sizeof(void*) != 8 || sizeof(basalt_retrieve_options) == 32,
               "basalt_retrieve_options");

int main(int argc, char** argv) {
  if (argc != 2) return fprintf(stderr, "usage: c_test DIRECTORY\n"), 2;
  TestNames();
  TestDatabase(argv[1]);
  TestMemTable();
  TestCache();
  TestMap(argv[1]);
  TestGraph();
  TestNullArguments();
  TestGraphNullArguments();
  return 0;
}

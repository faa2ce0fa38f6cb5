/* Opens a database and does the basic things once, in C: put, get, batch, transaction, scan. */

#include <stdio.h>
#include <stdlib.h>

#include "basalt/c.h"

static basalt_error error;

static void Must(int code) {
  if (code == BASALT_OK) return;
  fprintf(stderr, "%s: %s\n", basalt_code_name(code), error.message);
  exit(1);
}

int main(void) {
  basalt_store* db;
  Must(basalt_open("first-steps-c.db", NULL, &db, &error));
  Must(basalt_put(db, "user/1", 6, "Ada", 3, NULL, NULL, &error));

  /* An absent key is no error: its value has no data. */
  basalt_value value;
  Must(basalt_get(db, "user/1", 6, NULL, &value, &error));
  printf("user/1 is %.*s\n", (int)value.size, value.data != NULL ? value.data : "absent");
  basalt_value_release(&value);

  /* A batch is applied as a whole or not at all. This one also survives a power cut. */
  const basalt_write_options power = {.struct_size = sizeof power,
                                      .durability = BASALT_DURABILITY_POWER};
  basalt_batch* batch;
  Must(basalt_batch_create(&batch, &error));
  Must(basalt_batch_put(batch, "user/2", 6, "Grace", 5, NULL, &error));
  Must(basalt_batch_put(batch, "user/3", 6, "Edsger", 6, NULL, &error));
  Must(basalt_write(db, batch, &power, NULL, &error));
  basalt_batch_free(batch);

  /* A transaction reads and writes as one step; Aborted means: begin it again. */
  basalt_transaction* tx;
  Must(basalt_begin(db, NULL, &tx, &error));
  Must(basalt_transaction_get(tx, "user/3", 6, NULL, &value, &error));
  Must(basalt_transaction_put(tx, "user/4", 6, value.data, value.size, NULL, &error));
  Must(basalt_transaction_delete(tx, "user/3", 6, NULL, &error));
  Must(basalt_transaction_commit(tx, NULL, NULL, &error));
  basalt_value_release(&value);
  basalt_transaction_free(tx);

  const basalt_read_options users = {
      .struct_size = sizeof users, .prefix = "user/", .prefix_size = 5};
  basalt_iterator* it;
  Must(basalt_iterator_create(db, &users, &it, &error));
  for (bool at = basalt_iterator_seek_to_first(it); at; at = basalt_iterator_next(it)) {
    size_t key_size, size;
    const char* key = basalt_iterator_key(it, &key_size);
    const char* text = basalt_iterator_value(it, &size);
    printf("%.*s = %.*s\n", (int)key_size, key, (int)size, text);
  }
  Must(basalt_iterator_status(it, &error));
  basalt_iterator_free(it);
  basalt_store_free(db);
  return 0;
}

/* A user's first program in C: a put, and a get. */

#include <basalt/c.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  basalt_error error;
  basalt_store* db;
  if (basalt_open(argv[1], NULL, &db, &error) != BASALT_OK ||
      basalt_put(db, "hello", 5, "world", 5, NULL, NULL, &error) != BASALT_OK) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  basalt_value value;
  const int code = basalt_get(db, "hello", 5, NULL, &value, &error);
  const int same = code == BASALT_OK && value.size == 5 && memcmp(value.data, "world", 5) == 0;
  basalt_value_release(&value);
  basalt_store_free(db);
  return same ? 0 : 1;
}

/* What the C tests check with: the first failure ends the program, and names its line. */
#ifndef TESTS_C_CHECK_H_
#define TESTS_C_CHECK_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "basalt/c.h"

static basalt_error error;

#define CHECK(condition)                                                        \
  do {                                                                          \
    if (!(condition)) {                                                         \
      fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                  \
    }                                                                           \
  } while (0)

/* A call that must succeed. */
#define OK(call)                                                        \
  do {                                                                  \
    if ((call) != BASALT_OK) {                                          \
      fprintf(stderr, "%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #call, \
              basalt_code_name(error.code), error.message);             \
      exit(1);                                                          \
    }                                                                   \
  } while (0)

/* A call that must fail with a code, and say why. */
#define FAILS(expected, call)                                                                 \
  do {                                                                                        \
    memset(&error, 0, sizeof error);                                                          \
    const int code_of_call = (call);                                                          \
    if (code_of_call != (expected) || error.code != (expected) || !error.message[0]) {        \
      fprintf(stderr, "%s:%d: %s: %d, not %d: %s\n", __FILE__, __LINE__, #call, code_of_call, \
              (expected), error.message);                                                     \
      exit(1);                                                                                \
    }                                                                                         \
  } while (0)

/* Whether `size` bytes at `data` are those of a string. */
static inline bool Is(const char* data, size_t size, const char* text) {
  return data != NULL && size == strlen(text) && memcmp(data, text, size) == 0;
}

/* A key or value that is a string. */
#define S(text) text, strlen(text)

#endif

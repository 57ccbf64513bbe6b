/* The fuzz targets: one row for each parser of untrusted input. */
#pragma once

#include <stddef.h>

typedef struct fuzz_target {
  const char *name;
  const char *file;         /* the name of a file that gets the bytes; NULL = the target reads them from memory */
  const char *const *seeds; /* texts, ended by NULL; may be NULL */
  void (*make_seeds)(void); /* calls fuzz_seed for each seed; may be NULL */
  /* `data` has exactly `size` bytes and a NUL behind them; `path` is the file with them, or NULL. */
  void (*run)(const char *path, char *data, size_t size);
  size_t most_bytes; /* the largest allocation that succeeds; 0 = that of most targets */
} fuzz_target;

extern const fuzz_target fuzz_targets[];
extern const size_t fuzz_target_count;

/* For targets: fuzz_seed adds a seed to the corpus; fuzz_fail reports a wrong result. */
void fuzz_seed(const void *data, size_t size);
#define FUZZ_CHECK(condition)                \
  do {                                       \
    if (!(condition)) fuzz_fail(#condition); \
  } while (0)
_Noreturn void fuzz_fail(const char *condition);

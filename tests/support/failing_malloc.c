#include "support/failing_malloc.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>
#include <sqlite3.h>

/* The linker's --wrap renames all calls of malloc to __wrap_malloc, and malloc itself to __real_malloc. */
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t size);
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
int __real_posix_memalign(void **memory, size_t alignment, size_t size);

static atomic_int active;
static atomic_llong calls, failures;
static long long first_call, last_call;

void failing_malloc_begin(int64_t first, int64_t count) {
  first_call = first;
  last_call = count > INT64_MAX - first ? INT64_MAX : first + count - 1;
  atomic_store(&calls, 0);
  atomic_store(&failures, 0);
  atomic_store(&active, 1);
}

int64_t failing_malloc_end(void) {
  atomic_store(&active, 0);
  return atomic_load(&failures);
}

static int fails(void) {
  if (!atomic_load(&active)) return 0;
  const long long call = atomic_fetch_add(&calls, 1) + 1;
  if (call < first_call || call > last_call) return 0;
  atomic_fetch_add(&failures, 1);
  errno = ENOMEM;
  return 1;
}

void *__wrap_malloc(size_t size) { return fails() ? NULL : __real_malloc(size); }

void *__wrap_calloc(size_t count, size_t size) { return fails() ? NULL : __real_calloc(count, size); }

void *__wrap_realloc(void *old, size_t size) { return fails() ? NULL : __real_realloc(old, size); }

int __wrap_posix_memalign(void **memory, size_t alignment, size_t size) {
  return fails() ? ENOMEM : __real_posix_memalign(memory, alignment, size);
}

static sqlite3_mem_methods sqlite_methods; /* SQLite's own allocator */

static void *sqlite_allocate(int size) { return fails() ? NULL : sqlite_methods.xMalloc(size); }

static void *sqlite_reallocate(void *old, int size) { return fails() ? NULL : sqlite_methods.xRealloc(old, size); }

void failing_malloc_open(void) {
  int code = sqlite3_config(SQLITE_CONFIG_GETMALLOC, &sqlite_methods);
  sqlite3_mem_methods hooked = sqlite_methods;
  hooked.xMalloc = sqlite_allocate;
  hooked.xRealloc = sqlite_reallocate;
  if (code == SQLITE_OK) code = sqlite3_config(SQLITE_CONFIG_MALLOC, &hooked);
  if (code == SQLITE_OK) code = sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0); /* so that small ones can fail, too */
  if (code != SQLITE_OK) {
    fprintf(stderr, "failing_malloc_open: SQLite was used before: %s\n", sqlite3_errstr(code));
    abort();
  }
  json_set_alloc_funcs(__wrap_malloc, free);
}

/* Makes allocations fail: those of the library and of the test (malloc, calloc, realloc and posix_memalign, by the
 * linker's --wrap, see tests/CMakeLists.txt), of SQLite and of jansson. Works under AddressSanitizer, too. */
#pragma once

#include <stdint.h>

/* Installs the hooks of SQLite and jansson. Call it once, at the begin of main, before either is used. */
void failing_malloc_open(void);
/* From now on allocation number `first` (1 = the next one) and the count - 1 allocations behind it return NULL.
 * Allocations of all threads count; INT64_MAX = all from the first on. */
void failing_malloc_begin(int64_t first, int64_t count);
/* Ends the failures; returns how many allocations failed. */
int64_t failing_malloc_end(void);

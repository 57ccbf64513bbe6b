/* Makes allocations fail: those of the library and of the test (malloc, calloc, realloc and posix_memalign, by the
 * linker's --wrap, see tests/CMakeLists.txt), of SQLite and of jansson. Works under AddressSanitizer, too. */
#ifndef WLM_TESTS_SUPPORT_FAILING_MALLOC_H
#define WLM_TESTS_SUPPORT_FAILING_MALLOC_H

#include <stdint.h>

/* Hooks SQLite and jansson, which must not have been used before. Once, at the begin of main. */
void failing_malloc_open(void);
/* From now on allocation number `first` (1 = the next one), and the count - 1 behind it, answer NULL. All threads
 * count; freeing never fails. INT64_MAX = every one from the first. */
void failing_malloc_begin(int64_t first, int64_t count);
/* Ends that; returns how many allocations failed. */
int64_t failing_malloc_end(void);

#endif

/* Ends a forked child. */
#pragma once

#include <unistd.h>

#ifdef WLM_COVERAGE
void __gcov_dump(void);
#endif

/* _exit, which runs no handler of the parent; it would also drop the lines that the child ran, so these are written
 * first in the preset coverage. */
static inline _Noreturn void child_exit(int status) {
#ifdef WLM_COVERAGE
  __gcov_dump();
#endif
  _exit(status);
}

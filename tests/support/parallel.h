/* Runs checks in separate processes: in parallel, or because they may crash. */
#ifndef WLM_TESTS_PARALLEL_H
#define WLM_TESTS_PARALLEL_H

#include <stdint.h>

/* Calls one(user, i) for 0 <= i < count in as many processes as there are cores; `one` returns 0 where all is well
 * and otherwise has said on stderr what is not. A process that dies counts as a failure of the index it was at, is
 * reported with describe(user, i), and is replaced. Returns the number of failures; gives up after a few. */
int64_t test_in_parallel(int64_t count, int (*one)(void *user, int64_t index),
                         void (*describe)(void *user, int64_t index), void *user);

/* Calls act(user) in a child. Its exit status, or 128 + the signal that ended it; *said is what it wrote to stderr,
 * to be released with wlmi_free. */
int test_in_child(int (*act)(const void *user), const void *user, char **said);

#endif

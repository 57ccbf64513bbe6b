/* Runs checks in separate processes: in parallel, or because they may crash. */
#pragma once

#include <stdint.h>

/* Calls one(user, i) for 0 <= i < count in as many processes as there are cores. `one` returns 0 if all is well;
 * otherwise it prints the error on stderr. A process that dies counts as a failure of its index, is reported with
 * describe(user, i), and is replaced. Returns the number of failures; stops after a few, unless WARPLOOM_FULL asks for
 * all. */
int64_t test_in_parallel(int64_t count, int (*one)(void *user, int64_t index),
                         void (*describe)(void *user, int64_t index), void *user);

/* Calls act(user) in a child. Returns its exit status, or 128 + the signal that ended it. *said is the child's
 * stderr; release it with wlmi_free. */
int test_in_child(int (*act)(const void *user), const void *user, char **said);

/* How many OpenMP threads a launch of the host device uses. */
#pragma once

#include <stdint.h>

#include "templates/prelude/args.h"

/* 1 for a small product; otherwise as many as the calling thread may use (core/base/threads.h). */
int wlmi_host_threads(const struct wlm_args *args);

/* How often a thread of this process was interrupted for another one: involuntary context switches. */
int64_t wlmi_host_switches(void);

/* Sets the work (in elements, see threads.c) from which on products use several threads, so that tests can run small
 * products on many threads. Not while a product runs. */
void wlmi_host_share_from(double work);

/* Whether other programs want the cores that products run on.
 *
 * An OpenMP thread that waits for others spins for some milliseconds. On a busy machine it keeps a core that the thread
 * it waits for needs, and a product takes some turns of the scheduler, of 4 ms each. libgomp spins only briefly while
 * it has more threads than the process has cores (its manual, GOMP_SPINCOUNT). So a calling thread that sees crowding
 * asks for one thread more than that, and its products take as long as with OMP_WAIT_POLICY=passive.
 *
 * The sign is involuntary context switches: the scheduler interrupts a thread for another one. The extra thread causes
 * some itself, so after a period products get the usual number of threads, and the switches are counted again. Each
 * time they are many, the next period is longer. */

/* What one calling thread saw; zero at first. */
typedef struct wlmi_crowding {
  double since;     /* seconds; when counting began */
  int64_t switches; /* the count then */
  double until;     /* crowded until then; 0 = not */
  double period;    /* how long the machine counts as crowded once it is seen to be */
} wlmi_crowding;

/* Called before each product on several threads, with a clock in seconds. `switches` gives the count of involuntary
 * context switches of the process; it is called every 20 ms at most. */
int wlmi_is_crowded(wlmi_crowding *crowding, double now, int threads, int64_t (*switches)(void));

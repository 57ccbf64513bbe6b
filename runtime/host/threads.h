/* How many OpenMP threads a launch of the host device uses. */
#pragma once

#include <stdint.h>

#include "templates/prelude/args.h"

/* 1 for a small product, and on a crowded machine for all but large ones; otherwise as many as the calling thread may
 * use (core/base/threads.h). products: of a batch, each of this size. */
int wlmi_host_threads(const struct wlm_args *args, int64_t products);

/* How often a thread of this process was interrupted for another one: involuntary context switches. */
int64_t wlmi_host_switches(void);

/* Sets the work (in elements, see threads.c) from which on products use several threads, so that tests can run small
 * products on many threads. Not while a product runs. */
void wlmi_host_share_from(double work);

/* Whether other programs want the cores that products run on.
 *
 * An OpenMP thread that waits for others spins for some milliseconds. On a busy machine it keeps a core that the thread
 * it waits for needs, and a product takes some turns of the scheduler, of 4 ms each. So a calling thread that sees
 * crowding runs all but large products alone. It keeps OpenMP's number for those: libgomp creates and ends threads
 * whenever the number of a team differs from that of the team before, which may be another library's.
 *
 * The sign is involuntary context switches: the scheduler interrupts a thread for another one. A single thread sees few
 * of them, so after half a second products get the usual number of threads, and the switches are counted again. */

/* What one calling thread saw; zero at first. */
typedef struct wlmi_crowding {
  double since;     /* seconds; when counting began */
  int64_t switches; /* the count then */
  double until;     /* crowded until then; 0 = not */
  double all;       /* the sum of all such periods */
} wlmi_crowding;

/* Called before each product on several threads, with a clock in seconds. `switches` gives the count of involuntary
 * context switches of the process; it is called every 20 ms at most. */
int wlmi_is_crowded(wlmi_crowding *crowding, double now, int threads, int64_t (*switches)(void));

/* Seconds in which it was crowded, until now. */
double wlmi_crowded_seconds(const wlmi_crowding *crowding, double now);

/* That of the calling thread. */
wlmi_crowding *wlmi_host_crowding(void);

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

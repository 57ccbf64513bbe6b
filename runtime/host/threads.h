/* How many OpenMP threads a launch of the host device uses. */
#ifndef WLM_RUNTIME_HOST_THREADS_H
#define WLM_RUNTIME_HOST_THREADS_H

#include "core/base/status.h"
#include "templates/prelude/args.h"

/* Called when a device opens, so that later children of fork can be recognised. */
wlm_status wlmi_host_threads_open(void);

/* 1 for a small product and in a child of fork; otherwise OpenMP's number for the calling thread. Takes no lock and
 * makes no system call. */
int wlmi_host_threads(const struct wlm_args *args);

/* Sets the work (in elements, see threads.c) from which on products use several threads, so that tests can run small
 * products on many threads. Not while a product runs. */
void wlmi_host_share_from(double work);

#endif

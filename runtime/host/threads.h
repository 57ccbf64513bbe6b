/* How many OpenMP threads a launch of the host device uses. */
#ifndef WLM_RUNTIME_HOST_THREADS_H
#define WLM_RUNTIME_HOST_THREADS_H

#include "common/status.h"
#include "templates/prelude/args.h"

/* Called when a device opens: from then on a child that this process forks is known as such. */
wlm_status wlmi_host_threads_open(void);

/* 1 where the product is too small to share, and in a child of fork; otherwise OpenMP's number for the calling thread.
 * Takes no lock and makes no system call. */
int wlmi_host_threads(const struct wlm_args *args);

/* Products of at least so much work (elements, see threads.c) are shared; for tests, which run small products on many
 * threads. Not while a product runs. */
void wlmi_host_share_from(double work);

#endif

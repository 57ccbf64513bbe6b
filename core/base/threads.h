/* How many OpenMP threads the calling thread may use. OpenMP's runtime ends the process where it cannot create a
 * thread, and waits for ever in a child of fork, where its threads do not exist. */
#pragma once

/* OpenMP's number for the calling thread; 1 in a child of fork (core/base/fork.h), and fewer where the limits of the
 * user or the container allow no more. The limits are tried when the number grows beyond that of the call before: then
 * as many threads again must be possible, for those that are created elsewhere meanwhile. Otherwise it takes no lock
 * and makes no system call. */
int wlmi_threads(void);

/* Gives parallel regions of the calling thread that name no number at most wlmi_threads() threads, until
 * wlmi_threads_end is called with the result. */
int wlmi_threads_begin(void);
void wlmi_threads_end(int before);

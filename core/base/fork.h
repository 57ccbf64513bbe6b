/* Objects with locks in a child of fork. The child has one thread: a lock that another thread held stays locked for
 * ever, and what it protects may be half changed. So each such object is watched, and in the child its function makes
 * the locks free and drops what may be half changed, without freeing it. Nothing waits in the parent. */
#pragma once

#include <pthread.h>

#include "core/base/status.h"

typedef struct wlmi_fork_watch {
  void (*in_child)(void *object); /* NULL = not watched */
  void *object;
  struct wlmi_fork_watch *previous, *next;
} wlmi_fork_watch;

wlm_status wlmi_fork_watch_begin(wlmi_fork_watch *watch, void (*in_child)(void *object), void *object);
void wlmi_fork_watch_end(wlmi_fork_watch *watch); /* does nothing for one that was never begun */

/* In the child: makes a lock free. Returns 1 if a thread that is not there held it. */
int wlmi_fork_free_lock(pthread_mutex_t *lock);

/* WLM_ERR_OUT_OF_MEMORY where forks are not noticed, as there was no memory when the library was loaded. */
wlm_status wlmi_fork_check(void);
/* How many forks lie between the process that loaded the library and this one, and 1 more where that one was forked
 * itself and called no exec: its parent may have used OpenMP. */
int wlmi_fork_count(void);

#include "core/base/threads.h"

#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/fork.h"

typedef struct probe {
  int wanted, made; /* of the threads behind this one */
  pid_t thread;
} probe;

static void *stay_while_more_start(void *user);

/* Returns how many of `wanted` threads can exist at once. Each thread starts the next one and waits for it. A thread
 * counts against the limits for a moment after it was joined, until the kernel no longer finds it. */
static int start_at_once(int wanted) {
  probe next = {.wanted = wanted - 1};
  pthread_t thread;
  if (wanted <= 0 || pthread_create(&thread, NULL, stay_while_more_start, &next)) return 0;
  pthread_join(thread, NULL);
  for (int look = 0; look < 10000 && !syscall(SYS_tgkill, getpid(), next.thread, 0); look++) sched_yield();
  return 1 + next.made;
}

static void *stay_while_more_start(void *user) {
  probe *own = user;
  own->thread = (pid_t)syscall(SYS_gettid);
  own->made = start_at_once(own->wanted);
  return NULL;
}

/* The signals of the program are not for these threads. */
static int try_to_start(int wanted) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int made = start_at_once(wanted);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return made;
}

/* OpenMP keeps the threads of a calling thread's last region for the next one. */
static _Thread_local int team = 1;
static _Thread_local int calls_until_retry;
enum { RETRY_AFTER = 1000 };

int wlmi_threads(void) {
  const int wanted = omp_get_max_threads();
  /* A fork copies OpenMP's bookkeeping but not its threads, so a parallel region in the child would wait for ever. */
  if (wlmi_fork_count() || wanted <= 1) return 1;
  if (omp_get_active_level() >= omp_get_max_active_levels()) return wanted; /* such a region creates no thread */
  if (wanted <= team) return team = wanted;
  if (calls_until_retry-- > 0) return team;
  team += try_to_start(2 * (wanted - team)) / 2;
  calls_until_retry = team < wanted ? RETRY_AFTER : 0;
  return team;
}

int wlmi_threads_begin(void) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(wlmi_threads());
  return before;
}

void wlmi_threads_end(int before) { omp_set_num_threads(before); }

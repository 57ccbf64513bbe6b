#include "core/base/fork.h"

#include <stdio.h>
#include <string.h>

static int result; /* status of pthread_atfork */
static int forks;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list; nothing else happens while it is held */
static wlmi_fork_watch *first;

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }

static void in_child(void) {
  forks++;
  for (wlmi_fork_watch *watch = first; watch; watch = watch->next) watch->in_child(watch->object);
  pthread_mutex_unlock(&lock);
}

/* Whether this process is a child of fork that called no exec: flag PF_FORKNOEXEC of Linux, the seventh number behind
 * the name in /proc/self/stat, which may contain anything. */
static int was_forked(void) {
  char text[512] = "";
  unsigned flags = 0;
  FILE *file = fopen("/proc/self/stat", "re");
  if (!file) return 0;
  text[fread(text, 1, sizeof text - 1, file)] = 0;
  fclose(file);
  const char *rest = strrchr(text, ')');
  return rest && sscanf(rest, ") %*c %*d %*d %*d %*d %*d %u", &flags) == 1 && flags & 0x40;
}

/* When the library is loaded, because a program may use OpenMP, then fork, and use the library in the child first. */
static void __attribute__((constructor)) begin(void) {
  forks = was_forked();
  result = pthread_atfork(before_fork, after_fork, in_child);
}

wlm_status wlmi_fork_check(void) { return result ? wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "pthread_atfork") : WLM_OK; }

int wlmi_fork_count(void) { return forks; }

wlm_status wlmi_fork_watch_begin(wlmi_fork_watch *watch, void (*function)(void *object), void *object) {
  WLM_CHECK(wlmi_fork_check());
  pthread_mutex_lock(&lock);
  *watch = (wlmi_fork_watch){.in_child = function, .object = object, .next = first};
  if (first) first->previous = watch;
  first = watch;
  pthread_mutex_unlock(&lock);
  return WLM_OK;
}

void wlmi_fork_watch_end(wlmi_fork_watch *watch) {
  if (!watch->in_child) return;
  pthread_mutex_lock(&lock);
  if (watch->next) watch->next->previous = watch->previous;
  if (watch->previous)
    watch->previous->next = watch->next;
  else
    first = watch->next;
  watch->in_child = NULL;
  pthread_mutex_unlock(&lock);
}

int wlmi_fork_free_lock(pthread_mutex_t *held) {
  const int is_held = pthread_mutex_trylock(held) != 0;
  if (!is_held) pthread_mutex_unlock(held);
  pthread_mutex_init(held, NULL);
  return is_held;
}

#include "support/parallel.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/text.h"
#include "support/child.h"

enum { MAX_WORKERS = 64, ENOUGH_FAILURES = 8 };

/* A run of hours lists all failures. */
static int are_enough(int64_t failures) { return failures >= ENOUGH_FAILURES && !getenv("WARPLOOM_FULL"); }

/* cmocka turns a crash into a failed test by longjmp, and a child would then run the parent's remaining tests. So
 * children restore the handlers with which the process began, which may be the sanitizer's. */
static const int crash_signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
enum { CRASH_SIGNALS = sizeof crash_signals / sizeof *crash_signals };
static struct sigaction first_handlers[CRASH_SIGNALS];

__attribute__((constructor)) static void keep_handlers(void) {
  for (int i = 0; i < CRASH_SIGNALS; i++) sigaction(crash_signals[i], NULL, &first_handlers[i]);
}

static pid_t fork_child(void) {
  fflush(NULL);
  pid_t child = fork();
  for (int i = 0; child == 0 && i < CRASH_SIGNALS; i++) sigaction(crash_signals[i], &first_handlers[i], NULL);
  return child;
}

/* ---- many checks ----------------------------------------------------------------------------- */

typedef struct shared {
  _Atomic int64_t next, failures;
  _Atomic int64_t current[MAX_WORKERS];
} shared;

typedef struct job {
  int64_t count;
  int (*one)(void *user, int64_t index);
  void *user;
  shared *shared;
} job;

static pid_t start(const job *j, int worker) {
  pid_t child = fork_child();
  if (child) return child;
  for (;;) {
    int64_t index = atomic_fetch_add(&j->shared->next, 1);
    if (index >= j->count || are_enough(j->shared->failures)) break;
    j->shared->current[worker] = index;
    if (j->one(j->user, index)) j->shared->failures++;
  }
  fflush(NULL);
  child_exit(0);
}

int64_t test_in_parallel(int64_t count, int (*one)(void *user, int64_t index),
                         void (*describe)(void *user, int64_t index), void *user) {
  shared *memory = mmap(NULL, sizeof *memory, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return -1;
  job j = {count, one, user, memory};
  pid_t workers[MAX_WORKERS];
  int64_t cores = sysconf(_SC_NPROCESSORS_ONLN);
  int worker_count = (int)(cores < 1 ? 1 : cores > MAX_WORKERS ? MAX_WORKERS : cores), alive = worker_count;
  for (int i = 0; i < worker_count; i++) workers[i] = start(&j, i);
  while (alive > 0) {
    int state, worker = 0;
    pid_t child = wait(&state);
    if (child < 0 && errno == EINTR) continue;
    if (child < 0) break;
    while (worker < worker_count && workers[worker] != child) worker++;
    if (worker == worker_count) continue;
    if (WIFEXITED(state) && WEXITSTATUS(state) == 0) {
      alive--;
      continue;
    }
    fprintf(stderr, "died (%s %d) at: ", WIFSIGNALED(state) ? "signal" : "exit status",
            WIFSIGNALED(state) ? WTERMSIG(state) : WEXITSTATUS(state));
    describe(user, memory->current[worker]);
    memory->failures++;
    workers[worker] = start(&j, worker);
  }
  int64_t failures = memory->failures;
  munmap(memory, sizeof *memory);
  return failures;
}

/* ---- one check ------------------------------------------------------------------------------- */

int test_in_child(int (*act)(const void *user), const void *user, char **said) {
  int pipes[2], state = 0;
  wlmi_text text = {0};
  char piece[4096];
  if (pipe(pipes)) abort();
  pid_t child = fork_child();
  if (child < 0) abort();
  if (child == 0) {
    dup2(pipes[1], STDERR_FILENO);
    close(pipes[0]);
    close(pipes[1]);
    child_exit(act(user));
  }
  close(pipes[1]);
  for (ssize_t got; (got = read(pipes[0], piece, sizeof piece)) > 0 || (got < 0 && errno == EINTR);)
    if (got > 0) wlmi_text_append(&text, piece, (size_t)got);
  close(pipes[0]);
  while (waitpid(child, &state, 0) < 0 && errno == EINTR)
    ;
  wlmi_text_append(&text, "", 0);
  if (wlmi_text_take(&text, said) != WLM_OK) abort();
  return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
}

#include "support/parallel.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_WORKERS = 64, ENOUGH_FAILURES = 8 };

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
  fflush(NULL);
  pid_t child = fork();
  if (child) return child;
  for (;;) {
    int64_t index = atomic_fetch_add(&j->shared->next, 1);
    if (index >= j->count || j->shared->failures >= ENOUGH_FAILURES) break;
    j->shared->current[worker] = index;
    if (j->one(j->user, index)) j->shared->failures++;
  }
  fflush(NULL);
  _exit(0);
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

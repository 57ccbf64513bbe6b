/* Threads take the next job from a counter until there is none. The calling thread only waits and calls tick, so
 * progress and cancellation happen on the thread that asked for them. */
#include "tuner/compile_ahead.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/memory.h"

enum { MIN_THREADS = 2, MAX_THREADS = 16, TICK_NANOSECONDS = 100 * 1000 * 1000 };

struct wlmi_compiling {
  wlm_context *context;
  wlmi_compile_job *jobs;
  char *done; /* of each job; guarded by the lock, as `working` is */
  int64_t count;
  atomic_llong next;
  atomic_int cancelled;
  pthread_mutex_t lock;
  pthread_cond_t progress;
  pthread_t threads[MAX_THREADS];
  int started, working;
};

int wlmi_compile_threads(void) {
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  online--; /* leave one processor to the calling thread, which may be measuring */
  return online < MIN_THREADS ? MIN_THREADS : online > MAX_THREADS ? MAX_THREADS : (int)online;
}

static void *work(void *user) {
  wlmi_compiling *c = user;
  for (int64_t i; (i = atomic_fetch_add(&c->next, 1)) < c->count && !atomic_load(&c->cancelled);) {
    wlmi_compile_job *job = &c->jobs[i];
    job->status = wlmi_context_compile(c->context, job->variant, job->spec);
    if (job->status != WLM_OK) job->detail = wlmi_strdup(wlm_error_detail());
    pthread_mutex_lock(&c->lock);
    c->done[i] = 1;
    pthread_cond_signal(&c->progress); /* one thread waits */
    pthread_mutex_unlock(&c->lock);
  }
  pthread_mutex_lock(&c->lock);
  c->working--;
  pthread_cond_signal(&c->progress);
  pthread_mutex_unlock(&c->lock);
  return NULL;
}

static struct timespec next_tick(void) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  time.tv_nsec += TICK_NANOSECONDS;
  time.tv_sec += time.tv_nsec / 1000000000;
  time.tv_nsec %= 1000000000;
  return time;
}

wlm_status wlmi_compile_begin(wlm_context *context, wlmi_compile_job *jobs, int64_t count, wlmi_compiling **compiling) {
  wlmi_compiling *c = wlmi_alloc_zero(1, sizeof *c);
  char *done = wlmi_alloc_zero((size_t)count, 1);
  *compiling = c;
  if (!c || !done) {
    wlmi_free(c);
    wlmi_free(done);
    *compiling = NULL;
    return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "compilations");
  }
  *c = (wlmi_compiling){.context = context, .jobs = jobs, .done = done, .count = count};
  pthread_mutex_init(&c->lock, NULL);
  pthread_cond_init(&c->progress, NULL);
  for (int64_t i = 0; i < count; i++) jobs[i].status = WLM_ERR_CANCELLED;
  const int wanted = wlmi_compile_threads();
  c->working = wanted;
  while (c->started < wanted && !pthread_create(&c->threads[c->started], NULL, work, c)) c->started++;
  pthread_mutex_lock(&c->lock);
  c->working -= wanted - c->started;
  pthread_mutex_unlock(&c->lock);
  if (!c->started) {
    c->working = 1;
    work(c); /* no thread could be started: this one does the work */
  }
  return WLM_OK;
}

void wlmi_compile_wait(wlmi_compiling *c, int64_t i, int (*tick)(void *user), void *user) {
  struct timespec until = next_tick();
  pthread_mutex_lock(&c->lock);
  while (c->working && !c->done[i]) {
    if (pthread_cond_timedwait(&c->progress, &c->lock, &until) == 0) continue;
    pthread_mutex_unlock(&c->lock);
    if (tick && tick(user)) atomic_store(&c->cancelled, 1);
    until = next_tick();
    pthread_mutex_lock(&c->lock);
  }
  pthread_mutex_unlock(&c->lock);
}

void wlmi_compile_end(wlmi_compiling *c) {
  if (!c) return;
  atomic_store(&c->cancelled, 1);
  for (int i = 0; i < c->started; i++) pthread_join(c->threads[i], NULL);
  pthread_mutex_destroy(&c->lock);
  pthread_cond_destroy(&c->progress);
  wlmi_free(c->done);
  wlmi_free(c);
}

wlm_status wlmi_compile_ahead(wlm_context *context, wlmi_compile_job *jobs, int64_t count, int (*tick)(void *user),
                              void *user) {
  wlmi_compiling *compiling;
  wlm_status status = wlmi_compile_begin(context, jobs, count, &compiling);
  for (int64_t i = 0; status == WLM_OK && i < count; i++) wlmi_compile_wait(compiling, i, tick, user);
  if (status == WLM_OK) wlmi_compile_end(compiling);
  return status;
}

wlm_status wlmi_compile_all(wlm_context *context, wlmi_compile_job *jobs, int64_t count) {
  wlm_status status = wlmi_compile_ahead(context, jobs, count, NULL, NULL);
  for (int64_t i = 0; i < count; i++) {
    wlmi_free(jobs[i].detail);
    jobs[i].detail = NULL;
  }
  return status;
}

wlm_status wlmi_compile_each(int64_t count, wlm_status (*work)(void *user, int64_t i),
                             wlm_status (*report)(void *user, int64_t done), void *user) {
  wlm_status first = WLM_OK;
  atomic_int has_failed = 0;
  char *detail = NULL;
  int64_t done = 0;
#pragma omp parallel for schedule(dynamic)
  for (int64_t i = 0; i < count; i++) {
    if (atomic_load(&has_failed)) continue;
    wlm_status status = work(user, i);
#pragma omp critical
    {
      if (status == WLM_OK) status = report(user, ++done);
      if (status != WLM_OK && first == WLM_OK) {
        first = status;
        detail = wlmi_strdup(wlm_error_detail());
        atomic_store(&has_failed, 1);
      }
    }
  }
  if (first != WLM_OK) wlmi_fail(first, "%s", detail ? detail : "");
  wlmi_free(detail);
  return first;
}

/* ---- use of resources ---- */

/* Local memory of a thread. A few values cost little because they stay in L1; 64 words are the accumulators of a row.
 */
static const int64_t most_local_bytes = 256;

int wlmi_kernel_spills(const wlmi_kernel_facts *facts) { return facts->local_bytes > most_local_bytes; }

void wlmi_kernel_refusal(const wlmi_kernel_facts *facts, unsigned int threads, int spared, wlmi_text *reason) {
  if (!facts->blocks)
    wlmi_text_printf(reason,
                     "no block of it fits a multiprocessor: %u threads of %d registers, %lld bytes of shared memory",
                     threads, facts->registers, (long long)facts->shared_bytes);
  else if (spared && wlmi_kernel_spills(facts))
    wlmi_text_printf(reason, "not timed: each thread keeps %lld bytes in memory that do not fit its %d registers",
                     (long long)facts->local_bytes, facts->registers);
}

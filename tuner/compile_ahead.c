/* Threads take the next job from one counter until there is none. The calling thread only waits and ticks,
 * so that progress and cancellation stay with the thread that asked for them. */
#include "tuner/compile_ahead.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/memory.h"

enum { MIN_THREADS = 2, MAX_THREADS = 16, TICK_NANOSECONDS = 100 * 1000 * 1000 };

typedef struct shared {
  wlm_context *context;
  const wlm_spec *spec;
  wlm_compile_job *jobs;
  int64_t count;
  atomic_llong next;
  atomic_int cancelled;
  pthread_mutex_t lock; /* guards `working` */
  pthread_cond_t idle;
  int working;
} shared;

int wlm_compile_threads(void) {
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online < MIN_THREADS ? MIN_THREADS : online > MAX_THREADS ? MAX_THREADS : (int)online;
}

static wlm_status compile(shared *s, wlm_compile_job *job) {
  wlm_device *device = wlm_context_device(s->context);
  wlm_program program = {0};
  wlm_status status =
      wlm_generator_emit(wlm_context_generator(s->context), job->variant, s->spec, &device->info.limits, &program);
  if (status == WLM_OK) {
    wlm_hash_to_hex(wlm_hash_bytes(program.source, strlen(program.source)), job->source_hash);
    status = wlm_context_compile(s->context, &program);
  }
  wlm_program_release(&program);
  return status;
}

static void *work(void *user) {
  shared *s = user;
  for (int64_t i; (i = atomic_fetch_add(&s->next, 1)) < s->count && !atomic_load(&s->cancelled);) {
    wlm_compile_job *job = &s->jobs[i];
    job->status = compile(s, job);
    if (job->status != WLM_OK) job->detail = wlm_strdup(wlm_error_detail());
  }
  pthread_mutex_lock(&s->lock);
  s->working--;
  pthread_cond_signal(&s->idle);
  pthread_mutex_unlock(&s->lock);
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

static void wait_and_tick(shared *s, int (*tick)(void *user), void *user) {
  pthread_mutex_lock(&s->lock);
  while (s->working) {
    struct timespec until = next_tick();
    if (!pthread_cond_timedwait(&s->idle, &s->lock, &until)) continue;
    pthread_mutex_unlock(&s->lock);
    if (tick(user)) atomic_store(&s->cancelled, 1);
    pthread_mutex_lock(&s->lock);
  }
  pthread_mutex_unlock(&s->lock);
}

void wlm_compile_ahead(wlm_context *context, const wlm_spec *spec, wlm_compile_job *jobs, int64_t count,
                       int (*tick)(void *user), void *user) {
  shared s = {.context = context,
              .spec = spec,
              .jobs = jobs,
              .count = count,
              .lock = PTHREAD_MUTEX_INITIALIZER,
              .idle = PTHREAD_COND_INITIALIZER};
  pthread_t threads[MAX_THREADS];
  int started = 0;
  for (int64_t i = 0; i < count; i++) jobs[i].status = WLM_ERR_CANCELLED;
  const int wanted = wlm_compile_threads();
  s.working = wanted;
  while (started < wanted && !pthread_create(&threads[started], NULL, work, &s)) started++;
  pthread_mutex_lock(&s.lock);
  s.working -= wanted - started;
  pthread_mutex_unlock(&s.lock);
  if (!started) {
    s.working = 1;
    work(&s); /* no thread to be had: this one does it */
  }
  wait_and_tick(&s, tick, user);
  for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
}

/* Runs one fiber per CUDA thread, one block at a time. A fiber runs until it has to wait for others (barrier, shuffle,
 * vote) or returns. A seeded random generator chooses the next fiber and prefers the warp that ran last. So a lane gets
 * as far ahead of its warp, and a warp of its block, as the barriers allow, which makes missing barriers fail.
 *
 * A wait ends when every lane of its mask waits there, with the same operation, mask and line. If no fiber can run and
 * no wait is complete, a thread waits for one that has returned or waits elsewhere; the process then ends with a
 * message that names both lines. This is stricter than CUDA, where a thread that has returned counts as arrived. */
#define SIMT_RUNTIME
#include "simt/shim/simt.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/problem/operation.h"
#include "simt/shim/fiber.h"
#include "simt/shim/launch.h"

enum { WARP = 32, MAX_THREADS = 1024 };

typedef void attention_kernel(struct wlm_attention_args args);
typedef void message_kernel(struct wlm_message_launch args);
typedef void batch_kernel(struct wlm_batch_launch args);

/* Fills shared memory: as a float a NaN, as an index far out of range. */
#define PATTERN 0x7fffffffu

typedef enum state { RUNNABLE, WAITING, RETURNED } state;

typedef struct meeting {
  enum simt_act act;
  unsigned int mask;
  const char *file;
  int line;
} meeting;

typedef struct thread {
  fiber fiber;
  state state;
  meeting at; /* the barrier, shuffle or vote at which it waits */
  unsigned long long bits, result;
  int source; /* for a shuffle, the lane whose bits it takes */
  struct simt_place place;
} thread;

const struct simt_place *simt_here;

static struct {
  thread threads[MAX_THREADS];
  int created;        /* the number of threads that have a stack */
  fiber scheduler;    /* the process's own stack */
  int count, current; /* the number of threads of a block; the running one */
  unsigned int runnable[MAX_THREADS / WARP];
  const simt_launch *launch;
  const struct wlm_args *args;
  void *dynamic_shared;
  uint64_t random;
} simt;

/* ---- messages ------------------------------------------------------------------------------------ */

static const char *const act_names[] = {"__syncthreads",  "__syncwarp",       "__shfl_sync",
                                        "__shfl_up_sync", "__shfl_down_sync", "__shfl_xor_sync",
                                        "__ballot_sync",  "__any_sync",       "__all_sync"};

static _Noreturn void fail(const meeting *at, const char *format, ...) __attribute__((format(printf, 2, 3)));
static _Noreturn void fail(const meeting *at, const char *format, ...) {
  va_list list;
  const thread *t = &simt.threads[simt.current];
  fprintf(stderr, "simt: %s:%d: %s: ", at->file, at->line, act_names[at->act]);
  va_start(list, format);
  vfprintf(stderr, format, list);
  va_end(list);
  fprintf(stderr, " (block %u,%u,%u)\n", t->place.block.x, t->place.block.y, t->place.block.z);
  abort();
}

/* ---- meetings ------------------------------------------------------------------------------------ */

static int same_meeting(const thread *t, const meeting *at) {
  return t->state == WAITING && t->at.act == at->act && t->at.mask == at->mask && t->at.line == at->line;
}

/* The next thread after `after` that takes part: a lane of the mask, or any thread of the block. */
static int next_member(const meeting *at, int of, int after) {
  int first = at->act == SIMT_SYNCTHREADS ? 0 : of / WARP * WARP;
  int end = at->act == SIMT_SYNCTHREADS ? simt.count : first + WARP;
  for (int i = after < first ? first : after + 1; i < end; i++)
    if (at->act == SIMT_SYNCTHREADS || (at->mask >> i % WARP & 1)) return i;
  return -1;
}

/* A member that has returned or waits elsewhere; -1 if there is none. A lane beyond the block counts as returned. */
static int missing_member(const meeting *at, int of) {
  for (int i = next_member(at, of, -1); i >= 0; i = next_member(at, of, i))
    if (i >= simt.count || !same_meeting(&simt.threads[i], at)) return i;
  return -1;
}

static int source_lane(enum simt_act act, int lane, int operand, int width) {
  int first = lane & ~(width - 1), source = lane;
  if (act == SIMT_SHFL) return first + (operand & (width - 1));
  if (act == SIMT_SHFL_UP) source = lane - operand < first ? lane : lane - operand;
  if (act == SIMT_SHFL_DOWN) source = lane + operand >= first + width ? lane : lane + operand;
  if (act == SIMT_SHFL_XOR) source = (lane ^ operand) >= first + width ? lane : lane ^ operand;
  return source;
}

static unsigned long long result_of(int member, unsigned int votes) {
  const thread *t = &simt.threads[member];
  switch (t->at.act) {
    case SIMT_SYNCTHREADS:
    case SIMT_SYNCWARP: return 0;
    case SIMT_BALLOT: return votes;
    case SIMT_ANY: return votes != 0;
    case SIMT_ALL: return votes == t->at.mask;
    default: break;
  }
  if (!(t->at.mask >> t->source & 1))
    fail(&t->at, "lane %d reads lane %d, which the mask 0x%08x does not name", member % WARP, t->source, t->at.mask);
  return simt.threads[member / WARP * WARP + t->source].bits;
}

/* Lets all members continue. First it computes all results, since a thread that continues may change its bits at
 * once. */
static void end_meeting(int of) {
  const meeting at = simt.threads[of].at;
  unsigned int votes = 0;
  for (int i = next_member(&at, of, -1); i >= 0; i = next_member(&at, of, i))
    votes |= (unsigned int)(simt.threads[i].bits & 1) << i % WARP;
  for (int i = next_member(&at, of, -1); i >= 0; i = next_member(&at, of, i))
    simt.threads[i].result = result_of(i, votes);
  for (int i = next_member(&at, of, -1); i >= 0; i = next_member(&at, of, i)) {
    simt.threads[i].state = RUNNABLE;
    simt.runnable[i / WARP] |= 1u << i % WARP;
  }
}

unsigned long long simt_meet(enum simt_act act, unsigned int mask, unsigned long long bits, int operand, int width,
                             const char *file, int line) {
  thread *t = &simt.threads[simt.current];
  int lane = simt.current % WARP;
  t->at = (meeting){act, mask, file, line};
  if (act != SIMT_SYNCTHREADS && !(mask >> lane & 1)) fail(&t->at, "lane %d is not in its own mask 0x%08x", lane, mask);
  if (width < 1 || width > WARP || (width & (width - 1))) fail(&t->at, "the width %d is no power of 2", width);
  t->bits = bits;
  t->source = source_lane(act, lane, operand, width);
  t->state = WAITING;
  simt.runnable[simt.current / WARP] &= ~(1u << lane);
  fiber_switch(&t->fiber, &simt.scheduler);
  return t->result;
}

/* No fiber can run: reports which thread waits for which one. */
static _Noreturn void explain_deadlock(void) {
  for (int i = 0; i < simt.count; i++) {
    const thread *t = &simt.threads[i];
    if (t->state != WAITING) continue;
    int other = missing_member(&t->at, i);
    const thread *o = &simt.threads[other < simt.count ? other : i];
    if (other >= simt.count || o->state == RETURNED)
      fail(&t->at, "thread %d waits for thread %d, which has returned; mask 0x%08x", i, other, t->at.mask);
    fail(&t->at, "thread %d waits for thread %d, which waits in %s at %s:%d; masks 0x%08x and 0x%08x", i, other,
         act_names[o->at.act], o->at.file, o->at.line, t->at.mask, o->at.mask);
  }
  abort(); /* not reached: every thread that has not returned waits */
}

/* ---- order ----------------------------------------------------------------------------------------- */

static unsigned int draw(unsigned int below) {
  simt.random ^= simt.random << 13; /* xorshift64 */
  simt.random ^= simt.random >> 7;
  simt.random ^= simt.random << 17;
  return (unsigned int)(simt.random >> 33) % below;
}

/* Draws a runnable thread; -1 if there is none. */
static int draw_thread(void) {
  int warps = (simt.count + WARP - 1) / WARP, warp = simt.current / WARP;
  if (!simt.runnable[warp] || draw(8) == 0) {
    int first = (int)draw((unsigned int)warps), tried = 0;
    while (tried < warps && !simt.runnable[(first + tried) % warps]) tried++;
    if (tried == warps) return -1;
    warp = (first + tried) % warps;
  }
  unsigned int lanes = simt.runnable[warp];
  for (unsigned int skip = draw((unsigned int)__builtin_popcount(lanes)); skip; skip--) lanes &= lanes - 1;
  return warp * WARP + __builtin_ctz(lanes);
}

/* ---- blocks ---------------------------------------------------------------------------------------- */

static void thread_main(void) {
  thread *t = &simt.threads[simt.current];
  fiber_arrived(&t->fiber, &simt.scheduler);
  for (;;) { /* each iteration runs the kernel for another block */
    if (simt.launch->takes == SIMT_ATTENTION_ARGS)
      ((attention_kernel *)(void (*)(void))simt.launch->kernel)(*(const struct wlm_attention_args *)simt.args);
    else if (simt.launch->takes == SIMT_MESSAGE_ARGS)
      ((message_kernel *)(void (*)(void))simt.launch->kernel)(*(const struct wlm_message_launch *)simt.args);
    else if (simt.launch->takes == SIMT_BATCH_ARGS)
      ((batch_kernel *)(void (*)(void))simt.launch->kernel)(*(const struct wlm_batch_launch *)simt.args);
    else
      simt.launch->kernel(*simt.args);
    t->state = RETURNED;
    simt.runnable[simt.current / WARP] &= ~(1u << simt.current % WARP);
    fiber_switch(&t->fiber, &simt.scheduler);
  }
}

/* Volatile and without ASan's checks, because it also writes the redzones between variables. */
__attribute__((no_sanitize("address", "undefined"))) static void fill_pattern(unsigned int *begin, unsigned int *end) {
  for (volatile unsigned int *word = begin; word < (volatile unsigned int *)end; word++) *word = PATTERN;
}

void *simt_dynamic_shared(void) { return simt.dynamic_shared; }

static void run_block(const struct simt_index *block) {
  const simt_launch *launch = simt.launch;
  unsigned int *begin, *end;
  launch->shared_range(&begin, &end);
  fill_pattern(begin, end);
  simt.dynamic_shared = malloc(launch->shared_bytes ? launch->shared_bytes : 1);
  if (!simt.dynamic_shared) abort();
  begin = simt.dynamic_shared;
  fill_pattern(begin, begin + launch->shared_bytes / sizeof *begin);
  for (int i = 0; i < simt.count; i++) {
    thread *t = &simt.threads[i];
    t->state = RUNNABLE;
    t->place = (struct simt_place){
        {(unsigned int)i, 0, 0}, *block, {launch->threads, 1, 1}, {launch->grid[0], launch->grid[1], launch->grid[2]}};
    simt.runnable[i / WARP] |= 1u << i % WARP;
  }
  simt.current = 0;
  for (int next; (next = draw_thread()) >= 0;) {
    thread *t = &simt.threads[next];
    simt.current = next;
    simt_here = &t->place;
    fiber_switch(&simt.scheduler, &t->fiber);
    if (t->state == WAITING && missing_member(&t->at, next) < 0) end_meeting(next);
  }
  for (int i = 0; i < simt.count; i++)
    if (simt.threads[i].state != RETURNED) explain_deadlock();
  free(simt.dynamic_shared);
}

void simt_run(const simt_launch *launch, const struct wlm_args *args) {
  uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
  if (launch->threads < 1 || launch->threads > MAX_THREADS) abort();
  simt.launch = launch;
  simt.args = args;
  simt.count = (int)launch->threads;
  simt.random = launch->seed * 0x9E3779B97F4A7C15u | 1;
  for (; simt.created < simt.count; simt.created++) fiber_create(&simt.threads[simt.created].fiber, thread_main);
  uint64_t start = blocks ? draw(0x7fffffffu) % blocks : 0;
  int downwards = (int)draw(2);
  for (uint64_t i = 0; i < blocks; i++) {
    uint64_t at = (start + (downwards ? blocks - i : i)) % blocks;
    run_block(&(struct simt_index){(unsigned int)(at % launch->grid[0]),
                                   (unsigned int)(at / launch->grid[0] % launch->grid[1]),
                                   (unsigned int)(at / launch->grid[0] / launch->grid[1])});
  }
}

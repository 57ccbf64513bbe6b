/* Counts what repeated calls do, with a fake driver (tests/fake_cuda): wlm_plan_execute and wlm_plan_rebind make no
 * allocation, lock, system call or wait; a repeated wlm_spmm allocates no device memory, compiles nothing and does not
 * wait. Each test is a separate process, because the driver is opened once. */
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>

#include "fake_cuda/fake_process.h"
#include "runtime/context_state.h"
#include "runtime/cuda/driver.h"
#include "runtime/load.h"
#include "support/folder.h"
#include "support/test.h"

/* ---- locks and allocations, counted while `counting` is set --------------------------------------------- */

static volatile int counting, locks, allocations;

/* Defined in the program, these functions replace those of the C library. */
#define COUNTED(function, type)                               \
  int function(type *lock) {                                  \
    static int (*next)(type *);                               \
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, #function); \
    locks += counting;                                        \
    return next(lock);                                        \
  }
COUNTED(pthread_mutex_lock, pthread_mutex_t)
COUNTED(pthread_mutex_trylock, pthread_mutex_t)
COUNTED(pthread_rwlock_rdlock, pthread_rwlock_t)
COUNTED(pthread_rwlock_wrlock, pthread_rwlock_t)

static void *count_allocate(void *user, size_t size) {
  (void)user;
  allocations += counting;
  return malloc(size);
}

static void *count_reallocate(void *user, void *old, size_t size) {
  (void)user;
  allocations += counting;
  return realloc(old, size);
}

static void count_release(void *user, void *old) {
  (void)user;
  allocations += counting;
  free(old);
}

/* ---- a context over the driver ------------------------------------------------------------------------------ */

static wlm_context *context;

static void (*in_context)(void);

static void with_context(void) {
  static const wlm_allocator counted = {count_allocate, count_reallocate, count_release, NULL};
  fake->any_code = 1;
  wlm_set_allocator(&counted);
  wlm_context_options options = CONTEXT_OPTIONS(.device = "cuda", .database = "", .system_database = "");
  options.kernel_cache = folder_file(&folder, "kernels.db"); /* so only the first test compiles a kernel */
  CHECK(wlm_context_create(&options, &context) == WLM_OK);
  in_context();
  wlm_context_destroy(context);
}

static void in_a_context(void (*body)(void)) {
  test_needs_nvrtc();
  in_context = body;
  in_a_process(with_context);
}

/* Addresses of arrays, far enough apart for all of them: the fake driver runs no kernel and reads nothing. */
static char array[64] __attribute__((aligned(16)));
static void *far(int which) { return (void *)((uintptr_t)which << 40); }

static wlm_csr csr_of(int64_t rows, int64_t cols, int64_t nnz) {
  return (wlm_csr)CSR(.rows = rows, .cols = cols, .nnz = nnz, .rowptr = array, .colind = array, .values = array);
}

/* The plan of a matrix with two entries a row, for which a kernel without a workspace is chosen. */
static wlm_plan *plan_of(const wlm_csr *csr, const wlm_problem *problem, wlm_matrix **matrix) {
  wlm_stats stats = WLM_STATS_INIT;
  stats.rows = stats.rows_le_4 = stats.rows_le_16 = csr->rows;
  stats.cols = csr->cols;
  stats.nnz = csr->nnz;
  stats.longest = 2;
  stats.mean = 2;
  stats.top_share = 2 / (double)csr->nnz;
  wlm_matrix_options options = MATRIX_OPTIONS(.grade = WLM_STATS_GIVEN, .stats = &stats);
  wlm_plan *plan;
  CHECK(wlm_matrix_create(context, csr, &options, matrix) == WLM_OK);
  CHECK(wlm_plan_create(context, *matrix, problem, &plan) == WLM_OK);
  return plan;
}

static wlm_execute_args call_on(void *stream) {
  wlm_execute_args args = EXECUTE_ARGS(.b = far(1));
  args.c = far(2);
  args.argmax = far(3);
  args.stream = stream;
  return args;
}

/* ---- plans --------------------------------------------------------------------------------------------------- */

static void alternate(wlm_plan *plan, const wlm_csr *one, const wlm_csr *other, int times) {
  const wlm_execute_args args = call_on(NULL);
  for (int i = 0; i < times; i++) {
    CHECK(wlm_plan_rebind(plan, i % 2 ? one : other) == WLM_OK);
    CHECK(wlm_plan_execute(plan, &args) == WLM_OK);
  }
}

typedef struct hot_plan {
  wlm_csr small, large;
  wlm_matrix *matrix;
  wlm_plan *plan;
} hot_plan;

static hot_plan make_hot(int want_argmax) {
  hot_plan hot = {.small = csr_of(50, 70, 100), .large = csr_of(3000, 2000, 90000)};
  wlm_problem problem = PROBLEM(.n = 64, .want_argmax = want_argmax);
  if (want_argmax) problem.reduce = WLM_MAX;
  hot.plan = plan_of(&hot.small, &problem, &hot.matrix);
  CHECK(wlm_plan_workspace_size(hot.plan) == 0);
  alternate(hot.plan, &hot.small, &hot.large, 2);
  return hot;
}

static void release_hot(hot_plan *hot) {
  wlm_plan_destroy(hot->plan);
  wlm_matrix_destroy(hot->matrix);
}

TEST_IN(in_a_context, plans_take_no_lock_and_no_memory) {
  for (int want_argmax = 0; want_argmax < 2; want_argmax++) {
    hot_plan hot = make_hot(want_argmax);
    const fake_cuda before = *fake;
    counting = 1;
    alternate(hot.plan, &hot.small, &hot.large, 10);
    counting = 0;
    CHECK(!locks && !allocations);
    CHECK(fake->launches == before.launches + 10);
    CHECK(fake->waits == before.waits && fake->all_wait == before.all_wait);
    CHECK(fake->allocations == before.allocations && fake->modules == before.modules);
    release_hot(&hot);
  }
}

/* A planned matrix has a complete pattern. The pattern of a rebound plan or of wlm_spmm may still be written, so the
 * kernel waits itself; it starts early in both cases. */
TEST_IN(in_a_context, fresh_patterns_are_marked) {
  const wlm_csr csr = csr_of(50, 70, 100);
  const wlm_execute_args args = call_on(NULL);
  wlm_problem problem = PROBLEM(.n = 64);
  wlm_matrix *matrix;
  wlm_plan *plan = plan_of(&csr, &problem, &matrix);
  CHECK(wlm_plan_execute(plan, &args) == WLM_OK && !fake->args.fresh && fake->overlaps);
  CHECK(wlm_plan_rebind(plan, &csr) == WLM_OK);
  CHECK(wlm_plan_execute(plan, &args) == WLM_OK && fake->args.fresh == 1 && fake->overlaps);
  wlm_plan_destroy(plan);
  wlm_matrix_destroy(matrix);
  int early = fake->early; /* the first launch of a call, of which there may be two */
  CHECK(wlm_spmm(context, &csr, &problem, &args) == WLM_OK && fake->args.fresh == 1 && fake->early > early);
  early = fake->early;
  problem.transpose = 1;
  problem.reduce = WLM_MAX; /* reads an A^T that the kernels before it write */
  CHECK(wlm_spmm(context, &csr, &problem, &args) == WLM_OK && fake->args.fresh == 1 && fake->early > early);
}

TEST_IN(in_a_context, counters_count) {
  hot_plan hot;
  counting = 1;
  hot = make_hot(0);
  counting = 0;
  CHECK(locks && allocations);
  release_hot(&hot);
}

/* After this call any system call kills the calling thread. */
static int forbid_system_calls(void) {
  struct sock_filter rules[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_THREAD)};
  const struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
  return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static volatile enum { KILLED, WITHOUT_FILTER, DONE } how_it_ended;

static void *alternate_without_system_calls(void *user) {
  const hot_plan *hot = user;
  alternate(hot->plan, &hot->small, &hot->large, 2); /* makes the thread's own variables */
  const int forbidden = forbid_system_calls();
  alternate(hot->plan, &hot->small, &hot->large, forbidden ? 10 : 0);
  how_it_ended = forbidden ? DONE : WITHOUT_FILTER;
  return NULL; /* the end of a thread is a system call, too */
}

TEST_IN(in_a_context, plans_make_no_system_call) {
  hot_plan hot = make_hot(0);
  pthread_t thread;
  CHECK(!pthread_create(&thread, NULL, alternate_without_system_calls, &hot));
  CHECK(!pthread_join(thread, NULL));
  CHECK(how_it_ended != KILLED);
  if (how_it_ended == WITHOUT_FILTER) fprintf(stderr, "no filter of system calls: not checked\n");
  release_hot(&hot);
}

TEST_IN(in_a_context, a_refused_rebind_changes_nothing) {
  hot_plan hot = make_hot(1);
  wlm_csr wide = csr_of(60, (int64_t)1 << 31, 100);
  wlm_execute_args args = call_on(NULL);
  CHECK(wlm_plan_rebind(hot.plan, &hot.small) == WLM_OK);
  CHECK(wlm_plan_execute(hot.plan, &args) == WLM_OK);
  const fake_cuda before = *fake;
  CHECK(wlm_plan_rebind(hot.plan, &wide) == WLM_OK); /* the most columns that int32 can number */
  CHECK(wlm_plan_rebind(hot.plan, &hot.small) == WLM_OK);
  wide.cols++;
  CHECK(wlm_plan_rebind(hot.plan, &wide) == WLM_ERR_OVERFLOW);
  wlm_csr many = hot.small;
  many.colind_type = WLM_I64;
  CHECK(wlm_plan_rebind(hot.plan, &many) == WLM_ERR_INVALID_ARGUMENT);
  CHECK(wlm_plan_execute(hot.plan, &args) == WLM_OK && fake->args.rows == 50 && fake->args.cols == 70);
  CHECK(!memcmp(&fake->args, &before.args, sizeof before.args));
  CHECK(!memcmp(fake->grid, before.grid, sizeof before.grid));
  release_hot(&hot);
}

/* With int64 indices there can be more columns than the grid of a gradient by argmax can have blocks. */
TEST_IN(in_a_context, a_refused_gradient_changes_nothing) {
  wlm_csr small = csr_of(50, 70, 100), wide = csr_of(60, (int64_t)1 << 61, 100);
  OWNED(wlm_matrix) *matrix = NULL;
  wlm_execute_args args = call_on(NULL);
  args.x = far(4);
  args.argmax_db = far(5);
  small.colind_type = wide.colind_type = WLM_I64;
  wlm_problem problem = PROBLEM(.n = 64, .operation = WLM_ARGMAX_GRADIENT, .reduce = WLM_MAX);
  OWNED(wlm_plan) *plan = plan_of(&small, &problem, &matrix);
  CHECK(wlm_plan_execute(plan, &args) == WLM_OK);
  const fake_cuda before = *fake;
  CHECK(wlm_plan_rebind(plan, &wide) == WLM_ERR_OVERFLOW);
  CHECK(wlm_plan_execute(plan, &args) == WLM_OK && fake->args.rows == 50 && fake->args.cols == 70);
  CHECK(!memcmp(&fake->args, &before.args, sizeof before.args));
  CHECK(!memcmp(fake->grid, before.grid, sizeof before.grid));
}

/* ---- one call ------------------------------------------------------------------------------------------------- */

/* Transposed products in f16 use a workspace for their sums. */
static wlm_problem with_workspace(void) { return (wlm_problem)PROBLEM(.n = 32, .dense_type = WLM_F16, .transpose = 1); }

static void spmm(int64_t rows, int64_t cols, const wlm_problem *problem, void *stream) {
  const wlm_csr csr = csr_of(rows, cols, 4 * rows);
  const wlm_execute_args args = call_on(stream);
  CHECK(wlm_spmm(context, &csr, problem, &args) == WLM_OK);
}

TEST_IN(in_a_context, one_call_warm) {
  const wlm_problem scattered = with_workspace();
  wlm_problem plain = PROBLEM(.n = 64);
  wlm_problem built = PROBLEM(.n = 64, .transpose = 1, .reduce = WLM_MAX);
  spmm(1000, 1000, &plain, NULL);
  spmm(1000, 1000, &built, NULL);
  spmm(200, 200, &scattered, NULL);
  const fake_cuda before = *fake;
  allocations = 0;
  counting = 1;
  for (int i = 0; i < 5; i++) {
    spmm(1000 + i % 2, 1000, &plain, NULL); /* different matrices of one cell */
    spmm(1000 + i % 2, 1000, &built, NULL);
    spmm(200 - i % 2, 200, &scattered, NULL);
  }
  counting = 0;
  CHECK(fake->launches > before.launches && fake->modules == before.modules);
  CHECK(fake->waits == before.waits && fake->all_wait == before.all_wait && fake->allocations == before.allocations);
  CHECK(!allocations);
}

/* Which edges a sample keeps depends on the rows of A, also where A^T was built. */
TEST_IN(in_a_context, a_built_transpose_is_sampled_by_rows_of_a) {
  const wlm_csr csr = csr_of(200, 300, 800);
  const wlm_execute_args args = call_on(NULL);
  wlm_problem problem = PROBLEM(.n = 48, .transpose = 1, .policy.deterministic = 1,
                                .sampling = (wlm_sampling){WLM_SAMPLE_FASTRAND, WLM_NORM_KEPT, 16});
  CHECK(wlm_spmm(context, &csr, &problem, &args) == WLM_OK);
  CHECK(fake->args.rows == csr.cols && fake->args.rowptr != csr.rowptr);
  CHECK(fake->args.a_rowptr == csr.rowptr);
}

/* While the stats kernel is being compiled, the host measures. (The fake driver's kernel gives wrong stats, which
 * shows that it was used later.) */
TEST_IN(in_a_context, stats_do_not_wait_for_the_compiler) {
  static const int32_t rowptr[] = {0, 2, 3, 3}, colind[] = {0, 1, 1};
  OWNED(wlm_context) *background = NULL;
  wlm_csr csr = csr_of(3, 2, 3);
  wlm_matrix *matrix;
  csr.rowptr = rowptr;
  csr.colind = colind;
  wlm_context_options options = BARE_OPTIONS(.device = "cuda", .compile_in_background = 1);
  CHECK(wlm_context_create(&options, &background) == WLM_OK);
  CHECK(wlm_matrix_create(background, &csr, NULL, &matrix) == WLM_OK && !fake->launches);
  CHECK(wlm_matrix_stats(matrix)->longest == 2 && wlm_matrix_stats(matrix)->empty_rows == 1);
  wlm_matrix_destroy(matrix);
  while (!wlmi_has_helper(background, WLMI_HELPER_STATS, &csr)) usleep(1000);
  CHECK(wlm_matrix_create(background, &csr, NULL, &matrix) == WLM_ERR_INVALID_ARGUMENT && fake->launches);
}

static void *own_allocate(void *user, int device, size_t size, void *stream) {
  (void)device, (void)stream;
  ++*(int *)user;
  return aligned_alloc(256, (size + 255) / 256 * 256);
}

static void own_release(void *user, int device, void *memory, size_t size, void *stream) {
  (void)user, (void)device, (void)size, (void)stream;
  free(memory);
}

/* The context's allocator provides workspaces and the memory of an A^T. */
TEST_IN(in_a_context, uses_the_contexts_allocator) {
  wlm_context *const shared = context;
  wlm_problem built = with_workspace();
  int calls = 0;
  const wlm_device_allocator own = {own_allocate, own_release, &calls};
  wlm_context_options options = BARE_OPTIONS(.device = "cuda", .device_allocator = &own);
  built.policy.deterministic = 1;
  CHECK(wlm_context_create(&options, &context) == WLM_OK);
  const int from_driver = fake->allocations;
  const wlm_problem scattered = with_workspace();
  spmm(200, 200, &scattered, NULL);
  CHECK(calls == 1);
  spmm(2000, 2000, &built, NULL); /* needs a larger workspace than the stream has */
  CHECK(calls >= 2 && fake->allocations == from_driver);
  wlm_context_destroy(context);
  context = shared;
}

static void *workspace_of(int64_t cols, void *stream) {
  const wlm_problem problem = with_workspace();
  spmm(200, cols, &problem, stream);
  CHECK(fake->args.workspace);
  return fake->args.workspace;
}

TEST_IN(in_a_context, workspaces_belong_to_streams) {
  void *first = workspace_of(200, NULL), *second;
  CUstream stream;
  CUcontext primary;
  CHECK(wlmi_cuda.cuDevicePrimaryCtxRetain(&primary, 0) == CUDA_SUCCESS);
  CHECK(wlmi_cuda.cuCtxPushCurrent(primary) == CUDA_SUCCESS);
  CHECK(wlmi_cuda.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  second = workspace_of(200, stream);
  CHECK(first != second && fake->pooled == 2 && fake->stream == stream);
  CHECK(workspace_of(200, NULL) == first && workspace_of(200, stream) == second);
  workspace_of(400, stream); /* a larger workspace */
  CHECK(fake->pooled == 2 && workspace_of(200, NULL) == first);
  second = workspace_of(400, stream);
  CHECK(workspace_of(200, stream) == second); /* a smaller request keeps the larger workspace */
  const int allocated = fake->allocations;    /* a workspace has room for a little more than it was made for */
  CHECK(workspace_of(420, stream) == second && fake->allocations == allocated);

  /* A large workspace is not kept, and the smaller one stays. */
  const int pooled = fake->pooled;
  workspace_of(WLMI_WORKSPACE_KEPT / (32 * (int64_t)sizeof(float)) + 1, stream);
  CHECK(fake->pooled == pooled && workspace_of(400, stream) == second);

  /* In a capture the workspace belongs to the graph. */
  CUgraph graph;
  const fake_cuda before = *fake;
  CHECK(wlmi_cuda.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  const wlm_problem problem = with_workspace();
  spmm(200, 200, &problem, stream);
  CHECK(fake->allocations == before.allocations + 2 && fake->pooled == before.pooled);
  CHECK(fake->waits == before.waits && fake->all_wait == before.all_wait);
  CHECK(wlmi_cuda.cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
  CHECK(wlmi_cuda.cuGraphDestroy(graph) == CUDA_SUCCESS);
  CHECK(workspace_of(400, stream) == second);

  wlm_context_destroy(context);
  context = NULL;
  CHECK(wlmi_cuda.cuStreamDestroy(stream) == CUDA_SUCCESS);
  CHECK(wlmi_cuda.cuCtxPopCurrent(&primary) == CUDA_SUCCESS);
  CHECK(wlmi_cuda.cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
}

static void on_a_stream_that_ends(void) {
  CUstream stream;
  CHECK(wlmi_cuda.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  workspace_of(200, stream);
  CHECK(wlmi_cuda.cuStreamDestroy(stream) == CUDA_SUCCESS);
}

/* No more than WLMI_WORKSPACES streams keep a workspace, if the work of some has ended. */
TEST_IN(in_a_context, workspaces_are_bounded) {
  enum { STREAMS = 100, BUSY = 5 };
  CUstream streams[STREAMS];
  CUcontext primary;
  CHECK(wlmi_cuda.cuDevicePrimaryCtxRetain(&primary, 0) == CUDA_SUCCESS);
  CHECK(wlmi_cuda.cuCtxPushCurrent(primary) == CUDA_SUCCESS);
  for (int i = 0; i < STREAMS; i++)
    CHECK(wlmi_cuda.cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  for (int i = 0; i < STREAMS - BUSY; i++) {
    workspace_of(200, streams[i]);
    CHECK(fake->pooled <= WLMI_WORKSPACES);
  }
  CHECK(fake->pooled == WLMI_WORKSPACES && fake->events == 2 * (WLMI_WORKSPACES - WLMI_WORKSPACES_UNWATCHED));
  void *recent = workspace_of(200, streams[STREAMS - BUSY - 1]);
  /* the first streams are not watched and keep their workspaces */
  CHECK(workspace_of(200, streams[0]) && fake->pooled == WLMI_WORKSPACES);
  for (int i = STREAMS - BUSY - 9; i < STREAMS - BUSY - 1; i++) workspace_of(200, streams[i]);
  CHECK(workspace_of(200, streams[STREAMS - BUSY - 1]) == recent);
  for (int i = 0; i < STREAMS - BUSY; i++) CHECK(wlmi_cuda.cuStreamDestroy(streams[i]) == CUDA_SUCCESS);
  on_a_stream_that_ends(); /* the streams of released workspaces no longer exist */
  CHECK(fake->pooled == WLMI_WORKSPACES);
  fake->busy = 1;
  for (int i = STREAMS - BUSY; i < STREAMS; i++) workspace_of(200, streams[i]);
  CHECK(fake->pooled == WLMI_WORKSPACES + BUSY && !fake->all_wait);
  for (int i = STREAMS - BUSY; i < STREAMS; i++) CHECK(wlmi_cuda.cuStreamDestroy(streams[i]) == CUDA_SUCCESS);
  wlm_context_destroy(context);
  context = NULL;
  CHECK(!fake->pooled && !fake->events);
  CHECK(wlmi_cuda.cuCtxPopCurrent(&primary) == CUDA_SUCCESS);
  CHECK(wlmi_cuda.cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
}

GROUP(folder_begin, folder_end)

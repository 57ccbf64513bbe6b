/* Contexts, matrices and plans that eight threads make and destroy in turns, for the preset tsan. Each arena holds one
 * context, one matrix and one plan, which share a database and a kernel cache with the other arenas. A step gives each
 * thread the next turn of one arena, so that what one thread made another uses and a third destroys. In the turn SHARE
 * all threads use the arena: they plan for its new matrix while another adds the fingerprint, tunes or refreshes.
 * usage: stress_lifetimes [SECONDS] */
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "runtime/context.h"
#include "stress/stress.h"
#include "support/defaults.h"

enum { THREADS = 8, ROWS = 64, DEGREE = 3, N = 5 };
enum { MAKE_CONTEXT, MAKE_MATRIX, SHARE, MAKE_PLAN, EXECUTE, DESTROY_PLAN, DESTROY_MATRIX, DESTROY_CONTEXT, TURNS };

typedef struct arena {
  wlm_context *context;
  wlm_matrix *matrix;
  wlm_plan *plan;
} arena;

static arena arenas[THREADS];
static int32_t rowptr[ROWS + 1], colind[ROWS * DEGREE];
static float b[ROWS * N], expected[ROWS * N]; /* small integers, so that every kernel gives the same sums */
static wlm_context_options options;
static pthread_barrier_t barrier;
static int stopped; /* changes only between two barriers */
static time_t end;

/* The turn that an arena has in a step. */
static int turn_of(long step, int which) { return (int)((step + which) % TURNS); }

static void execute(const wlm_plan *plan) {
  float c[ROWS * N];
  _Alignas(16) char workspace[1 << 14];
  wlm_execute_args args = EXECUTE_ARGS(.b = b, .c = c, .workspace = workspace, .workspace_size = sizeof workspace);
  check(wlm_plan_execute(plan, &args), "execute");
  if (!memcmp(c, expected, sizeof c)) return;
  fprintf(stderr, "a product is wrong\n");
  failures++;
}

static void plan_and_execute(const arena *a) {
  const wlm_problem problem = problem_of(N);
  wlm_plan *plan;
  check(wlm_plan_create(a->context, a->matrix, &problem, &plan), "plan");
  if (plan) execute(plan);
  wlm_plan_destroy(plan);
}

static void choose(const arena *a) {
  const wlm_problem problem = problem_of(N);
  wlmi_decision decision;
  check(wlmi_context_choose(a->context, a->matrix, &problem, &decision), "explain");
}

static int stop_at_once(void *user, int64_t measured, int64_t total, const wlm_candidate_result *last) {
  (void)user, (void)total, (void)last;
  return measured > 0;
}

static void tune(const arena *a) {
  const wlm_problem problem = problem_of(N);
  wlm_tune_options tuning = TUNE_OPTIONS(.min_sample_seconds = 1e-6, .samples = 3, .progress = stop_at_once);
  const wlm_status status = wlm_tune(a->context, a->matrix, &problem, NULL, &tuning);
  if (status != WLM_ERR_CANCELLED) check(status, "tune");
}

static void share(const arena *a, int thread, long step) {
  const wlm_csr *csr = wlmi_matrix_csr(a->matrix);
  const wlm_problem problem = problem_of(N);
  float c[ROWS * N];
  wlm_execute_args args = EXECUTE_ARGS(.b = b, .c = c);
  switch (thread) {
    case 0: choose(a); break;
    case 1: step / THREADS % 16 ? choose(a) : tune(a); break;
    case 2: check(wlm_context_refresh(a->context), "refresh"); break;
    case 3: check(wlm_spmm(a->context, csr, &problem, &args), "spmm"); break;
    default: plan_and_execute(a);
  }
}

static void make_matrix(arena *a) {
  wlm_csr csr = CSR(.rows = ROWS, .cols = ROWS, .nnz = ROWS * DEGREE, .rowptr = rowptr, .colind = colind);
  check(wlm_matrix_create(a->context, &csr, NULL, &a->matrix), "matrix");
}

static void make_plan(arena *a) {
  const wlm_problem problem = problem_of(N);
  check(wlm_context_refresh(a->context), "refresh");
  check(wlm_plan_create(a->context, a->matrix, &problem, &a->plan), "plan");
}

static void take_turn(arena *a, int turn) {
  switch (turn) {
    case MAKE_CONTEXT: check(wlm_context_create(&options, &a->context), "context"); break;
    case MAKE_MATRIX: make_matrix(a); break;
    case MAKE_PLAN: make_plan(a); break;
    case EXECUTE:
      check(wlm_context_refresh(a->context), "refresh");
      execute(a->plan);
      break;
    case DESTROY_PLAN:
      wlm_plan_destroy(a->plan);
      a->plan = NULL;
      break;
    case DESTROY_MATRIX:
      wlm_matrix_destroy(a->matrix);
      a->matrix = NULL;
      break;
    case DESTROY_CONTEXT:
      wlm_context_destroy(a->context);
      a->context = NULL;
      break;
    default: break;
  }
}

static int is_there(const arena *a, int turn) {
  return turn == MAKE_CONTEXT                          ? !a->context
         : turn == MAKE_PLAN || turn == DESTROY_MATRIX ? a->matrix != NULL
         : turn == EXECUTE || turn == DESTROY_PLAN     ? a->plan != NULL
                                                       : a->context != NULL;
}

static void *work(void *user) {
  const int thread = (int)((arena *)user - arenas);
  for (long step = 0; !stopped; step++) {
    const int own = (int)((5 * step + thread) % THREADS);
    if (is_there(&arenas[own], turn_of(step, own))) take_turn(&arenas[own], turn_of(step, own));
    for (int i = 0; i < THREADS; i++)
      if (turn_of(step, i) == SHARE && arenas[i].matrix) share(&arenas[i], thread, step);
    if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) stopped = time(NULL) >= end || failures;
    pthread_barrier_wait(&barrier);
  }
  return NULL;
}

static void make_operands(void) {
  for (int i = 0; i < ROWS * N; i++) b[i] = (float)(i % 11 - 5);
  for (int p = 0; p < ROWS * DEGREE; p++) colind[p] = (7 * p + p / DEGREE) % ROWS;
  for (int r = 0; r < ROWS; r++) {
    rowptr[r + 1] = (r + 1) * DEGREE;
    for (int p = r * DEGREE; p < (r + 1) * DEGREE; p++)
      for (int j = 0; j < N; j++) expected[r * N + j] += b[colind[p] * N + j];
  }
}

int main(int argc, char **argv) {
  pthread_t threads[THREADS];
  begin_again_without_openmp(argv);
  folder_begin(NULL);
  options = options_in_folder();
  make_operands();
  pthread_barrier_init(&barrier, NULL, THREADS);
  end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 10);
  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, work, &arenas[i])) {
      fprintf(stderr, "no thread\n");
      return 1;
    }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS; i++)
    for (int turn = DESTROY_PLAN; turn < TURNS; turn++) take_turn(&arenas[i], turn);
  pthread_barrier_destroy(&barrier);
  folder_end(NULL);
  printf("%d threads, %d failures\n", THREADS, (int)failures);
  return failures != 0;
}

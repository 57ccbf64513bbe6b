/* Many threads on one context of the host device, for the preset tsan: each repeats random actions of those below until
 * the time is over. Every product must be correct and no call may fail. usage: stress_threads [SECONDS [THREADS]] */
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "stress/stress.h"
#include "support/defaults.h"

enum { ROWS = 60, MOST_NNZ = ROWS * 4, MATRICES = 3, MOST_THREADS = 64 };
static const int64_t widths[] = {4, 16, 33};
enum { WIDTHS = sizeof widths / sizeof *widths, MOST_N = 33 };

typedef struct matrix {
  int32_t rowptr[ROWS + 1], colind[MOST_NNZ];
  float values[MOST_NNZ];
  wlm_csr csr;
  wlm_matrix *shared;
  wlm_plan *plan; /* shared by all threads, for n = widths[0] */
} matrix;

static matrix matrices[MATRICES];
static float b[ROWS * MOST_N]; /* small integers, so that every kernel gives the same sums */
static wlm_context *context;
static atomic_long done;
static time_t end;

typedef struct worker {
  unsigned int seed;
  float c[ROWS * MOST_N];
  _Alignas(16) char workspace[1 << 20];
} worker;

static int draw(worker *w, int below) { return rand_r(&w->seed) / 7 % below; }

static void check_product(const matrix *m, int64_t n, const float *c) {
  for (int64_t r = 0; r < ROWS; r++)
    for (int64_t j = 0; j < n; j++) {
      float sum = 0;
      for (int32_t p = m->rowptr[r]; p < m->rowptr[r + 1]; p++) sum += m->values[p] * b[m->colind[p] * n + j];
      if (sum == c[r * n + j]) continue;
      fprintf(stderr, "C[%d,%d] is %g instead of %g\n", (int)r, (int)j, (double)c[r * n + j], (double)sum);
      failures++;
      return;
    }
}

static wlm_execute_args args_of(worker *w) {
  return (wlm_execute_args)EXECUTE_ARGS(.b = b, .c = w->c, .workspace = w->workspace,
                                        .workspace_size = sizeof w->workspace);
}

static void execute(worker *w, const wlm_plan *plan, const matrix *m, int64_t n) {
  wlm_execute_args args = args_of(w);
  memset(w->c, 0xff, sizeof w->c);
  check(wlm_plan_execute(plan, &args), "execute");
  check_product(m, n, w->c);
}

/* ---- the actions ---- */

static void execute_shared(worker *w) {
  const matrix *m = &matrices[draw(w, MATRICES)];
  execute(w, m->plan, m, widths[0]);
}

static void create_and_rebind(worker *w) {
  const int first = draw(w, MATRICES);
  const int64_t n = widths[draw(w, WIDTHS)];
  const wlm_problem problem = problem_of(n);
  wlm_matrix *own;
  wlm_plan *plan;
  check(wlm_matrix_create(context, &matrices[first].csr, NULL, &own), "matrix");
  check(wlm_plan_create(context, own, &problem, &plan), "plan");
  execute(w, plan, &matrices[first], n);
  for (int i = 0; i < MATRICES; i++) {
    check(wlm_plan_rebind(plan, &matrices[i].csr), "rebind");
    execute(w, plan, &matrices[i], n);
  }
  wlm_plan_destroy(plan);
  wlm_matrix_destroy(own);
}

static void one_call(worker *w) {
  const matrix *m = &matrices[draw(w, MATRICES)];
  const int64_t n = widths[draw(w, WIDTHS)];
  const wlm_problem problem = problem_of(n);
  const wlm_execute_args args = args_of(w);
  check(wlm_spmm(context, &m->csr, &problem, &args), "spmm");
  check_product(m, n, w->c);
}

static void transposed(worker *w) {
  const matrix *m = &matrices[draw(w, MATRICES)];
  wlm_problem problem = problem_of(widths[draw(w, WIDTHS)]);
  wlm_plan *plan;
  problem.transpose = 1; /* A^T is kept with the shared matrix */
  check(wlm_plan_create(context, m->shared, &problem, &plan), "transposed plan");
  wlm_execute_args args = args_of(w);
  check(wlm_plan_execute(plan, &args), "transposed execute");
  wlm_plan_destroy(plan);
}

static void explain(worker *w) {
  char *text;
  check(wlm_plan_explain(matrices[draw(w, MATRICES)].plan, draw(w, 2), &text), "explain");
  wlm_string_free(text);
}

static void refresh(worker *w) {
  (void)w;
  check(wlm_context_refresh(context), "refresh");
}

static void export(worker *w) {
  char *text;
  (void)w;
  check(wlm_export_string(context, &text), "export");
  check(wlm_import_string(context, text, NULL), "import");
  wlm_string_free(text);
}

static int stop_soon(void *user, int64_t measured, int64_t total, const wlm_candidate_result *last) {
  (void)total, (void)last;
  return measured >= *(const int *)user || time(NULL) >= end;
}

/* Only one thread tunes at a time, and rarely, because each candidate must be compiled once. */
static void tune(worker *w) {
  static atomic_flag busy = ATOMIC_FLAG_INIT;
  if (draw(w, 8) || atomic_flag_test_and_set(&busy)) return;
  const matrix *m = &matrices[draw(w, MATRICES)];
  const wlm_problem problem = problem_of(widths[draw(w, WIDTHS)]);
  int most = 1 + draw(w, 3);
  wlm_tune_options options =
      TUNE_OPTIONS(.min_sample_seconds = 1e-6, .samples = 3, .again = 1, .progress = stop_soon, .user = &most);
  const wlm_status status = wlm_tune(context, m->shared, &problem, NULL, &options);
  if (status != WLM_ERR_CANCELLED) check(status, "tune");
  atomic_flag_clear(&busy);
}

static void tune_online(worker *w) {
  static atomic_flag busy = ATOMIC_FLAG_INIT;
  if (draw(w, 4) || atomic_flag_test_and_set(&busy)) return;
  const matrix *m = &matrices[draw(w, MATRICES)];
  const wlm_problem problem = problem_of(widths[0]);
  wlm_online_options options = ONLINE_OPTIONS(.share = 0.5, .challengers = 1);
  wlm_plan *plan;
  check(wlm_plan_create_online(context, m->shared, &problem, &options, &plan), "online plan");
  for (int i = 0; i < 20; i++) execute(w, plan, m, widths[0]);
  wlm_plan_destroy(plan);
  atomic_flag_clear(&busy);
}

static void (*const actions[])(worker *w) = {execute_shared, execute_shared, create_and_rebind, one_call,
                                             transposed,     explain,        refresh,           export,
                                             tune,           tune_online};
enum { ACTIONS = sizeof actions / sizeof *actions };

static void *work(void *user) {
  worker *w = user;
  while (time(NULL) < end && !failures) {
    actions[draw(w, ACTIONS)](w);
    done++;
  }
  return NULL;
}

/* ---- the arena ---- */

static void make_matrix(matrix *m, int which) {
  const wlm_problem problem = problem_of(widths[0]);
  for (int r = 0; r < ROWS; r++) {
    m->rowptr[r + 1] = m->rowptr[r] + (r * (which + 3) + which) % 5;
    for (int32_t p = m->rowptr[r]; p < m->rowptr[r + 1]; p++) {
      m->colind[p] = (r * 7 + p * 13) % ROWS;
      m->values[p] = (float)(p % 5 - 2);
    }
  }
  m->csr = (wlm_csr)WLM_CSR_INIT;
  m->csr.rows = m->csr.cols = ROWS;
  m->csr.nnz = m->rowptr[ROWS];
  m->csr.rowptr = m->rowptr;
  m->csr.colind = m->colind;
  m->csr.values = m->values;
  check(wlm_matrix_create(context, &m->csr, NULL, &m->shared), "matrix");
  check(wlm_plan_create(context, m->shared, &problem, &m->plan), "plan");
}

int main(int argc, char **argv) {
  static worker workers[MOST_THREADS];
  pthread_t threads[MOST_THREADS];
  const int seconds = argc > 1 ? atoi(argv[1]) : 10, count = argc > 2 ? atoi(argv[2]) : 16;
  begin_again_without_openmp(argv);
  folder_begin(NULL);
  wlm_context_options options = options_in_folder();
  options.record = options.compile_in_background = 1;
  check(wlm_context_create(&options, &context), "context");
  for (int i = 0; i < ROWS * MOST_N; i++) b[i] = (float)(i % 11 - 5);
  for (int i = 0; i < MATRICES && !failures; i++) make_matrix(&matrices[i], i);
  check(wlm_import_string(context, "{\"warploom\":\"tuned\",\"version\":1}\n", NULL),
        "import"); /* creates the database */
  end = time(NULL) + seconds;
  int started = 0;
  for (; started < count && started < MOST_THREADS && !failures; started++) {
    workers[started].seed = (unsigned int)started + 1;
    if (pthread_create(&threads[started], NULL, work, &workers[started])) break;
  }
  for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < MATRICES; i++) {
    wlm_plan_destroy(matrices[i].plan);
    wlm_matrix_destroy(matrices[i].shared);
  }
  wlm_context_destroy(context);
  folder_end(NULL);
  printf("%ld actions by %d threads, %d failures\n", (long)done, started, (int)failures);
  return failures != 0;
}

/* Compares wlm_spmm on the host device with plans: every operation, memory that is reused for other matrices, and calls
 * of two threads. Operands are small whole numbers, so that any kernel gives the same bits. */
#include <pthread.h>

#include "core/problem/cell.h"
#include "core/reference/reference.h"
#include "runtime/decide.h"
#include "support/bare_host.h"
#include "support/requests.h"
#include "support/test.h"

/* ---- wlm_spmm and plans --------------------------------------------------------------------------------- */

/* Compares wlm_spmm with a new plan. For a gradient both first compute the argmax indices. */
static void run_both(const request *r, const drawn *a) {
  static results one, planned;
  request forward = *r;
  forward.gradient = 0;
  results_begin(&one);
  results_begin(&planned);
  for (int step = r->gradient ? 0 : 1; step < 2; step++) {
    const request *now = step ? r : &forward;
    const wlm_problem problem = request_problem(now);
    wlm_execute_args by_one = request_call(now, a, &one), by_plan = request_call(now, a, &planned);
    assert_status(WLM_OK, wlm_spmm(bare_host, &a->csr, &problem, &by_one));
    assert_status(WLM_OK, drawn_plan_once(bare_host, &a->csr, &problem, by_plan));
    if (memcmp(&one, &planned, sizeof one))
      fail_msg("%s: %lld x %lld with %lld: one call and a plan differ", r->name, (long long)a->csr.rows,
               (long long)a->csr.cols, (long long)a->csr.nnz);
  }
}

TEST_BETWEEN(every_operation_of_reused_memory, bare_host_begin, bare_host_end) {
  static drawn a;
  test_random random = {3};
  for (int matrix = 0; matrix < 12; matrix++)
    for (int i = 0; i < REQUESTS; i++) {
      draw_matrix(&a, &random, !requests[i].pattern);
      run_both(&requests[i], &a);
    }
}

/* Compares wlm_spmm with the float64 reference. */
TEST_BETWEEN(sums_are_right, bare_host_begin, bare_host_end) {
  static drawn a;
  static results to;
  static double expected[DRAWN_DENSE];
  test_random random = {5};
  const request *sum = &requests[0];
  const wlm_problem problem = request_problem(sum);
  for (int matrix = 0; matrix < 50; matrix++) {
    int64_t rowptr[DRAWN_ROWS + 1];
    draw_matrix(&a, &random, 1);
    for (int64_t i = 0; i <= a.csr.rows; i++) rowptr[i] = a.rowptr[i];
    const wlmi_csr_host csr = {.rows = a.csr.rows,
                               .cols = a.csr.cols,
                               .nnz = a.csr.nnz,
                               .rowptr = rowptr,
                               .colind = a.colind,
                               .values = a.values};
    const wlm_execute_args args = request_call(sum, &a, &to);
    const wlmi_reference_result reference = {expected, NULL, NULL};
    assert_status(WLM_OK, wlm_spmm(bare_host, &a.csr, &problem, &args));
    assert_status(WLM_OK, wlmi_reference_rows(&csr, &problem, &args, NULL, a.csr.rows, &reference));
    for (int64_t i = 0; i < a.csr.rows * DRAWN_N; i++) assert_true((double)to.c[i] == expected[i]);
  }
}

/* Matrices without rows, without columns, or with both and no non-zeros. */
TEST_BETWEEN(empty_matrices, bare_host_begin, bare_host_end) {
  static drawn a;
  test_random random = {9};
  for (int i = 0; i < REQUESTS; i++)
    for (int empty = 0; empty < 3; empty++) {
      draw_matrix(&a, &random, !requests[i].pattern);
      memset(a.rowptr, 0, sizeof a.rowptr);
      a.csr.nnz = 0;
      if (empty == 1) a.csr.rows = 0;
      if (empty == 2) a.csr.cols = 0;
      run_both(&requests[i], &a);
    }
}

/* A plan of a variant, a plan that was bound to another matrix before, and wlm_spmm with the same kernel: equal bits
 * for arbitrary numbers. */
TEST_BETWEEN(three_ways_give_the_same_bits, bare_host_begin, bare_host_end) {
  static drawn first, second;
  static results named, rebound, one;
  static _Alignas(64) char workspace[1 << 20];
  const wlm_problem problem = request_problem(&requests[0]);
  wlm_matrix_options options = MATRIX_OPTIONS(.grade = WLM_STATS_ESTIMATED);
  test_random random = {11};
  for (int i = 0; i < 10; i++) {
    draw_matrix(&first, &random, 1);
    draw_matrix(&second, &random, 1);
    for (int k = 0; k < DRAWN_DENSE; k++) second.b[k] = test_draw_between(&random, -1, 1);
    for (int k = 0; k < DRAWN_NNZ; k++) second.values[k] = test_draw_between(&random, -1, 1);
    OWN(wlm_matrix, other, wlm_matrix_create(bare_host, &first.csr, &options, &other));
    OWN(wlm_matrix, matrix, wlm_matrix_create(bare_host, &second.csr, &options, &matrix));
    OWN(wlm_plan, moving, wlm_plan_create(bare_host, other, &problem, &moving));
    OWN(wlm_plan, plan, wlm_plan_create_variant(bare_host, matrix, &problem, wlm_plan_variant(moving), &plan));
    assert_status(WLM_OK, wlm_plan_rebind(moving, &second.csr));
    wlm_execute_args args = request_call(&requests[0], &second, &named);
    args.workspace = workspace;
    args.workspace_size = sizeof workspace;
    assert_status(WLM_OK, wlm_plan_execute(plan, &args));
    args.c = rebound.c;
    assert_status(WLM_OK, wlm_plan_execute(moving, &args));
    args.c = one.c;
    assert_status(WLM_OK, wlm_spmm(bare_host, &second.csr, &problem, &args));
    const size_t size = (size_t)second.csr.rows * DRAWN_N * sizeof *one.c;
    assert_memory_equal(named.c, rebound.c, size);
    assert_memory_equal(named.c, one.c, size);
  }
}

/* ---- the cost of a repeated call -------------------------------------------------------------------------- */

static int allocations;

static void *count_allocate(void *user, size_t size) { return (void)user, allocations++, malloc(size); }
static void *count_reallocate(void *user, void *old, size_t size) {
  return (void)user, allocations++, realloc(old, size);
}
static void count_release(void *user, void *old) { (void)user, free(old); }

/* Scattering adds in any order, has no argmax indices, and exists for sums only. */
TEST(only_plain_sums_are_scattered) {
  static drawn a;
  test_random random = {13};
  wlm_problem plain = PROBLEM(.n = DRAWN_N, .transpose = 1);
  wlm_problem other[] = {plain, plain, plain, plain};
  draw_matrix(&a, &random, 1);
  assert_true(wlmi_scatter_pays(&plain, &a.csr));
  other[0].policy.deterministic = 1;
  other[1].want_argmax = 1;
  other[2].reduce = WLM_MEAN;
  other[3].operation = WLM_SDDMM;
  for (size_t i = 0; i < sizeof other / sizeof *other; i++) assert_false(wlmi_scatter_pays(&other[i], &a.csr));
}

/* The host has no family that scatters, which only the first call has to find out: a selection allocates. */
TEST_BETWEEN(a_refused_scatter_is_selected_once, bare_host_begin, bare_host_end) {
  static const wlm_allocator counting = {count_allocate, count_reallocate, count_release, NULL};
  static drawn a;
  test_random random = {13};
  wlm_stats stats;
  draw_matrix(&a, &random, 1);
  wlm_problem problem = PROBLEM(.n = DRAWN_N, .transpose = 1);
  assert_true(wlmi_scatter_pays(&problem, &a.csr));
  wlmi_stats_estimate(a.csr.rows, a.csr.cols, a.csr.nnz, &stats);
  const wlmi_decide_request request = {&problem, &a.csr, &stats, WLMI_USE_SCATTER, NULL};
  wlm_set_allocator(&counting);
  for (int call = 0; call < 3; call++) {
    wlmi_decided *decided;
    allocations = 0;
    assert_status(WLM_ERR_NOT_FOUND, wlmi_decide(bare_host, &request, &decided));
    assert_null(decided);
    assert_int_equal(allocations != 0, call == 0);
  }
  wlm_set_allocator(NULL);
}

/* ---- threads ---------------------------------------------------------------------------------------------- */

typedef struct worker {
  pthread_t thread;
  int number, wrong;
  drawn a;
  results expected[REQUESTS], to;
} worker;

static void *call_in_turn(void *user) {
  worker *w = user;
  for (int i = 0; i < 40 * REQUESTS && !w->wrong; i++) {
    const int at = (i * (w->number ? 5 : 1)) % REQUESTS;
    const request *r = &requests[at];
    const wlm_problem problem = request_problem(r);
    results_begin(&w->to);
    memcpy(w->to.argmax, w->expected[at].argmax, sizeof w->to.argmax);
    wlm_execute_args args = request_call(r, &w->a, &w->to);
    wlm_csr csr = w->a.csr;
    if (r->pattern) csr.values = NULL;
    w->wrong = wlm_spmm(bare_host, &csr, &problem, &args) != WLM_OK || memcmp(&w->to, &w->expected[at], sizeof w->to);
  }
  return NULL;
}

TEST_BETWEEN(two_threads_with_problems_of_their_own, bare_host_begin, bare_host_end) {
  FREED worker *workers = calloc(2, sizeof *workers);
  test_random random = {21};
  assert_non_null(workers);
  for (int t = 0; t < 2; t++) {
    worker *w = &workers[t];
    w->number = t;
    draw_matrix(&w->a, &random, 1);
    for (int i = 0; i < REQUESTS; i++) {
      const wlm_problem problem = request_problem(&requests[i]);
      results_begin(&w->expected[i]);
      if (requests[i].gradient) memcpy(w->expected[i].argmax, w->expected[i - 1].argmax, sizeof w->to.argmax);
      const wlm_execute_args args = request_call(&requests[i], &w->a, &w->expected[i]);
      const wlm_csr csr = w->a.csr;
      if (requests[i].pattern) w->a.csr.values = NULL;
      assert_status(WLM_OK, drawn_plan_once(bare_host, &w->a.csr, &problem, args));
      w->a.csr = csr;
    }
  }
  for (int t = 0; t < 2; t++) assert_int_equal(pthread_create(&workers[t].thread, NULL, call_in_turn, &workers[t]), 0);
  for (int t = 0; t < 2; t++) pthread_join(workers[t].thread, NULL);
  assert_false(workers[0].wrong || workers[1].wrong);
}

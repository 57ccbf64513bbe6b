/* Gradients by argmax on the host: the kernels over many shapes, and the public API as a training program uses it. */
#include <omp.h>

#include "runtime/devices.h"
#include "runtime/host/threads.h"
#include "support/backward_check.h"
#include "support/calls.h"
#include "support/test.h"
#include "warploom/warploom_tune.h"

static void next_threads(void *user, int run) {
  static const int threads[] = {1, 2, 5};
  (void)user;
  omp_set_num_threads(threads[run]);
}

TEST(every_problem) {
  OWN(wlmi_device, device, wlmi_host_device_open(&device));
  wlmi_host_share_from(0); /* several threads even for small products */
  OWN(wlmi_generator, generator, wlmi_generator_create(NULL, &generator));
  for (int number = 0; number < backward_problem_count(); number++) {
    const wlmi_spec spec = backward_problem(number);
    const kernel_check check = {device, &spec, 3, next_threads, NULL, (uint64_t)number + 1};
    if (backward_check(&check, generator) != WLM_OK) fail_msg("problem %d: %s", number, wlm_error_detail());
  }
}

/* 3 x 4; row 1 is empty. */
static const int32_t rowptr[] = {0, 3, 3, 5}, colind[] = {0, 3, 1, 2, 0};
static const float values[] = {1.5f, -2, 0.75f, 3, 0.5f};
enum { ROWS = 3, COLS = 4, NNZ = 5, N = 5 };

static void bind_small(const float *a, wlm_context **context, wlm_matrix **matrix) {
  wlm_context_options options = BARE_OPTIONS(.device = "host");
  wlm_csr csr = CSR(.rows = ROWS, .cols = COLS, .nnz = NNZ, .rowptr = rowptr, .colind = colind, .values = a);
  assert_status(WLM_OK, wlm_context_create(&options, context));
  assert_status(WLM_OK, wlm_matrix_create(*context, &csr, NULL, matrix));
}

/* The loss: the sum of dC * C, after a forward pass. */
static double loss(const wlm_plan *plan, const wlm_execute_args *call, const float *dense, const float *dc, int rows) {
  float c[COLS * N];
  int32_t arg[COLS * N];
  double sum = 0;
  FREED void *workspace = malloc(wlm_plan_workspace_size(plan) + 1);
  assert_status(WLM_OK, test_execute_argmax_call(plan, call, dense, c, arg, workspace));
  for (int i = 0; i < rows * N; i++) sum += (double)dc[i] * (double)c[i];
  return sum;
}

/* The gradient equals the change of the loss when an element of B or a value changes by little, so that the same
 * edges win. Each message with max and min, of which one is transposed. */
TEST(gradients_are_derivatives) {
  const float step = 0x1p-12f;
  for (int number = 0; number < 16; number++) {
    OWNED(wlm_context) *context = NULL;
    OWNED(wlm_matrix) *matrix = NULL;
    float a[NNZ], b[COLS * N], dc[COLS * N], c[COLS * N], db[COLS * N], dvalues[NNZ];
    int32_t arg[COLS * N];
    memcpy(a, values, sizeof a);
    wlm_problem problem =
        PROBLEM(.n = N, .message = (wlm_message)(number % 8), .reduce = number & 8 ? WLM_MIN : WLM_MAX,
                .transpose = (number ^ number >> 3) & 1, .want_argmax = 1);
    wlm_execute_args call = EXECUTE_ARGS(.alpha = -0.5);
    const int rows = problem.transpose ? COLS : ROWS, cols = problem.transpose ? ROWS : COLS;
    for (int i = 0; i < COLS * N; i++) b[i] = (float)(i * 7 % 13) - 6.25f, dc[i] = (float)(i * 5 % 11) - 4.5f;
    bind_small(a, &context, &matrix);
    OWN(wlm_plan, plan, wlm_plan_create(context, matrix, &problem, &plan));
    FREED void *workspace = malloc(wlm_plan_workspace_size(plan) + 1);
    assert_status(WLM_OK, test_execute_argmax_call(plan, &call, b, c, arg, workspace));
    memset(db, 0xff, sizeof db);
    memset(dvalues, 0xff, sizeof dvalues);
    assert_status(WLM_OK, test_argmax_gradient_call(context, matrix, &problem,
                                                    test_gradient_args(&call, dc, arg, b, db, dvalues)));
    for (int i = 0; i < cols * N + NNZ; i++) {
      float *moved = i < cols * N ? &b[i] : &a[i - cols * N], before = *moved;
      const double got = (double)(i < cols * N ? db[i] : dvalues[i - cols * N]);
      *moved = before + step;
      const double up = loss(plan, &call, b, dc, rows);
      *moved = before - step;
      const double slope = (up - loss(plan, &call, b, dc, rows)) / (2 * (double)step);
      *moved = before;
      if (!(fabs(got - slope) <= 0.02 * (1 + fabs(slope)))) fail_msg("%d, %d: %g, not %g", number, i, got, slope);
    }
  }
}

TEST(invalid_calls_are_refused) {
  OWNED(wlm_context) *context = NULL;
  OWNED(wlm_matrix) *matrix = NULL;
  float b[COLS * N] = {0}, dc[ROWS * N] = {0}, db[COLS * N];
  int32_t arg[ROWS * N] = {0};
  bind_small(values, &context, &matrix);
  wlm_problem problem = PROBLEM(.n = N, .reduce = WLM_MAX, .want_argmax = 1);
  GET(wlm_plan *, plan, wlm_plan_create(context, matrix, &problem, &plan));
  wlm_execute_args args = EXECUTE_ARGS(.b = b, .x = dc, .argmax = arg, .argmax_db = db);
  assert_fails(WLM_ERR_INVALID_ARGUMENT, wlm_plan_execute(plan, &args),
               "c is NULL"); /* the plan of a product computes a product */
  wlm_plan_destroy(plan);
  assert_fails(WLM_ERR_INVALID_ARGUMENT, test_argmax_gradient(context, matrix, &problem, dc, NULL, b, db, NULL),
               "argmax is NULL");
  assert_fails(WLM_ERR_INVALID_ARGUMENT, test_argmax_gradient(context, matrix, &problem, NULL, arg, b, db, NULL),
               "x is NULL");
  /* on the host the order of sums is fixed, so deterministic is allowed */
  problem.policy.deterministic = 1;
  assert_status(WLM_OK, test_argmax_gradient(context, matrix, &problem, dc, arg, b, db, NULL));
  problem.epilogue.activation = "relu";
  assert_fails(WLM_ERR_UNSUPPORTED, test_argmax_gradient(context, matrix, &problem, dc, arg, b, db, NULL),
               "argmax_gradient with an epilogue");
  problem.epilogue.activation = NULL;
  problem.reduce = WLM_SUM;
  assert_fails(WLM_ERR_UNSUPPORTED, test_argmax_gradient(context, matrix, &problem, dc, arg, b, db, NULL),
               "argmax_gradient needs the reduction max or min");
  problem = (wlm_problem)PROBLEM(.n = N, .operation = WLM_ARGMAX_GRADIENT, .reduce = WLM_MAX);
  assert_fails(WLM_ERR_UNSUPPORTED, wlm_tune(context, matrix, &problem, NULL, NULL), "has one kernel");
  assert_status(WLM_ERR_UNSUPPORTED, wlm_plan_create_online(context, matrix, &problem, NULL, &plan));
  assert_status(WLM_ERR_INVALID_ARGUMENT,
                wlm_plan_create_variant(context, matrix, &problem, "host_row/rows=16,tile=32", &plan));
}

/* It has one kernel, and looks edges up in A itself: a plan for a size is bound without arrays of A^T. */
TEST(plans_need_no_transpose) {
  OWNED(wlm_context) *context = NULL;
  wlm_matrix *matrix, *of_size;
  float b[ROWS * N], dc[COLS * N], db[2][ROWS * N], c[COLS * N];
  int32_t arg[COLS * N];
  for (int i = 0; i < COLS * N; i++) dc[i] = (float)(i * 5 % 11) - 4.5f;
  for (int i = 0; i < ROWS * N; i++) b[i] = (float)(i * 7 % 13) - 6.25f;
  bind_small(values, &context, &matrix);
  const wlm_csr size = CSR(.rows = 1, .cols = 1, .has_values = 1),
                csr = CSR(.rows = ROWS, .cols = COLS, .nnz = NNZ, .rowptr = rowptr, .colind = colind, .values = values);
  wlm_problem problem = PROBLEM(.n = N, .reduce = WLM_MAX, .transpose = 1, .want_argmax = 1);
  const wlm_matrix_options estimated = MATRIX_OPTIONS(.grade = WLM_STATS_ESTIMATED);
  assert_status(WLM_OK, wlm_matrix_create(context, &size, &estimated, &of_size));
  wlm_execute_args args = EXECUTE_ARGS(.b = b, .c = c, .argmax = arg);
  assert_status(WLM_OK, wlm_spmm(context, &csr, &problem, &args));
  assert_status(WLM_OK, test_argmax_gradient(context, matrix, &problem, dc, arg, b, db[0], NULL));
  problem.operation = WLM_ARGMAX_GRADIENT;
  GET(wlm_plan *, plan, wlm_plan_create(context, of_size, &problem, &plan));
  assert_string_equal(wlm_plan_variant(plan), "argmax_gradient");
  args.x = dc, args.argmax_db = db[1];
  assert_status(WLM_ERR_NOT_READY, wlm_plan_execute(plan, &args));
  assert_status(WLM_OK, wlm_plan_rebind(plan, &csr));
  assert_status(WLM_OK, wlm_plan_execute(plan, &args));
  assert_memory_equal(db[0], db[1], sizeof db[0]);
  WLM_FREED GET(char *, text, wlm_plan_explain(plan, 0, &text));
  assert_contains(text, "step      only: the operation has one kernel");
  double seconds = 1;
  assert_status(WLM_OK, wlm_expected_seconds(context, matrix, &problem, &seconds, NULL));
  assert_true(seconds == 0);
  wlm_plan_destroy(plan);
  wlm_matrix_destroy(of_size);
  wlm_matrix_destroy(matrix);
}

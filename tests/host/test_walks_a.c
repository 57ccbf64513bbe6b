/* Plans of a family that walks A itself for a product with A^T: neither a named nor a chosen variant builds A^T, and
 * the passes over C also run if A has no rows. The test's family is for the host, so no GPU is needed. */
#include "runtime/dispatch/plan.h"
#include "support/calls.h"
#include "support/emit_fixture.h"
#include "support/folder.h"
#include "support/test.h"
#include "warploom/warploom_tune.h"

enum { ROWS = 3, COLS = 4, NNZ = 6, N = 2 };

/* Sums are collected in the workspace, so that its bytes per column of A matter. */
static const char family[] =
    "return { target = 'host', summary = 'a test', split = 'atomic', keeps_order = false, walks = 'a', parameters = "
    "{},\n"
    "  passes = function() return {\n"
    "    { kernel = 'adds_clear', units = 'cols' }, { kernel = 'adds', units = 'nnz', units_per_block = 4 },\n"
    "    { kernel = 'adds_finish', units = 'cols', units_per_block = 3 } } end,\n"
    "  workspace = function(_, problem) return { cols_n = problem.acc_bytes } end }\n";
static const char kernel[] =
    "WLM_KERNEL(adds_clear) {\n"
    "  wlm_acc_t *sums = (wlm_acc_t *)args->workspace;\n"
    "  for (long long i = 0; i < unit_blocks * args->n; i++) sums[i] = wlm_init();\n"
    "}\n"
    "WLM_KERNEL(adds) {\n"
    "  (void)unit_blocks;\n"
    "  for (long long row = 0; row < args->rows; row++)\n"
    "    for (long long p = wlm_begin(args, row); p < wlm_begin(args, row + 1); p++)\n"
    "      for (long long j = 0; j < args->n; j++) {\n"
    "        wlm_acc_t *sum = (wlm_acc_t *)args->workspace + wlm_column(args, p) * args->n + j;\n"
    "        const wlm_acc_t b = wlm_load_b((const wlm_b_t *)args->b + row * args->ldb + j);\n"
    "        *sum = wlm_reduce(*sum, wlm_message(@{load_a('args', 'p', '0')}, b));\n"
    "      }\n"
    "}\n"
    "WLM_KERNEL(adds_finish) {\n"
    "  if (unit_blocks != (args->cols + 2) / 3) return;\n"
    "  for (long long i = 0; i < args->cols * args->n; i++)\n"
    "    wlm_store(args, (wlm_c_t *)args->c + i / args->n * args->ldc + i % args->n, i % args->n,\n"
    "      ((const wlm_acc_t *)args->workspace)[i]);\n"
    "}\n";

static wlm_context *context;

static int begin(void **state) {
  folder_begin(state);
  emit_write(&folder, "adds", "family.lua", family);
  emit_write(&folder, "adds", "kernel.c.in", kernel);
  const char *database = in_folder("tuned.db");
  wlm_context_options options = BARE_OPTIONS(.device = "host", .database = database, .templates = folder.path);
  return wlm_context_create(&options, &context) != WLM_OK;
}

static int end(void **state) {
  wlm_context_destroy(context);
  return folder_end(state);
}

static const int32_t rowptr[] = {0, 2, 2, NNZ}, colind[] = {3, 0, 0, 1, 0, 3};
static const float values[] = {2, 3, 5, 7, 11, 13}, b[ROWS * N] = {1, 10, NAN, NAN, 100, 1000};

static wlm_matrix *matrix_of(int64_t rows) {
  wlm_csr csr =
      CSR(.rows = rows, .cols = COLS, .nnz = rowptr[rows], .rowptr = rowptr, .colind = colind, .values = values);
  GET(wlm_matrix *, matrix, wlm_matrix_create(context, &csr, NULL, &matrix));
  return matrix;
}

static wlm_problem transposed(void) { return (wlm_problem)PROBLEM(.n = N, .transpose = 1); }

static void expect_product(const wlm_plan *plan, int64_t rows) {
  float c[COLS * N], workspace[COLS * N] = {NAN}, expected[COLS * N];
  for (int i = 0; i < COLS * N; i++) expected[i] = 0.5f * (c[i] = (float)(2 * i));
  for (int64_t row = 0; row < rows; row++)
    for (int32_t p = rowptr[row]; p < rowptr[row + 1]; p++)
      for (int j = 0; j < N; j++) expected[colind[p] * N + j] += 2 * values[p] * b[row * N + j];
  assert_int_equal(wlm_plan_workspace_size(plan), sizeof workspace);
  wlm_execute_args call = EXECUTE_ARGS(.alpha = 2, .beta = 0.5);
  assert_status(WLM_OK, test_execute_call(plan, &call, b, c, workspace));
  assert_memory_equal(c, expected, sizeof c);
}

TEST(a_named_variant) {
  for (int64_t rows = 0; rows <= ROWS; rows += ROWS) {
    const wlm_problem problem = transposed();
    OWNED(wlm_matrix) *matrix = matrix_of(rows);
    OWN(wlm_plan, plan, wlm_plan_create_variant(context, matrix, &problem, "adds", &plan));
    expect_product(plan, rows);
    assert_null(plan->bound.args.order);
    assert_int_equal(plan->reason.stats.rows, rows);
    WLM_FREED GET(char *, text, wlm_plan_explain(plan, 0, &text));
    assert_contains(text, "transpose=1");
    assert_null(strstr(text, "bytes beside the matrix"));
  }
}

/* For a matrix that is used once the rules choose the family that scatters; for one that is used often they do not, but
 * it is all that there is. A tuning of the matrix can choose it as well, and then the stats are those of op(A). */
TEST(a_chosen_variant) {
  wlm_problem problem = transposed();
  wlm_tune_options options = WLM_TUNE_OPTIONS_INIT;
  OWNED(wlm_matrix) *matrix = matrix_of(ROWS);
  GET(wlm_plan *, plan, wlm_plan_create(context, matrix, &problem, &plan));
  assert_int_equal(plan->reason.decision.step, WLMI_STEP_RULE);
  assert_int_equal(plan->reason.stats.rows, ROWS);
  expect_product(plan, ROWS);
  wlm_plan_destroy(plan);
  problem.policy.expected_calls = 2;
  assert_status(WLM_OK, wlm_plan_create(context, matrix, &problem, &plan));
  assert_contains(plan->reason.decision.rule, "of what does, this fits best");
  wlm_plan_destroy(plan);
  problem.policy.expected_calls = 1;
  assert_status(WLM_OK, wlm_tune(context, matrix, &problem, NULL, &options));
  assert_status(WLM_OK, wlm_plan_create(context, matrix, &problem, &plan));
  assert_string_equal(wlm_plan_variant(plan), "adds");
  assert_int_equal(plan->reason.decision.step, WLMI_STEP_FINGERPRINT);
  assert_int_equal(plan->reason.stats.rows, COLS);
  expect_product(plan, ROWS);
  wlm_plan_destroy(plan);
  problem.transpose = 0;
  assert_status(WLM_OK, wlm_plan_create(context, matrix, &problem, &plan));
  assert_string_equal(wlm_plan_variant(plan), "host_builtin");
  wlm_plan_destroy(plan);
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlm_plan_create_variant(context, matrix, &problem, "adds", &plan));
  assert_contains(wlm_error_detail(), "serves transposed products alone");
}

GROUP(begin, end)

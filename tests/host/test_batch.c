/* Batches on the host device: products of every kind in every layout, without a compiler, in parts where the workspace
 * is large, and what is refused. */
#include "support/bare_host.h"
#include "support/strided_check.h"
#include "support/test.h"
#include "warploom/warploom_tune.h"

TEST_BETWEEN(every_product_in_every_layout, bare_host_begin, bare_host_end) {
  static const int64_t widths[] = {16, 2};
  for (int p = 0; p < STRIDED_PRODUCTS; p++)
    for (int l = 0; l < STRIDED_LAYOUTS; l++)
      for (int w = 0; w < 2; w++)
        strided_check(bare_host, &strided_products[p], &strided_layouts[l], widths[w], l == 3,
                      (uint64_t)(100 * p + 10 * l + w) + 1);
}

/* Without a compiler the built-in kernel computes the products one by one. */
TEST(without_a_compiler) {
  setenv("WARPLOOM_CC", "/nonexistent/cc", 1);
  assert_int_equal(bare_host_begin(NULL), 0);
  for (int l = 3; l < 6; l++)
    strided_check(bare_host, &strided_products[0], &strided_layouts[l], 16, 0, (uint64_t)l + 81);
  bare_host_end(NULL);
  unsetenv("WARPLOOM_CC");
}

/* ---- bad input ------------------------------------------------------------------------------------------ */

enum { ROWS = 3, N = 4, BATCH = 5, LD = 6, WHOLE = (ROWS - 1) * LD + N };
static const int32_t rowptr[] = {0, 1, 2, 3}, colind[] = {0, 1, 2};
static float values[BATCH * ROWS], b[4 * BATCH * ROWS * LD], c[BATCH * ROWS * LD];

static wlm_csr matrix_of(void) {
  return (wlm_csr)CSR(.rows = ROWS, .cols = ROWS, .nnz = ROWS, .rowptr = rowptr, .colind = colind, .values = values);
}

static wlm_execute_args call_of(void) {
  return (wlm_execute_args)EXECUTE_ARGS(.b = b, .c = c, .ldc = LD, .b_stride = ROWS * N, .c_stride = ROWS * LD,
                                        .values_stride = ROWS);
}

static wlm_problem problem_of(void) { return (wlm_problem)PROBLEM(.n = N, .batch = BATCH); }

static void expect(const wlm_problem *problem, const wlm_execute_args *args, wlm_status status, const char *says) {
  const wlm_csr a = matrix_of();
  assert_status(status, wlm_spmm(bare_host, &a, problem, args));
  assert_contains(wlm_error_detail(), says);
}

TEST_BETWEEN(refuses_fields_of_the_problem, bare_host_begin, bare_host_end) {
  const wlm_execute_args args = call_of();
  wlm_problem p = problem_of();
  p.batch = -1;
  expect(&p, &args, WLM_ERR_INVALID_ARGUMENT, "wlm_problem.batch is -1");
  p = problem_of(), p.operation = WLM_ATTENTION;
  expect(&p, &args, WLM_ERR_UNSUPPORTED, "wlm_problem.batch is for WLM_SPMM, WLM_SDDMM and WLM_ARGMAX_GRADIENT");
  p.operation = WLM_MESSAGE, p.reduce = WLM_CUSTOM, p.custom = "sum=a*b";
  expect(&p, &args, WLM_ERR_UNSUPPORTED, "wlm_problem.batch is for WLM_SPMM, WLM_SDDMM and WLM_ARGMAX_GRADIENT");
}

TEST_BETWEEN(tuning_takes_one_product, bare_host_begin, bare_host_end) {
  const wlm_csr a = matrix_of();
  const wlm_problem p = problem_of();
  wlm_plan *plan;
  OWN(wlm_matrix, matrix, wlm_matrix_create(bare_host, &a, NULL, &matrix));
  assert_fails(WLM_ERR_UNSUPPORTED, wlm_tune(bare_host, matrix, &p, NULL, NULL), "wlm_problem.batch is 5: kernels are");
  assert_fails(WLM_ERR_UNSUPPORTED, wlm_plan_create_online(bare_host, matrix, &p, NULL, &plan),
               "wlm_problem.batch is 5: kernels are");
}

TEST_BETWEEN(refuses_strides, bare_host_begin, bare_host_end) {
  const wlm_problem p = problem_of();
  wlm_execute_args args = call_of();
  args.c_stride = 0;
  expect(&p, &args, WLM_ERR_INVALID_ARGUMENT, "c_stride is 0, with which the products of the batch overlap in c");
  args.c_stride = WHOLE - 1;
  expect(&p, &args, WLM_ERR_INVALID_ARGUMENT, "c_stride is 15");
  args.c_stride = 1; /* side by side, but not apart */
  expect(&p, &args, WLM_ERR_INVALID_ARGUMENT, "c_stride is 1");
  args = call_of(), args.b_stride = -1;
  expect(&p, &args, WLM_ERR_INVALID_ARGUMENT, "b_stride is -1");
  args = call_of(), args.values_stride = -1;
  expect(&p, &args, WLM_ERR_INVALID_ARGUMENT, "values_stride is -1");
  args = call_of(), args.c_stride = INT64_MAX / 8;
  expect(&p, &args, WLM_ERR_OVERFLOW, "c_stride is");
}

TEST_BETWEEN(refuses_strides_of_an_sddmm, bare_host_begin, bare_host_end) {
  static float dvalues[BATCH * ROWS];
  wlm_problem p = problem_of();
  p.operation = WLM_SDDMM;
  wlm_execute_args args = call_of();
  args.x = c, args.dvalues = dvalues, args.dvalues_stride = ROWS;
  expect(&p, &args, WLM_OK, "");
  args.dvalues_stride = 0;
  expect(&p, &args, WLM_ERR_INVALID_ARGUMENT,
         "dvalues_stride is 0, with which the products of the batch overlap in "
         "dvalues; it must be 3 or more");
  args.dvalues_stride = ROWS - 1;
  expect(&p, &args, WLM_ERR_INVALID_ARGUMENT, "dvalues_stride is 2");
  args.dvalues_stride = ROWS, args.dvalues = values + 1;
  expect(&p, &args, WLM_ERR_INVALID_ARGUMENT, "dvalues and values share memory");
}

TEST_BETWEEN(refuses_strides_of_gradients_by_argmax, bare_host_begin, bare_host_end) {
  static int32_t argmax[BATCH * ROWS * LD];
  static float db[BATCH * ROWS * N], dvalues[BATCH * ROWS];
  wlm_problem p = problem_of();
  p.reduce = WLM_MAX, p.want_argmax = 1;
  wlm_execute_args args = call_of();
  args.argmax = argmax;
  expect(&p, &args, WLM_OK, "");
  p.operation = WLM_ARGMAX_GRADIENT;
  args.x = c, args.argmax_db = db, args.argmax_dvalues = dvalues, args.dvalues_stride = ROWS;
  expect(&p, &args, WLM_OK, "");
  args.b_stride = 0;
  expect(&p, &args, WLM_ERR_INVALID_ARGUMENT,
         "b_stride is 0, with which the products of the batch overlap in argmax_db");
  args.argmax_db = NULL; /* all products read the same B, and only values have a gradient */
  expect(&p, &args, WLM_OK, "");
  args.dvalues_stride = 0;
  expect(&p, &args, WLM_ERR_INVALID_ARGUMENT, "dvalues_stride is 0, with which the products of the batch overlap");
}

TEST_BETWEEN(refuses_shared_memory, bare_host_begin, bare_host_end) {
  const wlm_problem p = problem_of();
  wlm_execute_args args = call_of();
  args.c = b + 4 * ROWS * N + 1; /* the last product of B */
  expect(&p, &args, WLM_ERR_INVALID_ARGUMENT, "c and b share memory");
  args = call_of(), args.values = c + (BATCH - 1) * ROWS * LD;
  expect(&p, &args, WLM_ERR_INVALID_ARGUMENT, "c and values share memory");
  args = call_of(), args.values = c - (BATCH - 1) * ROWS; /* those of the last product end in C */
  expect(&p, &args, WLM_ERR_INVALID_ARGUMENT, "c and values share memory");
}

TEST_BETWEEN(serves_what_is_apart, bare_host_begin, bare_host_end) {
  const wlm_csr a = matrix_of();
  wlm_problem p = problem_of();
  wlm_execute_args args = call_of();
  p.batch = 2;
  args.c_stride = WHOLE; /* without a gap */
  assert_status(WLM_OK, wlm_spmm(bare_host, &a, &p, &args));
  args.c = b + N, args.ldb = args.ldc = 2 * N,
  args.b_stride = args.c_stride = 6 * N; /* lines of C between those of B */
  assert_status(WLM_OK, wlm_spmm(bare_host, &a, &p, &args));
  args = call_of(), args.c = b + ROWS * N, args.b_stride = args.c_stride = 2 * ROWS * N, args.ldc = N; /* in turns */
  assert_status(WLM_OK, wlm_spmm(bare_host, &a, &p, &args));
  p.batch = 0, args.c = NULL; /* no work */
  assert_status(WLM_OK, wlm_spmm(bare_host, &a, &p, &args));
  p.batch = 1, args = call_of(), args.b_stride = args.c_stride = args.values_stride = -1; /* not read */
  assert_status(WLM_OK, wlm_spmm(bare_host, &a, &p, &args));
}

/* The SDDMM through the public API on the host, as a training program uses it. */
#include "core/reference/gradient.h"
#include "support/bare_host.h"
#include "support/calls.h"
#include "support/test.h"

/* 4 x 5; row 1 is empty; row 2 has column 1 twice; no edge uses B's row 4. */
static const int32_t rowptr[] = {0, 2, 2, 5, 6}, colind[] = {0, 2, 3, 1, 1, 0};
static const float values[] = {1, 2, -1, 0.5f, 4, 3};
enum { ROWS = 4, COLS = 5, NNZ = 6, N = 19 };

static float dc[ROWS * N], b[COLS * N];

FIXTURE(begin) {
  wlm_csr csr = CSR(.rows = ROWS, .cols = COLS, .nnz = NNZ, .rowptr = rowptr, .colind = colind, .values = values);
  for (int i = 0; i < ROWS * N; i++) dc[i] = (float)(i * 5 % 11) - 4.5f;
  for (int i = 0; i < COLS * N; i++) b[i] = (float)(i * 3 % 7) - 2.5f;
  return bare_host_begin_with(&csr);
}

static wlm_problem gradient_of(wlm_message message, wlm_reduce reduce) {
  return (wlm_problem)PROBLEM(.operation = WLM_SDDMM, .n = N, .message = message, .reduce = reduce);
}

static double message_of(wlm_message message, double a, double y) {
  const double all[] = {a * y, y, a, a + y, y - a, a - y, y / a, a / y};
  return all[message];
}

/* dvalues[p] is the derivative of the loss sum(dC * C) by a_p: compared with finite differences of the messages. */
TEST(dvalues_are_derivatives) {
  for (int message = WLM_MUL; message <= WLM_RDIV; message++)
    for (int reduce = WLM_SUM; reduce <= WLM_MEAN; reduce++) {
      wlm_problem problem = gradient_of((wlm_message)message, (wlm_reduce)reduce);
      float got[NNZ];
      memset(got, 0xff, sizeof got); /* NaN: beta = 0 must not read it */
      GET(wlm_plan *, plan, wlm_plan_create(bare_host, bare_matrix, &problem, &plan));
      assert_status(WLM_OK, test_execute_sddmm(plan, dc, b, got, NULL));
      wlm_plan_destroy(plan);
      for (int row = 0; row < ROWS; row++)
        for (int p = rowptr[row]; p < rowptr[row + 1]; p++) {
          const double step = 1e-4, degree = reduce == WLM_MEAN ? rowptr[row + 1] - rowptr[row] : 1;
          double slope = 0;
          for (int j = 0; j < N; j++) {
            const double y = b[colind[p] * N + j], up = message_of((wlm_message)message, values[p] + step, y);
            slope += dc[row * N + j] * (up - message_of((wlm_message)message, values[p] - step, y)) / (2 * step);
          }
          if (!(fabs(got[p] - slope / degree) <= 1e-4 * (1 + fabs(slope))))
            fail_msg("%d.%d, edge %d: %g instead of %g", message, reduce, p, got[p], slope / degree);
        }
    }
}

TEST(alpha_beta_and_padding) {
  const wlm_problem problem = gradient_of(WLM_MUL, WLM_SUM);
  float padded[COLS * (N + 3)], wide[ROWS * (N + 2)], got[NNZ];
  double expected[NNZ], old[NNZ];
  float before[NNZ];
  wlmi_csr_host a = {.rows = ROWS, .cols = COLS, .nnz = NNZ};
  int64_t rowptr64[ROWS + 1];
  for (int i = 0; i <= ROWS; i++) rowptr64[i] = rowptr[i];
  a.rowptr = rowptr64;
  a.colind = (int32_t *)colind;
  a.values = (float *)values;
  for (int i = 0; i < COLS * (N + 3); i++) padded[i] = i % (N + 3) < N ? b[i / (N + 3) * N + i % (N + 3)] : NAN;
  for (int i = 0; i < ROWS * (N + 2); i++) wide[i] = i % (N + 2) < N ? dc[i / (N + 2) * N + i % (N + 2)] : NAN;
  for (int p = 0; p < NNZ; p++) got[p] = before[p] = (float)p;
  wlm_execute_args call =
      EXECUTE_ARGS(.ldb = N + 3, .ldc = N + 2, .alpha = -2, .beta = 0.5, .x = wide, .b = padded, .dvalues = before);
  assert_status(WLM_OK, wlmi_reference_edges(&a, &problem, &call, NULL, ROWS, a.rowptr,
                                             &(wlmi_reference_result){expected, old, NULL}));
  OWN(wlm_plan, plan,
      wlm_plan_create_variant(bare_host, bare_matrix, &problem, "sddmm_host/nonzeros=1024,ahead=4", &plan));
  assert_status(WLM_OK, test_execute_sddmm_call(plan, &call, wide, padded, got, NULL));
  for (int p = 0; p < NNZ; p++) assert_true(fabs(got[p] - expected[p]) <= 1e-5 * old[p]);
}

TEST(explained_and_verified) {
  wlm_problem problem = gradient_of(WLM_MUL, WLM_SUM);
  float got[NNZ];
  OWN(wlm_plan, plan, wlm_plan_create(bare_host, bare_matrix, &problem, &plan));
  WLM_FREED GET(char *, text, wlm_plan_explain(plan, 0, &text));
  assert_non_null(strstr(text, "operation=sddmm"));
  assert_int_equal(test_execute(plan, b, got, NULL), WLM_ERR_INVALID_ARGUMENT);
  assert_int_equal(test_execute_sddmm(plan, NULL, b, got, NULL), WLM_ERR_INVALID_ARGUMENT);
  assert_fails(WLM_ERR_INVALID_ARGUMENT, test_execute_sddmm(plan, dc, b, NULL, NULL), "dvalues");
  wlm_plan_destroy(plan);
  problem.operation = WLM_SPMM;
  assert_status(WLM_OK, wlm_plan_create(bare_host, bare_matrix, &problem, &plan));
  assert_int_equal(test_execute_sddmm(plan, dc, b, got, NULL), WLM_ERR_INVALID_ARGUMENT);
}

TEST(invalid_calls_are_refused) {
  static const struct {
    wlm_status status;
    const char *says;
  } cases[] = {{WLM_ERR_UNSUPPORTED, "reduce"},
               {WLM_ERR_UNSUPPORTED, "transpose"},
               {WLM_ERR_UNSUPPORTED, "sampling.norm with a mean"},
               {WLM_ERR_UNSUPPORTED, "epilogue"},
               {WLM_ERR_INVALID_ARGUMENT, "n is 0"}};
  wlm_plan *plan;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wlm_problem problem = gradient_of(WLM_MUL, i == 0 ? WLM_MAX : i == 2 ? WLM_MEAN : WLM_SUM);
    problem.transpose = i == 1;
    problem.sampling.sample = i == 2 ? WLM_SAMPLE_BUCKET : WLM_SAMPLE_NONE;
    problem.sampling.norm = i == 2 ? WLM_NORM_KEPT : WLM_NORM_NONE;
    problem.sampling.width = 8;
    problem.epilogue.activation = i == 3 ? "relu" : NULL;
    if (i == 4) problem.n = 0;
    assert_int_equal(wlm_plan_create(bare_host, bare_matrix, &problem, &plan), cases[i].status);
    if (!strstr(wlm_error_detail(), cases[i].says)) fail_msg("%s: %s", cases[i].says, wlm_error_detail());
  }
  wlm_problem problem = gradient_of(WLM_MUL, WLM_SUM);
  assert_int_equal(wlm_plan_create_variant(bare_host, bare_matrix, &problem, "host_row/rows=16,tile=32", &plan),
                   WLM_ERR_INVALID_ARGUMENT);
  problem.operation = WLM_SPMM;
  assert_int_equal(wlm_plan_create_variant(bare_host, bare_matrix, &problem, "sddmm_host/nonzeros=1024,ahead=4", &plan),
                   WLM_ERR_INVALID_ARGUMENT);
}

/* The square of the value or of B's element overflows in f32, but the gradient does not: -1e20 * 1e10 / 4e19^2. */
TEST(squares_may_overflow) {
  static const int32_t one_rowptr[] = {0, 1}, one_colind[] = {0};
  static const float large = 4e19f, small = 1e10f, x = 1e20f;
  const int32_t arg = 0;
  const float *const a[] = {&large, &small};
  for (int by_b = 0; by_b < 2; by_b++) {
    wlm_problem problem = gradient_of(by_b ? WLM_RDIV : WLM_DIV, WLM_SUM);
    float by_sddmm = 0, db = 0, dvalue = 0;
    wlm_csr csr = CSR(.rows = 1, .cols = 1, .nnz = 1, .rowptr = one_rowptr, .colind = one_colind, .values = a[by_b]);
    problem.n = 1;
    OWN(wlm_matrix, one, wlm_matrix_create(bare_host, &csr, NULL, &one));
    GET(wlm_plan *, plan, wlm_plan_create(bare_host, one, &problem, &plan));
    assert_status(WLM_OK, test_execute_sddmm(plan, &x, a[!by_b], &by_sddmm, NULL));
    if (!by_b) assert_true(fabs((double)by_sddmm + 6.25e-10) < 1e-15);
    wlm_plan_destroy(plan);
    problem.reduce = WLM_MAX;
    assert_status(WLM_OK, test_argmax_gradient(bare_host, one, &problem, &x, &arg, a[!by_b], &db, &dvalue));
    assert_true(fabs((double)(by_b ? db : dvalue) + 6.25e-10) < 1e-15);
  }
}

/* Divided by a denormal number, dC = 0 gives 0, and 1e-10 gives 1e30, though the reciprocal is out of range. With alpha
 * = 0 even a quotient out of range leaves beta * dvalues. */
TEST(reciprocals_may_overflow) {
  static const int32_t one_rowptr[] = {0, 1}, one_colind[] = {0};
  static const float denormal = 1e-40f, one = 1, all[] = {0, 1e-10f, 1};
  const int32_t arg = 0;
  for (int by_b = 0; by_b < 2; by_b++)
    for (int i = 0; i < 3; i++) {
      const float x = all[i], right = x / denormal; /* of div with its sign */
      const float *a = by_b ? &one : &denormal, *b = by_b ? &denormal : &one;
      wlm_problem problem = gradient_of(by_b ? WLM_RDIV : WLM_DIV, WLM_SUM);
      float got = 0, db = 0, dvalue = 0;
      wlm_csr csr = CSR(.rows = 1, .cols = 1, .nnz = 1, .rowptr = one_rowptr, .colind = one_colind, .values = a);
      problem.n = 1;
      OWN(wlm_matrix, matrix_of_one, wlm_matrix_create(bare_host, &csr, NULL, &matrix_of_one));
      GET(wlm_plan *, plan, wlm_plan_create(bare_host, matrix_of_one, &problem, &plan));
      assert_status(WLM_OK, test_execute_sddmm(plan, &x, b, &got, NULL));
      if (by_b || i == 0) assert_true(got == right);
      got = 3;
      wlm_execute_args call = EXECUTE_ARGS(.alpha = 0, .beta = 2);
      assert_status(WLM_OK, test_execute_sddmm_call(plan, &call, &x, b, &got, NULL));
      assert_true(got == 6);
      wlm_plan_destroy(plan);
      problem.reduce = WLM_MAX;
      assert_status(WLM_OK, test_argmax_gradient(bare_host, matrix_of_one, &problem, &x, &arg, b, &db, &dvalue));
      assert_true((by_b ? dvalue : db) == right);
    }
}

GROUP(begin, bare_host_end)

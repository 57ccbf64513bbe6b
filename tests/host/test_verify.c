/* A checked run that does not compare every row with float64: a second reference leads to errors in the others. */
#include "core/synth/input.h"
#include "support/command.h"
#include "support/test.h"
#include "support/verified.h"
#include "tuner/upload.h"

enum { N = 200, COLUMN = 5, ROWS = 6000 };
static const char input[] = "uniform:rows=6000,d=90"; /* 1.08e8 products: too many to compare all */

static wlm_context *context;
static wlmi_csr_host csr;
static wlmi_upload upload;

static int begin(void **state) {
  if (home_begin(state)) return 1;
  wlm_context_options options = CONTEXT_OPTIONS(.device = "host", .database = "", .system_database = "");
  if (wlm_context_create(&options, &context) != WLM_OK || wlmi_input_read(input, &csr) != WLM_OK) return 1;
  if (!csr.values) csr.values = wlmi_alloc((size_t)csr.nnz * sizeof *csr.values);
  for (int64_t p = 0; p < csr.nnz; p++) csr.values[p] = 0.5f + (float)(p * 37 % 101) / 100;
  return wlmi_upload_create(context, &csr, WLM_I32, &upload) != WLM_OK;
}

static int end(void **state) {
  wlmi_upload_release(&upload);
  wlmi_csr_host_release(&csr);
  wlm_context_destroy(context);
  return folder_end(state);
}

/* A product of the given problem, verified once. */
typedef struct product {
  wlmi_operands operands;
  wlmi_verifier *verifier;
  float *c;
  int64_t rows, ldc;
} product;

static void product_make(product *p, wlm_problem problem, const wlm_execute_args *call) {
  double error = -1;
  problem.n = N;
  assert_status(WLM_OK, wlmi_operands_create(context, upload.matrix, &problem, call, 1, &p->operands));
  assert_status(WLM_OK, wlmi_verifier_create(&p->operands, 1, &p->verifier));
  assert_in_range(wlmi_verifier_rows(p->verifier), 2000, 5000);
  GET(wlm_plan *, plan, wlm_plan_create(context, upload.matrix, &p->operands.spec.problem, &plan));
  assert_status(WLM_OK, verify_plan(&p->operands, p->verifier, plan, &error));
  assert_true(error >= 0 && error < 1e-5);
  wlm_plan_destroy(plan);
  p->c = p->operands.output[0].buffer.memory; /* of the host */
  p->rows = p->operands.a.rows;
  p->ldc = p->operands.call.ldc;
}

static void product_release(product *p) {
  wlmi_verifier_destroy(p->verifier);
  wlmi_operands_release(&p->operands);
}

/* The first row from `row` on that is not compared in every case: there only the second reference can tell. */
static int64_t unseen_row(product *p, int64_t row) {
  double error;
  for (; row < p->rows; row++) {
    float *element = p->c + row * p->ldc, old = *element;
    *element = NAN;
    int seen = wlmi_verify_result(p->verifier, &error) != WLM_OK && isinf(error) &&
               !strstr(wlm_error_detail(), "; 1 of 1 rows");
    *element = old;
    if (!seen) return row;
  }
  fail_msg("every row is compared");
  return -1;
}

static void assert_wrong(product *p, const char *what) {
  double error;
  if (wlmi_verify_result(p->verifier, &error) != WLM_ERR_MISMATCH) fail_msg("not seen: %s", what);
  assert_contains(wlm_error_detail(), "c: row ");
}

TEST(errors_beyond_the_rows_that_are_compared) {
  enum { MOVED = 4 };
  const wlm_problem problem = WLM_PROBLEM_INIT;
  float kept[N], *c[MOVED];
  MAKE(product, p, problem, NULL);
  for (int64_t i = 0, row = 1000; i < MOVED; i++, row++) {
    row = unseen_row(&p, row);
    c[i] = p.c + row * p.ldc;
  }
  c[0][COLUMN] += 0.5f;
  assert_wrong(&p, "one element");
  c[0][COLUMN] -= 0.5f;
  GET(double, error, wlmi_verify_result(p.verifier, &error));

  memcpy(kept, c[0], sizeof kept);
  memset(c[0], 0xFF, sizeof kept);
  assert_wrong(&p, "a row that was not written");
  memcpy(c[0], kept, sizeof kept);
  assert_status(WLM_OK, wlmi_verify_result(p.verifier, &error));
  for (int i = 0; i < MOVED; i++) memcpy(c[i], i + 1 < MOVED ? c[i + 1] : kept, sizeof kept);
  assert_wrong(&p, "rows that changed places");
}

/* The larger tolerance for other libraries: errors of a few tolerances pass, of many do not. */
TEST(baselines_have_a_larger_tolerance) {
  const wlm_problem problem = WLM_PROBLEM_INIT;
  double error;
  MAKE(product, p, problem, NULL);
  const int64_t rows[] = {0, unseen_row(&p, 1000)}; /* only the second reference leads to the second one */
  for (int i = 0; i < 2; i++) {
    float *element = p.c + rows[i] * p.ldc + COLUMN, right = *element, off = 1e-6f;
    for (; wlmi_verify_result(p.verifier, &error) == WLM_OK; off *= 2)
      *element = right + off; /* to 1 or 2 tolerances */
    wlmi_verifier_set_leeway(p.verifier, 16);
    assert_status(WLM_OK, wlmi_verify_result(p.verifier, &error));
    assert_status(WLM_OK, wlmi_verify_spots(p.verifier, &error));
    *element = right + 32 * off;
    assert_status(WLM_ERR_MISMATCH, wlmi_verify_result(p.verifier, &error));
    if (!i) assert_status(WLM_ERR_MISMATCH, wlmi_verify_spots(p.verifier, &error));
    *element = right;
    wlmi_verifier_set_leeway(p.verifier, 1);
    assert_status(WLM_OK, wlmi_verify_result(p.verifier, &error));
  }
}

/* Equal terms are rounded in one direction: 4096 times 0.1 b in f32 is off by far more than roundings that do not
 * conspire, and right all the same. Some edges that are missing from it are seen. */
TEST(repeated_edges) {
  enum { EDGES = 4096, MISSING = 8 }; /* of one place */
  HELD(wlmi_csr_host) repeated = {.rows = 1, .cols = 2, .nnz = EDGES};
  repeated.rowptr = wlmi_alloc_zero(2, sizeof *repeated.rowptr);
  repeated.colind = wlmi_alloc_zero(EDGES, sizeof *repeated.colind);
  repeated.values = wlmi_alloc(EDGES * sizeof *repeated.values);
  repeated.rowptr[1] = EDGES;
  for (int p = 0; p < EDGES; p++) {
    repeated.colind[p] = 1;
    repeated.values[p] = 0.1f;
  }
  wlm_problem problem = PROBLEM(.n = 1);
  HOLD(wlmi_upload, on_device, wlmi_upload_create(context, &repeated, WLM_I32, &on_device));
  HOLD(wlmi_operands, operands, wlmi_operands_create(context, on_device.matrix, &problem, NULL, 1, &operands));
  OWN(wlmi_verifier, verifier, wlmi_verifier_create(&operands, 1, &verifier));
  float *c = operands.output[0].buffer.memory, sum = 0;
  const float *b = operands.host.b;
  for (int p = 0; p < EDGES; p++) sum += repeated.values[p] * b[repeated.colind[p]];
  *c = sum;
  GET(double, error, wlmi_verify_result(verifier, &error));
  *c = sum - MISSING * repeated.values[0] * b[1];
  assert_status(WLM_ERR_MISMATCH, wlmi_verify_result(verifier, &error));
}

/* One element of 1.2 million is seen. */
TEST(operators) {
  static const struct {
    wlm_message message;
    wlm_reduce reduce;
    const char *custom, *activation;
    int bias, transpose;
    wlm_sample sample;
    double beta;
  } cases[] = {
      {.message = WLM_MUL, .reduce = WLM_SUM, .beta = -0.5},
      {.message = WLM_SUB, .reduce = WLM_MEAN},
      {.message = WLM_COPY_B, .reduce = WLM_SUM, .sample = WLM_SAMPLE_FASTRAND, .transpose = 1},
      {.message = WLM_ADD, .reduce = WLM_MAX, .beta = -0.5},
      {.message = WLM_MUL, .reduce = WLM_PROD},
      {.message = WLM_MUL, .reduce = WLM_SUM, .bias = 1, .sample = WLM_SAMPLE_BUCKET, .transpose = 1},
      {.message = WLM_RDIV, .reduce = WLM_SUM},
      {.message = WLM_MUL, .reduce = WLM_SUM, .activation = "max(x, 0)"},
      {.reduce = WLM_CUSTOM, .custom = "init=0;reduce=acc+x*x;combine=acc+x"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wlm_problem problem = PROBLEM(.message = cases[i].message, .reduce = cases[i].reduce, .custom = cases[i].custom,
                                  .epilogue.activation = cases[i].activation, .epilogue.bias = cases[i].bias,
                                  .transpose = cases[i].transpose, .sampling.sample = cases[i].sample,
                                  .sampling.width = cases[i].sample ? 16 : 0);
    wlm_execute_args call = EXECUTE_ARGS(.beta = cases[i].beta, .ldc = N + 1);
    MAKE(product, p, problem, &call);
    assert_int_equal(p.rows, ROWS);
    const int64_t row = unseen_row(&p, 3000);
    float *element = p.c + row * p.ldc + COLUMN, kept = *element;
    *element = 2 * kept + 1;
    assert_wrong(&p, cases[i].custom ? cases[i].custom : wlmi_message_name(cases[i].message));
    *element = kept;
    GET(double, error, wlmi_verify_result(p.verifier, &error));
  }
}

/* A position has no tolerance. */
TEST(positions_are_exact) {
  for (int transpose = 0; transpose < 2; transpose++) {
    wlm_problem problem = PROBLEM(.reduce = WLM_MIN, .want_argmax = 1, .transpose = transpose);
    wlm_execute_args call = EXECUTE_ARGS(.ldc = N + 3);
    MAKE(product, p, problem, &call);
    int32_t *arg = wlmi_operands_find(&p.operands, "argmax")->buffer.memory;
    arg[N] ^= 1; /* beyond the columns */
    GET(double, error, wlmi_verify_result(p.verifier, &error));
    arg[COLUMN] ^= 1;
    assert_fails(WLM_ERR_MISMATCH, wlmi_verify_result(p.verifier, &error), "argmax: [0,5] is ");
    assert_contains(wlm_error_detail(), "; 1 of ");
    assert_status(WLM_ERR_MISMATCH, wlmi_verify_spots(p.verifier, &error));
  }
}

/* Of div a value of 0 has an infinite gradient, which is right; and what is wrong is an edge, not a row. */
TEST(gradients_where_a_is_zero) {
  static const int64_t zeros[] = {0, 7, 100, 4000};
  float kept[4];
  for (int i = 0; i < 4; i++) kept[i] = csr.values[zeros[i]], csr.values[zeros[i]] = 0;
  for (int reduce = WLM_SUM; reduce <= WLM_MEAN; reduce++) {
    wlm_problem problem = PROBLEM(.operation = WLM_SDDMM, .message = WLM_DIV, .reduce = (wlm_reduce)reduce, .n = 8);
    HOLD(wlmi_upload, with_zeros, wlmi_upload_create(context, &csr, WLM_I32, &with_zeros));
    HOLD(wlmi_operands, operands, wlmi_operands_create(context, with_zeros.matrix, &problem, NULL, 1, &operands));
    OWN(wlmi_verifier, verifier, wlmi_verifier_create(&operands, 1, &verifier));
    OWN(wlm_plan, plan, wlm_plan_create(context, with_zeros.matrix, &problem, &plan));
    GET(double, error, verify_plan(&operands, verifier, plan, &error));
    float *dvalues = operands.output[0].buffer.memory;
    assert_true(isinf(dvalues[0]) && isfinite(dvalues[1]));
    dvalues[0] = -dvalues[0];
    assert_fails(WLM_ERR_MISMATCH, wlmi_verify_result(verifier, &error), "edge 0 differs");
    assert_contains(wlm_error_detail(), " edges are wrong");
  }
  for (int i = 0; i < 4; i++) csr.values[zeros[i]] = kept[i];
}

GROUP(begin, end)

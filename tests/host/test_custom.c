/* User-defined operators and the epilogue through the public API on the host device. */
#include "core/reference/reference.h"
#include "core/synth/input.h"
#include "runtime/context.h"
#include "runtime/host/compiler.h"
#include "support/calls.h"
#include "support/command.h"
#include "support/expressions.h"
#include "support/test.h"
#include "tuner/upload.h"
#include "warploom/warploom_tune.h"

/* ---- context, matrix and B ------------------------------------------------------------------------- */

enum { N = 13 };
static const char host_row[] = "host_row/rows=16,tile=16", host_nnz[] = "host_nnz/nonzeros=1024,tile=16";

typedef struct bench {
  wlm_context *context;
  wlmi_csr_host csr;
  wlmi_upload upload;
  float *b;
} bench;

static wlm_context *open_host(const char *database) {
  wlm_context_options options = BARE_OPTIONS(.device = "host", .database = database);
  GET(wlm_context *, context, wlm_context_create(&options, &context));
  return context;
}

static void bench_make(bench *b, const char *database, const char *input) {
  b->context = open_host(database);
  assert_status(WLM_OK, wlmi_input_read(input, &b->csr));
  assert_status(WLM_OK, wlmi_upload_create(b->context, &b->csr, WLM_I32, &b->upload));
  b->b = malloc((size_t)(b->csr.cols * N) * sizeof *b->b);
  assert_non_null(b->b);
  for (int64_t i = 0; i < b->csr.cols * N; i++) b->b[i] = (float)(i * 37 % 101 - 50) / 32;
}

static void bench_release(bench *b) {
  free(b->b);
  wlmi_upload_release(&b->upload);
  wlmi_csr_host_release(&b->csr);
  wlm_context_destroy(b->context);
}

static wlm_problem problem_of(const char *custom) {
  wlm_problem problem = PROBLEM(.n = N);
  if (custom) problem.reduce = WLM_CUSTOM;
  problem.custom = custom;
  return problem;
}

/* Runs the problem and returns C; free(). */
static float *run(const bench *b, const wlm_problem *problem, const char *variant) {
  OWNED(wlm_plan) *plan = NULL;
  assert_status(WLM_OK, variant ? wlm_plan_create_variant(b->context, b->upload.matrix, problem, variant, &plan)
                                : wlm_plan_create(b->context, b->upload.matrix, problem, &plan));
  float *c = malloc((size_t)(b->csr.rows * N) * sizeof *c);
  FREED void *workspace = malloc(wlm_plan_workspace_size(plan) + 1);
  assert_non_null(c);
  memset(c, 0xff, (size_t)(b->csr.rows * N) * sizeof *c);
  assert_status(WLM_OK, test_execute(plan, b->b, c, workspace));
  return c;
}

/* ---- user-defined operators that equal built-in ones ------------------------------------------------- */

TEST(same_bits_as_built_in) {
  static const struct {
    wlm_reduce reduce;
    const char *custom;
  } pairs[] = {
      {WLM_SUM, "message=a*b;init=0;reduce=acc+x;combine=reduce"},
      {WLM_SUM, "init=0;reduce=x+acc;combine=acc+x"},
      {WLM_MEAN, "message=b*a;init=0;reduce=acc+x;combine=reduce;finish=acc/degree"},
      {WLM_MAX, "init=-inf;reduce=x>acc||(x!=x&&acc==acc)?x:acc;combine=reduce"},
      {WLM_MIN, "init=inf;reduce=x<acc||x!=x?x:acc;combine=x<acc||x!=x?x:acc"},
      {WLM_PROD, "init=1;reduce=acc*x;combine=reduce"},
  };
  MAKE(bench, b, "", "twin:youtube,scale=0.005");
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
    for (int split = 0; split < 2; split++) {
      wlm_problem built_in = problem_of(NULL), own = problem_of(pairs[i].custom);
      built_in.reduce = pairs[i].reduce;
      built_in.empty = WLM_EMPTY_IDENTITY;
      FREED float *expected = run(&b, &built_in, split ? host_nnz : host_row),
                  *got = run(&b, &own, split ? host_nnz : host_row);
      if (memcmp(expected, got, (size_t)(b.csr.rows * N) * sizeof *got)) fail_msg("%s differs", pairs[i].custom);
    }
}

TEST(rows_are_not_split_without_combine) {
  const wlm_problem whole = problem_of("init=0;reduce=acc*0.5+x"),
                    split = problem_of("init=0;reduce=acc+x;combine=reduce");
  MAKE(bench, b, "", "twin:youtube,scale=0.005"); /* skewed, so the rules choose a family that splits rows */
  GET(wlm_plan *, plan, wlm_plan_create(b.context, b.upload.matrix, &split, &plan));
  assert_contains(wlm_plan_variant(plan), "host_nnz/");
  wlm_plan_destroy(plan);
  assert_status(WLM_OK, wlm_plan_create(b.context, b.upload.matrix, &whole, &plan));
  assert_contains(wlm_plan_variant(plan), "host_row/");
  wlm_plan_destroy(plan);
  assert_fails(WLM_ERR_INVALID_ARGUMENT, wlm_plan_create_variant(b.context, b.upload.matrix, &whole, host_nnz, &plan),
               "the operator has no combine");
  FREED float *c = run(&b, &whole, NULL);
  for (int64_t row = 0; row < b.csr.rows; row++) {
    double acc = 0;
    for (int64_t p = b.csr.rowptr[row]; p < b.csr.rowptr[row + 1]; p++)
      acc = acc * 0.5 + (b.csr.values ? (double)b.csr.values[p] : 1.0) * (double)b.b[b.csr.colind[p] * N + 5];
    if (!(fabs(c[row * N + 5] - acc) < 1e-4))
      fail_msg("row %lld: %g, not %g", (long long)row, (double)c[row * N + 5], acc);
  }
}

/* Every function of the expression language gives the same as C's function. */
TEST(every_function) {
  MAKE(bench, b, "", "uniform:rows=50,d=3");
  wlm_problem problem = problem_of(NULL);
  problem.epilogue.activation = expressions_all_functions(N).problem.epilogue.activation;
  const int64_t count = b.csr.rows * N;
  FREED double *expected = malloc((size_t)count * sizeof *expected);
  wlm_execute_args call = EXECUTE_ARGS(.b = b.b);
  const wlmi_reference_result reference = {expected, NULL, NULL};
  assert_status(WLM_OK, wlmi_reference_rows(&b.csr, &problem, &call, NULL, b.csr.rows, &reference));
  FREED float *c = run(&b, &problem, host_row);
  for (int64_t i = 0; i < count; i++) assert_true(fabs((double)c[i] - expected[i]) < 1e-4);
}

/* ---- the epilogue ------------------------------------------------------------------------------------ */

/* [ 1 0 2 ]
 * [ 0 0 0 ]
 * [ 0 3 0 ] */
static const int32_t small_rowptr[] = {0, 2, 2, 3}, small_colind[] = {0, 2, 1};
static const float small_values[] = {1, 2, 3}, small_b[] = {1, 10, 2, -20, 3, 30};

static wlm_csr small_csr(void) {
  return (wlm_csr)CSR(.rows = 3, .cols = 3, .nnz = 3, .rowptr = small_rowptr, .colind = small_colind,
                      .values = small_values);
}

TEST(epilogue_by_hand) {
  static const struct {
    double alpha, beta;
    int has_bias;
    const char *activation;
    float c[6];
  } cases[] = {
      {1, 0, 0, NULL, {7, 70, 0, 0, 6, -60}},
      {1, 0, 1, NULL, {5, 73, -2, 3, 4, -57}},
      {1, 0, 0, "relu", {7, 70, 0, 0, 6, 0}},
      {2, 0, 1, "relu", {12, 143, 0, 3, 10, 0}},
      {1, 0.5, 0, "relu", {9, 72, 2, 2, 8, 0}}, /* the activation is applied after beta * C */
      {-1, 0.5, 1, "leaky_relu(x,0.5)", {-3.5f, -32.5f, 0, 5, -3, 65}},
      {1, 0, 1, "x*x", {25, 5329, 4, 9, 16, 3249}},
  };
  const float bias[] = {-2, 3};
  OWNED(wlm_context) *context = open_host("");
  const wlm_csr csr = small_csr();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wlm_problem problem =
        PROBLEM(.n = 2, .epilogue.bias = cases[i].has_bias, .epilogue.activation = cases[i].activation);
    wlm_execute_args call =
        EXECUTE_ARGS(.alpha = cases[i].alpha, .beta = cases[i].beta, .bias = cases[i].has_bias ? bias : NULL);
    float c[6] = {4, 4, 4, 4, 4, 4};
    assert_status(WLM_OK, test_spmm_call(context, &csr, &problem, &call, small_b, c));
    for (int k = 0; k < 6; k++)
      if (c[k] != cases[i].c[k]) fail_msg("case %zu: C[%d] is %g, not %g", i, k, (double)c[k], (double)cases[i].c[k]);
  }
}

/* Numbers of an f64 operator may lie outside of float's range. */
TEST(numbers_of_f64) {
  const double a[] = {2}, b[] = {3};
  const int32_t rowptr[] = {0, 1}, colind[] = {0};
  double c[1];
  OWNED(wlm_context) *context = open_host("");
  wlm_csr csr =
      CSR(.rows = 1, .cols = 1, .nnz = 1, .rowptr = rowptr, .colind = colind, .values = a, .value_type = WLM_F64);
  wlm_problem problem =
      PROBLEM(.dense_type = WLM_F64, .n = 1, .reduce = WLM_CUSTOM, .custom = "init=-1e300;reduce=max(acc,x)*1e200");
  problem.epilogue.activation = "min(x,1e100)";
  assert_status(WLM_OK, test_spmm(context, &csr, &problem, b, c));
  assert_true(c[0] == 1e100);
  problem.epilogue.activation = NULL;
  assert_status(WLM_OK, test_spmm(context, &csr, &problem, b, c));
  assert_true(c[0] == 6e200);
}

/* ---- errors ----------------------------------------------------------------------------------------- */

TEST(invalid_operators_write_nothing) {
  static const struct {
    const char *custom, *activation, *says;
    wlm_reduce reduce;
  } cases[] = {
      {"init=0;reduce=acc+y", NULL, "op:reduce, column 5 of 'acc+y'", WLM_CUSTOM},
      {"init=0;reduce=acc+x\n#define x", NULL, "op:reduce, column 6", WLM_CUSTOM},
      {"init=0;reduce=acc+x;}int main(){", NULL, "is no part of an operator", WLM_CUSTOM},
      {"init=0;reduce=system(x)", NULL, "'system' is not known", WLM_CUSTOM},
      {"init=0;reduce=fmaxf(x)", NULL, "fmax takes 2 arguments, not 1", WLM_CUSTOM},
      {"init=0;reduce=acc=x", NULL, "'=' is not allowed", WLM_CUSTOM},
      {NULL, NULL, "custom is NULL", WLM_CUSTOM},
      {"init=0;reduce=acc+x", NULL, "reduce is not WLM_CUSTOM", WLM_SUM},
      {NULL, "relu(a)", "op:activation, column 6 of 'relu(a)'", WLM_SUM},
      {NULL, "", "op:activation, column 1", WLM_SUM},
      {"init=-1e39;reduce=fmax(acc,x)", NULL, "op:init: 1e+39 is beyond the range of float", WLM_CUSTOM},
      {NULL, "min(x,1e300)", "op:activation: 1e+300 is beyond the range of float", WLM_SUM},
  };
  OWNED(wlm_context) *context = open_host("");
  const wlm_csr csr = small_csr();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wlm_problem problem = PROBLEM(.n = 2, .reduce = cases[i].reduce, .custom = cases[i].custom,
                                  .epilogue.activation = cases[i].activation);
    float c[6] = {4, 4, 4, 4, 4, 4};
    assert_fails(WLM_ERR_INVALID_ARGUMENT, test_spmm(context, &csr, &problem, small_b, c), cases[i].says);
    for (int k = 0; k < 6; k++) assert_true(c[k] == 4);
  }
}

TEST(compiler_errors_have_their_position) {
  const wlmi_limits limits = {.target = WLMI_TARGET_HOST, .processors = 2};
  void *image;
  size_t size;
  OWN(wlmi_generator, generator, wlmi_generator_create(NULL, &generator));
  FREED char *broken = expressions_broken(generator, host_row, &limits);
  assert_fails(WLM_ERR_COMPILE, wlmi_host_compile(broken, &image, &size), "op:activation:1:");
}

/* "sigmoid" among the columns of a message calls libmvec, where gcc and glibc 2.35 can. */
TEST(messages_call_vector_forms) {
#if defined __x86_64__ && defined __GNUC__ && !defined __clang__ && defined __GLIBC__
#if __GLIBC_PREREQ(2, 35)
  const wlmi_limits limits = {.target = WLMI_TARGET_HOST, .processors = 2};
  wlm_csr csr = WLM_CSR_INIT;
  void *image;
  wlm_problem problem =
      PROBLEM(.n = 16, .operation = WLM_MESSAGE, .reduce = WLM_CUSTOM, .custom = "sum=sigmoid(x+k)*b");
  GET(wlmi_spec, spec, wlmi_spec_make(&problem, &csr, &spec));
  GET(wlmi_generator *, generator, wlmi_generator_create(NULL, &generator));
  HOLD(wlmi_program, program, wlmi_generator_emit(generator, host_row, &spec, &limits, &program));
  GET(size_t, size, wlmi_host_compile(program.source, &image, &size));
  assert_non_null(memmem(image, size, "v_expf", sizeof "v_expf" - 1));
  wlmi_free(image);
  wlmi_generator_destroy(generator);
  return;
#endif
#endif
  skip();
}

/* The built-in kernel supports neither operators nor epilogues, so it must not run such a problem. */
TEST(without_a_compiler) {
  const float bias[] = {1, 2};
  const wlm_csr csr = small_csr();
  setenv("WARPLOOM_CC", "/nonexistent/cc", 1);
  OWNED(wlm_context) *context = open_host("");
  for (int i = 0; i < 4; i++) {
    wlm_problem problem = PROBLEM(.n = 2);
    float c[6] = {4, 4, 4, 4, 4, 4};
    wlm_execute_args call = WLM_EXECUTE_ARGS_INIT;
    if (i == 1) problem.epilogue.bias = 1, call.bias = bias;
    if (i == 2) problem.epilogue.activation = "relu";
    if (i == 3) problem.reduce = WLM_CUSTOM, problem.custom = "init=0;reduce=acc+x";
    assert_status(i ? WLM_ERR_NO_COMPILER : WLM_OK, test_spmm_call(context, &csr, &problem, &call, small_b, c));
    assert_true(c[0] == (i ? 4 : 7));
  }
  unsetenv("WARPLOOM_CC");
}

/* ---- the store -------------------------------------------------------------------------------------- */

static void expect_step(const bench *b, const char *custom, const char *step) {
  const wlm_problem problem = problem_of(custom);
  char expected[64];
  snprintf(expected, sizeof expected, "\"step\":\"%s\"", step);
  OWN(wlm_plan, plan, wlm_plan_create(b->context, b->upload.matrix, &problem, &plan));
  WLM_FREED GET(char *, text, wlm_plan_explain(plan, 1, &text));
  assert_contains(text, expected);
  if (custom) assert_contains(text, "op=custom{message=");
}

TEST(tuned_operators_match_by_normal_form) {
  static const char written[] = "message = fmaxf(a*b, 0.0f); init=0; reduce = (acc + x); combine=reduce;",
                    normal[] = "message=fmax(a*b,0);init=0;reduce=acc+x;combine=reduce",
                    other[] = "message=fmax(a*b,1);init=0;reduce=acc+x;combine=reduce";
  wlm_tune_options options = TUNE_OPTIONS(.min_sample_seconds = 1e-5, .samples = 3, .budget_seconds = 0.05);
  char *exported, *again;
  const char *database = in_folder("tuned.db");
  MAKE(bench, b, database, "uniform:rows=400,d=6");
  const wlm_problem problem = problem_of(written);
  assert_status(WLM_OK, wlm_tune(b.context, b.upload.matrix, &problem, NULL, &options));
  expect_step(&b, written, "fingerprint");
  expect_step(&b, normal, "fingerprint");
  expect_step(&b, other, "rule");
  expect_step(&b, NULL, "rule");
  assert_status(WLM_OK, wlm_export_string(b.context, &exported));
  assert_contains(exported,
                  "\"problem\":\"op=custom{message=fmax(a*b,0);init=0;reduce=acc+x;combine=reduce},dense=f32");
  bench_release(&b);
  database = in_folder("imported.db");
  bench_make(&b, database, "uniform:rows=400,d=6");
  expect_step(&b, normal, "rule");
  assert_status(WLM_OK, wlm_import_string(b.context, exported, NULL));
  expect_step(&b, written, "fingerprint");
  expect_step(&b, other, "rule");
  assert_status(WLM_OK, wlm_export_string(b.context, &again));
  assert_string_equal(exported, again);
  wlm_string_free(exported);
  wlm_string_free(again);
}

GROUP(folder_begin, folder_end)

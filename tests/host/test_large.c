/* Sizes above 2^31 on the host, without needing the memory: rows of B and C are so far apart that their elements pass
 * 2^32, and a sampled problem reads few of more than 2^31 colind and values. Only address space is reserved
 * (MAP_NORESERVE); about ten MB of pages are touched. An offset that wraps reads a wrong element or unmapped memory. */
#include <sys/mman.h>

#include "core/csr/transpose.h"
#include "core/problem/element.h"
#include "core/problem/sampling.h"
#include "core/problem/spec.h"
#include "core/reference/gradient.h"
#include "core/reference/reference.h"
#include "support/argmax_gradient.h"
#include "support/bare_host.h"
#include "support/calls.h"
#include "support/shapes.h"
#include "support/test.h"
#include "tuner/tolerance.h"

/* Reserves zeroed memory; skips the test if the address space is too small. */
static void *addresses(int64_t count, size_t each) {
  const size_t size = (size_t)count * each;
  void *made = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) test_missing("addresses", "room for 50 GB of addresses", "mmap refused some of them");
  madvise(made, size, MADV_NOHUGEPAGE); /* without it each touched element takes a page of 2 MB */
  return made;
}

static void give_back(void *made, int64_t count, size_t each) { munmap(made, (size_t)count * each); }

static void *array(int64_t count, size_t each) {
  void *made = calloc((size_t)count + 1, each);
  assert_non_null(made);
  return made;
}

static int64_t index_at(const void *from, wlm_index type, int64_t i) {
  return type == WLM_I64 ? ((const int64_t *)from)[i] : ((const int32_t *)from)[i];
}

/* ---- rows far apart ------------------------------------------------------------------------------------------ */

enum { ROWS = 300, COLS = 270, N = 4, LONGEST = 1500 }; /* host_nnz splits the longest row */
/* C and B have more than 2^32 elements from the first to the last row */
static const int64_t apart = (1 << 24) + 1;

/* A call in which the rows of B and C are `apart` elements apart. */
static wlm_execute_args far_call(void) { return (wlm_execute_args)EXECUTE_ARGS(.ldb = apart, .ldc = apart); }

static const char built_in[] = "host_builtin"; /* the kernel that needs no compiler */

/* A matrix of ROWS x COLS, and its transpose as a matrix of its own; entry q of t is entry order[q] of a. */
typedef struct pair {
  wlmi_csr_host a, t;
  int64_t *order;
} pair;

static void pair_make(pair *p) {
  test_random random = {3};
  int64_t nnz = 0;
  p->a = (wlmi_csr_host){.rows = ROWS, .cols = COLS, .rowptr = array(ROWS + 1, sizeof(int64_t))};
  for (int row = 0; row < ROWS; row++)
    p->a.rowptr[row + 1] = nnz += row == ROWS - 2 ? LONGEST : row % 7 == 3 ? 0 : (int64_t)test_draw(&random, 6);
  p->a.nnz = nnz;
  p->a.colind = array(nnz, sizeof(int32_t));
  p->a.values = array(nnz, sizeof(float));
  for (int64_t e = 0; e < nnz; e++) {
    p->a.colind[e] = (int32_t)test_draw(&random, COLS);
    p->a.values[e] = test_draw_between(&random, 0.5f, 1.5f);
  }
  p->t = (wlmi_csr_host){
      COLS, ROWS, nnz, array(COLS + 1, sizeof(int64_t)), array(nnz, sizeof(int32_t)), array(nnz, sizeof(float)),
      NULL, NULL};
  p->order = array(nnz, sizeof *p->order);
  wlm_csr csr =
      CSR(.rows = ROWS, .cols = COLS, .nnz = nnz, .rowptr = p->a.rowptr, .rowptr_type = WLM_I64, .colind = p->a.colind);
  assert_status(WLM_OK, wlmi_transpose_pattern(&csr, p->t.rowptr, p->t.colind, p->order));
  for (int64_t q = 0; q < nnz; q++) p->t.values[q] = p->a.values[p->order[q]];
}

static void pair_release(pair *p) {
  wlmi_csr_host *both[] = {&p->a, &p->t};
  for (int i = 0; i < 2; i++) {
    free(both[i]->rowptr);
    free(both[i]->colind);
    free(both[i]->values);
  }
  free(p->order);
}

/* Rows x N elements in rows `apart`: random numbers for a seed other than 0, otherwise NaN. */
static void *dense(int64_t rows, wlm_type type, uint64_t seed) {
  test_random random = {seed};
  void *made = addresses(rows * apart, wlmi_type_size(type));
  for (int64_t row = 0; row < rows; row++)
    for (int j = 0; j < N; j++)
      if (seed)
        wlmi_element_put(type, made, row * apart + j, (double)test_draw_between(&random, -1, 1));
      else
        memset((char *)made + (size_t)(row * apart + j) * wlmi_type_size(type), 0xff, wlmi_type_size(type));
  return made;
}

static void dense_release(void *made, int64_t rows, wlm_type type) {
  give_back(made, rows * apart, wlmi_type_size(type));
}

typedef struct block {
  wlm_type type;
  int64_t ld, rows, n;
} block;

static void expect_close(const char *what, block of, const void *got, const double *expected, const double *scale,
                         const wlm_problem *problem) {
  const double error = wlmi_reference_error(of.type, got, of.ld, NULL, of.rows, of.n, expected, scale);
  if (!(error <= wlmi_tolerance(problem, LONGEST))) fail_msg("%s: max_rel_err %.3g", what, error);
}

typedef struct far_case {
  const char *variant;
  wlm_operation operation;
  wlm_reduce reduce;
  wlm_type type;
  int transpose, positions;
  wlm_index arg_type;
} far_case;

/* Checks the gradients by the argmax indices of the forward pass, which are already checked. */
static void check_backward(const pair *p, const wlm_matrix *matrix, const wlm_problem *problem, const void *dc,
                           const void *arg, const int64_t *dense_arg, const void *b) {
  const wlm_type type = wlmi_accumulator_type(problem->dense_type);
  const wlm_execute_args call = far_call();
  const int64_t rows = problem->transpose ? ROWS : COLS; /* rows of B */
  void *db = dense(rows, type, 0), *dvalues = array(p->a.nnz, wlmi_type_size(type));
  gradient_sums sums = {array(rows * N, sizeof(double)), array(rows * N, sizeof(double)),
                        array(p->a.nnz, sizeof(double)), array(p->a.nnz, sizeof(double))};
  argmax_gradient(&p->a, problem, &call, dc, dense_arg, b, &sums);
  assert_status(WLM_OK, test_argmax_gradient_call(bare_host, matrix, problem,
                                                  test_gradient_args(&call, dc, arg, b, db, dvalues)));
  expect_close("dB", (block){type, apart, rows, N}, db, sums.db, sums.db_scale, problem);
  expect_close("dvalues", (block){type, 1, p->a.nnz, 1}, dvalues, sums.dvalues, sums.dvalues_scale, problem);
  double *const all[] = {sums.db, sums.db_scale, sums.dvalues, sums.dvalues_scale};
  for (int i = 0; i < 4; i++) free(all[i]);
  free(dvalues);
  dense_release(db, rows, type);
}

/* `rows` and `b` are those of op(A). */
static void check_product(const pair *p, const wlm_matrix *matrix, const wlm_plan *plan, const wlm_problem *problem,
                          const void *b, int64_t rows, const char *variant) {
  const wlmi_csr_host *a = problem->transpose ? &p->t : &p->a;
  wlm_execute_args call = far_call();
  wlm_problem plain = *problem;
  plain.transpose = 0;
  const size_t each = wlmi_index_size(problem->argmax_type);
  void *c = dense(rows, problem->dense_type, 0), *arg = problem->want_argmax ? addresses(rows * apart, each) : NULL;
  FREED void *workspace = malloc(wlm_plan_workspace_size(plan) + 1);
  FREED double *expected = array(rows * N, sizeof *expected), *scale = array(rows * N, sizeof *scale);
  call.b = b;
  assert_status(WLM_OK,
                wlmi_reference_rows(a, &plain, &call, NULL, rows, &(wlmi_reference_result){expected, scale, NULL}));
  assert_status(WLM_OK, test_execute_argmax_call(plan, &call, b, c, arg, workspace));
  expect_close(variant, (block){problem->dense_type, apart, rows, N}, c, expected, scale, problem);
  if (arg) {
    FREED int64_t *places = array(rows * N, sizeof *places);
    assert_status(WLM_OK,
                  wlmi_reference_rows(a, &plain, &call, NULL, rows, &(wlmi_reference_result){NULL, NULL, places}));
    for (int64_t i = 0; i < rows * N; i++) {
      if (problem->transpose && places[i] >= 0) places[i] = p->order[places[i]];
      const int64_t got = index_at(arg, problem->argmax_type, i / N * apart + i % N);
      if (got != places[i]) fail_msg("%s: position %lld, not %lld", variant, (long long)got, (long long)places[i]);
    }
    check_backward(p, matrix, problem, c, arg, places, b);
    give_back(arg, rows * apart, each);
  }
  dense_release(c, rows, problem->dense_type);
}

static void check_edges(const pair *p, const wlm_plan *plan, const wlm_problem *problem, const void *b,
                        const char *variant) {
  wlm_execute_args call = far_call();
  void *dc = dense(ROWS, problem->dense_type, 11), *got = array(p->a.nnz, wlmi_type_size(problem->dense_type));
  FREED double *expected = array(p->a.nnz, sizeof *expected), *scale = array(p->a.nnz, sizeof *scale);
  const wlmi_reference_result reference = {expected, scale, NULL};
  call.x = dc;
  call.b = b;
  assert_status(WLM_OK, wlmi_reference_edges(&p->a, problem, &call, NULL, p->a.rows, p->a.rowptr, &reference));
  assert_status(WLM_OK, test_execute_sddmm_call(plan, &call, dc, b, got, NULL));
  expect_close(variant, (block){problem->dense_type, 1, p->a.nnz, 1}, got, expected, scale, problem);
  free(got);
  dense_release(dc, ROWS, problem->dense_type);
}

static void check_case(const pair *p, const far_case *f) {
  wlm_plan *plan;
  FREED double *wide = array(p->a.nnz, sizeof *wide); /* A's values are f64 for f64 and f32 otherwise */
  for (int64_t e = 0; e < p->a.nnz; e++) wide[e] = (double)p->a.values[e];
  wlm_problem problem = PROBLEM(.n = N, .operation = f->operation, .reduce = f->reduce, .dense_type = f->type,
                                .transpose = f->transpose, .want_argmax = f->positions, .argmax_type = f->arg_type);
  wlm_csr csr = CSR(.rows = ROWS, .cols = COLS, .nnz = p->a.nnz, .rowptr = p->a.rowptr, .rowptr_type = WLM_I64,
                    .colind = p->a.colind, .values = f->type == WLM_F64 ? (const void *)wide : p->a.values,
                    .value_type = f->type == WLM_F64 ? WLM_F64 : WLM_F32);
  void *b = dense(f->transpose ? ROWS : COLS, f->type, 7);
  GET(wlm_matrix *, matrix, wlm_matrix_create(bare_host, &csr, NULL, &matrix));
  if (!strcmp(f->variant, built_in)) {
    setenv("WARPLOOM_CC", "/nonexistent/cc", 1);
    assert_status(WLM_OK, wlm_plan_create(bare_host, matrix, &problem, &plan));
    unsetenv("WARPLOOM_CC");
    assert_string_equal(wlm_plan_variant(plan), built_in);
  } else {
    assert_status(WLM_OK, wlm_plan_create_variant(bare_host, matrix, &problem, f->variant, &plan));
  }
  if (f->operation == WLM_SDDMM)
    check_edges(p, plan, &problem, b, f->variant);
  else
    check_product(p, matrix, plan, &problem, b, f->transpose ? COLS : ROWS, f->variant);
  wlm_plan_destroy(plan);
  wlm_matrix_destroy(matrix);
  dense_release(b, f->transpose ? ROWS : COLS, f->type);
}

TEST(rows_far_apart) {
  static const char row[] = "host_row/rows=16,tile=16", nnz[] = "host_nnz/nonzeros=1024,tile=16",
                    edges[] = "sddmm_host/nonzeros=1024,ahead=4";
  static const far_case cases[] = {
      {row, WLM_SPMM, WLM_SUM, WLM_F32, 0, 0, WLM_I32},      {nnz, WLM_SPMM, WLM_SUM, WLM_F32, 1, 0, WLM_I32},
      {nnz, WLM_SPMM, WLM_MEAN, WLM_F16, 0, 0, WLM_I32},     {row, WLM_SPMM, WLM_MAX, WLM_F32, 1, 1, WLM_I64},
      {nnz, WLM_SPMM, WLM_MIN, WLM_F64, 0, 1, WLM_I32},      {edges, WLM_SDDMM, WLM_SUM, WLM_F32, 0, 0, WLM_I32},
      {edges, WLM_SDDMM, WLM_MEAN, WLM_BF16, 0, 0, WLM_I32}, {built_in, WLM_SPMM, WLM_SUM, WLM_F32, 0, 0, WLM_I32},
  };
  MAKE(pair, p);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_case(&p, &cases[i]);
}

/* ---- positions past 2^31 --------------------------------------------------------------------------------------- */

enum { HEADS = 2, S = 8, FEW = 90, LONG_ROWS = 6 };
static const int64_t past = (int64_t)1 << 31;

/* Writes only the elements that the sampled problem reads. */
static void fill_sampled(const wlmi_csr_host *a, const wlm_problem *p, uint64_t seed) {
  test_random random = {9};
  for (int64_t row = 0; row < a->rows; row++) {
    const int64_t begin = a->rowptr[row];
    const wlmi_row_sample sample = wlmi_row_sample_of(&p->sampling, seed, row, a->rowptr[row + 1] - begin);
    for (int64_t k = 0; k < sample.kept; k++) {
      const int64_t e = begin + wlmi_sample_position(&sample, k);
      a->colind[e] = (int32_t)test_draw(&random, FEW);
      for (int head = 0; head < HEADS; head++) a->values[e * HEADS + head] = test_draw_between(&random, 0.5f, 1.5f);
    }
  }
}

static void check_sampled(const wlmi_csr_host *a, const wlm_csr *csr, const float *b, wlm_problem problem,
                          uint64_t seed) {
  const int64_t count = a->rows * N;
  float c[LONG_ROWS * N], db[FEW * N];
  int64_t arg[LONG_ROWS * N], places[LONG_ROWS * N];
  double expected[LONG_ROWS * N], scale[LONG_ROWS * N], slopes[FEW * N] = {0}, sizes[FEW * N] = {0};
  problem.want_argmax = problem.reduce == WLM_MAX;
  problem.argmax_type = WLM_I64;
  wlm_execute_args call = EXECUTE_ARGS(.seed = seed);
  fill_sampled(a, &problem, seed);
  memset(c, 0xff, sizeof c);
  memset(arg, 0xff, sizeof arg);
  GET(wlm_matrix *, matrix, wlm_matrix_create(bare_host, csr, NULL, &matrix));
  GET(wlm_plan *, plan, wlm_plan_create(bare_host, matrix, &problem, &plan));
  call.b = b;
  assert_status(
      WLM_OK, wlmi_reference_rows(a, &problem, &call, NULL, a->rows, &(wlmi_reference_result){expected, scale, NULL}));
  assert_status(WLM_OK, test_execute_argmax_call(plan, &call, b, c, problem.want_argmax ? arg : NULL, NULL));
  expect_close(wlmi_sample_name(problem.sampling.sample), (block){WLM_F32, N, a->rows, N}, c, expected, scale,
               &problem);
  if (problem.want_argmax) {
    int64_t farthest = 0;
    assert_status(WLM_OK,
                  wlmi_reference_rows(a, &problem, &call, NULL, a->rows, &(wlmi_reference_result){NULL, NULL, places}));
    assert_memory_equal(arg, places, sizeof arg);
    for (int64_t i = 0; i < count; i++) {
      if (places[i] < 0) continue;
      const int64_t e = places[i];
      const double value = (double)a->values[e * HEADS + i % N / (N / HEADS)];
      slopes[a->colind[e] * N + i % N] += (double)c[i] * value;
      sizes[a->colind[e] * N + i % N] += (double)(c[i] < 0 ? -c[i] : c[i]) * value;
      if (e > farthest) farthest = e;
    }
    assert_true(farthest > past);
    assert_status(
        WLM_OK, test_argmax_gradient_call(bare_host, matrix, &problem, test_gradient_args(&call, c, arg, b, db, NULL)));
    expect_close("dB", (block){WLM_F32, N, FEW, N}, db, slopes, sizes, &problem);
  }
  wlm_plan_destroy(plan);
  wlm_matrix_destroy(matrix);
}

TEST(positions_past_32_bits) {
  static const int64_t degrees[LONG_ROWS] = {past + 7, 3, 0, past + 577 * 4, S, past / 2 + 1};
  static const struct {
    wlm_sample sample;
    uint64_t seed;
    wlm_reduce reduce;
  } cases[] = {{WLM_SAMPLE_BUCKET, 0, WLM_MAX},
               {WLM_SAMPLE_BUCKET, 77, WLM_SUM},
               {WLM_SAMPLE_FASTRAND, 5, WLM_MAX},
               {WLM_SAMPLE_FASTRAND_COPRIME, 123, WLM_SUM}};
  int64_t rowptr[LONG_ROWS + 1] = {0};
  float b[FEW * N];
  test_random random = {4};
  for (int row = 0; row < LONG_ROWS; row++) rowptr[row + 1] = rowptr[row] + degrees[row];
  for (int i = 0; i < FEW * N; i++) b[i] = test_draw_between(&random, -1, 1);
  const int64_t nnz = rowptr[LONG_ROWS];
  wlmi_csr_host a = {
      LONG_ROWS, FEW, nnz, rowptr, addresses(nnz, sizeof(int32_t)), addresses(nnz * HEADS, sizeof(float)), NULL, NULL};
  wlm_csr csr = CSR(.rows = LONG_ROWS, .cols = FEW, .nnz = nnz, .rowptr = rowptr, .rowptr_type = WLM_I64,
                    .colind = a.colind, .values = a.values);
  wlm_problem problem = PROBLEM(.n = N, .heads = HEADS, .sampling.width = S);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    problem.sampling.sample = cases[i].sample;
    problem.reduce = cases[i].reduce;
    check_sampled(&a, &csr, b, problem, cases[i].seed);
  }
  give_back(a.colind, nnz, sizeof(int32_t));
  give_back(a.values, nnz * HEADS, sizeof(float));
}

/* Index types that are too small for these sizes are refused. */
TEST(too_narrow_types_are_refused) {
  static const int64_t rowptr[] = {0, past};
  static const int32_t narrow[] = {0, INT32_MIN}, colind[1];
  wlm_stats stats = WLM_STATS_INIT; /* given stats, so that nothing is read */
  wlm_csr csr = CSR(.rows = 1, .cols = 1, .nnz = past, .rowptr = narrow, .colind = colind);
  OWNED(wlm_matrix) *matrix = NULL;
  OWNED(wlm_plan) *plan = NULL;
  stats.rows = stats.cols = 1;
  stats.nnz = stats.longest = past;
  stats.mean = (double)past;
  assert_fails(WLM_ERR_OVERFLOW, test_matrix_given(bare_host, &csr, &stats, &matrix), "use i64");
  csr.rowptr = rowptr;
  csr.rowptr_type = WLM_I64;
  assert_status(WLM_OK, test_matrix_given(bare_host, &csr, &stats, &matrix));
  wlm_problem problem = PROBLEM(.n = 1, .reduce = WLM_MAX, .want_argmax = 1);
  assert_fails(WLM_ERR_OVERFLOW, wlm_plan_create(bare_host, matrix, &problem, &plan), "argmax_type is i32");
  problem.want_argmax = 0;
  assert_status(WLM_OK, wlm_plan_create(bare_host, matrix, &problem, &plan));
  for (int i = 0; i < 2; i++) {
    const float any[1] = {0};
    _Alignas(16) float c[1];
    wlm_execute_args call = WLM_EXECUTE_ARGS_INIT;
    *(i ? &call.ldc : &call.ldb) = past;
    assert_fails(WLM_ERR_OVERFLOW, test_execute_call(plan, &call, any, c, c), "4 GiB");
  }
}

GROUP(bare_host_begin, bare_host_end)

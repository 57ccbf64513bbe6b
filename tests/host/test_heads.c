/* Several values per edge through the public API on the host. A head is a problem with one value per edge on its
 * columns of B and C, so results are compared with one call per head. */
#include "support/bare_host.h"
#include "support/calls.h"
#include "support/shapes.h"
#include "support/test.h"

enum { SHAPES = 6, MOST_HEADS = 8 }; /* five shapes with edges and one without */

/* A matrix with H values per edge, and H matrices with one value each. */
typedef struct fixture {
  wlmi_csr_host a;
  int64_t heads;
  float *values, *of_head[MOST_HEADS];
  wlm_matrix *all, *one[MOST_HEADS];
} fixture;

/* Multiples of 1/4, so that most results are exact. */
static void fill(float *to, int64_t count, test_random *random) {
  for (int64_t i = 0; i < count; i++) to[i] = (float)(1 + test_draw(random, 8)) / 4 * (test_draw(random, 2) ? 1 : -1);
}

static wlm_matrix *bind(const wlmi_csr_host *a, const float *values) {
  wlm_csr csr = CSR(.rows = a->rows, .cols = a->cols, .nnz = a->nnz, .rowptr = a->rowptr, .rowptr_type = WLM_I64,
                    .colind = a->colind, .values = values);
  GET(wlm_matrix *, matrix, wlm_matrix_create(bare_host, &csr, NULL, &matrix));
  return matrix;
}

static void split_values(const fixture *f) {
  for (int64_t i = 0; i < f->a.nnz * f->heads; i++) f->of_head[i % f->heads][i / f->heads] = f->values[i];
}

static void fixture_make(fixture *f, int shape, int64_t heads) {
  test_random random = {0x9E3779B97F4A7C15u + (uint64_t)(shape * 10 + heads)};
  *f = (fixture){.heads = heads};
  assert_status(WLM_OK, test_shape_make(shape, 64, 577, &random, &f->a));
  f->values = wlmi_alloc_zero((size_t)(f->a.nnz * heads) + 1, sizeof *f->values);
  fill(f->values, f->a.nnz * heads, &random);
  f->all = bind(&f->a, f->values);
  for (int64_t h = 0; h < heads; h++) f->of_head[h] = wlmi_alloc_zero((size_t)f->a.nnz + 1, sizeof **f->of_head);
  split_values(f);
  for (int64_t h = 0; h < heads; h++) f->one[h] = bind(&f->a, f->of_head[h]);
}

static void fixture_release(fixture *f) {
  wlm_matrix_destroy(f->all);
  wlmi_free(f->values);
  for (int64_t h = 0; h < f->heads; h++) {
    wlm_matrix_destroy(f->one[h]);
    wlmi_free(f->of_head[h]);
  }
  wlmi_csr_host_release(&f->a);
}

/* `ld` is the leading dimension of B and C; 0 = n. An SDDMM with heads writes the heads of an edge one after the
 * other; an SDDMM of one head writes a dense array. */
static void execute(const wlm_plan *plan, const wlm_problem *p, int64_t ld, const float *x, const float *b, float *c) {
  WLM_FREED void *workspace = wlmi_alloc(wlm_plan_workspace_size(plan) + 1);
  wlm_execute_args call = EXECUTE_ARGS(.ldb = ld, .ldc = ld);
  assert_status(WLM_OK, p->operation == WLM_SDDMM ? test_execute_sddmm_call(plan, &call, x, b, c, workspace)
                                                  : test_execute_call(plan, &call, b, c, workspace));
}

static void assert_close(float got, float expected, int64_t i) {
  if (isnan(expected) ? !isnan(got) : !(fabsf(got - expected) <= 1e-5f * (1 + fabsf(expected))))
    fail_msg("element %lld is %g, by itself %g", (long long)i, (double)got, (double)expected);
}

/* Compares `problem` (its n and heads are set) with one call per head. */
static void check(const fixture *f, wlm_problem problem, const char *variant) {
  const int sddmm = problem.operation == WLM_SDDMM;
  const int64_t n = problem.n, width = n / f->heads, b_rows = problem.transpose ? f->a.rows : f->a.cols;
  const int64_t rows = problem.transpose ? f->a.cols : f->a.rows, count = sddmm ? f->a.nnz * f->heads : rows * n;
  WLM_FREED float *b = wlmi_alloc((size_t)(b_rows * n + 1) * sizeof *b),
                  *x = wlmi_alloc((size_t)(rows * n + 1) * sizeof *x);
  WLM_FREED float *c = wlmi_alloc_zero((size_t)count + 1, sizeof *c),
                  *expected = wlmi_alloc_zero((size_t)count + 1, sizeof *c);
  test_random random = {(uint64_t)(n * 100 + f->heads)};
  wlm_plan *plan;
  fill(b, b_rows * n, &random);
  fill(x, rows * n, &random);
  assert_status(WLM_OK, variant ? wlm_plan_create_variant(bare_host, f->all, &problem, variant, &plan)
                                : wlm_plan_create(bare_host, f->all, &problem, &plan));
  execute(plan, &problem, n, x, b, c);
  wlm_plan_destroy(plan);
  problem.heads = 1;
  problem.n = width;
  for (int64_t h = 0; h < f->heads; h++) {
    WLM_FREED float *edges = wlmi_alloc_zero((size_t)f->a.nnz + 1, sizeof *edges);
    assert_status(WLM_OK, wlm_plan_create(bare_host, f->one[h], &problem, &plan));
    execute(plan, &problem, n, x + h * width, b + h * width, sddmm ? edges : expected + h * width);
    for (int64_t p = 0; sddmm && p < f->a.nnz; p++) expected[p * f->heads + h] = edges[p];
    wlm_plan_destroy(plan);
  }
  for (int64_t i = 0; i < count; i++) assert_close(c[i], expected[i], i);
}

static wlm_problem problem_of(int64_t heads, int64_t width) {
  return (wlm_problem)PROBLEM(.heads = heads, .n = heads * width);
}

/* Heads of one column, of an odd number, of as many as fit in registers, and of more; for every shape. Only two
 * operators of each size are compiled, one for every other shape. */
TEST(equals_one_call_per_head) {
  static const int64_t sizes[][2] = {{2, 1}, {3, 5}, {8, 8}, {2, 16}, {3, 40}, {8, 1}};
  static const char *const variants[] = {NULL, "host_row/rows=16,tile=32", "host_nnz/nonzeros=1024,tile=64"};
  for (int shape = 0; shape < SHAPES; shape++)
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      MAKE(fixture, f, shape, sizes[i][0]);
      wlm_problem problem = problem_of(sizes[i][0], sizes[i][1]);
      const char *variant = problem.n > 32 && problem.n < 128 ? variants[shape % 3] : NULL;
      problem.reduce = (wlm_reduce)(((int)i + shape % 2) % 4); /* sum, mean, max, min */
      problem.message = (wlm_message)(((int)i + 3 * (shape % 2)) % 8);
      check(&f, problem, variant);
      problem.transpose = 1;
      check(&f, problem, NULL);
      problem.transpose = 0;
      problem.operation = WLM_SDDMM;
      problem.reduce = (wlm_reduce)(shape % 2);
      check(&f, problem, NULL);
    }
}

TEST(sampling_and_user_operators) {
  MAKE(fixture, f, 1, 3);
  wlm_problem problem = problem_of(3, 10);
  problem.sampling.sample = WLM_SAMPLE_FASTRAND_COPRIME;
  problem.sampling.width = 32;
  problem.sampling.norm = WLM_NORM_UNBIASED;
  check(&f, problem, NULL);
  problem = problem_of(3, 7);
  problem.reduce = WLM_CUSTOM;
  problem.custom = "message=fmax(a*b,a);init=0;reduce=acc+x;combine=reduce;finish=acc/degree";
  check(&f, problem, NULL);
  problem.custom = "message=b*b;init=0;reduce=acc+x"; /* this operator does not read the values */
  check(&f, problem, NULL);
}

TEST(nan_stays_in_its_head) {
  MAKE(fixture, f, 0, 4);
  for (int64_t p = 0; p < f.a.nnz; p++) f.values[p * 4 + 2] = NAN;
  split_values(&f); /* copies the changed values to the matrices of one head */
  check(&f, problem_of(4, 3), NULL);
  check(&f, problem_of(4, 16), NULL);
}

/* For a pattern (no values) the number of heads changes nothing, and the problem key leaves it out. */
TEST(heads_of_a_pattern) {
  static const int32_t rowptr[] = {0, 2, 3}, colind[] = {1, 0, 1};
  const float b[] = {1, 2, 3, 4, 5, 6, 7, 8};
  float c[8], twice[12], x[8] = {1, 1, 2, 2, 3, 3, 4, 4};
  wlm_problem problem = problem_of(2, 2);
  wlm_csr csr = CSR(.rows = 2, .cols = 2, .nnz = 3, .rowptr = rowptr, .colind = colind);
  OWN(wlm_matrix, matrix, wlm_matrix_create(bare_host, &csr, NULL, &matrix));
  OWN(wlm_plan, plan, wlm_plan_create(bare_host, matrix, &problem, &plan));
  execute(plan, &problem, 0, NULL, b, c);
  assert_true(c[0] == 6 && c[3] == 12 && c[4] == 5 && c[7] == 8);
  WLM_FREED GET(char *, why, wlm_plan_explain(plan, 0, &why));
  assert_null(strstr(why, "heads"));
  wlm_string_free(why);
  wlm_plan_destroy(plan);
  problem.operation = WLM_SDDMM; /* an SDDMM has a gradient for each head even without values */
  assert_status(WLM_OK, wlm_plan_create(bare_host, matrix, &problem, &plan));
  execute(plan, &problem, 0, x, b, twice);
  assert_true(twice[0] == 5 + 6 && twice[1] == 2 * (7 + 8) && twice[4] == 3 * (5 + 6) && twice[5] == 4 * (7 + 8));
  assert_status(WLM_OK, wlm_plan_explain(plan, 0, &why));
  assert_non_null(strstr(why, "heads=2"));
}

TEST(invalid_heads_are_refused) {
  OWNED(wlm_plan) *plan = NULL;
  MAKE(fixture, f, 0, 2);
  wlm_problem problem = problem_of(2, 4);
  problem.n = 9;
  assert_fails(WLM_ERR_INVALID_ARGUMENT, wlm_plan_create(bare_host, f.all, &problem, &plan), "wlm_problem.heads is 2");
  problem.heads = 0;
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlm_plan_create(bare_host, f.all, &problem, &plan));
  problem.heads = 2;
  problem.n = 0; /* an empty product */
  assert_status(WLM_OK, wlm_plan_create(bare_host, f.all, &problem, &plan));
  assert_status(WLM_OK, test_execute(plan, NULL, NULL, NULL));
}

GROUP(bare_host_begin, bare_host_end)

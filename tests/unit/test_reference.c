/* The float64 reference against hand-computed values, and every message and reduction against an independent
 * evaluation. */
#include <float.h>

#include "core/base/random.h"
#include "core/reference/reference.h"
#include "support/test.h"

/* 4 x 3: row 0 = {2: 2, 0: -3}, row 1 empty, row 2 = {1: 4}, row 3 = {0: 1, 0: 5, 1: -2} */
static int64_t rowptr[] = {0, 2, 2, 3, 6};
static int32_t colind[] = {2, 0, 1, 0, 0, 1};
static float values[] = {2, -3, 4, 1, 5, -2};
static const wlmi_csr_host small = {4, 3, 6, rowptr, colind, values, NULL, NULL};
static const float small_b[] = {10, 7, 3}; /* 3 x 1 */

static const wlm_execute_args plain_call = WLM_EXECUTE_ARGS_INIT;

/* The call with these operands in the place of its own. */
static wlm_execute_args over(const wlm_execute_args *call, const float *b, const float *c_old) {
  wlm_execute_args with = *call;
  with.b = b;
  with.c = (float *)c_old;
  return with;
}

static wlm_status rows_of(const wlmi_csr_host *a, const wlm_problem *p, const wlm_execute_args *call,
                          const int64_t *ids, int64_t count, double *c, double *scale) {
  return wlmi_reference_rows(a, p, call, ids, count, &(wlmi_reference_result){c, scale, NULL});
}

static void run_small(const wlm_problem *p, const wlm_execute_args *call, const float *c_old, double c[4]) {
  const wlm_execute_args with = over(call, small_b, c_old);
  assert_status(WLM_OK, rows_of(&small, p, &with, NULL, 4, c, NULL));
}

TEST(by_hand) {
  static const struct {
    wlm_message message;
    wlm_reduce reduce;
    double c[4];
  } cases[] = {
      {WLM_MUL, WLM_SUM, {-24, 0, 28, 46}},
      {WLM_MUL, WLM_MEAN, {-12, 0, 28, 46.0 / 3}},
      {WLM_MUL, WLM_MAX, {6, 0, 28, 50}},
      {WLM_MUL, WLM_MIN, {-30, 0, 28, -14}},
      {WLM_MUL, WLM_PROD, {-180, 1, 28, -7000}},
      {WLM_COPY_B, WLM_SUM, {13, 0, 7, 27}},
      {WLM_COPY_A, WLM_SUM, {-1, 0, 4, 4}},
      {WLM_ADD, WLM_SUM, {12, 0, 11, 31}},
      {WLM_SUB, WLM_SUM, {14, 0, 3, 23}},
      {WLM_RSUB, WLM_SUM, {-14, 0, -3, -23}},
      {WLM_DIV, WLM_SUM, {1.5 - 10.0 / 3, 0, 1.75, 10 + 2 - 3.5}},
      {WLM_RDIV, WLM_SUM, {2.0 / 3 - 0.3, 0, 4.0 / 7, 0.1 + 0.5 - 2.0 / 7}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wlm_problem p = PROBLEM(.n = 1, .message = cases[i].message, .reduce = cases[i].reduce);
    double c[4];
    run_small(&p, &plain_call, NULL, c);
    for (int r = 0; r < 4; r++)
      if (!(fabs(c[r] - cases[i].c[r]) < 1e-13)) fail_msg("case %zu row %d: %g", i, r, c[r]);
  }
}

TEST(positions_by_hand) {
  static const struct {
    wlm_message message;
    wlm_reduce reduce;
    float b[3];
    int64_t arg[4];
  } cases[] = {
      {WLM_MUL, WLM_MAX, {10, 7, 3}, {0, -1, 2, 4}},
      {WLM_MUL, WLM_MIN, {10, 7, 3}, {1, -1, 2, 5}},
      {WLM_COPY_B, WLM_MAX, {1, 1, 1}, {0, -1, 2, 3}}, /* of equal values the first position */
      {WLM_COPY_B, WLM_MIN, {1, NAN, 1}, {0, -1, 2, 5}},
      {WLM_COPY_B, WLM_MAX, {-INFINITY, -INFINITY, -INFINITY}, {0, -1, 2, 3}},
      {WLM_COPY_B, WLM_MAX, {NAN, NAN, 5}, {1, -1, 2, 3}},
      {WLM_ADD, WLM_MAX, {1, 0x1p30f, 2}, {0, -1, 2, 5}},
      {WLM_ADD, WLM_MIN, {0x1p30f, 2, 0x1p30f}, {0, -1, 2, 5}}, /* equal in float, but not in double */
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wlm_problem p = PROBLEM(.n = 1, .message = cases[i].message, .reduce = cases[i].reduce);
    int64_t arg[4], last;
    const int64_t row = 3;
    const wlm_execute_args call = over(&plain_call, cases[i].b, NULL);
    const wlmi_reference_result all = {NULL, NULL, arg}, one = {NULL, NULL, &last};
    assert_status(WLM_OK, wlmi_reference_rows(&small, &p, &call, NULL, 4, &all));
    assert_status(WLM_OK, wlmi_reference_rows(&small, &p, &call, &row, 1, &one));
    assert_int_equal(last, arg[3]);
    for (int r = 0; r < 4; r++)
      if (arg[r] != cases[i].arg[r]) fail_msg("case %zu row %d: %d", i, r, (int)arg[r]);
  }
}

/* Two heads of two columns each. The second head has ten times the values of the first. */
TEST(heads_by_hand) {
  float two_values[12], b[12];
  const wlmi_csr_host a = {4, 3, 6, rowptr, colind, two_values, NULL, NULL};
  const double sums[4] = {-24, 0, 28, 46};
  const wlm_execute_args call = over(&plain_call, b, NULL);
  double c[16], scale[16];
  for (int i = 0; i < 6; i++) two_values[2 * i] = values[i], two_values[2 * i + 1] = 10 * values[i];
  for (int k = 0; k < 12; k++) b[k] = small_b[k / 4] * (k % 2 ? 1 : 2);
  wlm_problem p = PROBLEM(.n = 4, .heads = 2);
  assert_status(WLM_OK, rows_of(&a, &p, &call, NULL, 4, c, scale));
  for (int i = 0; i < 16; i++) assert_true(c[i] == sums[i / 4] * (i % 2 ? 1 : 2) * (i % 4 < 2 ? 1 : 10));
  assert_true(scale[0] == 2 * 36 && scale[3] == 10 * 36);
  p.reduce = WLM_CUSTOM;
  p.custom = "message=a-b;init=0;reduce=acc+x";
  assert_status(WLM_OK, rows_of(&a, &p, &call, NULL, 4, c, scale));
  assert_true(c[1] == -14 && c[0] == -1 - 26 && c[3] == -10 - 13 && c[2] == -10 - 26);
}

TEST(empty_rows_and_epilogue) {
  const float c_old[] = {1, 2, 3, 4}, poison[] = {NAN, NAN, NAN, NAN};
  double c[4];
  wlm_problem p = PROBLEM(.n = 1);
  wlm_execute_args call = EXECUTE_ARGS(.alpha = 2);
  run_small(&p, &call, poison, c); /* beta = 0 does not read C */
  assert_true(c[0] == -48 && c[1] == 0 && c[2] == 56 && c[3] == 92);
  call.beta = -1;
  run_small(&p, &call, c_old, c);
  assert_true(c[0] == -49 && c[1] == -2 && c[2] == 53 && c[3] == 88);
  p.reduce = WLM_PROD;
  run_small(&p, &call, c_old, c);
  assert_true(c[1] == 2 * 1 - 2);
  call.beta = 0;
  p.empty = WLM_EMPTY_IDENTITY;
  p.reduce = WLM_MAX;
  run_small(&p, &call, NULL, c);
  assert_true(c[1] == -INFINITY && c[0] == 12);
  p.reduce = WLM_MIN;
  run_small(&p, &call, NULL, c);
  assert_true(c[1] == INFINITY);
  p.reduce = WLM_SUM;
  run_small(&p, &call, NULL, c);
  assert_true(c[1] == 0);
}

TEST(not_a_number) {
  int64_t ptr[] = {0, 3};
  int32_t col[] = {0, 1, 2};
  float val[] = {1, 0, 1};
  const wlmi_csr_host a = {1, 4, 3, ptr, col, val, NULL, NULL};
  float b[] = {1, INFINITY, 3, NAN}; /* no edge uses row 3 */
  const wlm_execute_args call = over(&plain_call, b, NULL);
  double c;
  wlm_problem p = PROBLEM(.n = 1);
  for (int reduce = WLM_SUM; reduce <= WLM_PROD; reduce++) {
    p.reduce = (wlm_reduce)reduce;
    b[1] = INFINITY; /* 0 * Inf is NaN, which every reduction propagates */
    assert_status(WLM_OK, rows_of(&a, &p, &call, NULL, 1, &c, NULL));
    assert_true(isnan(c));
    b[1] = 5;
    assert_status(WLM_OK, rows_of(&a, &p, &call, NULL, 1, &c, NULL));
    assert_false(isnan(c));
  }
}

/* ---- random problems ---- */

enum { ROWS = 30, COLS = 50, LONGEST = 70, N = 131 };
static int64_t random_rowptr[ROWS + 1];
static int32_t random_colind[ROWS * LONGEST];
static float random_values[ROWS * LONGEST], dense[COLS * (N + 5)], old[ROWS * (N + 9)];

static float random_value(wlmi_random *random) { return (float)(wlmi_random_below(random, 4001) - 2000) / 1024.0f; }

static wlmi_csr_host random_problem(wlmi_random *random, int with_values) {
  for (int r = 0; r < ROWS; r++) {
    int64_t degree = r % 7 == 3 ? 0 : wlmi_random_below(random, r % 5 ? 9 : LONGEST);
    random_rowptr[r + 1] = random_rowptr[r] + degree;
  }
  for (int64_t i = 0; i < random_rowptr[ROWS]; i++) {
    random_colind[i] = (int32_t)wlmi_random_below(random, COLS);
    random_values[i] = random_value(random) + 3.0f; /* not 0, so that quotients are finite */
  }
  for (size_t i = 0; i < sizeof dense / sizeof *dense; i++) dense[i] = random_value(random) - 4.0f;
  for (size_t i = 0; i < sizeof old / sizeof *old; i++) old[i] = random_value(random);
  return (wlmi_csr_host){
      ROWS, COLS, random_rowptr[ROWS], random_rowptr, random_colind, with_values ? random_values : NULL, NULL, NULL};
}

static double message_of(wlm_message message, double a, double b) {
  const double all[] = {a * b, b, a, a + b, b - a, a - b, b / a, a / b};
  return all[message];
}

/* Computes one element edge by edge, in the order that the public header defines; *size is the denominator of its
 * error. */
static double element(const wlmi_csr_host *a, const wlm_problem *p, uint64_t seed, int64_t row, int64_t j, int64_t ldb,
                      double *size) {
  int64_t start = a->rowptr[row], d = a->rowptr[row + 1] - start, s = p->sampling.width;
  int sampled = p->sampling.sample != WLM_SAMPLE_NONE && d > s;
  int64_t kept = sampled ? s : d, stride = p->sampling.sample == WLM_SAMPLE_BUCKET ? 1 : 577;
  if (p->sampling.sample == WLM_SAMPLE_FASTRAND_COPRIME)
    for (int64_t t = 2; t <= d; t++)
      if (stride % t == 0 && d % t == 0) stride++, t = 1;
  uint64_t x = seed ^ ((uint64_t)row * UINT64_C(0x9E3779B97F4A7C15));
  x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
  x ^= x >> 31;
  int64_t shift = seed && d ? (int64_t)(x % (uint64_t)d) : 0;
  double sum = 0, prod = 1, max = -INFINITY, min = INFINITY, abs_sum = 0, abs_max = 0, abs_prod = 1;
  for (int64_t k = 0; k < kept; k++) {
    int64_t at = start + (sampled ? (k * stride + shift) % d : k);
    double m = message_of(p->message, a->values ? (double)a->values[at] : 1.0, (double)dense[a->colind[at] * ldb + j]);
    sum += m, prod *= m, abs_sum += fabs(m), abs_prod *= fabs(m);
    max = m > max ? m : max;
    min = m < min ? m : min;
    abs_max = fabs(m) > abs_max ? fabs(m) : abs_max;
  }
  if (kept == 0) max = min = 0;
  double mean = kept ? sum / (double)kept : 0, abs_mean = kept ? abs_sum / (double)kept : 0;
  const double result[] = {sum, mean, max, min, prod}, sizes[] = {abs_sum, abs_mean, abs_max, abs_max, abs_prod};
  double norm = 1;
  if (p->sampling.sample != WLM_SAMPLE_NONE && kept) {
    if (p->sampling.norm == WLM_NORM_KEPT) norm = 1.0 / (double)kept;
    if (p->sampling.norm == WLM_NORM_UNBIASED) norm = (double)d / (double)kept;
  }
  *size = sizes[p->reduce] * norm;
  return result[p->reduce] * norm;
}

static void close_to(double got, double expected, double size) {
  if (!(fabs(got - expected) <= 1e-12 * size + 1e-300)) fail_msg("got %.17g, expected %.17g", got, expected);
}

static void check_problem(wlmi_random *random, const wlm_problem *p, const wlm_execute_args *call, const int64_t *ids,
                          int64_t count) {
  wlmi_csr_host a = random_problem(random, (int)wlmi_random_below(random, 2));
  int64_t ldb = call->ldb ? call->ldb : p->n, ldc = call->ldc ? call->ldc : p->n;
  FREED double *c = malloc((size_t)(count * p->n) * sizeof *c), *scale = malloc((size_t)(count * p->n) * sizeof *scale);
  const wlm_execute_args with = over(call, dense, old);
  assert_status(WLM_OK, rows_of(&a, p, &with, ids, count, c, scale));
  for (int64_t i = 0; i < count; i++)
    for (int64_t j = 0; j < p->n; j++) {
      int64_t row = ids ? ids[i] : i;
      double size, expected = call->alpha * element(&a, p, call->seed, row, j, ldb, &size);
      double add = call->beta != 0 ? call->beta * (double)old[row * ldc + j] : 0;
      size = fabs(call->alpha) * size + fabs(add);
      close_to(c[i * p->n + j], expected + add, size);
      close_to(scale[i * p->n + j], size, size);
    }
}

TEST(every_operator) {
  wlmi_random random = wlmi_random_for(1, 0, 0);
  const int64_t ids[] = {29, 0, 3, 3, 17}, widths[] = {1, 3, 64, 65, N};
  for (int message = WLM_MUL; message <= WLM_RDIV; message++)
    for (int reduce = WLM_SUM; reduce <= WLM_PROD; reduce++)
      for (int i = 0; i < 5; i++) {
        wlm_problem p = PROBLEM(.message = (wlm_message)message, .reduce = (wlm_reduce)reduce, .n = widths[i]);
        wlm_execute_args call = WLM_EXECUTE_ARGS_INIT;
        if (i % 2) call.ldb = p.n + 5, call.ldc = p.n + 9;
        if (i > 1) call.alpha = -0.75, call.beta = 1.5;
        check_problem(&random, &p, &call, i == 3 ? ids : NULL, i == 3 ? 5 : ROWS);
      }
}

TEST(every_sampling) {
  wlmi_random random = wlmi_random_for(2, 0, 0);
  for (int sample = WLM_SAMPLE_NONE; sample <= WLM_SAMPLE_FASTRAND_COPRIME; sample++)
    for (int norm = WLM_NORM_NONE; norm <= WLM_NORM_UNBIASED; norm++)
      for (int i = 0; i < 6; i++) {
        wlm_problem p = PROBLEM(.n = 5, .sampling.sample = (wlm_sample)sample, .sampling.norm = (wlm_sample_norm)norm,
                                .sampling.width = i < 3 ? 8 : 32,
                                .reduce = norm == WLM_NORM_NONE && i % 3 == 2   ? WLM_MAX
                                          : norm == WLM_NORM_NONE && i % 3 == 1 ? WLM_MEAN
                                                                                : WLM_SUM);
        wlm_execute_args call = EXECUTE_ARGS(.seed = i % 3 ? (uint64_t)i * 77 : 0);
        check_problem(&random, &p, &call, NULL, ROWS);
      }
}

/* User-defined operators that equal built-in ones give the same values. Their error denominators are equal up to
 * rounding, and larger if a message cancels (a - b). */
TEST(users_operators) {
  static const char *const messages[] = {"a*b", "b", "a", "a+b", "b-a", "a-b", "b/a", "a/b"};
  static const char *const rest[] = {"init=0;reduce=acc+x", "init=0;reduce=acc+x;finish=acc/degree",
                                     "init=-inf;reduce=max(acc,x)", "init=inf;reduce=x<acc?x:acc",
                                     "init=1;reduce=acc*x"};
  enum { WIDTH = 65, COUNT = ROWS * WIDTH };
  static double expected[COUNT], scale[COUNT], got[COUNT], own_scale[COUNT];
  wlmi_random random = wlmi_random_for(3, 0, 0);
  for (int i = 0; i < 2 * 8 * 5; i++) {
    char custom[128];
    const int own_message = i % 2, message = i / 2 % 8, reduce = i / 16;
    wlmi_csr_host a = random_problem(&random, 1);
    wlm_problem p =
        PROBLEM(.n = WIDTH, .message = (wlm_message)message, .reduce = (wlm_reduce)reduce, .empty = WLM_EMPTY_IDENTITY);
    wlm_execute_args call = EXECUTE_ARGS(.alpha = -0.75, .b = dense);
    if (reduce == WLM_MAX) p.sampling.sample = WLM_SAMPLE_FASTRAND, p.sampling.width = 8;
    assert_status(WLM_OK, rows_of(&a, &p, &call, NULL, ROWS, expected, scale));
    snprintf(custom, sizeof custom, "message=%s;%s", messages[message], rest[reduce]);
    p.reduce = WLM_CUSTOM;
    p.custom = own_message ? custom : rest[reduce];
    assert_status(WLM_OK, rows_of(&a, &p, &call, NULL, ROWS, got, own_scale));
    for (int k = 0; k < COUNT; k++) {
      if (isinf(expected[k])) {
        assert_true(got[k] == expected[k]);
        continue;
      }
      close_to(got[k], expected[k], scale[k]);
      /* max and min have the denominator of the winning message, not of the largest one */
      const int winner = reduce == WLM_MAX || reduce == WLM_MIN;
      const double least = winner ? fabs(expected[k]) : scale[k], most = message == WLM_MUL ? scale[k] * 1.2 : INFINITY;
      if (!(own_scale[k] >= least * (1 - 1e-12) && (winner || own_scale[k] <= most)))
        fail_msg("%s: the scale is %g, not %g to %g", custom, own_scale[k], least, most);
    }
  }
}

TEST(users_epilogue) {
  const float bias[] = {-30};
  float c_old[] = {1, 2, 3, 4};
  double c[4], scale[4];
  wlm_problem p = PROBLEM(.n = 1, .epilogue.bias = 1);
  wlm_execute_args call = EXECUTE_ARGS(.beta = 2, .bias = bias, .b = small_b, .c = c_old);
  assert_status(WLM_OK, rows_of(&small, &p, &call, NULL, 4, c, scale));
  /* -24, 0, 28, 46 from the product, plus 2 C, minus 30 */
  assert_true(c[0] == -52 && c[1] == -26 && c[2] == 4 && c[3] == 24);
  assert_true(scale[0] == 36 + 2 + 30 && scale[1] == 34);
  p.epilogue.activation = "x<0?x/4:x+1";
  assert_status(WLM_OK, rows_of(&small, &p, &call, NULL, 4, c, scale));
  assert_true(c[0] == -13 && c[1] == -6.5 && c[2] == 5 && c[3] == 25);
}

/* ---- the error ---- */

static double error_of(float c, double reference, double scale) {
  return wlmi_reference_error(WLM_F32, &c, 1, NULL, 1, 1, &reference, &scale);
}

TEST(errors) {
  assert_true(error_of(1.0f, 1.0, 1.0) == 0.0);
  assert_true(error_of(1.5f, 1.0, 4.0) == 0.125);
  assert_true(error_of(0.5f, 0.0, 0.0) == 0.5);
  assert_true(error_of(NAN, (double)NAN, 1.0) == 0.0);
  assert_true(error_of(NAN, 1.0, 1.0) == INFINITY);
  assert_true(error_of(1.0f, (double)NAN, (double)NAN) == INFINITY);
  assert_true(error_of(INFINITY, INFINITY, INFINITY) == 0.0);
  assert_true(error_of(INFINITY, 1e39, 1e39) == 0.0); /* beyond the range of float */
  assert_true(error_of(INFINITY, -INFINITY, INFINITY) == INFINITY);
  assert_true(error_of(INFINITY, 1.0, 1.0) == INFINITY);
  assert_true(error_of(FLT_MAX, INFINITY, INFINITY) == INFINITY);
  assert_true(error_of(0.0f, 1e-60, 1e-60) < 1e-20); /* below the range of float */
}

TEST(error_picks_rows) {
  const float c[] = {1, 2, 99, 3, 4, 99, 5, 6, 99}; /* 3 x 2, ldc 3 */
  const int64_t ids[] = {2, 0};
  const double reference[] = {5, 6, 1, 2.5}, scale[] = {1, 1, 1, 2};
  assert_true(wlmi_reference_error(WLM_F32, c, 3, ids, 2, 2, reference, scale) == 0.25);
  assert_true(wlmi_reference_error(WLM_F32, c, 3, ids, 2, 2, reference, NULL) == 0.5);
  assert_true(wlmi_reference_error(WLM_F32, c, 3, NULL, 2, 2, reference, NULL) == 4.0);
  assert_true(wlmi_reference_error(WLM_F32, c, 3, NULL, 0, 2, reference, NULL) == 0.0);
}

/* The backward passes of sampled products: transpose and sddmm of the edges that the sample of the same seed keeps, by
 * plans and by wlm_spmm. Numbers are small integers, so sums are exact in any order. */
#include "bench/presample.h"
#include "core/base/random.h"
#include "core/csr/shares.h"
#include "core/reference/gradient.h"
#include "support/argmax_gradient.h"
#include "support/bare_host.h"
#include "support/calls.h"
#include "support/test.h"

/* Row 1 has 2 * 577 edges, of which published fastrand takes two repeatedly; row 4 is empty. */
enum { ROWS = 6, COLS = 90, NNZ = 8 + 1154 + 40 + 9 + 0 + 600, N = 5, WIDTH = 8 };

static const int32_t rowptr[ROWS + 1] = {0, 8, 1162, 1202, 1211, 1211, NNZ};
static int64_t rowptr64[ROWS + 1];
static int32_t colind[NNZ];
static float values[NNZ], b[COLS * N], dc[ROWS * N];
static wlmi_csr_host a = {
    .rows = ROWS, .cols = COLS, .nnz = NNZ, .rowptr = rowptr64, .colind = colind, .values = values};
static wlm_csr csr = CSR(.rows = ROWS, .cols = COLS, .nnz = NNZ, .rowptr = rowptr, .colind = colind, .values = values);

static float small(uint64_t seed, int64_t i) { return (float)(wlmi_mix(seed * 1000000 + (uint64_t)i) % 13) - 6; }

FIXTURE(begin) {
  for (int i = 0; i <= ROWS; i++) rowptr64[i] = rowptr[i];
  for (int p = 0; p < NNZ; p++) {
    colind[p] = (int32_t)(wlmi_mix((uint64_t)p) % COLS);
    values[p] = small(1, p);
  }
  for (int i = 0; i < COLS * N; i++) b[i] = small(2, i);
  for (int i = 0; i < ROWS * N; i++) dc[i] = small(3, i);
  return bare_host_begin_with(&csr);
}

static wlm_problem sampled(int sample) {
  return (wlm_problem)PROBLEM(.n = N, .sampling.sample = (wlm_sample)sample, .sampling.width = WIDTH);
}

static wlm_execute_args with_seed(uint64_t seed) { return (wlm_execute_args)EXECUTE_ARGS(.seed = seed); }

/* Computes by a plan or by wlm_spmm. */
static void run(const wlm_problem *problem, wlm_execute_args call, int planned) {
  if (!planned) {
    assert_status(WLM_OK, wlm_spmm(bare_host, &csr, problem, &call));
    return;
  }
  OWN(wlm_plan, plan, wlm_plan_create(bare_host, bare_matrix, problem, &plan));
  assert_status(WLM_OK, test_execute_args(plan, call));
}

static double dot(const float *x, const float *y, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; i++) sum += (double)x[i] * (double)y[i];
  return sum;
}

static void strategies(void (*each)(int sample, uint64_t seed, int planned)) {
  for (int sample = WLM_SAMPLE_BUCKET; sample <= WLM_SAMPLE_FASTRAND_COPRIME; sample++)
    for (uint64_t seed = 0; seed < 4; seed++)
      for (int planned = 0; planned < 2; planned++) each(sample, seed, planned);
}

/* <dC, S(A) B> = <S(A)^T dC, B> = <dvalues, values>. All numbers are exact, except for a factor per row by the norm. */
static void check_adjoint(int sample, uint64_t seed, int planned) {
  for (int norm = WLM_NORM_NONE; norm <= WLM_NORM_UNBIASED; norm++) {
    wlm_problem problem = sampled(sample);
    wlm_execute_args call = with_seed(seed);
    float c[ROWS * N], db[COLS * N], dvalues[NNZ];
    memset(db, 0xff, sizeof db);
    memset(dvalues, 0xff, sizeof dvalues);
    problem.sampling.norm = (wlm_sample_norm)norm;
    call.b = b;
    call.c = c;
    run(&problem, call, planned);
    problem.operation = WLM_SDDMM;
    call.x = dc;
    call.dvalues = dvalues;
    run(&problem, call, planned);
    problem.operation = WLM_SPMM;
    problem.transpose = 1;
    call.b = dc;
    call.c = db;
    run(&problem, call, planned);
    const double product = dot(dc, c, ROWS * N), close = norm == WLM_NORM_NONE ? 0 : 1e-4 * (1 + fabs(product));
    assert_true(fabs(dot(db, b, COLS * N) - product) <= close);
    assert_true(fabs(dot(dvalues, values, NNZ) - product) <= close);
  }
}

TEST(backward_is_the_adjoint) { strategies(check_adjoint); }

/* A matrix of the kept edges, with repeated edges repeated, gives the same transposed product without sampling, for
 * every reduction. */
static void check_presampled(int sample, uint64_t seed, int planned) {
  static const char squares[] = "message=a-b;init=1;reduce=acc+x*x;finish=acc*degree";
  wlm_csr kept_csr = csr;
  const wlm_problem forward = sampled(sample);
  HOLD(wlmi_csr_host, kept, wlmi_presample(&a, &forward, seed, &kept));
  kept_csr.rowptr = kept.rowptr;
  kept_csr.rowptr_type = WLM_I64;
  kept_csr.colind = kept.colind;
  kept_csr.values = kept.values;
  kept_csr.nnz = kept.nnz;
  for (int reduce = WLM_SUM; reduce <= WLM_CUSTOM; reduce++) {
    wlm_problem problem = forward, plain = WLM_PROBLEM_INIT;
    float db[COLS * N], expected[COLS * N];
    wlm_execute_args call = with_seed(seed);
    problem.reduce = (wlm_reduce)reduce;
    problem.message = reduce == WLM_PROD ? WLM_SUB : WLM_MUL;
    problem.empty = seed % 2 ? WLM_EMPTY_IDENTITY : WLM_EMPTY_ZERO;
    problem.custom = reduce == WLM_CUSTOM ? squares : NULL;
    problem.transpose = 1;
    plain = problem;
    plain.sampling = (wlm_sampling){WLM_SAMPLE_NONE, WLM_NORM_NONE, 0};
    call.b = dc;
    call.c = db;
    run(&problem, call, planned);
    assert_status(WLM_OK, test_spmm(bare_host, &kept_csr, &plain, dc, expected));
    for (int i = 0; i < COLS * N; i++)
      if (db[i] != expected[i])
        fail_msg("sample %d, seed %d, reduce %d: element %d is %g, not %g", sample, (int)seed, reduce, i, (double)db[i],
                 (double)expected[i]);
  }
}

TEST(equals_the_presampled_matrix) { strategies(check_presampled); }

/* A sampled mean divides by the edges that its row keeps, so its gradient is the transposed sum with WLM_NORM_KEPT. */
TEST(gradient_of_a_mean) {
  for (int sample = WLM_SAMPLE_BUCKET; sample <= WLM_SAMPLE_FASTRAND_COPRIME; sample++) {
    wlm_problem problem = sampled(sample);
    wlm_execute_args call = with_seed(5);
    float c[ROWS * N], db[COLS * N], dvalues[NNZ];
    problem.reduce = WLM_MEAN;
    call.b = b;
    call.c = c;
    run(&problem, call, 1);
    problem.operation = WLM_SDDMM;
    call.x = dc;
    call.dvalues = dvalues;
    run(&problem, call, 1);
    problem.operation = WLM_SPMM;
    problem.reduce = WLM_SUM;
    problem.sampling.norm = WLM_NORM_KEPT;
    problem.transpose = 1;
    call.b = dc;
    call.c = db;
    run(&problem, call, 1);
    const double product = dot(dc, c, ROWS * N);
    assert_true(fabs(dot(db, b, COLS * N) - product) <= 1e-4 * (1 + fabs(product)));
    assert_true(fabs(dot(dvalues, values, NNZ) - product) <= 1e-4 * (1 + fabs(product)));
  }
}

/* Edges that are left out are not read: rows of B that only they use are NaN. Their dvalues become beta times the
 * old value, and 0 if beta = 0, even if they were NaN. */
static void check_left_out(int sample, uint64_t seed, int planned) {
  wlm_problem problem = sampled(sample);
  wlmi_edge_share *shares;
  float padded[COLS * N], dvalues[NNZ], old[NNZ];
  double expected[NNZ];
  int left_out = 0;
  problem.operation = WLM_SDDMM;
  problem.message = WLM_DIV; /* edges left out get the value 0, where the derivative is infinite */
  for (int beta = 0; beta < 2; beta++) {
    wlm_execute_args call = with_seed(seed);
    assert_status(WLM_OK, wlmi_sample_shares(&a, &problem, seed, &shares));
    for (int i = 0; i < COLS * N; i++) padded[i] = NAN;
    for (int p = 0; p < NNZ; p++) {
      values[p] = shares[p].times ? (values[p] == 0 ? 1 : values[p]) : 0;
      for (int j = 0; j < N && shares[p].times; j++) padded[colind[p] * N + j] = b[colind[p] * N + j];
      dvalues[p] = old[p] = beta ? small(9, p) : NAN;
      left_out += !shares[p].times;
    }
    call.x = dc;
    call.b = padded;
    call.beta = beta;
    call.dvalues = dvalues;
    run(&problem, call, planned);
    call.dvalues = old;
    assert_status(WLM_OK, wlmi_reference_edges(&a, &problem, &call, NULL, a.rows, a.rowptr,
                                               &(wlmi_reference_result){expected, NULL, NULL}));
    for (int p = 0; p < NNZ; p++) {
      if (!shares[p].times) assert_true(dvalues[p] == (beta ? old[p] : 0.0f));
      if (!(fabs((double)dvalues[p] - expected[p]) <= 1e-4 * (1 + fabs(expected[p])))) fail_msg("edge %d", p);
    }
    wlmi_free(shares);
  }
  for (int p = 0; p < NNZ; p++) values[p] = small(1, p);
  assert_true(left_out > 2 * (NNZ - ROWS * 9) - 10);
}

TEST(edges_left_out_are_not_read) { strategies(check_left_out); }

/* Gradients of a sampled max by argmax indices, with and without transpose. */
TEST(gradients_by_argmax) {
  for (int transpose = 0; transpose < 2; transpose++) {
    wlm_problem problem = sampled(WLM_SAMPLE_FASTRAND);
    wlm_execute_args call = with_seed(3);
    static float c[COLS * N], db[COLS * N], dvalues[NNZ];
    static int32_t arg[COLS * N];
    static int64_t arg64[COLS * N];
    static double expected[COLS * N], expected_scale[COLS * N], of_edges[NNZ], of_edges_scale[NNZ];
    gradient_sums sums = {expected, expected_scale, of_edges, of_edges_scale};
    const float *in = transpose ? dc : b, *gradient = transpose ? b : dc;
    const int rows = transpose ? COLS : ROWS, cols = transpose ? ROWS : COLS;
    problem.reduce = WLM_MAX;
    problem.want_argmax = 1;
    problem.transpose = transpose;
    GET(wlm_plan *, plan, wlm_plan_create(bare_host, bare_matrix, &problem, &plan));
    assert_status(WLM_OK, test_execute_argmax_call(plan, &call, in, c, arg, NULL));
    for (int i = 0; i < rows * N; i++) arg64[i] = arg[i];
    assert_status(WLM_OK, test_argmax_gradient_call(bare_host, bare_matrix, &problem,
                                                    test_gradient_args(&call, gradient, arg, in, db, dvalues)));
    argmax_gradient(&a, &problem, &call, gradient, arg64, in, &sums);
    for (int i = 0; i < cols * N; i++) assert_true((double)db[i] == expected[i]);
    for (int p = 0; p < NNZ; p++) assert_true((double)dvalues[p] == of_edges[p]);
    wlm_plan_destroy(plan);
    /* Each argmax index is an edge that the sample takes, and its message is the element of C. */
    WLM_FREED GET(wlmi_edge_share *, shares, wlmi_sample_shares(&a, &problem, 3, &shares));
    for (int i = 0; i < rows * N; i++) {
      if (arg[i] < 0) continue;
      int row = 0;
      while (rowptr[row + 1] <= arg[i]) row++;
      const int k = transpose ? row : colind[arg[i]];
      assert_true(shares[arg[i]].times > 0);
      assert_true(c[i] == values[arg[i]] * in[k * N + i % N]);
    }
  }
}

GROUP(begin, bare_host_end)

/* One plan with a different sampling seed for each call. */
#include "core/reference/reference.h"
#include "support/bare_host.h"
#include "support/calls.h"
#include "support/test.h"

enum { ROWS = 4, COLS = 64, DEGREE = 40, NNZ = ROWS * DEGREE, N = 9, WIDTH = 8 };

static int32_t rowptr[ROWS + 1], colind[NNZ];
static int64_t rowptr64[ROWS + 1];
static float values[NNZ], b[COLS * N];
static wlmi_csr_host a = {
    .rows = ROWS, .cols = COLS, .nnz = NNZ, .rowptr = rowptr64, .colind = colind, .values = values};

FIXTURE(begin) {
  for (int i = 0; i <= ROWS; i++) rowptr64[i] = rowptr[i] = i * DEGREE;
  for (int p = 0; p < NNZ; p++) colind[p] = p * 7 % COLS, values[p] = (float)(p * 5 % 19) - 9;
  for (int i = 0; i < COLS * N; i++) b[i] = (float)(i * 13 % 31) - 15; /* sums are exact */
  wlm_csr csr = CSR(.rows = ROWS, .cols = COLS, .nnz = NNZ, .rowptr = rowptr, .colind = colind, .values = values);
  return bare_host_begin_with(&csr);
}

static wlm_problem sampled(wlm_sample sample) {
  return (wlm_problem)PROBLEM(.n = N, .sampling.sample = sample, .sampling.width = WIDTH);
}

static wlm_execute_args with_seed(uint64_t seed) { return (wlm_execute_args)EXECUTE_ARGS(.seed = seed); }

static int is_reference(const wlm_problem *problem, uint64_t seed, const float *c, const int32_t *arg) {
  wlm_execute_args call = with_seed(seed);
  double expected[ROWS * N];
  int64_t positions[ROWS * N];
  call.b = b;
  const wlmi_reference_result reference = {expected, NULL, arg ? positions : NULL};
  assert_status(WLM_OK, wlmi_reference_rows(&a, problem, &call, NULL, ROWS, &reference));
  for (int i = 0; i < ROWS * N; i++)
    if ((double)c[i] != expected[i] || (arg && arg[i] != positions[i])) return 0;
  return 1;
}

TEST(each_call_has_its_own_seed) {
  for (int sample = WLM_SAMPLE_BUCKET; sample <= WLM_SAMPLE_FASTRAND_COPRIME; sample++) {
    const wlm_problem problem = sampled((wlm_sample)sample);
    float c[ROWS * N];
    OWN(wlm_plan, plan, wlm_plan_create(bare_host, bare_matrix, &problem, &plan));
    for (uint64_t seed = 0; seed < 4; seed++) {
      const wlm_execute_args call = with_seed(seed);
      assert_status(WLM_OK, test_execute_call(plan, &call, b, c, NULL));
      assert_true(is_reference(&problem, seed, c, NULL));
      assert_false(is_reference(&problem, seed + 1, c, NULL));
    }
    /* without args.seed the seed of an earlier call is not used */
    assert_status(WLM_OK, test_execute(plan, b, c, NULL));
    assert_true(is_reference(&problem, 0, c, NULL));
  }
}

TEST(seeds_with_argmax) {
  wlm_problem problem = sampled(WLM_SAMPLE_FASTRAND);
  float c[ROWS * N];
  int32_t arg[ROWS * N];
  problem.reduce = WLM_MAX;
  problem.want_argmax = 1;
  OWN(wlm_plan, plan, wlm_plan_create(bare_host, bare_matrix, &problem, &plan));
  for (uint64_t seed = 0; seed < 4; seed++) {
    const wlm_execute_args call = with_seed(seed);
    assert_status(WLM_OK, test_execute_argmax_call(plan, &call, b, c, arg, NULL));
    assert_true(is_reference(&problem, seed, c, arg));
  }
  const wlm_execute_args call = with_seed(1);
  assert_status(WLM_ERR_INVALID_ARGUMENT, test_execute_call(plan, &call, b, c, NULL));
  assert_contains(wlm_error_detail(), "wlm_plan_execute: argmax is NULL");
}

/* Without sampling a seed changes nothing. */
TEST(seeds_without_sampling) {
  const wlm_problem problem = sampled(WLM_SAMPLE_NONE);
  const wlm_execute_args call = with_seed(1);
  float c[ROWS * N];
  OWN(wlm_plan, plan, wlm_plan_create(bare_host, bare_matrix, &problem, &plan));
  assert_status(WLM_OK, test_execute_call(plan, &call, b, c, NULL));
  assert_true(is_reference(&problem, 0, c, NULL));
}

GROUP(begin, bare_host_end)

/* A matrix sampled in advance: a hand-made example, and against the reference, which samples independently. */
#include "bench/presample.h"
#include "core/problem/sampling.h"
#include "core/reference/reference.h"
#include "core/synth/input.h"
#include "support/csr.h"
#include "support/test.h"

static wlm_problem sampled(wlm_sample strategy, int64_t width) {
  return (wlm_problem)PROBLEM(.n = 3, .sampling.sample = strategy, .sampling.width = width);
}

TEST(hand_made_example) {
  static int64_t rowptr[] = {0, 2, 2, 1156}; /* 1154 = 2 * 577: the published stride repeats two edges */
  static int32_t colind[1156] = {7, 5};
  for (int32_t p = 2; p < 1156; p++) colind[p] = p - 2;
  const wlmi_csr_host a = {.rows = 3, .cols = 2000, .nnz = 1156, .rowptr = rowptr, .colind = colind};
  const wlm_problem problem = sampled(WLM_SAMPLE_FASTRAND, 8);
  HOLD(wlmi_csr_host, kept, wlmi_presample(&a, &problem, 0, &kept));
  assert_csr(&kept);
  assert_int_equal(kept.nnz, 10);
  assert_int_equal(kept.rowptr[2], 2);
  assert_int_equal(kept.colind[0], 7);
  assert_int_equal(kept.colind[1], 5);
  for (int k = 0; k < 8; k++) assert_int_equal(kept.colind[2 + k], k % 2 ? 577 : 0);
  assert_null(kept.values);
}

/* Both matrices give the same sums, edge by edge in the same order. */
TEST(multiplies_as_sampling_does) {
  static const wlm_sample strategies[] = {WLM_SAMPLE_NONE, WLM_SAMPLE_BUCKET, WLM_SAMPLE_FASTRAND,
                                          WLM_SAMPLE_FASTRAND_COPRIME};
  HOLD(wlmi_csr_host, a, wlmi_input_read("twin:arxiv,scale=0.02", &a));
  FREED float *b = malloc((size_t)a.cols * 3 * sizeof *b);
  FREED double *expected = malloc((size_t)a.rows * 3 * sizeof *expected);
  FREED double *got = malloc((size_t)a.rows * 3 * sizeof *got);
  assert_true(a.values && b && expected && got); /* each edge has a different value */
  for (int64_t i = 0; i < a.cols * 3; i++) b[i] = (float)(wlmi_sample_hash(2, i) >> 50) * 0x1p-14f - 0.5f;
  for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++)
    for (uint64_t seed = 0; seed < 2; seed++) {
      const wlm_problem problem = sampled(strategies[i], 16), exact = sampled(WLM_SAMPLE_NONE, 0);
      wlm_execute_args call = EXECUTE_ARGS(.seed = seed);
      HOLD(wlmi_csr_host, kept, wlmi_presample(&a, &problem, seed, &kept));
      assert_csr(&kept);
      assert_true(strategies[i] == WLM_SAMPLE_NONE ? kept.nnz == a.nnz : kept.nnz < a.nnz);
      const wlmi_reference_result of_a = {expected, NULL, NULL}, of_kept = {got, NULL, NULL};
      call.b = b;
      assert_int_equal(wlmi_reference_rows(&a, &problem, &call, NULL, a.rows, &of_a), WLM_OK);
      call.seed = 0;
      assert_int_equal(wlmi_reference_rows(&kept, &exact, &call, NULL, a.rows, &of_kept), WLM_OK);
      for (int64_t j = 0; j < a.rows * 3; j++) assert_true(got[j] == expected[j]);
    }
}

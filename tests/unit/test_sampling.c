/* Edge sampling: hand-computed positions, and the properties that the header promises. */
#include "core/problem/sampling.h"
#include "support/test.h"

/* Compiles the functions with which emitted kernels look up an edge. */
#define WLM_FN static __attribute__((unused))
#include "templates/prelude/sampling.h"

/* Of a row that is longer than any width. */
static wlmi_row_sample sample_of(wlm_sample strategy, int64_t degree, uint64_t seed, int64_t row) {
  return wlmi_row_sample_of(&(wlm_sampling){.sample = strategy}, seed, row, degree);
}

static int64_t position(wlm_sample strategy, int64_t degree, int64_t k, uint64_t seed, int64_t row) {
  const wlmi_row_sample sample = sample_of(strategy, degree, seed, row);
  return wlmi_sample_position(&sample, k);
}

TEST(positions_equal_the_published_ones) {
  for (int64_t k = 0; k < 64; k++) {
    assert_int_equal(position(WLM_SAMPLE_BUCKET, 100, k, 0, 5), k);
    assert_int_equal(position(WLM_SAMPLE_FASTRAND, 100, k, 0, 5), 577 * k % 100);
    /* published fastrand repeats edges */
    assert_int_equal(position(WLM_SAMPLE_FASTRAND, 1154, k, 0, 5), k % 2 ? 577 : 0);
  }
}

TEST(short_rows_are_not_sampled) {
  assert_int_equal(wlmi_sample_kept(WLM_SAMPLE_BUCKET, 7, 8), 7);
  assert_int_equal(wlmi_sample_kept(WLM_SAMPLE_BUCKET, 8, 8), 8);
  assert_int_equal(wlmi_sample_kept(WLM_SAMPLE_FASTRAND, 9, 8), 8);
  assert_int_equal(wlmi_sample_kept(WLM_SAMPLE_NONE, 900, 0), 900);
  assert_int_equal(position(WLM_SAMPLE_NONE, 900, 17, 1, 0), 17);
}

TEST(coprime_strides_never_repeat) {
  static const int64_t degrees[] = {1, 2, 9, 100, 576, 577, 578, 1154, 2310, 4616, 4999};
  static char seen[5000];
  assert_int_equal(sample_of(WLM_SAMPLE_FASTRAND_COPRIME, 100, 0, 0).stride, 577);
  assert_int_equal(sample_of(WLM_SAMPLE_FASTRAND_COPRIME, 577, 0, 0).stride, 578);
  assert_int_equal(sample_of(WLM_SAMPLE_FASTRAND_COPRIME, 1154, 0, 0).stride, 579);
  for (size_t i = 0; i < sizeof degrees / sizeof *degrees; i++) {
    int64_t degree = degrees[i];
    for (int64_t k = 0; k < degree; k++) seen[k] = 0;
    for (int64_t k = 0; k < degree; k++) {
      int64_t p = position(WLM_SAMPLE_FASTRAND_COPRIME, degree, k, 9, degree);
      assert_in_range(p, 0, degree - 1);
      assert_false(seen[p]++);
    }
  }
}

/* Computed independently from the definition in the header. */
TEST(hash_is_pinned) {
  assert_true(wlmi_sample_hash(1, 0) == UINT64_C(0x5692161D100B05E5));
  assert_true(wlmi_sample_hash(0, 1) == UINT64_C(0xE220A8397B1DCDAF)); /* splitmix64's first output from seed 0 */
  assert_true(wlmi_sample_hash(42, 1000000) == UINT64_C(0xDC36F32F5F0C7D01));
}

TEST(seeds_shift) {
  int64_t shift = sample_of(WLM_SAMPLE_BUCKET, 1000, 7, 3).shift;
  assert_int_equal(shift, (int64_t)(wlmi_sample_hash(7, 3) % 1000));
  assert_int_equal(sample_of(WLM_SAMPLE_BUCKET, 1000, 0, 3).shift, 0);
  assert_int_equal(sample_of(WLM_SAMPLE_BUCKET, 0, 7, 3).shift, 0);
  for (int64_t k = 0; k < 32; k++) {
    assert_int_equal(position(WLM_SAMPLE_BUCKET, 1000, k, 7, 3), (k + shift) % 1000);
    assert_int_equal(position(WLM_SAMPLE_FASTRAND, 1000, k, 7, 3), (577 * k + shift) % 1000);
  }
}

/* Compares the number of times that kernels compute for each edge with a count of the sampled positions. */
TEST(kernels_compute_the_repetitions) {
  static const int64_t widths[] = {8, 9, 100, 577, 700, 2304};
  static int taken[8 * 577 + 1];
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
    for (int64_t degree = widths[i] + 1; degree <= 8 * 577; degree += degree % 577 && degree % 7 ? 7 - degree % 7 : 1)
      for (int sample = WLM_SAMPLE_BUCKET; sample <= WLM_SAMPLE_FASTRAND_COPRIME; sample++) {
        const int stride = (int)sample_of((wlm_sample)sample, degree, 0, 0).stride;
        const int inverse = stride == 1 ? 1 : wlm_inverse((int)(degree % stride), stride);
        assert_int_equal(inverse == 0, sample == WLM_SAMPLE_FASTRAND && degree % 577 == 0);
        for (int64_t p = 0; p < degree; p++) taken[p] = 0;
        for (int64_t k = 0; k < widths[i]; k++) taken[position((wlm_sample)sample, degree, k, 0, 0)]++;
        for (int64_t p = 0; p < degree; p++)
          if (wlm_times_strided(p, stride, inverse, degree, (int)widths[i]) != taken[p])
            fail_msg("strategy %d, degree %d, width %d: edge %d", sample, (int)degree, (int)widths[i], (int)p);
      }
  /* A row with more than 2^32 edges. */
  const int64_t degree = (INT64_C(1) << 40) + 1;
  const int inverse = wlm_inverse((int)(degree % 577), 577);
  for (int64_t k = 0; k < 40; k++) assert_int_equal(wlm_times_strided(577 * k, 577, inverse, degree, 32), k < 32);
  assert_int_equal(wlm_times_strided(1, 577, inverse, degree, 32), 0);
}

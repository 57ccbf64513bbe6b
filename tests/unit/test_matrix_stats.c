/* Row statistics against counts by hand and by a naive method; what changes the fingerprint; buckets. */
#include "core/base/hash.h"
#include "core/base/random.h"
#include "core/csr/stats.h"
#include "core/csr/validate.h"
#include "core/problem/bucket.h"
#include "support/meter.h"
#include "support/test.h"

TEST(by_hand) {
  const int32_t rowptr[] = {0, 0, 5, 6, 26}, colind[26] = {0}; /* lengths 0 5 1 20 */
  GET(wlm_stats, s, wlmi_stats_compute(rowptr, WLM_I32, 4, 3, 26, colind, WLM_I32, &s));
  assert_int_equal(s.size, sizeof s);
  assert_int_equal(s.rows, 4);
  assert_int_equal(s.cols, 3);
  assert_int_equal(s.nnz, 26);
  assert_int_equal(s.longest, 20);
  assert_int_equal(s.empty_rows, 1);
  assert_int_equal(s.rows_le_4, 2);
  assert_int_equal(s.rows_le_16, 3);
  assert_true(s.mean == 6.5);
  assert_true(fabs(s.cv - sqrt((42.25 + 2.25 + 30.25 + 182.25) / 4) / 6.5) < 1e-15);
  assert_true(fabs(s.top_share - 20.0 / 26) < 1e-15);
}

TEST(empty_matrices) {
  const int64_t rowptr[] = {0, 0, 0, 0};
  for (int64_t rows = 0; rows < 4; rows += 3) {
    GET(wlm_stats, s, wlmi_stats_compute(rowptr, WLM_I64, rows, 5, 0, NULL, WLM_I32, &s));
    assert_true(s.mean == 0.0 && s.cv == 0.0 && s.top_share == 0.0);
    assert_int_equal(s.longest, 0);
    assert_int_equal(s.empty_rows, rows);
    assert_int_equal(s.rows_le_16, rows);
  }
}

static int descending(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return x < y ? 1 : x > y ? -1 : 0;
}

/* Lengths beyond the exact bins of the histogram. */
TEST(top_share_without_sorting) {
  enum { ROWS = 3000 };
  wlmi_random random = wlmi_random_for(1, 0, 0);
  int64_t rowptr[ROWS + 1] = {0}, length[ROWS], sample[WLMI_STATS_SAMPLES] = {0};
  for (int round = 0; round < 40; round++) {
    int64_t rows = 1 + wlmi_random_below(&random, ROWS), most = INT64_C(1) << (4 + round % 20);
    for (int64_t r = 0; r < rows; r++) {
      length[r] = wlmi_random_below(&random, most);
      rowptr[r + 1] = rowptr[r] + length[r];
    }
    qsort(length, (size_t)rows, sizeof *length, descending);
    double top = 0;
    for (int64_t r = 0; r < (rows >= 100 ? rows / 100 : 1); r++) top += (double)length[r];
    GET(wlm_stats, s, wlmi_stats_rows(rowptr, WLM_I64, 0, rows, 1, rowptr[rows], &s));
    assert_status(WLM_OK, wlmi_stats_fingerprint(rowptr, WLM_I64, 0, sample, &s));
    double expected = rowptr[rows] ? top / (double)rowptr[rows] : 0.0;
    assert_true(fabs(s.top_share - expected) <= expected * (most <= 4096 ? 1e-12 : 1.0 / 2048));
    assert_int_equal(s.longest, length[0]);
  }
}

/* Offsets of the type that was not given. */
TEST(another_type_is_suggested) {
  static const int64_t wide[][5] = {{0, 2, 3, 4, 4}, {0, 4}};
  static const int32_t narrow[][8] = {{0, 2, 3, 4, 4}, {0, 0, 4, 4, 4, 4, 4}};
  static const int32_t colind[8] = {0};
  wlm_stats s;
  for (int i = 0; i < 2; i++) {
    wlm_csr csr = {.rowptr = wide[i], .rowptr_type = WLM_I32, .colind = colind, .rows = i ? 1 : 4, .cols = 3, .nnz = 4};
    struct wlm_row_fault fault;
    assert_status(WLM_ERR_INVALID_ARGUMENT, wlmi_stats_compute(wide[i], WLM_I32, csr.rows, 3, 4, colind, WLM_I32, &s));
    assert_contains(wlm_error_detail(), "if its offsets have 64 bits, set wlm_csr.rowptr_type to WLM_I64");
    wlmi_csr_validate(&csr, &fault);
    assert_status(WLM_ERR_INVALID_ARGUMENT, wlmi_row_fault_status(&fault, &csr));
    if (!i) assert_contains(wlm_error_detail(), "WLM_I64");
  }
  for (int i = 0; i < 2; i++) {
    assert_status(WLM_ERR_INVALID_ARGUMENT, wlmi_stats_compute(narrow[i], WLM_I64, 3, 3, 4, colind, WLM_I32, &s));
    assert_contains(wlm_error_detail(), "if its offsets have 32 bits, set wlm_csr.rowptr_type to WLM_I32");
  }
}

TEST(bad_rowptr_is_named) {
  static const struct {
    int64_t rowptr[4], nnz;
    const char *what;
  } cases[] = {
      {{1, 2, 3, 4}, 4, "starts at 1"},
      {{0, 3, 2, 4}, 4, "falls from 3 to 2 at row 1"},
      {{0, 1, 2, -1}, 2, "at row 2"},
      {{0, 1, 2, 3}, 4, "ends at 3 after row 2, must end at nnz = 4"},
      {{0, 1, 2, 3}, 2, "must end at nnz = 2"},
      {{0, 1, 2, INT32_MAX}, 2, "must end at nnz = 2"},
      {{0, INT32_MAX, 2, 2}, 2, "falls from 2147483647 to 2 at row 1"},
  };
  const int32_t colind[8] = {0};
  wlm_stats s;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int32_t narrow[4];
    for (int k = 0; k < 4; k++) narrow[k] = (int32_t)cases[i].rowptr[k];
    assert_status(WLM_ERR_INVALID_ARGUMENT,
                  wlmi_stats_compute(cases[i].rowptr, WLM_I64, 3, 3, cases[i].nnz, colind, WLM_I32, &s));
    assert_contains(wlm_error_detail(), cases[i].what);
    assert_status(WLM_ERR_INVALID_ARGUMENT,
                  wlmi_stats_compute(narrow, WLM_I32, 3, 3, cases[i].nnz, colind, WLM_I32, &s));
    assert_contains(wlm_error_detail(), cases[i].what);
  }
  const int64_t rowptr[] = {0, 2}; /* nnz reaches far beyond colind */
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlmi_stats_compute(rowptr, WLM_I64, 1, 3, 2000000000, colind, WLM_I32, &s));
  assert_contains(wlm_error_detail(), "must end at nnz = 2000000000");
  const int32_t outside[] = {0, 3}, below[] = {-1, 0};
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlmi_stats_compute(rowptr, WLM_I64, 1, 3, 2, outside, WLM_I32, &s));
  assert_contains(wlm_error_detail(), "colind[1] is 3, must be 0 to 2");
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlmi_stats_compute(rowptr, WLM_I64, 1, 3, 2, below, WLM_I32, &s));
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlmi_stats_compute(rowptr, WLM_I64, -1, 3, 0, outside, WLM_I32, &s));
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlmi_stats_compute(NULL, WLM_I64, 1, 3, 0, NULL, WLM_I32, &s));
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlmi_stats_compute(rowptr, WLM_I64, 1, 3, 2, NULL, WLM_I32, &s));
}

/* Measuring a matrix must need little memory, as it may be used only once. */
TEST(a_small_matrix_takes_little_memory) {
  meter m = {.fail_at = -1};
  const int32_t rowptr[] = {0, 4, 9, 10};
  wlm_stats s;
  meter_begin(&m);
  const wlm_status status = wlmi_stats_rows(rowptr, WLM_I32, 0, 3, 5, 10, &s);
  wlm_set_allocator(NULL);
  assert_status(WLM_OK, status);
  assert_true(m.most > 0 && m.most < 1024);
}

TEST(sample_positions) {
  assert_int_equal(wlmi_stats_sample_count(0), 0);
  for (int64_t nnz = 1; nnz < 20000; nnz += 1 + nnz / 7) {
    int64_t count = wlmi_stats_sample_count(nnz);
    for (int64_t k = 0; k < count; k++) assert_int_equal(wlmi_stats_sample_position(nnz, k), k * nnz / count);
  }
  int64_t huge = INT64_MAX;
  assert_int_equal(wlmi_stats_sample_position(huge, 0), 0);
  assert_int_equal(wlmi_stats_sample_position(huge, 2048), huge / 2);
  assert_int_equal(wlmi_stats_sample_position(huge, 4095), (int64_t)((__int128)huge * 4095 / 4096));
}

static int same_fingerprint(const wlm_stats *a, const wlm_stats *b) {
  return !memcmp(a->fingerprint, b->fingerprint, sizeof a->fingerprint);
}

TEST(fingerprint_sees_shape_rowptr_and_sampled_columns) {
  enum { ROWS = 3000, PER_ROW = 3, NNZ = ROWS * PER_ROW };
  static int32_t rowptr[ROWS + 1], colind[NNZ];
  static int64_t wide_rowptr[ROWS + 1], wide_colind[NNZ];
  wlmi_random random = wlmi_random_for(3, 0, 0);
  wlm_stats s, t;
  for (int i = 0; i <= ROWS; i++) wide_rowptr[i] = rowptr[i] = i * PER_ROW;
  for (int i = 0; i < NNZ; i++) wide_colind[i] = colind[i] = (int32_t)wlmi_random_below(&random, 777);
  assert_status(WLM_OK, wlmi_stats_compute(rowptr, WLM_I32, ROWS, 777, NNZ, colind, WLM_I32, &s));
  assert_status(WLM_OK, wlmi_stats_compute(wide_rowptr, WLM_I64, ROWS, 777, NNZ, wide_colind, WLM_I64, &t));
  assert_memory_equal(&s, &t, sizeof s);
  assert_status(WLM_OK, wlmi_stats_compute(rowptr, WLM_I32, ROWS, 778, NNZ, colind, WLM_I32, &t));
  assert_false(same_fingerprint(&s, &t));
  rowptr[1500]--;
  assert_status(WLM_OK, wlmi_stats_compute(rowptr, WLM_I32, ROWS, 777, NNZ, colind, WLM_I32, &t));
  assert_false(same_fingerprint(&s, &t));
  rowptr[1500]++;
  colind[wlmi_stats_sample_position(NNZ, 1234)] ^= 1;
  assert_status(WLM_OK, wlmi_stats_compute(rowptr, WLM_I32, ROWS, 777, NNZ, colind, WLM_I32, &t));
  assert_false(same_fingerprint(&s, &t));
}

/* The fingerprint is one hash over little-endian int64 numbers. Stored fingerprints depend on this definition. */
TEST(fingerprint_is_pinned) {
  const int64_t words[] = {2, 3, 3, 0, 1, 3, 2, 0, 1};
  const int32_t rowptr[] = {0, 1, 3}, colind[] = {2, 0, 1};
  unsigned char bytes[sizeof words];
  for (size_t i = 0; i < sizeof words; i++) bytes[i] = (unsigned char)(words[i / 8] >> (8 * (i % 8)));
  wlmi_hash expected = wlmi_hash_bytes(bytes, sizeof bytes);
  GET(wlm_stats, s, wlmi_stats_compute(rowptr, WLM_I32, 2, 3, 3, colind, WLM_I32, &s));
  assert_true(s.fingerprint[0] == expected.high && s.fingerprint[1] == expected.low);
}

/* Computing stats and fingerprint separately gives the same as computing both at once. */
TEST(in_two_steps) {
  const int32_t rowptr[] = {0, 1, 3}, colind[] = {2, 0, 1};
  const int64_t sample[] = {2, 0, 1}, outside[] = {2, 0, 3};
  wlm_stats both, s;
  assert_status(WLM_OK, wlmi_stats_compute(rowptr, WLM_I32, 2, 3, 3, colind, WLM_I32, &both));
  assert_status(WLM_OK, wlmi_stats_rows(rowptr, WLM_I32, 0, 2, 3, 3, &s));
  assert_true(!s.fingerprint[0] && !s.fingerprint[1]);
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlmi_stats_fingerprint(rowptr, WLM_I32, 0, outside, &s));
  assert_contains(wlm_error_detail(), "colind[2] is 3, must be 0 to 2");
  assert_status(WLM_OK, wlmi_stats_fingerprint(rowptr, WLM_I32, 0, sample, &s));
  assert_memory_equal(&s, &both, sizeof s);
}

TEST(buckets) {
  static const struct {
    int64_t rows, nnz;
    double cv;
    int log2_rows, half_log2_mean, cv_class;
  } cases[] = {
      {0, 0, 0.0, -1, WLMI_BUCKET_NO_NNZ, 0},
      {5, 0, 0.0, 2, WLMI_BUCKET_NO_NNZ, 0},
      {1, 1, 0.49, 0, 0, 0},
      {1024, 1024, 0.5, 10, 0, 1},
      {1023, 1023 * 2, 1.49, 9, 2, 1},
      {1000, 1414, 1.5, 9, 0, 2},
      {1000, 1415, 3.99, 9, 1, 2},
      {1000, 4000, 4.0, 9, 4, 3},
      {1000, 3999, 15.9, 9, 3, 3},
      {1000, 500, 16.0, 9, -2, 4},
      {1000, 499, 71.0, 9, -3, 4},
      {232965, 114615892, 1.63, 17, 17, 2},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wlm_stats s = STATS(.rows = cases[i].rows, .nnz = cases[i].nnz, .cv = cases[i].cv);
    wlmi_bucket bucket;
    wlmi_bucket_of(&s, &bucket);
    assert_int_equal(bucket.version, 1);
    assert_int_equal(bucket.log2_rows, cases[i].log2_rows);
    assert_int_equal(bucket.half_log2_mean, cases[i].half_log2_mean);
    assert_int_equal(bucket.cv_class, cases[i].cv_class);
  }
}

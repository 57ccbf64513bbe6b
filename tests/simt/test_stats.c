/* Compares the kernel that measures row statistics, run as fibers under ASan and UBSan, with the host's computation. */
#include "core/csr/stats.h"
#include "runtime/stats_device.h"
#include "simt/shim/simt_device.h"
#include "support/loaded.h"
#include "support/shapes.h"
#include "support/test.h"

typedef struct meter {
  wlmi_device *device;
  wlm_index type;
  loaded loaded;
} meter;

static void meter_make(meter *m, wlm_index type) {
  *m = (meter){.type = type};
  assert_status(WLM_OK, simt_device_open(&m->device));
  m->loaded = loaded_helper(m->device, WLMI_HELPER_STATS, type, WLM_I32, 0);
}

static void meter_release(meter *m) {
  loaded_release(&m->loaded);
  m->device->ops->close(m->device);
}

/* Copies rowptr in the meter's type, into memory of exactly the needed size. */
static void *narrowed(const meter *m, const int64_t *rowptr, int64_t rows) {
  void *copy = malloc((size_t)(rows + 1) * wlmi_index_size(m->type));
  assert_non_null(copy);
  for (int64_t i = 0; i <= rows; i++) {
    if (m->type == WLM_I64)
      ((int64_t *)copy)[i] = rowptr[i];
    else
      ((int32_t *)copy)[i] = (int32_t)rowptr[i];
  }
  return copy;
}

static wlm_status measure(const meter *m, const wlm_csr *csr, uint64_t seed, wlm_stats *stats) {
  FREED void *scratch = malloc(wlmi_stats_scratch_size(csr));
  assert_non_null(scratch);
  memset(scratch, 0xff, wlmi_stats_scratch_size(csr));
  simt_device_seed(m->device, seed);
  const wlm_status status = wlmi_stats_measure(m->device, m->loaded.kernels, csr, NULL, scratch, stats);
  return status;
}

static void check(const meter *m, const int64_t *wide, int64_t rows, int64_t nnz, uint64_t seed) {
  wlm_stats expected, got, read;
  FREED void *rowptr = narrowed(m, wide, rows);
  wlm_csr csr = CSR(.rows = rows, .cols = 7, .nnz = nnz, .rowptr = rowptr, .rowptr_type = m->type);
  assert_status(WLM_OK, wlmi_stats_rows(rowptr, m->type, 0, rows, 7, nnz, &expected));
  assert_status(WLM_OK, measure(m, &csr, seed, &got));
  assert_status(WLM_OK, wlmi_stats_measure(m->device, NULL, &csr, NULL, NULL, &read));
  assert_memory_equal(&read, &expected, sizeof read);
  assert_int_equal(got.rows, rows);
  assert_int_equal(got.cols, 7);
  assert_int_equal(got.nnz, nnz);
  assert_int_equal(got.longest, expected.longest);
  assert_int_equal(got.empty_rows, expected.empty_rows);
  assert_int_equal(got.rows_le_4, expected.rows_le_4);
  assert_int_equal(got.rows_le_16, expected.rows_le_16);
  assert_true(got.mean == expected.mean && !got.fingerprint[0] && !got.fingerprint[1]);
  assert_true(fabs(got.cv - expected.cv) <= 1e-6 * expected.cv);
  const double allowed = expected.longest < 1024 ? 1e-12 : 0.01;
  assert_true(fabs(got.top_share - expected.top_share) <= allowed * expected.top_share);
}

static void check_lengths(const meter *m, const int64_t *length, int64_t rows, uint64_t seed) {
  FREED int64_t *rowptr = calloc((size_t)rows + 1, sizeof *rowptr);
  assert_non_null(rowptr);
  for (int64_t i = 0; i < rows; i++) rowptr[i + 1] = rowptr[i] + length[i];
  check(m, rowptr, rows, rowptr[rows], seed);
}

static void with_both_types(void (*body)(const meter *m)) {
  for (int type = WLM_I32; type <= WLM_I64; type++) {
    MAKE(meter, m, (wlm_index)type);
    body(&m);
  }
}

static void shapes(const meter *m) {
  for (int shape = 0; shape < test_shape_count(); shape++) {
    test_random random = {(uint64_t)shape * 77 + 1};
    HOLD(wlmi_csr_host, a, test_shape_make(shape, 64, 1500, &random, &a));
    check(m, a.rowptr, a.rows, a.nnz, (uint64_t)shape + 1);
  }
}

/* All rows have the same length, for lengths around the bounds of the bins. */
static void equal_lengths(const meter *m) {
  static const int64_t lengths[] = {0, 1, 4, 5, 16, 17, 1023, 1024, 1025, 1500, 9000};
  static const int64_t row_counts[] = {0, 1, 2, 99, 100, 199, 200, 255, 256, 1025, 5000};
  int64_t length[5000];
  for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
    for (size_t r = 0; r < sizeof row_counts / sizeof *row_counts; r++) {
      if (l % 3 && row_counts[r] > 1025) continue;
      for (int64_t i = 0; i < row_counts[r]; i++) length[i] = lengths[l];
      check_lengths(m, length, row_counts[r], l * 16 + r + 1);
    }
}

/* Rows with a hub, two lengths, a power law, and lengths within one octave of the histogram. */
static void uneven_lengths(const meter *m) {
  enum { ROWS = 3000 };
  int64_t length[ROWS];
  for (int kind = 0; kind < 6; kind++) {
    test_random random = {(uint64_t)kind + 9};
    for (int i = 0; i < ROWS; i++) {
      const double u = (double)(1 + test_draw(&random, 1 << 20)) / (1 << 20);
      length[i] = kind == 0   ? i % 3
                  : kind == 1 ? 3 + 40 * (int64_t)test_draw(&random, 2)
                  : kind == 2 ? (int64_t)fmin(3 * pow(u, -1.2), 1e5)
                  : kind == 3 ? (int64_t)test_draw(&random, 4000)
                  : kind == 4 ? 1000 + (int64_t)test_draw(&random, 50)
                              : (int64_t)test_draw(&random, 60000);
    }
    if (kind == 0) length[1234] = 1000000;
    check_lengths(m, length, ROWS, (uint64_t)kind + 1);
    check_lengths(m, length, ROWS - 1 - kind, (uint64_t)kind + 2);
  }
}

static void wrong_rowptr(const meter *m) {
  enum { ROWS = 2600 };
  int64_t rowptr[ROWS + 1];
  static const struct {
    int64_t at, value, nnz;
  } wrongs[] = {{0, 1, 3 * ROWS},
                {0, -1, 3 * ROWS},
                {ROWS, 3 * ROWS - 1, 3 * ROWS},
                {-1, 0, 3 * ROWS + 1},
                {-1, 0, 0},
                {1, -5, 3 * ROWS},
                {2000, 0, 3 * ROWS},
                {17, INT32_MAX, 3 * ROWS},
                {ROWS - 1, INT32_MIN, 3 * ROWS},
                {ROWS, 0, 0},
                {1500, INT32_MIN, 3 * ROWS}};
  for (size_t w = 0; w < sizeof wrongs / sizeof *wrongs; w++) {
    wlm_stats stats;
    char expected[256];
    for (int i = 0; i <= ROWS; i++) rowptr[i] = 3 * i;
    if (wrongs[w].at >= 0) rowptr[wrongs[w].at] = wrongs[w].value;
    if (w == 6) rowptr[700] = 1; /* the first of two errors */
    FREED void *copy = narrowed(m, rowptr, ROWS);
    wlm_csr csr = CSR(.rows = ROWS, .cols = ROWS, .nnz = wrongs[w].nnz, .rowptr = copy, .rowptr_type = m->type);
    assert_status(WLM_ERR_INVALID_ARGUMENT, wlmi_stats_rows(copy, m->type, 0, ROWS, ROWS, csr.nnz, &stats));
    snprintf(expected, sizeof expected, "%s", wlm_error_detail());
    assert_status(WLM_ERR_INVALID_ARGUMENT, measure(m, &csr, w + 1, &stats));
    assert_string_equal(wlm_error_detail(), expected);
  }
}

TEST(wide_wrong_rowptr) {
  MAKE(meter, m, WLM_I64);
  const int64_t rowptr[] = {0, INT64_MIN, INT64_MAX, 5};
  wlm_csr csr = CSR(.rows = 3, .nnz = 5, .rowptr = rowptr, .rowptr_type = WLM_I64);
  wlm_stats stats;
  assert_fails(WLM_ERR_INVALID_ARGUMENT, measure(&m, &csr, 1, &stats), "at row 0");
}

static void fingerprint(const meter *m, int64_t nnz, wlm_index colind_type) {
  const int64_t wide_rowptr[] = {0, nnz / 3, nnz};
  FREED int32_t *narrow = malloc((size_t)nnz * sizeof *narrow + 1);
  FREED int64_t *wide = malloc((size_t)nnz * sizeof *wide + 1);
  FREED void *rowptr = narrowed(m, wide_rowptr, 2);
  wlm_stats expected, got, read;
  for (int64_t p = 0; p < nnz; p++) wide[p] = narrow[p] = (int32_t)(p * 7 % 1000);
  wlm_csr csr = CSR(.rows = 2, .cols = 1000, .nnz = nnz, .rowptr = rowptr, .rowptr_type = m->type,
                    .colind_type = colind_type, .colind = colind_type == WLM_I64 ? (void *)wide : narrow);
  FREED void *scratch = malloc(wlmi_stats_scratch_size(&csr));
  assert_status(WLM_OK, wlmi_stats_compute(rowptr, m->type, 2, 1000, nnz, csr.colind, colind_type, &expected));
  assert_status(WLM_OK, wlmi_stats_rows(rowptr, m->type, 0, 2, 1000, nnz, &got));
  read = got;
  assert_status(WLM_OK, wlmi_stats_measure_fingerprint(m->device, m->loaded.kernels, &csr, NULL, scratch, &got));
  assert_memory_equal(&got, &expected, sizeof got);
  assert_status(WLM_OK, wlmi_stats_measure_fingerprint(m->device, NULL, &csr, NULL, NULL, &read));
  assert_memory_equal(&read, &expected, sizeof read);
  if (nnz) {
    narrow[nnz / 2] = 1000, wide[0] = -1, narrow[0] = -1;
    assert_status(WLM_ERR_INVALID_ARGUMENT,
                  wlmi_stats_measure_fingerprint(m->device, m->loaded.kernels, &csr, NULL, scratch, &got));
    assert_contains(wlm_error_detail(), "colind[0] is -1, must be 0 to 999");
  }
}

static void fingerprints(const meter *m) {
  static const int64_t counts[] = {0, 1, 4095, 4096, 4097, 30011};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
    for (int type = WLM_I32; type <= WLM_I64; type++) fingerprint(m, counts[i], (wlm_index)type);
  fingerprint(m, (5 << 20) + 3, WLM_I32); /* a longer rowptr than is copied as a whole */
}

#define WITH_BOTH_TYPES(name) \
  TEST(test_##name) { with_both_types(name); }
WITH_BOTH_TYPES(shapes)
WITH_BOTH_TYPES(equal_lengths)
WITH_BOTH_TYPES(uneven_lengths)
WITH_BOTH_TYPES(wrong_rowptr)
WITH_BOTH_TYPES(fingerprints)

/* COO to CSR against a naive method, ranges, checks and the hash. */
#include "core/base/random.h"
#include "core/csr/csr.h"
#include "support/csr.h"
#include "support/failing_malloc.h"
#include "support/test.h"

enum { MOST = 4000 };
static int32_t row[MOST], col[MOST];
static float value[MOST];

/* Compares random COO, unsorted and with repeated places, with sums in a dense matrix. */
static void check_random(wlmi_random *random, int rows, int cols, int count, int with_values) {
  FREED double *sum = calloc((size_t)(rows * cols), sizeof *sum);
  FREED char *named = calloc((size_t)(rows * cols), 1);
  int64_t places = 0;
  for (int i = 0; i < count; i++) {
    row[i] = (int32_t)wlmi_random_below(random, rows);
    col[i] = (int32_t)wlmi_random_below(random, cols);
    /* multiples of 1/8, so that sums are exact in any order */
    value[i] = (float)(wlmi_random_below(random, 65) - 32) / 8.0f;
    sum[row[i] * cols + col[i]] += with_values ? (double)value[i] : 1.0;
    places += !named[row[i] * cols + col[i]];
    named[row[i] * cols + col[i]] = 1;
  }
  GET(wlmi_csr_host, csr, wlmi_csr_from_coo(rows, cols, count, row, col, with_values ? value : NULL, &csr));
  assert_csr(&csr);
  assert_int_equal(csr.nnz, places);
  assert_int_equal(csr.values != NULL, with_values || places < count);
  for (int64_t r = 0; r < rows; r++)
    for (int64_t i = csr.rowptr[r]; i < csr.rowptr[r + 1]; i++) {
      if (i > csr.rowptr[r]) assert_true(csr.colind[i - 1] < csr.colind[i]);
      assert_true(named[r * cols + csr.colind[i]]);
      assert_true((csr.values ? (double)csr.values[i] : 1.0) == sum[r * cols + csr.colind[i]]);
    }
  wlmi_csr_host_release(&csr);
  assert_null(csr.rowptr);
}

TEST(random_coo_becomes_csr) {
  wlmi_random random = wlmi_random_for(1, 0, 0);
  for (int round = 0; round < 300; round++) {
    int rows = 1 + (int)wlmi_random_below(&random, 40), cols = 1 + (int)wlmi_random_below(&random, 300);
    check_random(&random, rows, cols, (int)wlmi_random_below(&random, 1 + MOST / (1 + round % 9)), round % 2);
  }
}

TEST(empty_shapes) {
  static const int64_t shapes[][2] = {{0, 0}, {0, 5}, {5, 0}, {3, 4}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    HOLD(wlmi_csr_host, csr, wlmi_csr_from_coo(shapes[i][0], shapes[i][1], 0, NULL, NULL, NULL, &csr));
    assert_csr(&csr);
    assert_int_equal(csr.rowptr[csr.rows], 0);
  }
}

TEST(entries_outside_are_named) {
  static const int32_t bad[][2] = {{2, 0}, {0, 3}, {-1, 0}, {0, -1}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    int32_t r[] = {0, bad[i][0]}, c[] = {0, bad[i][1]};
    wlmi_csr_host csr;
    assert_fails(WLM_ERR_INVALID_ARGUMENT, wlmi_csr_from_coo(2, 3, 2, r, c, NULL, &csr), "entry 1");
    assert_null(csr.rowptr);
  }
}

TEST(impossible_sizes_are_refused) {
  wlmi_csr_host csr;
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlmi_csr_from_coo(-1, 3, 0, NULL, NULL, NULL, &csr));
  assert_status(WLM_ERR_OVERFLOW, wlmi_csr_from_coo(1, INT64_C(1) << 31, 0, NULL, NULL, NULL, &csr));
  assert_status(WLM_ERR_OVERFLOW, wlmi_csr_from_coo(INT64_MAX, 1, 0, NULL, NULL, NULL, &csr));
}

TEST(repeated_places_are_summed_in_double) {
  int32_t r[] = {0, 0, 0}, c[] = {1, 1, 1};
  float v[] = {1e8f, 1.0f, -1e8f};
  HOLD(wlmi_csr_host, csr, wlmi_csr_from_coo(1, 2, 3, r, c, v, &csr));
  assert_int_equal(csr.nnz, 1);
  assert_true(csr.values[0] == 1.0f); /* a sum in float would be 0 */
}

static int by_column_then_position(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

/* Entries are words of column and position, so sorting the words is the stable sort by column. */
TEST(sort_is_stable) {
  wlmi_random random = wlmi_random_for(2, 0, 0);
  uint64_t entries[1000], scratch[1000], expected[1000];
  for (int64_t count = 0; count < 1000; count += 1 + count / 40) {
    for (int64_t i = 0; i < count; i++)
      expected[i] = entries[i] = wlmi_row_entry((int32_t)wlmi_random_below(&random, 1 + count / 2), (uint32_t)i);
    qsort(expected, (size_t)count, sizeof *expected, by_column_then_position);
    wlmi_sort_entries(entries, scratch, count);
    assert_memory_equal(entries, expected, (size_t)count * sizeof *entries);
  }
}

/* Without memory to sort by, rows are not left as they are. */
TEST(sorting_without_memory) {
  static const int32_t rows[] = {0, 0, 0, 1}, cols[] = {2, 0, 2, 1};
  static const float ones[] = {1, 1, 1, 1};
  int64_t failures = 1;
  for (int64_t first = 1; failures; first++) {
    HELD(wlmi_csr_host) csr = {0};
    failing_malloc_begin(first, INT64_MAX);
    const wlm_status status = wlmi_csr_from_coo(2, 3, 4, rows, cols, ones, &csr);
    failures = failing_malloc_end();
    assert_status(failures ? WLM_ERR_OUT_OF_MEMORY : WLM_OK, status);
    if (!failures) assert_int_equal(csr.nnz, 3);
  }
}

/* The kernels that convert coordinates to CSR, as fibers under ASan and UBSan: every list of support/coo_check.h, in
 * memory of exactly the needed size, and lists for which `sorted` is set wrongly. */
#include "runtime/sort_device.h"
#include "simt/shim/simt_device.h"
#include "support/coo_check.h"
#include "support/loaded.h"
#include "support/shapes.h"
#include "support/test.h"

enum { TYPES = 2, BASES = 2 };

typedef struct sorter {
  wlmi_device *device;
  loaded kernels[BASES][TYPES][TYPES]; /* indexed by the base and the types of rowptr and of the list */
} sorter;

static int sorter_make(void **state) {
  static sorter s;
  assert_status(WLM_OK, simt_device_open(&s.device));
  for (int base = 0; base < BASES; base++)
    for (int type = 0; type < TYPES; type++)
      for (int of_list = 0; of_list < TYPES; of_list++)
        s.kernels[base][type][of_list] = loaded_helper(s.device, WLMI_HELPER_COO, type, of_list, base);
  *state = &s;
  return 0;
}

static int sorter_release(void **state) {
  sorter *s = *state;
  loaded *all = s->kernels[0][0];
  for (int i = 0; i < BASES * TYPES * TYPES; i++) loaded_release(&all[i]);
  s->device->ops->close(s->device);
  return 0;
}

static void convert(void *user, const wlm_coo *coo) {
  sorter *s = user;
  GET(size_t, size, wlmi_coo_scratch_size(coo, &size));
  FREED void *scratch = malloc(size + !size);
  assert_non_null(scratch);
  memset(scratch, 0xff, size);
  assert_status(WLM_OK, wlmi_coo_enqueue(s->device, s->kernels[coo->base][coo->rowptr_type][coo->index_type].kernels,
                                         coo, scratch));
}

TEST(every_list) {
  sorter *s = *state;
  for (int number = 0; number < coo_case_count(); number++) {
    const coo_case c = coo_case_of(number);
    simt_device_seed(s->device, (uint64_t)number + 1);
    coo_check(&c, (uint64_t)number + 1, convert, s);
  }
}

static int by_value(const void *a, const void *b) { return *(const int32_t *)a - *(const int32_t *)b; }

/* With `sorted` set wrongly, or with edges out of range, rows and columns still stay within their bounds. */
TEST(a_list_wrongly_marked_sorted) {
  enum { ROWS = 20, COLS = 30, NNZ = 500 };
  int32_t row[NNZ], col[NNZ], rowptr[ROWS + 1], colind[NNZ];
  test_random random = {7};
  for (int is_sorted = 0; is_sorted < 2; is_sorted++) {
    for (int p = 0; p < NNZ; p++) {
      row[p] = (int32_t)test_draw(&random, ROWS + 4) - 2;
      col[p] = (int32_t)test_draw(&random, COLS + 4) - 2;
    }
    if (is_sorted) qsort(row, NNZ, sizeof *row, by_value);
    wlm_coo coo = COO(.rows = ROWS, .cols = COLS, .nnz = NNZ, .row = row, .col = col, .sorted = 1, .rowptr = rowptr,
                      .colind = colind);
    convert(*state, &coo);
    assert_int_equal(rowptr[0], 0);
    for (int i = 0; i < ROWS; i++) assert_in_range(rowptr[i + 1], rowptr[i], NNZ);
    for (int p = 0; p < NNZ; p++) assert_in_range(colind[p], 0, COLS - 1);
  }
}

TEST(too_large) {
  wlm_coo coo = COO(.rowptr_type = WLM_I64, .index_type = WLM_I64, .nnz = INT64_MAX / 32);
  size_t size;
  assert_status(WLM_ERR_OVERFLOW, wlmi_coo_scratch_size(&coo, &size));
  coo.nnz = 5;
  coo.rows = INT64_MAX / 8;
  assert_status(WLM_ERR_OVERFLOW, wlmi_coo_scratch_size(&coo, &size));
}

GROUP(sorter_make, sorter_release)

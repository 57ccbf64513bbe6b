/* Compares the kernel that validates a matrix, run as fibers under ASan and UBSan, with the host's validation. */
#include "runtime/validate.h"
#include "simt/shim/simt_device.h"
#include "support/loaded.h"
#include "support/shapes.h"
#include "support/test.h"

static wlmi_device *device;
static wlm_index rowptr_type, colind_type;
static int base;
static void *kernel;

/* Copies the elements in this type, into memory of exactly the needed size. */
static void *narrowed(wlm_index type, const int64_t *from, int64_t count) {
  void *copy = malloc((size_t)count * (type == WLM_I64 ? 8 : 4) + !count);
  assert_non_null(copy);
  for (int64_t i = 0; i < count; i++) {
    if (type == WLM_I64)
      ((int64_t *)copy)[i] = from[i] + base;
    else
      ((int32_t *)copy)[i] = (int32_t)(from[i] + base);
  }
  return copy;
}

static int check(const int64_t *rowptr, const int64_t *colind, int64_t rows, int64_t cols, int64_t nnz, uint64_t seed) {
  struct wlm_validation scratch;
  struct wlm_row_fault expected, got, copied;
  FREED void *offsets = narrowed(rowptr_type, rowptr, rows + 1), *columns = narrowed(colind_type, colind, nnz);
  wlm_csr csr = CSR(.rows = rows, .cols = cols, .nnz = nnz, .rowptr = offsets, .colind = columns,
                    .rowptr_type = rowptr_type, .colind_type = colind_type, .base = base);
  wlmi_csr_validate(&csr, &expected);
  memset(&scratch, 0xff, sizeof scratch);
  simt_device_seed(device, seed);
  assert_status(WLM_OK, wlmi_validate_by_kernel(device, kernel, &csr, NULL, &scratch, &got));
  assert_status(WLM_OK, wlmi_validate_by_host(device, &csr, NULL, &copied));
  if (expected.row < 0) {
    assert_int_equal(got.row, -1);
    assert_int_equal(copied.row, -1);
  } else {
    assert_memory_equal(&got, &expected, sizeof got);
    assert_memory_equal(&copied, &expected, sizeof got);
  }
  return expected.row >= 0;
}

/* Validates the matrix unchanged and with one to three wrong elements, most at random places. */
static void check_spoiled(const wlmi_csr_host *a, test_random *random) {
  static const int64_t wrong[] = {-1, INT32_MIN, INT32_MAX - 1, 0, 1};
  FREED int64_t *rowptr = malloc((size_t)(a->rows + 1) * sizeof *rowptr),
                *colind = malloc((size_t)a->nnz * sizeof *colind + 1);
  int found = 0;
  for (int round = 0; round < 40; round++) {
    memcpy(rowptr, a->rowptr, (size_t)(a->rows + 1) * sizeof *rowptr);
    for (int64_t p = 0; p < a->nnz; p++) colind[p] = a->colind[p];
    for (int k = 0; k < round % 4; k++) {
      const int64_t value = wrong[test_draw(random, 5)];
      if (round & 4 && a->nnz)
        colind[test_draw(random, (uint64_t)a->nnz)] = value == 0 ? a->cols : value == 1 ? a->cols + 1 : value;
      else
        rowptr[test_draw(random, (uint64_t)a->rows + 1)] = value;
    }
    const int is_wrong = check(rowptr, colind, a->rows, a->cols, a->nnz, (uint64_t)round + 1);
    assert_true(round % 4 || !is_wrong);
    found += is_wrong;
  }
  assert_true(found > 5 || a->nnz < 2);
}

TEST(finds_what_the_host_finds) {
  for (int types = 0; types < 8; types++) {
    rowptr_type = types & 1 ? WLM_I64 : WLM_I32;
    colind_type = types & 2 ? WLM_I64 : WLM_I32;
    base = types / 4;
    assert_status(WLM_OK, simt_device_open(&device));
    loaded l = loaded_helper(device, WLMI_HELPER_VALIDATE, rowptr_type, colind_type, base);
    kernel = l.kernels[0];
    for (int shape = 0; shape < test_shape_count(); shape++) {
      test_random random = {(uint64_t)shape * 77 + 1};
      HOLD(wlmi_csr_host, a, test_shape_make(shape, 64, 1500, &random, &a));
      if (a.rows) check_spoiled(&a, &random);
    }
    loaded_release(&l);
    device->ops->close(device);
  }
}

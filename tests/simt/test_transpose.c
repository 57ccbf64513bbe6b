/* Compares the kernels that build A^T, run as fibers under ASan and UBSan, with the host's counting sort: equal bits
 * for every order of blocks, warps and lanes. */
#include "core/csr/transpose.h"
#include "core/problem/element.h"
#include "runtime/sort_device.h"
#include "simt/shim/simt_device.h"
#include "support/loaded.h"
#include "support/shapes.h"
#include "support/test.h"

typedef struct sorter {
  wlmi_device *device;
  loaded loaded;
  int base; /* of the matrix and of what is made */
} sorter;

static void sorter_make(sorter *s, wlm_index rowptr_type, int base) {
  *s = (sorter){.base = base};
  assert_status(WLM_OK, simt_device_open(&s->device));
  s->loaded = loaded_helper(s->device, WLMI_HELPER_TRANSPOSE, rowptr_type, WLM_I32, base);
}

static void sorter_release(sorter *s) {
  loaded_release(&s->loaded);
  s->device->ops->close(s->device);
}

/* A copy whose elements count from this base. */
static void *counted_from(int base, wlm_index type, const void *from, int64_t count) {
  void *copy = malloc((size_t)count * wlmi_index_size(type) + !count);
  assert_non_null(copy);
  for (int64_t i = 0; i < count; i++) wlmi_index_put(type, copy, i, wlmi_index_get(type, from, i) + base);
  return copy;
}

static void check_copy(sorter *s, const wlm_csr *csr, uint64_t seed);

/* `csr` counts from 0. */
static void check(sorter *s, const wlm_csr *csr, uint64_t seed) {
  FREED void *rowptr = counted_from(s->base, csr->rowptr_type, csr->rowptr, csr->rows + 1),
             *colind = counted_from(s->base, csr->colind_type, csr->colind, csr->nnz);
  wlm_csr copy = *csr;
  copy.rowptr = rowptr;
  copy.colind = colind;
  copy.base = s->base;
  check_copy(s, &copy, seed);
}

/* All arrays have exactly the needed size. */
static void check_copy(sorter *s, const wlm_csr *csr, uint64_t seed) {
  const size_t offset = wlmi_index_size(csr->rowptr_type);
  const size_t sizes[] = {(size_t)(csr->cols + 1) * offset, (size_t)csr->nnz * 4, (size_t)csr->nnz * offset};
  void *expected[3], *got[3];
  for (int i = 0; i < 3; i++) {
    assert_non_null(expected[i] = malloc(sizes[i] + 1));
    assert_non_null(got[i] = malloc(sizes[i] + !sizes[i]));
    memset(got[i], 0xff, sizes[i]);
  }
  simt_device_seed(s->device, seed);
  assert_status(WLM_OK, wlmi_transpose_pattern(csr, expected[0], expected[1], expected[2]));
  GET(wlmi_transpose_layout, layout, wlmi_transpose_layout_of(csr, &layout));
  assert_true(layout.rowptr + sizes[0] <= layout.colind && layout.colind + sizes[1] <= layout.order);
  assert_true(layout.order + sizes[2] <= layout.scratch && layout.scratch <= layout.size);
  FREED void *scratch = malloc(layout.size - layout.scratch);
  assert_non_null(scratch);
  memset(scratch, 0xff, layout.size - layout.scratch);
  assert_status(WLM_OK,
                wlmi_transpose_enqueue(s->device, s->loaded.kernels, csr, got[0], got[1], got[2], scratch, NULL));
  for (int i = 0; i < 3; i++) {
    assert_memory_equal(got[i], expected[i], sizes[i]);
    free(expected[i]);
    free(got[i]);
  }
}

static void *rowptr_of(const wlmi_csr_host *a, wlm_index type) {
  int64_t *wide = wlmi_alloc((size_t)(a->rows + 1) * sizeof *wide);
  int32_t *narrow = wlmi_alloc((size_t)(a->rows + 1) * sizeof *narrow);
  for (int64_t i = 0; i <= a->rows; i++) wide[i] = a->rowptr[i], narrow[i] = (int32_t)a->rowptr[i];
  wlmi_free(type == WLM_I64 ? (void *)narrow : wide);
  return type == WLM_I64 ? (void *)wide : narrow;
}

static wlm_csr view_of(const wlmi_csr_host *a, const void *rowptr, wlm_index type) {
  return (wlm_csr)CSR(.rows = a->rows, .cols = a->cols, .nnz = a->nnz, .rowptr = rowptr, .rowptr_type = type,
                      .colind = a->colind);
}

TEST(every_shape) {
  for (int kind = 0; kind < 4; kind++) {
    const wlm_index type = kind % 2 ? WLM_I64 : WLM_I32;
    MAKE(sorter, s, type, kind / 2);
    for (int shape = 0; shape < test_shape_count(); shape++) {
      test_random random = {(uint64_t)shape * 77 + 1};
      HOLD(wlmi_csr_host, a, test_shape_make(shape, 64, 1500, &random, &a));
      WLM_FREED void *rowptr = rowptr_of(&a, type);
      const wlm_csr csr = view_of(&a, rowptr, type);
      if (csr.rows)
        for (uint64_t seed = 1; seed <= 2; seed++) check(&s, &csr, seed);
    }
  }
}

/* Column indices of one, two and three 8-bit digits, with many empty columns and many entries in one column. */
TEST(wide_matrices) {
  static const int64_t widths[] = {1, 256, 257, 70000};
  enum { ROWS = 50, EACH = 60 };
  MAKE(sorter, s, WLM_I32, 0);
  for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
    test_random random = {w + 5};
    int32_t rowptr[ROWS + 1], colind[ROWS * EACH];
    for (int i = 0; i <= ROWS; i++) rowptr[i] = i * EACH;
    for (int p = 0; p < ROWS * EACH; p++)
      colind[p] = (int32_t)(test_draw(&random, 3) ? test_draw(&random, (uint64_t)widths[w]) : (uint64_t)widths[w] / 2);
    wlm_csr csr = CSR(.rows = ROWS, .cols = widths[w], .nnz = ROWS * EACH, .rowptr = rowptr, .colind = colind);
    check(&s, &csr, w + 1);
  }
}

/* Several tiles, the last one incomplete, and few of many columns used. */
TEST(several_tiles) {
  enum { ROWS = 70, EACH = 300, NNZ = ROWS * EACH };
  static int32_t rowptr[ROWS + 1], colind[NNZ];
  static const int64_t widths[] = {3, 300, 100000};
  MAKE(sorter, s, WLM_I32, 1);
  for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
    test_random random = {w + 5};
    for (int i = 0; i <= ROWS; i++) rowptr[i] = i * EACH;
    for (int p = 0; p < NNZ; p++) colind[p] = (int32_t)test_draw(&random, (uint64_t)widths[w]);
    wlm_csr csr = CSR(.rows = ROWS, .cols = widths[w], .nnz = NNZ - 5);
    rowptr[ROWS] -= 5;
    csr.rowptr = rowptr;
    csr.colind = colind;
    check(&s, &csr, w + 1);
  }
}

TEST(too_large) {
  wlmi_transpose_layout layout;
  wlm_csr csr = CSR(.rowptr_type = WLM_I64, .colind_type = WLM_I64, .nnz = INT64_MAX / 32);
  assert_status(WLM_ERR_OVERFLOW, wlmi_transpose_layout_of(&csr, &layout));
  csr.nnz = 5;
  csr.cols = INT64_MAX / 8;
  assert_status(WLM_ERR_OVERFLOW, wlmi_transpose_layout_of(&csr, &layout));
  csr.cols = 5;
  csr.rows = (int64_t)1 << 40;
  csr.colind_type = WLM_I32;
  assert_status(WLM_ERR_OVERFLOW, wlmi_transpose_layout_of(&csr, &layout));
}

#include "support/blocks_check.h"

#include <stdlib.h>
#include <string.h>

#include "core/problem/element.h"
#include "core/problem/spec.h"
#include "support/asserts.h"
#include "support/shapes.h"

enum { ROWS = 13, COLS = 11 };

static const struct blocks_case {
  int64_t rows, block_rows, block_cols;
  wlm_order order;
  wlm_index rowptr_type, colind_type;
  wlm_type type;
  int base, pattern;
} cases[] = {
    {ROWS, 3, 2, WLM_ROW_MAJOR, WLM_I32, WLM_I32, WLM_F32, 0, 0},
    {ROWS, 2, 5, WLM_COLUMN_MAJOR, WLM_I64, WLM_I32, WLM_F64, 1, 0},
    {ROWS, 4, 4, WLM_COLUMN_MAJOR, WLM_I64, WLM_I64, WLM_F16, 0, 0},
    {ROWS, 1, 1, WLM_ROW_MAJOR, WLM_I32, WLM_I64, WLM_BF16, 1, 0},
    {ROWS, 7, 1, WLM_ROW_MAJOR, WLM_I32, WLM_I32, WLM_F32, 0, 1},
    {0, 3, 3, WLM_ROW_MAJOR, WLM_I32, WLM_I32, WLM_F32, 1, 0},
};

/* An array in host memory and a copy on the device, of exactly its size. */
typedef struct copy {
  wlmi_device *device;
  size_t size;
  char *host;
  void *memory;
} copy;

static copy copy_of(wlmi_device *device, int64_t count, size_t size) {
  copy c = {device, (size_t)count * size, NULL, NULL};
  assert_non_null(c.host = malloc(c.size + 1));
  memset(c.host, 0xff, c.size);
  assert_status(WLM_OK, device->ops->allocate(device, c.size + !c.size, &c.memory));
  return c;
}

static void to_device(const copy *c) {
  assert_status(WLM_OK, c->device->ops->copy_in(c->device, c->memory, c->host, c->size));
}
static void to_host(const copy *c) {
  assert_status(WLM_OK, c->device->ops->copy_out(c->device, NULL, c->host, c->memory, c->size));
}
static void release(copy *c) {
  c->device->ops->release(c->device, c->memory);
  free(c->host);
}

typedef struct arrays {
  copy rowptr, colind, values, to_rowptr, to_colind, to_values;
} arrays;

/* Draws which blocks are there, each at most once; the values count up. */
static void draw(const struct blocks_case *c, wlmi_device *device, test_random *random, wlm_bsr *bsr, arrays *a) {
  int there[ROWS + 1][COLS] = {{0}};
  int64_t count = 0, p = 0;
  for (int64_t i = 0; i < c->rows; i++)
    for (int64_t j = 0; j < COLS; j++) count += there[i][j] = i % 4 != 2 && test_draw(random, 3) == 0;
  const int64_t size = c->block_rows * c->block_cols;
  *bsr = (wlm_bsr)WLM_BSR_INIT;
  bsr->rows = c->rows, bsr->cols = COLS, bsr->blocks = count, bsr->order = c->order, bsr->base = c->base;
  bsr->block_rows = c->block_rows, bsr->block_cols = c->block_cols;
  bsr->rowptr_type = c->rowptr_type, bsr->colind_type = c->colind_type, bsr->value_type = c->type;
  a->rowptr = copy_of(device, c->rows + 1, wlmi_index_size(c->rowptr_type));
  a->colind = copy_of(device, count, wlmi_index_size(c->colind_type));
  a->values = copy_of(device, count * size, wlmi_type_size(c->type));
  a->to_rowptr = copy_of(device, c->rows * c->block_rows + 1, wlmi_index_size(c->rowptr_type));
  a->to_colind = copy_of(device, count * size, wlmi_index_size(c->colind_type));
  a->to_values = copy_of(device, count * size, wlmi_type_size(c->type));
  wlmi_index_put(c->rowptr_type, a->rowptr.host, 0, c->base);
  for (int64_t i = 0; i < c->rows; i++) {
    for (int64_t j = COLS - 1; j >= 0; j--) /* blocks of a row need no order */
      if (there[i][j]) wlmi_index_put(c->colind_type, a->colind.host, p++, j + c->base);
    wlmi_index_put(c->rowptr_type, a->rowptr.host, i + 1, p + c->base);
  }
  for (int64_t k = 0; k < count * size; k++) wlmi_element_put(c->type, a->values.host, k, (double)(k % 200));
  to_device(&a->rowptr), to_device(&a->colind), to_device(&a->values);
  bsr->rowptr = a->rowptr.memory, bsr->colind = a->colind.memory;
  bsr->to_rowptr = a->to_rowptr.memory, bsr->to_colind = a->to_colind.memory;
  if (!c->pattern) bsr->values = a->values.memory, bsr->to_values = a->to_values.memory;
}

/* Walks the elements row by row, and looks up where each is in its block. */
static void compare(const struct blocks_case *c, const arrays *a) {
  int64_t at = 0;
  assert_int_equal(wlmi_index_get(c->rowptr_type, a->to_rowptr.host, 0), c->base);
  for (int64_t row = 0; row < c->rows * c->block_rows; row++) {
    const int64_t i = row / c->block_rows, line = row % c->block_rows;
    const int64_t end = wlmi_index_get(c->rowptr_type, a->rowptr.host, i + 1) - c->base;
    for (int64_t p = wlmi_index_get(c->rowptr_type, a->rowptr.host, i) - c->base; p < end; p++)
      for (int64_t j = 0; j < c->block_cols; j++, at++) {
        const int64_t block = wlmi_index_get(c->colind_type, a->colind.host, p) - c->base;
        const int64_t in_block = c->order == WLM_COLUMN_MAJOR ? line + j * c->block_rows : line * c->block_cols + j;
        assert_int_equal(wlmi_index_get(c->colind_type, a->to_colind.host, at), block * c->block_cols + j + c->base);
        if (c->pattern) continue;
        assert_true(wlmi_element_get(c->type, a->to_values.host, at) ==
                    wlmi_element_get(c->type, a->values.host, p * c->block_rows * c->block_cols + in_block));
      }
    assert_int_equal(wlmi_index_get(c->rowptr_type, a->to_rowptr.host, row + 1), at + c->base);
  }
  assert_int_equal((size_t)at * wlmi_index_size(c->colind_type), a->to_colind.size);
}

void blocks_check(wlm_context *context) {
  wlmi_device *device = wlmi_context_device(context);
  test_random random = {91};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wlm_bsr bsr;
    arrays a;
    draw(&cases[i], device, &random, &bsr, &a);
    assert_status(WLM_OK, wlm_csr_from_bsr(context, &bsr));
    assert_status(WLM_OK, device->ops->synchronize(device, NULL));
    to_host(&a.to_rowptr), to_host(&a.to_colind), to_host(&a.to_values);
    compare(&cases[i], &a);
    copy *const all[] = {&a.rowptr, &a.colind, &a.values, &a.to_rowptr, &a.to_colind, &a.to_values};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) release(all[k]);
  }
}

/* Counting sort by column, or of coordinates by row: count the entries, sum up the counts, and move each entry to the
 * next free position of its column. Entries are walked in order, so the result is the same each time. Counts are kept
 * one element further, so that after the prefix sum rowptr[row + 1] is where the row's next entry goes, and at the end
 * where the next row begins. */
#include "core/csr/transpose.h"

#include <string.h>

#include "core/base/memory.h"
#include "core/problem/element.h"
#include "core/problem/spec.h"

static void places_clear(wlm_index type, void *rowptr, int64_t rows) {
  memset(rowptr, 0, (size_t)(rows + 1) * wlmi_index_size(type));
}

/* Counts an entry of this row. */
static void places_count(wlm_index type, void *rowptr, int64_t rows, int64_t row) {
  if (row + 2 <= rows) wlmi_index_put(type, rowptr, row + 2, wlmi_index_get(type, rowptr, row + 2) + 1);
}

/* Sums up the counts; called after the last one. */
static void places_sum(wlm_index type, void *rowptr, int64_t rows) {
  for (int64_t row = 2; row <= rows; row++)
    wlmi_index_put(type, rowptr, row, wlmi_index_get(type, rowptr, row) + wlmi_index_get(type, rowptr, row - 1));
}

/* At the end, for a base of 1. */
static void places_shift(wlm_index type, void *rowptr, int64_t rows, int64_t base) {
  for (int64_t row = 0; base && row <= rows; row++)
    wlmi_index_put(type, rowptr, row, wlmi_index_get(type, rowptr, row) + base);
}

/* Returns the position of the row's next entry. */
static int64_t places_take(wlm_index type, void *rowptr, int64_t row) {
  const int64_t place = wlmi_index_get(type, rowptr, row + 1);
  wlmi_index_put(type, rowptr, row + 1, place + 1);
  return place;
}

wlm_status wlmi_transpose_fits(const wlm_csr *csr) {
  if (csr->colind_type == WLM_I64 || csr->rows <= (int64_t)INT32_MAX + 1 - csr->base) return WLM_OK;
  return wlmi_fail(WLM_ERR_OVERFLOW,
                   "wlm_csr: %lld rows are the columns of its transpose and do not fit a colind of i32",
                   (long long)csr->rows);
}

wlm_status wlmi_transpose_pattern(const wlm_csr *csr, void *rowptr, void *colind, void *order) {
  const wlm_index offset = csr->rowptr_type, index = csr->colind_type;
  WLM_CHECK(wlmi_transpose_fits(csr));
  places_clear(offset, rowptr, csr->cols);
  for (int64_t p = 0; p < csr->nnz; p++) {
    const int64_t column = wlmi_index_get(index, csr->colind, p) - csr->base;
    if (column < 0 || column >= csr->cols)
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_csr.colind[%lld] is %lld, of %lld columns%s", (long long)p,
                       (long long)(column + csr->base), (long long)csr->cols, csr->base ? " (1-based)" : "");
    places_count(offset, rowptr, csr->cols, column);
  }
  places_sum(offset, rowptr, csr->cols);
  for (int64_t row = 0, p = 0; row < csr->rows; row++) {
    /* the last row takes what is left, as on a GPU, so that nothing of the result stays unwritten */
    const int64_t end = row + 1 < csr->rows ? wlmi_index_get(offset, csr->rowptr, row + 1) - csr->base : csr->nnz;
    for (; p < end; p++) {
      const int64_t place = places_take(offset, rowptr, wlmi_index_get(index, csr->colind, p) - csr->base);
      wlmi_index_put(index, colind, place, row + csr->base);
      wlmi_index_put(offset, order, place, p);
    }
  }
  places_shift(offset, rowptr, csr->cols, csr->base);
  return WLM_OK;
}

wlm_status wlmi_csr_host_transpose(const wlmi_csr_host *a, wlmi_csr_host *out) {
  wlm_csr pattern = WLM_CSR_INIT;
  wlmi_csr_host t = {.rows = a->cols, .cols = a->rows, .nnz = a->nnz};
  int64_t *order = NULL;
  wlm_status status;
  *out = (wlmi_csr_host){0};
  pattern.rows = a->rows;
  pattern.cols = a->cols;
  pattern.nnz = a->nnz;
  pattern.rowptr = a->rowptr;
  pattern.colind = a->colind;
  pattern.rowptr_type = WLM_I64;
  WLM_TRY(wlmi_alloc_array(t.rows + 1, sizeof *t.rowptr, "rowptr", (void **)&t.rowptr));
  WLM_TRY(wlmi_alloc_array(t.nnz, sizeof *t.colind, "colind", (void **)&t.colind));
  WLM_TRY(wlmi_alloc_array(t.nnz, sizeof *order, "order of the transpose", (void **)&order));
  if (a->values) WLM_TRY(wlmi_alloc_array(t.nnz, sizeof *t.values, "values", (void **)&t.values));
  WLM_TRY(wlmi_transpose_pattern(&pattern, t.rowptr, t.colind, order));
  for (int64_t p = 0; t.values && p < t.nnz; p++) t.values[p] = a->values[order[p]];
  *out = t;
  t = (wlmi_csr_host){0};
done:
  wlmi_free(order);
  wlmi_csr_host_release(&t);
  return status;
}

/* ---- coordinates ---- */

/* Converts COO to CSR by a stable counting sort by row. */
static int is_inside(int64_t index, int64_t count) { return index >= 0 && index < count; }

static int64_t column_of(const wlm_coo *coo, int64_t p) {
  return wlmi_index_get(coo->index_type, coo->col, p) - coo->base;
}

/* The row of an entry; `rows` if one of its indices is out of range. */
static int64_t row_of(const wlm_coo *coo, int64_t p) {
  const int64_t row = wlmi_index_get(coo->index_type, coo->row, p) - coo->base;
  return is_inside(row, coo->rows) && is_inside(column_of(coo, p), coo->cols) ? row : coo->rows;
}

void wlmi_coo_to_csr(const wlm_coo *coo) {
  const wlm_index offset = coo->rowptr_type;
  int64_t behind = coo->nnz; /* where entries that lie outside begin */
  places_clear(offset, coo->rowptr, coo->rows);
  for (int64_t p = 0; p < coo->nnz; p++) {
    const int64_t row = row_of(coo, p);
    places_count(offset, coo->rowptr, coo->rows, row);
    behind -= row == coo->rows;
  }
  places_sum(offset, coo->rowptr, coo->rows);
  for (int64_t p = 0; p < coo->nnz; p++) {
    const int64_t row = row_of(coo, p), column = column_of(coo, p);
    const int64_t place = row < coo->rows ? places_take(offset, coo->rowptr, row) : behind++;
    wlmi_index_put(coo->colind_type, coo->colind, place, (is_inside(column, coo->cols) ? column : 0) + coo->base);
    if (coo->perm) wlmi_index_put(offset, coo->perm, place, p);
  }
  places_shift(offset, coo->rowptr, coo->rows, coo->base);
}

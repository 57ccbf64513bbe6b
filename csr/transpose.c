/* Counting sort by column: count the entries, sum up the counts, and move each entry to the next free position of its
 * column. Rows are walked in order, so the result is the same each time. */
#include "csr/transpose.h"

#include <string.h>

#include "common/memory.h"
#include "common/spec.h"

static int64_t get(wlm_index type, const void *from, int64_t i) {
  return type == WLM_I64 ? ((const int64_t *)from)[i] : ((const int32_t *)from)[i];
}

static void put(wlm_index type, void *to, int64_t i, int64_t value) {
  if (type == WLM_I64)
    ((int64_t *)to)[i] = value;
  else
    ((int32_t *)to)[i] = (int32_t)value;
}

wlm_status wlmi_transpose_fits(const wlm_csr *csr) {
  if (csr->colind_type == WLM_I64 || csr->rows <= (int64_t)INT32_MAX + 1) return WLM_OK;
  return wlmi_fail(WLM_ERR_OVERFLOW,
                   "wlm_csr: %lld rows are the columns of its transpose and do not fit a colind of i32",
                   (long long)csr->rows);
}

/* Counts are kept one element further, so that after the prefix sum rowptr[column + 1] is where the column's next entry
 * goes, and at the end where the next column begins. */
wlm_status wlmi_transpose_pattern(const wlm_csr *csr, void *rowptr, void *colind, void *order) {
  const wlm_index offset = csr->rowptr_type, index = csr->colind_type;
  wlm_status status = wlmi_transpose_fits(csr);
  if (status != WLM_OK) return status;
  memset(rowptr, 0, (size_t)(csr->cols + 1) * wlmi_index_size(offset));
  for (int64_t p = 0; p < csr->nnz; p++) {
    const int64_t column = get(index, csr->colind, p);
    if (column < 0 || column >= csr->cols)
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_csr.colind[%lld] is %lld, of %lld columns", (long long)p,
                       (long long)column, (long long)csr->cols);
    if (column + 2 <= csr->cols) put(offset, rowptr, column + 2, get(offset, rowptr, column + 2) + 1);
  }
  for (int64_t column = 2; column <= csr->cols; column++)
    put(offset, rowptr, column, get(offset, rowptr, column) + get(offset, rowptr, column - 1));
  for (int64_t row = 0; row < csr->rows; row++)
    for (int64_t p = get(offset, csr->rowptr, row); p < get(offset, csr->rowptr, row + 1); p++) {
      const int64_t column = get(index, csr->colind, p), place = get(offset, rowptr, column + 1);
      put(index, colind, place, row);
      put(offset, order, place, p);
      put(offset, rowptr, column + 1, place + 1);
    }
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

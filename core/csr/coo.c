/* Converts COO to CSR by a stable counting sort by row. */
#include "core/csr/coo.h"

#include "core/csr/places.h"

static int is_inside(int64_t index, int64_t count) { return index >= 0 && index < count; }

/* The row of an entry; `rows` if one of its indices is out of range. */
static int64_t row_of(const wlm_coo *coo, int64_t p) {
  const int64_t row = wlmi_index_get(coo->index_type, coo->row, p);
  return is_inside(row, coo->rows) && is_inside(wlmi_index_get(coo->index_type, coo->col, p), coo->cols) ? row
                                                                                                         : coo->rows;
}

void wlmi_coo_to_csr(const wlm_coo *coo) {
  const wlm_index offset = coo->rowptr_type;
  int64_t behind = coo->nnz; /* where entries that lie outside begin */
  wlmi_places_clear(offset, coo->rowptr, coo->rows);
  for (int64_t p = 0; p < coo->nnz; p++) {
    const int64_t row = row_of(coo, p);
    wlmi_places_count(offset, coo->rowptr, coo->rows, row);
    behind -= row == coo->rows;
  }
  wlmi_places_sum(offset, coo->rowptr, coo->rows);
  for (int64_t p = 0; p < coo->nnz; p++) {
    const int64_t row = row_of(coo, p), column = wlmi_index_get(coo->index_type, coo->col, p);
    const int64_t place = row < coo->rows ? wlmi_places_take(offset, coo->rowptr, row) : behind++;
    wlmi_index_put(coo->colind_type, coo->colind, place, is_inside(column, coo->cols) ? column : 0);
    if (coo->perm) wlmi_index_put(offset, coo->perm, place, p);
  }
}

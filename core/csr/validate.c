#include "core/csr/validate.h"

#include "core/problem/element.h"

const char *wlmi_offset_hint(wlm_index type, int64_t offset) {
  if (type == WLM_I32) return offset ? "" : "; if its offsets have 64 bits, set wlm_csr.rowptr_type to WLM_I64";
  return offset > UINT32_MAX ? "; if its offsets have 32 bits, set wlm_csr.rowptr_type to WLM_I32" : "";
}

const char *wlmi_first_hint(wlm_index type, int64_t base, int64_t first) {
  if (first != 1 - base) return wlmi_offset_hint(type, first);
  return first ? "; if your arrays count from 1, set wlm_csr.base to 1"
               : "; if your arrays count from 0, set wlm_csr.base to 0";
}

static int offsets_are_wrong(const wlm_csr *csr, int64_t row, int64_t from, int64_t to) {
  return to < from || to > csr->nnz || (row == 0 && from != 0) || (row == csr->rows - 1 && to != csr->nnz);
}

void wlmi_csr_validate(const wlm_csr *csr, struct wlm_row_fault *fault) {
  const int64_t end = wlmi_index_get(csr->rowptr_type, csr->rowptr, csr->rows) - csr->base;
  int64_t from = wlmi_index_get(csr->rowptr_type, csr->rowptr, 0) - csr->base, to;
  *fault = (struct wlm_row_fault){.row = -1, .position = -1};
  for (int64_t row = 0; row < csr->rows; row++, from = to) {
    to = wlmi_index_get(csr->rowptr_type, csr->rowptr, row + 1) - csr->base;
    *fault = (struct wlm_row_fault){row, from, to, -1, 0};
    if (offsets_are_wrong(csr, row, from, to)) return;
    for (int64_t p = from; p < to && p < end; p++) {
      const int64_t column = wlmi_index_get(csr->colind_type, csr->colind, p) - csr->base;
      if (column >= 0 && column < csr->cols) continue;
      fault->position = p;
      fault->column = column;
      return;
    }
  }
  *fault = (struct wlm_row_fault){.row = -1, .position = -1};
}

wlm_status wlmi_row_fault_status(const struct wlm_row_fault *fault, const wlm_csr *csr) {
  const long long base = csr->base, from = fault->from + base, to = fault->to + base; /* as in the arrays */
  if (fault->row < 0) return WLM_OK;
  if (fault->position >= 0)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "row %lld: colind[%lld] is %lld, must be %lld to %lld (%lld-based)",
                     fault->row, fault->position, fault->column + base, base, (long long)csr->cols - 1 + base, base);
  if (fault->row == 0 && fault->from)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "row 0: rowptr starts at %lld, must start at %lld%s", from, base,
                     wlmi_first_hint(csr->rowptr_type, base, from));
  if (fault->to < fault->from)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "row %lld: rowptr falls from %lld to %lld%s", fault->row, from, to,
                     wlmi_offset_hint(csr->rowptr_type, to ? from : 0));
  return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "row %lld: ends at %lld, %s nnz%s = %lld", fault->row, to,
                   fault->to > csr->nnz ? "which is beyond" : "but the last row must end at", base ? " + 1" : "",
                   (long long)csr->nnz + base);
}

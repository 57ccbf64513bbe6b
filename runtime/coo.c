/* wlm_csr_from_coo: converts coordinates to CSR on their device. */
#include "core/csr/transpose.h"

#include "core/base/pointer.h"
#include "core/problem/structs.h"
#include "runtime/helper.h"
#include "runtime/sort_device.h"

static wlm_status check(const wlm_coo *coo) {
  const size_t index = wlmi_index_size(coo->index_type), offset = wlmi_index_size(coo->rowptr_type);
  wlm_csr csr = WLM_CSR_INIT; /* the result; also checks the indices' type */
  csr.rows = coo->rows;
  csr.cols = coo->cols;
  csr.nnz = coo->nnz;
  csr.rowptr = coo->rowptr;
  csr.colind = coo->colind;
  csr.rowptr_type = coo->rowptr_type;
  csr.colind_type = coo->colind_type;
  csr.base = coo->base;
  WLM_CHECK(wlmi_check_base("wlm_coo.base", coo->base));
  wlm_status status = wlmi_matrix_check(&csr);
  if (status != WLM_OK) return wlmi_fail_in(status, "wlm_csr_from_coo");
  if (coo->index_type != WLM_I32 && coo->index_type != WLM_I64)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_coo.index_type is %d, which is not in its enum",
                     (int)coo->index_type);
  if (coo->index_type == WLM_I32 && coo->rows > INT32_MAX - coo->base)
    return wlmi_fail(WLM_ERR_OVERFLOW, "wlm_coo: %lld rows do not fit indices of i32", (long long)coo->rows);
  const wlmi_pointer arrays[] = {
      {"row", coo->row, index, coo->nnz != 0}, {"col", coo->col, index, coo->nnz != 0}, {"perm", coo->perm, offset, 0}};
  return wlmi_check_pointers("wlm_coo", arrays, 3);
}

static wlm_status convert_by_host(wlmi_device *device, wlm_coo coo) {
  const size_t index = wlmi_index_size(coo.index_type), offset = wlmi_index_size(coo.rowptr_type);
  wlmi_mirror arrays[] = {{"row", &coo.row, coo.nnz, index, 0, NULL},
                          {"col", &coo.col, coo.nnz, index, 0, NULL},
                          {"rowptr", &coo.rowptr, coo.rows + 1, offset, 1, NULL},
                          {"colind", &coo.colind, coo.nnz, wlmi_index_size(coo.colind_type), 1, NULL},
                          {"perm", &coo.perm, coo.nnz, offset, 1, NULL}};
  const int count = sizeof arrays / sizeof *arrays;
  const wlm_status status = wlmi_mirror_open(device, coo.stream, arrays, count);
  if (status == WLM_OK) wlmi_coo_to_csr(&coo);
  return wlmi_mirror_close(device, coo.stream, arrays, count, status);
}

wlm_status wlm_csr_from_coo(wlm_context *context, const wlm_coo *given) {
  wlmi_help help;
  size_t scratch_size;
  wlm_coo coo;
  wlm_csr types = WLM_CSR_INIT;
  WLM_CHECK(wlmi_need("wlm_csr_from_coo", "context coo", context, given));
  WLM_CHECK(wlmi_struct_read(&wlmi_struct_coo, given, &coo));
  WLM_CHECK(check(&coo));
  types.rowptr_type = coo.rowptr_type;
  types.colind_type = coo.index_type;
  types.base = coo.base;
  WLM_CHECK(wlmi_coo_scratch_size(&coo, &scratch_size));
  wlm_status status = wlmi_help_begin(context, WLMI_HELPER_COO, &types, 1, coo.stream, scratch_size, &help);
  if (status == WLM_OK)
    status = help.kernels ? wlmi_coo_enqueue(context->device, help.kernels, &coo, help.scratch.memory)
                          : convert_by_host(context->device, coo);
  wlmi_help_end(context, coo.stream, &help);
  return wlmi_finish(status);
}

/* wlm_csr_from_coo: converts coordinates to CSR on their device. */
#include "core/csr/transpose.h"

#include "core/base/memory.h"
#include "core/base/pointer.h"
#include "core/problem/structs.h"
#include "runtime/context_state.h"
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
  wlm_status status = wlmi_matrix_check(&csr);
  if (status != WLM_OK) return wlmi_fail_in(status, "wlm_csr_from_coo");
  if (coo->index_type != WLM_I32 && coo->index_type != WLM_I64)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_coo.index_type is %d, which is not in its enum",
                     (int)coo->index_type);
  if (coo->nnz && (!coo->rows || !coo->cols))
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_coo: %lld edges, and the matrix has no %s", (long long)coo->nnz,
                     coo->rows ? "columns" : "rows");
  if (coo->index_type == WLM_I32 && coo->rows > INT32_MAX)
    return wlmi_fail(WLM_ERR_OVERFLOW, "wlm_coo: %lld rows do not fit indices of i32", (long long)coo->rows);
  const wlmi_pointer arrays[] = {
      {"row", coo->row, index, coo->nnz != 0}, {"col", coo->col, index, coo->nnz != 0}, {"perm", coo->perm, offset, 0}};
  return wlmi_check_pointers("wlm_coo", arrays, 3);
}

typedef struct host_arrays {
  void *row, *col, *rowptr, *colind, *perm;
} host_arrays;

/* Without a compiler for the device: converts on the host, with copies there and back. */
static wlm_status convert_by_way_of_host(wlmi_device *device, const wlm_coo *coo) {
  const size_t nnz = (size_t)coo->nnz, index = nnz * wlmi_index_size(coo->index_type);
  const size_t offset = wlmi_index_size(coo->rowptr_type), column = wlmi_index_size(coo->colind_type);
  host_arrays h = {0};
  wlm_coo on_host = *coo;
  wlm_status status;
  WLM_TRY(wlmi_alloc_array(coo->nnz, wlmi_index_size(coo->index_type), "row", &h.row));
  WLM_TRY(wlmi_alloc_array(coo->nnz, wlmi_index_size(coo->index_type), "col", &h.col));
  WLM_TRY(wlmi_alloc_array(coo->rows + 1, offset, "rowptr", &h.rowptr));
  WLM_TRY(wlmi_alloc_array(coo->nnz, column, "colind", &h.colind));
  if (coo->perm) WLM_TRY(wlmi_alloc_array(coo->nnz, offset, "perm", &h.perm));
  if (nnz) WLM_TRY(device->ops->copy_out_on(device, coo->stream, h.row, coo->row, index));
  if (nnz) WLM_TRY(device->ops->copy_out_on(device, coo->stream, h.col, coo->col, index));
  on_host.row = h.row;
  on_host.col = h.col;
  on_host.rowptr = h.rowptr;
  on_host.colind = h.colind;
  on_host.perm = h.perm;
  wlmi_coo_to_csr(&on_host);
  WLM_TRY(device->ops->wait(device, coo->stream)); /* earlier work may still read the memory that is written now */
  WLM_TRY(device->ops->copy_in(device, coo->rowptr, h.rowptr, (size_t)(coo->rows + 1) * offset));
  if (nnz) WLM_TRY(device->ops->copy_in(device, coo->colind, h.colind, nnz * column));
  if (nnz && coo->perm) WLM_TRY(device->ops->copy_in(device, coo->perm, h.perm, nnz * offset));
done:
  wlmi_free(h.row);
  wlmi_free(h.col);
  wlmi_free(h.rowptr);
  wlmi_free(h.colind);
  wlmi_free(h.perm);
  return status;
}

static wlm_status convert_there(wlm_context *context, const wlm_coo *coo, void *const kernels[WLM_MAX_PASSES]) {
  wlmi_lent scratch = {0};
  size_t size;
  wlm_status status;
  WLM_TRY(wlmi_coo_scratch_size(coo, &size));
  WLM_TRY(wlmi_workspace_take(&context->workspaces, context->device, coo->stream, size, &scratch));
  status = wlmi_coo_enqueue(context->device, kernels, coo, scratch.memory);
done:
  wlmi_workspace_give(&context->workspaces, context->device, coo->stream, &scratch);
  return status;
}

wlm_status wlm_csr_from_coo(wlm_context *context, const wlm_coo *given) {
  void *kernels[WLM_MAX_PASSES] = {0};
  wlm_coo coo;
  WLM_CHECK(wlmi_need("wlm_csr_from_coo", "context coo", context, given));
  WLM_CHECK(wlmi_struct_read(&wlmi_struct_coo, given, &coo));
  WLM_CHECK(check(&coo));
  if (context->device->info.limits.target != WLM_TARGET_CUDA) {
    wlmi_coo_to_csr(&coo);
    return WLM_OK;
  }
  wlm_csr types = WLM_CSR_INIT;
  types.rowptr_type = coo.rowptr_type;
  types.colind_type = coo.index_type;
  const wlm_status status = wlmi_context_load_helper(context, WLM_HELPER_COO, &types, kernels);
  if (status == WLM_ERR_NO_COMPILER) {
    wlmi_clear_error();
    return convert_by_way_of_host(context->device, &coo);
  }
  return status == WLM_OK ? convert_there(context, &coo, kernels) : status;
}

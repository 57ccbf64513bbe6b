#include "runtime/validate.h"

#include "core/problem/spec.h"
#include "core/problem/structs.h"
#include "runtime/helper.h"

wlm_status wlmi_validate_by_kernel(wlmi_device *device, void *kernel, const wlm_csr *csr, void *stream, void *scratch,
                                   struct wlm_row_fault *fault) {
  const int64_t most = 8 * (int64_t)device->info.limits.processors;
  const int64_t wanted = (csr->rows > csr->nnz ? csr->rows : csr->nnz) / (4 * WLM_VALIDATE_THREADS) + 1;
  const int64_t blocks = most < 1 || wanted < most ? wanted : most;
  const struct wlm_args args = {.rows = csr->rows,
                                .cols = csr->cols,
                                .nnz = csr->nnz,
                                .rowptr = csr->rowptr,
                                .colind = csr->colind,
                                .workspace = scratch};
  WLM_CHECK(device->ops->fill(device, stream, scratch, 0, sizeof(struct wlm_validation)));
  WLM_CHECK(wlmi_help_launch(device, kernel, blocks, WLM_VALIDATE_THREADS, 0, &args, stream));
  return device->ops->copy_out(device, stream, fault, scratch, sizeof *fault);
}

wlm_status wlmi_validate_by_host(wlmi_device *device, const wlm_csr *given, void *stream, struct wlm_row_fault *fault) {
  wlm_csr csr = *given;
  wlmi_mirror arrays[] = {{"rowptr", &csr.rowptr, csr.rows + 1, wlmi_index_size(csr.rowptr_type), 0, NULL},
                          {"colind", &csr.colind, csr.nnz, wlmi_index_size(csr.colind_type), 0, NULL}};
  const int count = sizeof arrays / sizeof *arrays;
  const wlm_status status = wlmi_mirror_open(device, stream, arrays, count);
  if (status == WLM_OK) wlmi_csr_validate(&csr, fault);
  return wlmi_mirror_close(device, stream, arrays, count, status);
}

static wlm_status find_fault(wlm_context *context, const wlm_csr *csr, void *stream, struct wlm_row_fault *fault) {
  wlmi_device *device = context->device;
  wlmi_help help;
  *fault = (struct wlm_row_fault){.row = -1, .position = -1};
  if (!csr->rows) return WLM_OK;
  wlm_status status =
      wlmi_help_begin(context, WLMI_HELPER_VALIDATE, csr, 1, stream, sizeof(struct wlm_validation), &help);
  if (status == WLM_OK)
    status = help.kernels ? wlmi_validate_by_kernel(device, help.kernels[0], csr, stream, help.scratch.memory, fault)
                          : wlmi_validate_by_host(device, csr, stream, fault);
  wlmi_help_end(context, stream, &help);
  return status;
}

wlm_status wlm_matrix_validate(const wlm_matrix *matrix, void *stream, int64_t *row) {
  struct wlm_row_fault fault;
  if (row) *row = -1;
  WLM_CHECK(wlmi_need("wlm_matrix_validate", "matrix", matrix));
  WLM_CHECK(wlmi_matrix_with_arrays(matrix, matrix->context, "wlm_matrix_validate"));
  WLM_CHECK(find_fault(matrix->context, &matrix->csr, stream, &fault));
  if (row) *row = fault.row;
  return wlmi_finish(wlmi_row_fault_status(&fault, &matrix->csr));
}

#include "tuner/upload.h"

#include "core/base/memory.h"
#include "core/csr/transpose.h"
#include "core/problem/element.h"
#include "core/synth/input.h"

wlm_index wlmi_upload_rowptr_type(const wlmi_csr_host *csr) { return csr->nnz <= INT32_MAX ? WLM_I32 : WLM_I64; }

static wlm_status copy_to_device(wlmi_device *device, const void *from, int64_t count, size_t size, void **to) {
  size_t bytes = (size_t)count * size;
  wlm_status status = device->ops->allocate(device, bytes ? bytes : 1, to);
  return status == WLM_OK && bytes ? device->ops->copy_in(device, *to, from, bytes) : status;
}

static wlm_status copy_rowptr(wlmi_device *device, const wlmi_csr_host *csr, wlm_index type, void **to) {
  if (type == WLM_I64) return copy_to_device(device, csr->rowptr, csr->rows + 1, sizeof *csr->rowptr, to);
  if (csr->nnz > INT32_MAX)
    return wlmi_fail(WLM_ERR_OVERFLOW, "%lld non-zeros do not fit an i32 rowptr: use i64", (long long)csr->nnz);
  int32_t *narrow;
  WLM_CHECK(wlmi_alloc_array(csr->rows + 1, sizeof *narrow, "rowptr", (void **)&narrow));
  for (int64_t row = 0; row <= csr->rows; row++) narrow[row] = (int32_t)csr->rowptr[row];
  wlm_status status = copy_to_device(device, narrow, csr->rows + 1, sizeof *narrow, to);
  wlmi_free(narrow);
  return status;
}

static wlm_status copy_values(wlmi_device *device, const wlmi_csr_host *csr, int64_t heads, wlm_type type, void **to) {
  const size_t size = wlmi_type_size(type);
  void *values;
  int64_t count;
  if (!csr->values) return WLM_OK;
  if (type == WLM_F32 && heads == 1) return copy_to_device(device, csr->values, csr->nnz, size, to);
  if (__builtin_mul_overflow(csr->nnz, heads, &count))
    return wlmi_fail(WLM_ERR_OVERFLOW, "values of %lld edges and %lld heads", (long long)csr->nnz, (long long)heads);
  WLM_CHECK(wlmi_alloc_array(count, size, "values", &values));
  for (int64_t p = 0, place = 0; p < csr->nnz; p++)
    for (int64_t head = 0; head < heads; head++, place++)
      wlmi_element_put(type, values, place, (double)csr->values[p] * (double)(head + 1) / (double)heads);
  wlm_status status = copy_to_device(device, values, count, size, to);
  wlmi_free(values);
  return status;
}

static wlm_status copy_colind(wlmi_device *device, const wlmi_csr_host *csr, wlm_index type, void **to) {
  if (type == WLM_I32) return copy_to_device(device, csr->colind, csr->nnz, sizeof *csr->colind, to);
  int64_t *wide;
  WLM_CHECK(wlmi_alloc_array(csr->nnz, sizeof *wide, "colind", (void **)&wide));
  for (int64_t p = 0; p < csr->nnz; p++) wide[p] = csr->colind[p];
  wlm_status status = copy_to_device(device, wide, csr->nnz, sizeof *wide, to);
  wlmi_free(wide);
  return status;
}

wlm_status wlmi_upload_create_typed(wlm_context *context, const wlmi_csr_host *csr, wlm_index rowptr_type,
                                    wlm_index colind_type, wlm_type value_type, int64_t heads, wlmi_upload *upload) {
  wlm_status status;
  wlmi_device *device = wlmi_context_device(context);
  *upload = (wlmi_upload){.device = device};
  WLM_TRY(copy_rowptr(device, csr, rowptr_type, &upload->rowptr));
  WLM_TRY(copy_colind(device, csr, colind_type, &upload->colind));
  WLM_TRY(copy_values(device, csr, heads, value_type, &upload->values));

  wlm_csr view = WLM_CSR_INIT;
  view.rows = csr->rows;
  view.cols = csr->cols;
  view.nnz = csr->nnz;
  view.rowptr = upload->rowptr;
  view.colind = upload->colind;
  view.values = upload->values;
  view.rowptr_type = rowptr_type;
  view.colind_type = colind_type;
  view.value_type = value_type;
  WLM_TRY(wlm_matrix_create(context, &view, NULL, &upload->matrix));
done:
  if (status != WLM_OK) wlmi_upload_release(upload);
  return status;
}

wlm_status wlmi_upload_create(wlm_context *context, const wlmi_csr_host *csr, wlm_index rowptr_type,
                              wlmi_upload *upload) {
  return wlmi_upload_create_typed(context, csr, rowptr_type, WLM_I32, WLM_F32, 1, upload);
}

wlm_status wlmi_upload_create_values(wlm_context *context, const wlmi_upload *pattern, const wlmi_csr_host *csr,
                                     wlm_type value_type, wlmi_upload *upload) {
  wlm_status status;
  wlm_csr view = *wlmi_matrix_csr(pattern->matrix);
  wlm_matrix_options options = WLM_MATRIX_OPTIONS_INIT;
  options.grade = WLM_STATS_GIVEN;
  options.stats = wlm_matrix_stats(pattern->matrix);
  *upload = (wlmi_upload){.device = pattern->device};
  WLM_TRY(copy_values(pattern->device, csr, 1, value_type, &upload->values));
  view.values = upload->values;
  view.value_type = value_type;
  WLM_TRY(wlm_matrix_create(context, &view, &options, &upload->matrix));
done:
  if (status != WLM_OK) wlmi_upload_release(upload);
  return status;
}

void wlmi_upload_release(wlmi_upload *upload) {
  if (!upload->device) return;
  wlm_matrix_destroy(upload->matrix);
  upload->device->ops->release(upload->device, upload->values);
  upload->device->ops->release(upload->device, upload->colind);
  upload->device->ops->release(upload->device, upload->rowptr);
  *upload = (wlmi_upload){0};
}

wlm_status wlmi_stand_in_make(wlm_context *context, const wlm_stats *stats, const wlmi_spec *spec,
                              wlmi_upload *upload) {
  char name[WLMI_STAND_IN_NAME];
  wlmi_csr_host csr = {0}, transposed = {0};
  wlm_status status;
  *upload = (wlmi_upload){.device = NULL};
  wlmi_stand_in_name(stats, name);
  WLM_TRY(wlmi_input_read(name, &csr));
  if (!spec->has_values) {
    wlmi_free(csr.values);
    csr.values = NULL;
  }
  if (spec->problem.transpose) WLM_TRY(wlmi_csr_host_transpose(&csr, &transposed));
  status = wlmi_upload_create_typed(context, spec->problem.transpose ? &transposed : &csr, spec->rowptr_type,
                                    spec->colind_type, spec->value_type, spec->problem.heads, upload);
done:
  wlmi_csr_host_release(&csr);
  wlmi_csr_host_release(&transposed);
  return status;
}

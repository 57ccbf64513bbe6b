/* Binding a matrix: the caller's arrays stay where they are; the statistics are made from one copy of rowptr
 * and a sample of colind, or taken from the caller. */
#include "common/memory.h"
#include "common/pointer.h"
#include "csr/stats.h"
#include "runtime/context_state.h"

static wlm_status check_csr(const wlm_csr *csr) {
  if (csr->size != sizeof *csr)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_csr.size is %zu, expected %zu: use WLM_CSR_INIT", csr->size,
                     sizeof *csr);
  if (csr->rows < 0 || csr->cols < 0 || csr->nnz < 0)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_csr: rows = %lld, cols = %lld, nnz = %lld; none may be negative",
                     (long long)csr->rows, (long long)csr->cols, (long long)csr->nnz);
  if (csr->rows > INT64_MAX / 16 || csr->nnz > INT64_MAX / 16)
    return wlmi_fail(WLM_ERR_OVERFLOW, "wlm_csr: rows = %lld, nnz = %lld; no memory holds so many",
                     (long long)csr->rows, (long long)csr->nnz);
  if (csr->rowptr_type == WLM_I32 && csr->nnz > INT32_MAX)
    return wlmi_fail(WLM_ERR_OVERFLOW, "wlm_csr: %lld non-zeros do not fit a rowptr of i32; use i64",
                     (long long)csr->nnz);
  if (csr->colind_type == WLM_I32 && csr->cols > (int64_t)INT32_MAX + 1)
    return wlmi_fail(WLM_ERR_OVERFLOW, "wlm_csr: %lld columns do not fit a colind of i32", (long long)csr->cols);
  const wlmi_pointer arrays[] = {{"rowptr", csr->rowptr, wlmi_index_size(csr->rowptr_type), 1},
                                 {"colind", csr->colind, wlmi_index_size(csr->colind_type), csr->nnz != 0},
                                 {"values", csr->values, wlmi_type_size(csr->value_type), 0}};
  return wlmi_check_pointers("wlm_csr", arrays, 3);
}

/* Below this many bytes one copy of all of colind is quicker than 4,096 copies of one index. */
enum { COPY_WHOLE = 16 << 20 };

static wlm_status sample_colind(wlmi_device *device, const wlm_csr *csr, int64_t *sample) {
  size_t width = wlmi_index_size(csr->colind_type), bytes = (size_t)csr->nnz * width;
  int64_t count = wlmi_stats_sample_count(csr->nnz);
  char *whole = NULL;
  wlm_status status = WLM_OK;
  if (bytes <= COPY_WHOLE) {
    WLM_TRY(wlmi_alloc_array(csr->nnz, width, "colind", (void **)&whole));
    WLM_TRY(device->ops->copy_out(device, whole, csr->colind, bytes));
  }
  for (int64_t k = 0; k < count; k++) {
    size_t offset = (size_t)wlmi_stats_sample_position(csr->nnz, k) * width;
    int64_t wide = 0;
    int32_t narrow = 0;
    void *target = width == 8 ? (void *)&wide : (void *)&narrow;
    if (whole)
      __builtin_memcpy(target, whole + offset, width);
    else
      WLM_TRY(device->ops->copy_out(device, target, (const char *)csr->colind + offset, width));
    sample[k] = width == 8 ? wide : narrow;
  }
done:
  wlmi_free(whole);
  return status;
}

wlm_status wlmi_matrix_make_stats(wlmi_device *device, const wlm_csr *csr, wlm_stats *stats) {
  size_t width = wlmi_index_size(csr->rowptr_type);
  void *rowptr = NULL, *sample = NULL;
  wlm_status status;
  WLM_TRY(wlmi_alloc_array(csr->rows + 1, width, "rowptr", &rowptr));
  WLM_TRY(wlmi_alloc_array(WLM_STATS_SAMPLES, sizeof(int64_t), "sample of colind", &sample));
  WLM_TRY(device->ops->copy_out(device, rowptr, csr->rowptr, (size_t)(csr->rows + 1) * width));
  WLM_TRY(sample_colind(device, csr, sample));
  WLM_TRY(wlmi_stats_compute_sampled(rowptr, csr->rowptr_type, csr->rows, csr->cols, csr->nnz, sample, stats));
done:
  wlmi_free(rowptr);
  wlmi_free(sample);
  return status;
}

static wlm_status take_stats(const wlm_csr *csr, const wlm_stats *given, wlm_stats *stats) {
  if (given->size != sizeof *given)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_stats.size is %zu, expected %zu: use WLM_STATS_INIT", given->size,
                     sizeof *given);
  if (given->rows != csr->rows || given->cols != csr->cols || given->nnz != csr->nnz)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "the given wlm_stats are of a matrix of another size");
  *stats = *given;
  return WLM_OK;
}

wlm_status wlm_matrix_create(wlm_context *context, const wlm_csr *csr, const wlm_stats *stats, wlm_matrix **out) {
  *out = NULL;
  wlm_status status = check_csr(csr);
  if (status != WLM_OK) return status;
  wlm_matrix *matrix = wlmi_alloc_zero(1, sizeof *matrix);
  if (!matrix) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "matrix");
  matrix->csr = *csr;
  status =
      stats ? take_stats(csr, stats, &matrix->stats) : wlmi_matrix_make_stats(context->device, csr, &matrix->stats);
  if (status == WLM_OK) status = wlmi_transpose_create(context, &matrix->transpose);
  if (status == WLM_OK)
    *out = matrix;
  else
    wlm_matrix_destroy(matrix);
  return status;
}

void wlm_matrix_destroy(wlm_matrix *matrix) {
  if (!matrix) return;
  wlmi_transpose_destroy(matrix->transpose);
  wlmi_free(matrix);
}

wlm_status wlmi_matrix_see(const wlm_matrix *matrix, const wlm_problem *problem, wlmi_matrix_view *view) {
  if (problem->transpose) return wlmi_transpose_get(matrix->transpose, &matrix->csr, view);
  *view = (wlmi_matrix_view){.csr = matrix->csr, .stats = &matrix->stats};
  return WLM_OK;
}

const wlm_stats *wlm_matrix_stats(const wlm_matrix *matrix) { return &matrix->stats; }

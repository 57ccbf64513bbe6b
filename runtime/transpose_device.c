/* Builds A^T by the rounds of a radix sort (runtime/sort_device.h) of the columns and the positions. The last round
 * leaves the positions in `order` and the sorted columns in a buffer from which rowptr is computed. */
#include "runtime/transpose_device.h"

#include "core/csr/transpose.h"
#include "runtime/sort_device.h"

/* The parts of the scratch: counts, then columns, then positions if there is more than one round. The other buffer of
 * the columns is colind, which is written last. */
static size_t columns_size(const wlm_csr *csr) {
  return wlmi_sort_round_up((size_t)csr->nnz * wlmi_index_size(csr->colind_type));
}
static size_t order_size(const wlm_csr *csr) {
  return wlmi_sort_round_up((size_t)csr->nnz * wlmi_index_size(csr->rowptr_type));
}

wlm_status wlmi_transpose_layout_of(const wlm_csr *csr, wlmi_transpose_layout *layout) {
  wlmi_sort sort;
  wlm_status status;
  WLM_TRY(wlmi_transpose_fits(csr));
  WLM_TRY(wlmi_sort_make(csr->nnz, csr->cols, &sort));
  layout->rowptr = 0;
  layout->colind = wlmi_sort_round_up((size_t)(csr->cols + 1) * wlmi_index_size(csr->rowptr_type));
  layout->order = layout->colind + columns_size(csr);
  layout->scratch = layout->order + order_size(csr);
  layout->size = layout->scratch + sort.counts + columns_size(csr) + (sort.rounds > 1 ? order_size(csr) : 0);
done:
  return status == WLM_OK ? status : wlmi_fail_in(status, "the transpose");
}

wlm_status wlmi_transpose_enqueue(const wlmi_device *device, void *const kernels[WLM_MAX_PASSES], const wlm_csr *csr,
                                  void *rowptr, void *colind, void *order, void *scratch, void *stream) {
  const int64_t threads = csr->nnz > csr->cols + 1 ? csr->nnz : csr->cols + 1;
  struct wlm_args args = {.rows = csr->rows,
                          .cols = csr->cols,
                          .nnz = csr->nnz,
                          .rowptr = csr->rowptr,
                          .b = csr->colind,
                          .workspace = scratch};
  wlmi_sort sort;
  WLM_CHECK(wlmi_sort_make(csr->nnz, csr->cols, &sort));
  char *const columns = (char *)scratch + sort.counts;
  WLM_CHECK(wlmi_sort_enqueue(device, kernels, &sort, (void *[]){columns, colind},
                              (void *[]){order, columns + columns_size(csr)}, &args, stream));
  args.c = rowptr;
  args.arg = colind;
  return wlmi_sort_finish(device, kernels, threads, &args, stream);
}

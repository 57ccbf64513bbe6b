/* A transposed problem is an ordinary problem on A^T, so every family serves it and is tuned for it. Only the values
 * stay in A's order, because they may change between two executes: kernels read value order[q] for entry q. Compared
 * with a pass that sorts the values first, this saves a launch, a workspace of nnz elements, and writing and reading
 * it. The loads order -> values run in parallel with the loads colind -> B. */
#include "runtime/transpose.h"

#include <pthread.h>

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "core/csr/transpose.h"
#include "runtime/helper.h"
#include "runtime/load.h"
#include "runtime/sort_device.h"

struct wlmi_transpose {
  wlm_context *context;
  void *stream;
  pthread_mutex_t lock;
  int made;
  wlmi_matrix_view view;
  wlm_stats stats;
  void *memory; /* on the device: rowptr, colind and order, as the layout says */
  void *rowptr, *colind, *order;
  wlmi_fork_watch forks;
};

/* What another thread began to build is built again. */
static void transpose_in_child(void *object) {
  wlmi_transpose *transpose = object;
  if (wlmi_fork_free_lock(&transpose->lock)) transpose->made = 0;
}

wlm_status wlmi_transpose_create(wlm_context *context, void *stream, wlmi_transpose **out) {
  wlmi_transpose *transpose = *out = wlmi_alloc_zero(1, sizeof *transpose);
  if (!transpose) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "matrix");
  transpose->context = context;
  transpose->stream = stream;
  pthread_mutex_init(&transpose->lock, NULL);
  return wlmi_fork_watch_begin(&transpose->forks, transpose_in_child, transpose);
}

static void release_memory(wlmi_transpose *t) {
  t->context->device->ops->release(t->context->device, t->memory);
  t->memory = NULL;
}

void wlmi_transpose_destroy(wlmi_transpose *transpose) {
  if (!transpose) return;
  wlmi_fork_watch_end(&transpose->forks);
  release_memory(transpose);
  pthread_mutex_destroy(&transpose->lock);
  wlmi_free(transpose);
}

/* ---- making it ------------------------------------------------------------------------------------------ */

wlm_status wlmi_transpose_on_host(wlmi_device *device, void *stream, const wlm_csr *csr, void *rowptr, void *colind,
                                  void *order) {
  const size_t offset = wlmi_index_size(csr->rowptr_type), index = wlmi_index_size(csr->colind_type);
  wlm_csr a = *csr;
  wlmi_mirror arrays[] = {{"rowptr", &a.rowptr, a.rows + 1, offset, 0, NULL},
                          {"colind", &a.colind, a.nnz, index, 0, NULL},
                          {"rowptr of the transpose", &rowptr, a.cols + 1, offset, 1, NULL},
                          {"colind of the transpose", &colind, a.nnz, index, 1, NULL},
                          {"order of the transpose", &order, a.nnz, offset, 1, NULL}};
  wlm_status status = wlmi_mirror_open(device, stream, arrays, 5);
  if (status == WLM_OK) status = wlmi_transpose_pattern(&a, rowptr, colind, order);
  return wlmi_mirror_close(device, stream, arrays, 5, status);
}

enum { MOST_ON_HOST = 1 << 22 }; /* non-zeros; with more the host takes as long as a compiler */

wlm_status wlmi_transpose_load(wlm_context *context, const wlm_csr *csr, void *stream, void *kernels[WLMI_MAX_PASSES]) {
  wlmi_device *device = context->device;
  wlm_status status = WLM_OK;
  int on_host = device->info.limits.target != WLMI_TARGET_CUDA;
  if (!on_host && context->background.wanted && csr->nnz <= MOST_ON_HOST && !device->ops->is_captured(device, stream))
    status = wlmi_background_helps(context, WLMI_HELPER_TRANSPOSE, csr, &on_host);
  if (status == WLM_OK && on_host) return WLM_ERR_NO_COMPILER;
  return status == WLM_OK ? wlmi_load_helper(context, WLMI_HELPER_TRANSPOSE, csr, kernels) : status;
}

/* Builds A^T on the device, if the kernels can be compiled. */
static wlm_status make_there(wlmi_transpose *t, const wlm_csr *csr, const wlmi_transpose_layout *layout) {
  wlmi_device *device = t->context->device;
  const size_t size = layout->size - layout->scratch;
  void *kernels[WLMI_MAX_PASSES] = {0}, *scratch = NULL, *const stream = t->stream;
  wlm_status status;
  WLM_TRY(wlmi_transpose_load(t->context, csr, stream, kernels));
  WLM_TRY(device->ops->allocate_on(device, stream, size, &scratch));
  WLM_TRY(wlmi_transpose_enqueue(device, kernels, csr, t->rowptr, t->colind, t->order, scratch, stream));
  WLM_TRY(device->ops->wait(device, stream));
done:
  if (scratch) device->ops->release_on(device, stream, scratch, size);
  return status;
}

wlm_csr wlmi_transpose_given(const wlm_csr *csr) {
  wlm_csr transposed = *csr;
  transposed.rows = csr->cols;
  transposed.cols = csr->rows;
  transposed.rowptr = csr->t_rowptr;
  transposed.colind = csr->t_colind;
  transposed.t_rowptr = transposed.t_colind = transposed.t_order = NULL;
  return transposed;
}

static wlm_status make_arrays(wlmi_transpose *t, const wlm_csr *csr, const wlmi_transpose_layout *layout) {
  const wlm_status status = make_there(t, csr, layout);
  return status == WLM_ERR_NO_COMPILER
             ? wlmi_transpose_on_host(t->context->device, t->stream, csr, t->rowptr, t->colind, t->order)
             : status;
}

static wlm_status build(wlmi_transpose *t, const wlm_csr *csr, wlm_csr *built) {
  wlmi_device *device = t->context->device;
  wlmi_transpose_layout layout;
  wlm_status status;
  WLM_TRY(wlmi_transpose_layout_of(csr, &layout));
  WLM_TRY(device->ops->allocate(device, layout.scratch, &t->memory));
  t->rowptr = (char *)t->memory + layout.rowptr;
  t->colind = (char *)t->memory + layout.colind;
  t->order = (char *)t->memory + layout.order;
  WLM_TRY(make_arrays(t, csr, &layout));
  built->t_rowptr = t->rowptr;
  built->t_colind = t->colind;
  built->t_order = t->order;
done:
  return status;
}

static wlm_status make(wlmi_transpose *t, const wlm_csr *csr) {
  const double begin = wlmi_seconds();
  wlmi_matrix_view *view = &t->view;
  wlm_csr whole = *csr;
  wlm_status status = WLM_OK;
  if (!csr->t_rowptr) WLM_TRY(build(t, csr, &whole));
  view->csr = wlmi_transpose_given(&whole);
  view->order = whole.t_order;
  if (t->memory)
    view->made_bytes = (size_t)(csr->cols + 1 + csr->nnz) * wlmi_index_size(csr->rowptr_type) +
                       (size_t)csr->nnz * wlmi_index_size(csr->colind_type);
  WLM_TRY(wlmi_matrix_make_stats(t->context, &view->csr, t->stream, &t->stats));
  WLM_TRY(wlmi_matrix_add_fingerprint(t->context, &view->csr, t->stream, &t->stats));
  view->stats = &t->stats;
  view->made_seconds = wlmi_seconds() - begin;
done:
  if (status != WLM_OK) release_memory(t);
  return status;
}

wlm_status wlmi_transpose_get(wlmi_transpose *transpose, const wlm_csr *csr, wlmi_matrix_view *view) {
  wlm_status status = WLM_OK;
  pthread_mutex_lock(&transpose->lock);
  if (!transpose->made) {
    status = make(transpose, csr);
    transpose->made = status == WLM_OK;
  }
  if (status == WLM_OK) *view = transpose->view;
  pthread_mutex_unlock(&transpose->lock);
  return status == WLM_OK ? status : wlmi_fail_in(status, "the transpose of the matrix");
}

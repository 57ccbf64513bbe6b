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

struct wlmi_transpose {
  wlm_context *context;
  void *stream;
  pthread_mutex_t lock;
  int made;
  wlmi_matrix_view view;
  wlm_stats stats;
  void *memory; /* on the device: rowptr, colind and order; NULL = A^T is given */
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

enum { MOST_ON_HOST = 1 << 22 }; /* non-zeros; with more the host takes as long as a compiler */

int wlmi_transpose_may_wait(wlmi_device *device, const wlm_csr *csr, void *stream) {
  return csr->nnz > MOST_ON_HOST || device->ops->is_captured(device, stream);
}

static wlm_status build_on_host(wlmi_device *device, wlm_csr a, void *rowptr, void *colind, void *order, void *stream) {
  const size_t offset = wlmi_index_size(a.rowptr_type), index = wlmi_index_size(a.colind_type);
  wlmi_mirror arrays[] = {{"rowptr", &a.rowptr, a.rows + 1, offset, 0, NULL},
                          {"colind", &a.colind, a.nnz, index, 0, NULL},
                          {"rowptr of the transpose", &rowptr, a.cols + 1, offset, 1, NULL},
                          {"colind of the transpose", &colind, a.nnz, index, 1, NULL},
                          {"order of the transpose", &order, a.nnz, offset, 1, NULL}};
  const int count = sizeof arrays / sizeof *arrays;
  wlm_status status = wlmi_mirror_open(device, stream, arrays, count);
  if (status == WLM_OK) status = wlmi_transpose_pattern(&a, rowptr, colind, order);
  return wlmi_mirror_close(device, stream, arrays, count, status);
}

wlm_status wlmi_transpose_build(wlmi_device *device, void *const *kernels, const wlmi_transpose_layout *layout,
                                char *memory, void *scratch, void *stream, wlm_csr *csr) {
  char *const rowptr = memory + layout->rowptr, *const colind = memory + layout->colind;
  char *const order = memory + layout->order;
  csr->t_rowptr = rowptr, csr->t_colind = colind, csr->t_order = order;
  return kernels ? wlmi_transpose_enqueue(device, kernels, csr, rowptr, colind, order, scratch, stream)
                 : build_on_host(device, *csr, rowptr, colind, order, stream);
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

/* Builds A^T in memory of its own. */
static wlm_status build(wlmi_transpose *t, wlm_csr *csr) {
  wlmi_device *device = t->context->device;
  wlmi_transpose_layout layout;
  wlmi_help help;
  WLM_CHECK(wlmi_transpose_layout_of(csr, &layout));
  WLM_CHECK(device->ops->allocate(device, layout.scratch, &t->memory));
  wlm_status status =
      wlmi_help_begin(t->context, WLMI_HELPER_TRANSPOSE, csr, wlmi_transpose_may_wait(device, csr, t->stream),
                      t->stream, layout.size - layout.scratch, &help);
  if (status == WLM_OK)
    status = wlmi_transpose_build(device, help.kernels, &layout, t->memory, help.scratch.memory, t->stream, csr);
  if (status == WLM_OK) status = device->ops->wait(device, t->stream);
  wlmi_help_end(t->context, t->stream, &help);
  return status;
}

static wlm_status make(wlmi_transpose *t, const wlm_csr *csr) {
  const double begin = wlmi_seconds();
  wlmi_matrix_view *view = &t->view;
  wlm_csr whole = *csr;
  wlm_status status = WLM_OK;
  if (!csr->t_rowptr) WLM_TRY(build(t, &whole));
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

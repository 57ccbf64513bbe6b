/* A^T of a matrix, built once and kept with the matrix. */
#pragma once

#include "runtime/context.h"
#include "runtime/sort_device.h"

typedef struct wlmi_transpose wlmi_transpose;

wlm_status wlmi_transpose_create(wlm_context *context, void *stream, wlmi_transpose **transpose);
void wlmi_transpose_destroy(wlmi_transpose *transpose); /* NULL is fine */

/* Whether building A^T on this stream may wait for a compiler (wlmi_help_load): if A is large, so the host takes as
 * long, or the stream is captured. */
int wlmi_transpose_may_wait(wlmi_device *device, const wlm_csr *csr, void *stream);

/* Builds A^T in `memory` and adds it to csr, as if it were given. `kernels` are those of WLMI_HELPER_TRANSPOSE, which
 * this enqueues; with NULL the host builds it, after the stream's earlier work, and needs no scratch. */
wlm_status wlmi_transpose_build(wlmi_device *device, void *const *kernels, const wlmi_transpose_layout *layout,
                                char *memory, void *scratch, void *stream, wlm_csr *csr);

/* A^T as its caller gave it. The values stay in A's order, see wlm_csr.t_order. */
wlm_csr wlmi_transpose_given(const wlm_csr *csr);

/* Builds A^T at the first call unless it is given, which blocks; any thread. `view` is valid as long as the transpose.
 */
wlm_status wlmi_transpose_get(wlmi_transpose *transpose, const wlm_csr *csr, wlmi_matrix_view *view);

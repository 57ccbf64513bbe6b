/* A^T of a matrix, built once and kept with the matrix. */
#pragma once

#include "runtime/context.h"

typedef struct wlmi_transpose wlmi_transpose;

wlm_status wlmi_transpose_create(wlm_context *context, void *stream, wlmi_transpose **transpose);
void wlmi_transpose_destroy(wlmi_transpose *transpose); /* NULL is fine */

/* Loads the kernels that build A^T on this stream. WLM_ERR_NO_COMPILER where the host builds it: on the host device,
 * without a compiler, and a small one while these kernels are compiled in the background, if the stream is not
 * captured.
 */
wlm_status wlmi_transpose_load(wlm_context *context, const wlm_csr *csr, void *stream, void *kernels[WLMI_MAX_PASSES]);

/* Builds A^T on the host into arrays of the device, by copies there and back unless it is the host. */
wlm_status wlmi_transpose_on_host(wlmi_device *device, void *stream, const wlm_csr *csr, void *rowptr, void *colind,
                                  void *order);

/* A^T as its caller gave it. The values stay in A's order, see wlm_csr.t_order. */
wlm_csr wlmi_transpose_given(const wlm_csr *csr);

/* Builds A^T at the first call unless it is given, which blocks; any thread. `view` is valid as long as the transpose.
 */
wlm_status wlmi_transpose_get(wlmi_transpose *transpose, const wlm_csr *csr, wlmi_matrix_view *view);

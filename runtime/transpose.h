/* A^T of a matrix, built once and kept with the matrix. */
#ifndef WLM_RUNTIME_TRANSPOSE_H
#define WLM_RUNTIME_TRANSPOSE_H

#include "runtime/context.h"

typedef struct wlmi_transpose wlmi_transpose;

wlm_status wlmi_transpose_create(wlm_context *context, void *stream, wlmi_transpose **transpose);
void wlmi_transpose_destroy(wlmi_transpose *transpose); /* NULL is fine */

/* Builds A^T at the first call, which blocks; any thread. `view` is valid as long as the transpose. */
wlm_status wlmi_transpose_get(wlmi_transpose *transpose, const wlm_csr *csr, wlmi_matrix_view *view);

#endif

/* A^T of a bound matrix, made once and kept with it. */
#ifndef WLM_RUNTIME_TRANSPOSE_H
#define WLM_RUNTIME_TRANSPOSE_H

#include "runtime/context.h"

typedef struct wlm_transpose wlm_transpose;

wlm_status wlm_transpose_create(wlm_context *context, wlm_transpose **transpose);
void wlm_transpose_destroy(wlm_transpose *transpose); /* NULL is fine */

/* Makes it at the first call, which blocks; any thread. `view` stays good as long as the transpose. */
wlm_status wlm_transpose_get(wlm_transpose *transpose, const wlm_csr *csr, wlm_matrix_view *view);

#endif

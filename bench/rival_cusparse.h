/* cuSPARSE's SpMM for CSR in fp32, row-major B and C, as a rival to be timed by a device's timer. */
#ifndef WLM_BENCH_RIVAL_CUSPARSE_H
#define WLM_BENCH_RIVAL_CUSPARSE_H

#include "runtime/dispatch/device.h"

enum { WLM_CUSPARSE_WAYS = 8 }; /* four algorithms, each with and without cusparseSpMM_preprocess */

/* "default_nopre", "default", "alg1_nopre", ... */
const char *wlm_cusparse_name(int way);

typedef struct wlm_cusparse wlm_cusparse; /* one way, set up for one product: handle, descriptors, buffer */

/* C = A * B; the device must be a cuda one and the arrays its memory. WARPLOOM_CUSPARSE may name the library's file.
 * WLM_ERR_UNSUPPORTED with cuSPARSE's reason where this way refuses. */
wlm_status wlm_cusparse_create(wlm_device *device, int way, const wlm_csr *csr, int64_t n, const void *b, void *c,
                               wlm_cusparse **rival);
void wlm_cusparse_destroy(wlm_cusparse *rival); /* NULL is fine */

wlm_status wlm_cusparse_enqueue(void *rival, void *stream); /* fit for timer_create */
/* What the preprocessing took, 0 where this way has none. A second run in the process: the first loads code. */
double wlm_cusparse_preprocess_seconds(const wlm_cusparse *rival);

#endif

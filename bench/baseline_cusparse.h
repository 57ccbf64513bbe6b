/* cuSPARSE's SpMM and SDDMM for CSR, row-major dense matrices, all of one type, as a baseline to be timed by a device's
 * timer. Sums are in f32, of f64 in f64. */
#ifndef WLM_BENCH_BASELINE_CUSPARSE_H
#define WLM_BENCH_BASELINE_CUSPARSE_H

#include "runtime/dispatch/device.h"

/* The ways of SpMM, four algorithms, each with and without cusparseSpMM_preprocess; the one after them is SDDMM. */
enum { WLM_CUSPARSE_WAYS = 8, WLM_CUSPARSE_SDDMM = WLM_CUSPARSE_WAYS };

/* "default_nopre", "default", "alg1_nopre", ..., "sddmm" */
const char *wlmi_cusparse_name(int way);

/* C = A * B, or values = dC * B^T where A has entries. */
typedef struct wlmi_cusparse_product {
  const wlm_csr *a; /* its values take no part in SDDMM */
  int64_t n;
  wlm_type type; /* of B and what is dense beside it */
  const void *b; /* cols x n */
  void *dense;   /* rows x n: C, or dC, which is only read */
  void *values;  /* of SDDMM: the nnz results */
} wlmi_cusparse_product;

typedef struct wlmi_cusparse wlmi_cusparse; /* one way, set up for one product: handle, descriptors, buffer */

/* The device must be a cuda one and the arrays its memory. WARPLOOM_CUSPARSE may name the library's file.
 * WLM_ERR_UNSUPPORTED with cuSPARSE's reason where this way refuses. */
wlm_status wlmi_cusparse_create(wlmi_device *device, int way, const wlmi_cusparse_product *product,
                                wlmi_cusparse **baseline);
void wlmi_cusparse_destroy(wlmi_cusparse *baseline); /* NULL is fine */

wlm_status wlmi_cusparse_enqueue(void *baseline, void *stream); /* fit for timer_create */
/* What the preprocessing took, 0 where this way has none. A second run in the process: the first loads code. */
double wlmi_cusparse_preprocess_seconds(const wlmi_cusparse *baseline);

#endif

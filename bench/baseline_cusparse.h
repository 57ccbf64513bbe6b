/* cuSPARSE's SpMM and SDDMM for CSR, row-major dense matrices, all of one type, among the entrants that tuner/entrant.h
 * times. Sums are in f32, of f64 in f64. */
#ifndef WLM_BENCH_BASELINE_CUSPARSE_H
#define WLM_BENCH_BASELINE_CUSPARSE_H

#include "tuner/entrant.h"

/* The ways of SpMM, four algorithms, each with and without cusparseSpMM_preprocess; the one after them is SDDMM. */
enum { WLM_CUSPARSE_WAYS = 8, WLM_CUSPARSE_SDDMM = WLM_CUSPARSE_WAYS };

/* WLM_OK where the library is found; otherwise WLM_ERR_UNSUPPORTED, with what was tried. */
wlm_status wlmi_cusparse_find(void);

/* "default_nopre", "default", "alg1_nopre", ..., "sddmm" */
const char *wlmi_cusparse_name(int way);

/* One way over the operands' memory, which must be that of an sddmm for its way; with handle, descriptors and buffer of
 * its own. The device must be a cuda one; WARPLOOM_CUSPARSE may name the library's file. An entrant that this way
 * refuses has cuSPARSE's reason as its failure. *preprocess_seconds, which may be NULL, is what the preprocessing took
 * at its second run (the first loads code); 0 where this way has none. */
void wlmi_entrant_cusparse(const wlmi_operands *operands, int way, wlmi_entrant *entrant, double *preprocess_seconds);

#endif

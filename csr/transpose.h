/* A^T in compressed rows, on the host. */
#ifndef WLM_CSR_TRANSPOSE_H
#define WLM_CSR_TRANSPOSE_H

#include "csr/csr.h"

/* The non-zeros of `csr`, whose arrays are in host memory and whose values do not matter, by column; those of a column
 * stay in the order of the rows, and of positions where a row names a column twice. Written are, in the types that csr
 * has for rowptr and colind:
 *   rowptr  cols + 1 offsets
 *   colind  nnz rows of csr
 *   order   nnz positions in csr's colind, of rowptr's type: entry q of the transpose is entry order[q] of csr
 * WLM_ERR_INVALID_ARGUMENT names an entry whose column lies outside. */
wlm_status wlmi_transpose_pattern(const wlm_csr *csr, void *rowptr, void *colind, void *order);

/* A^T as a new matrix, with the values where A has some. */
wlm_status wlmi_csr_host_transpose(const wlmi_csr_host *a, wlmi_csr_host *out);

/* Whether the transpose's indices fit the types of csr: WLM_ERR_OVERFLOW where there are too many rows. */
wlm_status wlmi_transpose_fits(const wlm_csr *csr);

#endif

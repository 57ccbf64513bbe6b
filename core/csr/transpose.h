/* A^T in compressed rows, on the host. */
#pragma once

#include "core/csr/csr.h"

/* Builds the pattern of A^T. The arrays of `csr` are in host memory; its values are not read. The entries of a column
 * are in the order of their rows, then of their positions. Writes, in the types and the base of csr's rowptr and
 * colind: rowptr  cols + 1 offsets colind  nnz row numbers of csr order   nnz positions in csr's colind, from 0, of
 * rowptr's type: entry q of the transpose is entry order[q] of csr WLM_ERR_INVALID_ARGUMENT names an entry whose column
 * is out of range. */
wlm_status wlmi_transpose_pattern(const wlm_csr *csr, void *rowptr, void *colind, void *order);

/* A^T as a new matrix, with the values where A has some. */
wlm_status wlmi_csr_host_transpose(const wlmi_csr_host *a, wlmi_csr_host *out);

/* WLM_ERR_OVERFLOW if the row numbers of csr do not fit the type of its colind, as the transpose needs. */
wlm_status wlmi_transpose_fits(const wlm_csr *csr);

/* Coordinates to CSR on the host. */

/* wlm_csr_from_coo for checked arguments whose arrays are in host memory. */
void wlmi_coo_to_csr(const wlm_coo *coo);

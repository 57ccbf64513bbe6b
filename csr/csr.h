/* A sparse matrix on the host, in compressed rows: what readers and twins make and everything else takes. */
#ifndef WLM_CSR_CSR_H
#define WLM_CSR_CSR_H

#include "common/status.h"

/* What the rows of A made of an edge of A^T when they were sampled. */
typedef struct wlmi_edge_share {
  int64_t times; /* how often the sample takes the edge */
  double factor; /* what the norm multiplies its message by */
} wlmi_edge_share;

typedef struct wlmi_csr_host {
  int64_t rows, cols, nnz;
  int64_t *rowptr; /* rows + 1 */
  int32_t *colind; /* nnz, 0-based */
  float *values;   /* nnz (x heads where a problem has several); NULL = pattern, every entry is 1 */
  double *wide;    /* nnz, in place of `values`, of a matrix that is read back with values of f64; otherwise NULL */
  wlmi_edge_share *shares; /* nnz, of the transpose of a sampled matrix; otherwise NULL */
} wlmi_csr_host;

static inline double wlmi_csr_value(const wlmi_csr_host *csr, int64_t p) {
  return csr->wide ? csr->wide[p] : csr->values ? (double)csr->values[p] : 1.0;
}

void wlmi_csr_host_release(wlmi_csr_host *csr); /* also of a zeroed one; leaves it zeroed */

/* Coordinates in any order to rows with ascending columns; `value` NULL is a pattern. Entries at one place
 * are summed (in double, in the order given), as scipy and SuiteSparse do; the entries of a pattern count as 1,
 * so a pattern in which a place is named twice becomes a matrix with values, and any other stays a pattern.
 * WLM_ERR_INVALID_ARGUMENT names the first entry that lies outside. */
wlm_status wlmi_csr_from_coo(int64_t rows, int64_t cols, int64_t count, const int32_t *row, const int32_t *col,
                             const float *value, wlmi_csr_host *out);

#endif

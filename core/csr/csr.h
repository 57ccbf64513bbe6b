/* A sparse matrix in CSR on the host. The readers and the synthetic matrices produce it. */
#pragma once

#include <stdint.h>

#include "core/base/status.h"

/* What sampling the rows of A means for an edge. */
typedef struct wlmi_edge_share {
  int64_t times; /* how often the sample takes the edge */
  double factor; /* the factor by which the norm multiplies the edge's message */
} wlmi_edge_share;

typedef struct wlmi_csr_host {
  int64_t rows, cols, nnz;
  int64_t *rowptr;         /* rows + 1 */
  int32_t *colind;         /* nnz, 0-based */
  float *values;           /* nnz (x heads where a problem has several); NULL = pattern, every entry is 1 */
  double *wide;            /* nnz, instead of `values`, if the values are f64; otherwise NULL */
  wlmi_edge_share *shares; /* nnz, of the transpose of a sampled matrix and of a sampled message; otherwise NULL */
} wlmi_csr_host;

static inline double wlmi_csr_value(const wlmi_csr_host *csr, int64_t p) {
  return csr->wide ? csr->wide[p] : csr->values ? (double)csr->values[p] : 1.0;
}

/* Asked when the size of a matrix is known and before memory is taken for it: a status other than WLM_OK ends the
 * reading. */
typedef struct wlmi_size_check {
  wlm_status (*fits)(void *user, int64_t rows, int64_t cols, int64_t nnz);
  void *user;
} wlmi_size_check;

void wlmi_csr_host_release(wlmi_csr_host *csr); /* also of a zeroed one; leaves it zeroed */

/* Converts coordinates in any order to CSR with ascending columns; value = NULL means a pattern. Entries with equal
 * coordinates are summed (in double, in the order given), as in SciPy and SuiteSparse. Entries of a pattern count as 1,
 * so a pattern with repeated coordinates becomes a matrix with values. WLM_ERR_INVALID_ARGUMENT names the first entry
 * outside of the matrix. */
wlm_status wlmi_csr_from_coo(int64_t rows, int64_t cols, int64_t count, const int32_t *row, const int32_t *col,
                             const float *value, wlmi_csr_host *out);

/* The entries of a matrix while a reader collects them: coordinate arrays that grow on demand. */

typedef struct wlmi_entries {
  int has_values; /* 0: a pattern */
  int64_t count, capacity;
  int32_t *row, *col;
  float *value; /* NULL for a pattern */
} wlmi_entries;

/* `most`: as many entries as may come. WLM_ERR_OUT_OF_MEMORY */
wlm_status wlmi_entries_add(wlmi_entries *entries, int64_t most, int64_t row, int64_t col, float value);
/* Converts them and releases them, also where that fails. `path` is for messages. */
wlm_status wlmi_entries_to_csr(wlmi_entries *entries, const char *path, int64_t rows, int64_t cols, wlmi_csr_host *out);
void wlmi_entries_release(wlmi_entries *entries);

/* Sorts the entries of one row by column. */

/* An entry is one word: the column in its high half and a payload, such as the bits of the value, in its low half. */
static inline uint64_t wlmi_row_entry(int32_t column, uint32_t payload) {
  return (uint64_t)(uint32_t)column << 32 | payload;
}
static inline int32_t wlmi_entry_column(uint64_t entry) { return (int32_t)(entry >> 32); }
static inline uint32_t wlmi_entry_payload(uint64_t entry) { return (uint32_t)entry; }

/* By column, stable; `scratch` has room for `count` entries. */
void wlmi_sort_entries(uint64_t *entries, uint64_t *scratch, int64_t count);

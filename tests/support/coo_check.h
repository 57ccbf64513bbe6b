/* Edge lists and the expected results of wlm_csr_from_coo. */
#pragma once

#include "warploom/warploom.h"

/* One list of edges. If `outside` is set, some indices lie outside of the matrix. */
typedef struct coo_case {
  int64_t rows, cols, nnz;
  int sorted, outside;
  wlm_index index_type, rowptr_type, colind_type;
  int base;
} coo_case;

int coo_case_count(void);
coo_case coo_case_of(int number);

/* Makes the list in host memory of exactly the needed size, calls `convert` to fill the CSR matrix, and compares
 * every element with a list that qsort has sorted. A sorted list is converted both with and without the flag
 * `sorted`. */
void coo_check(const coo_case *c, uint64_t seed, void (*convert)(void *user, const wlm_coo *coo), void *user);
